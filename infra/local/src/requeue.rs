//! `hearback requeue`: sends feedback to the signal generator that it never processed: events without an outcome, and
//! reactions and message signals that are not in the ledger.
//!
//! This repairs the loss of stream records, for example after a pipe was down for more than a day. A message that is
//! sent twice is processed once, so the command can be repeated, also while feedback arrives.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use aws_sdk_sqs::Client;
use futures::future::try_join_all;
use hearback_storage::Store;
use hearback_storage::queued::{Queued, QueuedKind, QueuedPage, ReceivedWindow, Segment};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, sleep_until};

use crate::delivery::{OutgoingMessage, SendOutcome, send};

/// Messages in a send.
const BATCH: usize = 10;
/// Attempts to send a message.
const ATTEMPTS: u32 = 5;
/// Pause before the first retry; it doubles with each.
const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// What to send, and how fast.
#[derive(Debug, Clone, Copy)]
pub struct RequeueOptions {
    /// The period of receipt.
    pub window: ReceivedWindow,
    /// Segments of the table that are scanned in parallel.
    pub segments: u16,
    /// Maximum messages a second.
    pub rate: u32,
    /// Whether to count without sending.
    pub dry_run: bool,
}

/// The result of a requeue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequeueSummary {
    /// Items that were read.
    pub scanned: u64,
    /// Feedback that was never processed, by kind.
    pub waiting: BTreeMap<QueuedKind, u64>,
    /// Messages that were sent.
    pub sent: u64,
    /// Messages that the queue rejected because of their content.
    pub rejected: u64,
    /// Items that cannot be read.
    pub unreadable: u64,
}

impl RequeueSummary {
    /// How much feedback of a kind was never processed.
    #[must_use]
    pub fn of(&self, kind: QueuedKind) -> u64 {
        self.waiting.get(&kind).copied().unwrap_or_default()
    }

    fn add_page(&mut self, page: &QueuedPage) {
        self.scanned += page.scanned;
        self.unreadable += page.unreadable;
        for queued in &page.queued {
            *self.waiting.entry(queued.kind).or_default() += 1;
        }
    }

    fn add(&mut self, other: &Self) {
        self.scanned += other.scanned;
        self.unreadable += other.unreadable;
        self.sent += other.sent;
        self.rejected += other.rejected;
        for (kind, count) in &other.waiting {
            *self.waiting.entry(*kind).or_default() += count;
        }
    }
}

/// Sends messages at a limited rate, shared by all segments.
struct Sender<'a> {
    client: &'a Client,
    queue: &'a str,
    /// Time between two messages.
    interval: Duration,
    next: Mutex<Instant>,
}

/// Scans the table, and sends unprocessed feedback to the queue of the signal generator.
pub async fn requeue(
    store: &Store,
    client: &Client,
    queue: &str,
    options: RequeueOptions,
) -> Result<RequeueSummary> {
    ensure!(
        options.rate > 0,
        "the rate must be at least one message a second"
    );
    let sender = Sender {
        client,
        queue,
        interval: Duration::from_secs(1) / options.rate,
        next: Mutex::new(Instant::now()),
    };
    let of = i32::from(options.segments.max(1));
    let segments =
        (0..of).map(|number| requeue_segment(store, &sender, Segment { number, of }, options));
    let mut total = RequeueSummary::default();
    for segment in try_join_all(segments).await? {
        total.add(&segment);
    }
    Ok(total)
}

async fn requeue_segment(
    store: &Store,
    sender: &Sender<'_>,
    segment: Segment,
    options: RequeueOptions,
) -> Result<RequeueSummary> {
    let mut done = RequeueSummary::default();
    let mut after = None;
    loop {
        let page = store.queued_page(segment, options.window, after).await;
        let page = page.context("cannot read the table")?;
        done.add_page(&page);
        if !options.dry_run {
            for batch in page.queued.chunks(BATCH) {
                let rejected = sender.send(batch).await?;
                done.rejected += rejected;
                done.sent += u64::try_from(batch.len())?.saturating_sub(rejected);
            }
        }
        after = page.next;
        if after.is_none() {
            return Ok(done);
        }
    }
}

impl Sender<'_> {
    /// Sends a batch when the rate permits, and returns how many messages were rejected.
    async fn send(&self, batch: &[Queued]) -> Result<u64> {
        let count = u32::try_from(batch.len())?;
        let mut next = self.next.lock().await;
        let at = (*next).max(Instant::now());
        *next = at + self.interval * count;
        drop(next);
        sleep_until(at).await;
        let mut left: Vec<_> = batch.iter().map(|queued| self.outgoing(queued)).collect();
        let (mut rejected, mut pause) = (0, RETRY_PAUSE);
        for _ in 0..ATTEMPTS {
            let outcomes = send(self.client, &left).await;
            let mut failed = Vec::new();
            for (message, outcome) in left.into_iter().zip(outcomes) {
                match outcome {
                    SendOutcome::Sent => {}
                    SendOutcome::Rejected(_) => rejected += 1,
                    SendOutcome::Failed(_) => failed.push(message),
                }
            }
            if failed.is_empty() {
                return Ok(rejected);
            }
            left = failed;
            sleep(pause).await;
            pause *= 2;
        }
        anyhow::bail!("cannot write to the queue; run the command again")
    }

    fn outgoing(&self, queued: &Queued) -> OutgoingMessage {
        OutgoingMessage {
            queue: self.queue.to_owned(),
            body: queued.message.clone(),
        }
    }
}

//! Commands that repair after a failure: `hearback redrive` and `hearback requeue`.

use std::io::Write;

use anyhow::{Result, ensure};
use chrono::{DateTime, TimeDelta, Utc};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use hearback_domain::events::retention::LEDGER_DAYS;
use hearback_storage::Store;
use hearback_storage::queued::{QueuedKind, ReceivedWindow};

use super::BundleArgs;
use crate::clients::Clients;
use crate::names::Names;
use crate::queue_tools::url;
use crate::redrive::{DeadLetterQueue, OutletQueue, RedriveSummary, redrive};
use crate::requeue::{RequeueOptions, requeue};

/// Maximum age, in days, of feedback that is sent again. Its dedupe claim must outlast the 14 days that a message may
/// wait in the queue and 14 more in the DLQ.
const OLDEST_DAYS: u16 = 60;
const _: () = assert!(OLDEST_DAYS + 14 + 14 < LEDGER_DAYS);
/// Feedback that is younger may still be processed on the normal way.
const IN_PROGRESS_MINUTES: i64 = 15;

#[derive(Args)]
pub(super) struct Redrive {
    /// Whose dead letters to move
    #[arg(long, value_parser = dead_letter_queue(), default_value = "signals", value_name = "NAME")]
    queue: DeadLetterQueue,
    /// With `--queue stream`, outlets of this deployment to which published messages are sent again, too;
    /// comma-separated
    #[arg(long, value_enum, value_delimiter = ',', value_name = "LIST")]
    outlets: Vec<OutletQueue>,
    /// The same as `--queue stream`
    #[arg(long, hide = true, conflicts_with = "queue")]
    stream: bool,
    /// Name of the table, if it is not the stack's name: the output `TableName` of a deployed stack. `--queue stream`
    /// reads the table
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
    #[command(flatten)]
    bundle: BundleArgs,
}

#[derive(Args)]
pub(super) struct Requeue {
    /// Start of the period of receipt, for example 2026-11-20T08:00:00Z; at most 60 days ago [default: 30 days ago]
    #[arg(long, value_name = "TIME")]
    since: Option<DateTime<Utc>>,
    /// End of the period of receipt [default: 15 minutes ago]
    #[arg(long, value_name = "TIME")]
    until: Option<DateTime<Utc>>,
    /// Count only, send nothing
    #[arg(long)]
    dry_run: bool,
    /// Maximum messages a second
    #[arg(long, default_value_t = 100, value_name = "NUMBER",
        value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rate: u32,
    /// Segments of the table to scan in parallel
    #[arg(long, default_value_t = 1, value_name = "NUMBER",
        value_parser = clap::value_parser!(u16).range(1..=64))]
    segments: u16,
    /// Name of the table, if it is not the stack's name: the output `TableName` of a deployed stack
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
    #[command(flatten)]
    bundle: BundleArgs,
}

impl BundleArgs {
    pub(super) fn open(&self, table: Option<String>) -> Result<(Clients, Names, Store)> {
        let (clients, names) = (self.clients()?, Names::new(&self.stack));
        let table = table.unwrap_or_else(|| names.table());
        let store = Store::new(clients.dynamodb.clone(), table);
        Ok((clients, names, store))
    }
}

impl Redrive {
    pub(super) async fn run(self) -> Result<()> {
        let (clients, names, store) = self.bundle.open(self.table)?;
        let queue = if self.stream {
            DeadLetterQueue::Stream
        } else {
            self.queue
        };
        ensure!(
            queue == DeadLetterQueue::Stream || self.outlets.is_empty(),
            "--outlets is for --queue stream: other dead letters go back to the queue that they come from"
        );
        let summary = redrive(&clients, &names, &store, queue, &self.outlets).await?;
        let RedriveSummary { moved, remaining } = summary;
        let noun = if moved == 1 { "letter" } else { "letters" };
        let mut out = std::io::stdout().lock();
        writeln!(out, "{moved} dead {noun} moved back")?;
        ensure!(remaining == 0, "dead letters that remain: {remaining}");
        Ok(())
    }
}

/// Parses the name of a dead-letter queue from which something can be moved back or delivered again.
fn dead_letter_queue() -> impl TypedValueParser<Value = DeadLetterQueue> {
    let known = DeadLetterQueue::all().filter(|queue| *queue != DeadLetterQueue::Fanout);
    let values = known.map(|queue| PossibleValue::new(queue.as_str()).help(queue.holds()));
    PossibleValuesParser::new(values)
        .try_map(|name| DeadLetterQueue::named(&name).ok_or("there is no such queue"))
}

impl Requeue {
    pub(super) async fn run(self) -> Result<()> {
        let now = Utc::now();
        let oldest = now - TimeDelta::days(OLDEST_DAYS.into());
        let since = self.since.unwrap_or(now - TimeDelta::days(30));
        let until = self
            .until
            .unwrap_or(now - TimeDelta::minutes(IN_PROGRESS_MINUTES));
        ensure!(
            since >= oldest,
            "feedback older than {OLDEST_DAYS} days cannot be sent again: a preference might count it twice"
        );
        ensure!(since < until, "--since is not before --until");
        let (clients, names, store) = self.bundle.open(self.table)?;
        let queue = url(&clients.sqs, &names.signals()).await?;
        let options = RequeueOptions {
            window: ReceivedWindow { since, until },
            segments: self.segments,
            rate: self.rate,
            dry_run: self.dry_run,
        };
        let done = requeue(&store, &clients.sqs, &queue, options).await?;
        let mut out = std::io::stdout().lock();
        writeln!(
            out,
            "items scanned: {}; waiting: {} events, {} reactions, {} signals, {} withdrawals; sent: {}",
            done.scanned,
            done.of(QueuedKind::Event),
            done.of(QueuedKind::Reaction),
            done.of(QueuedKind::Signal),
            done.of(QueuedKind::Withdrawal),
            done.sent
        )?;
        let (rejected, unreadable) = (done.rejected, done.unreadable);
        ensure!(
            rejected + unreadable == 0,
            "rejected by the queue: {rejected}; unreadable: {unreadable}"
        );
        Ok(())
    }
}

//! Sends a connection what is new in its feed.

use chrono::{DateTime, TimeDelta, Utc};
use hearback_domain::views::feed::{FeedPosition, SETTLED_AFTER};
use hearback_domain::views::live::{
    CHECK_AFTER, Goodbye, Progress, ServerFrame, Subscription, frames,
};
use hearback_lambda::clock::Clock;
use hearback_lambda::queue::{MessageFailure, RetryLimit};
use hearback_storage::connections::Connection;
use hearback_storage::feed::{FeedPart, FeedReader};
use hearback_storage::{Error, Store};

use crate::sockets::{NotPosted, Posted, Sockets};
use crate::tasks::{NotSent, Task, Tasks};

/// Messages that are read at once.
const PART_EVENTS: usize = 500;
/// Bytes of messages that are read at once.
const PART_BYTES: usize = 256 * 1024;
/// Parts that one invocation sends to a connection. A message of the queue continues.
const PARTS: usize = 4;

/// Sends events to connections.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// The table.
    pub store: Store,
    /// The clock.
    pub clock: Clock,
    /// The open sockets.
    pub sockets: Sockets,
    /// The queue of the fan-out.
    pub tasks: Tasks,
}

/// Why a delivery must be repeated.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Storage(#[from] Error),
    #[error(transparent)]
    NotPosted(#[from] NotPosted),
    #[error(transparent)]
    NotSent(#[from] NotSent),
    #[error("a frame was rejected for now")]
    Busy,
    #[error("the message has an unknown format")]
    Unreadable,
}

impl MessageFailure for Failure {
    fn tries(&self) -> RetryLimit {
        match self {
            Self::Storage(error) => error.tries(),
            Self::NotPosted(_) | Self::NotSent(_) | Self::Busy => RetryLimit::Many,
            Self::Unreadable => RetryLimit::Once,
        }
    }
}

impl Delivery {
    /// An open connection. A connection whose time is over receives a goodbye and is closed. A connection without a row
    /// is closed, too: its user was erased.
    pub(crate) async fn open(&self, id: &str) -> Result<Option<Connection>, Failure> {
        match self.store.connection(id).await {
            Ok(Some(connection)) => {
                let (end, reason) = connection.listener.end();
                if self.clock.now() < end {
                    return Ok(Some(connection));
                }
                self.end(id, reason).await?;
            }
            Ok(None) => self.sockets.close(id).await?,
            Err(error @ Error::Unreadable { .. }) => {
                tracing::warn!(%error, damaged = true, "a connection whose row cannot be read is closed");
                self.forget(id).await?;
            }
            Err(error) => return Err(error.into()),
        }
        Ok(None)
    }

    async fn end(&self, id: &str, reason: Goodbye) -> Result<(), Failure> {
        self.sockets.post(id, &ServerFrame::Goodbye(reason)).await?;
        self.forget(id).await
    }

    /// Closes a connection and removes its rows.
    pub(crate) async fn forget(&self, id: &str) -> Result<(), Failure> {
        self.sockets.close(id).await?;
        Ok(self.store.delete_connection(id).await?)
    }

    /// Sends a connection what it has not received of its feed; `false` if it is closed. After it was `woken`, the feed
    /// is read again later, for what an index did not show yet.
    pub(crate) async fn deliver(&self, id: &str, woken: bool) -> Result<bool, Failure> {
        let Some(connection) = self.open(id).await? else {
            return Ok(false);
        };
        let Some((subscription, before)) = &connection.subscribed else {
            return Ok(true);
        };
        let (mut progress, now) = (before.clone(), self.clock.now());
        let (mut check, mut more) = (woken, true);
        let mut failure = None;
        for _ in 0..PARTS {
            // The row has no room for further entries: everything before them must be complete first.
            let was_full = progress.is_full();
            let until = if was_full {
                now - SETTLED_AFTER
            } else {
                now + SETTLED_AFTER
            };
            let part = self.part(&connection, subscription, &progress, until, now);
            let part = part.await?;
            let reached = if part.more {
                part.reached
            } else {
                FeedPosition::before(until.min(now))
            };
            let (last, posted) = self.post(id, &progress, part.events, now).await;
            match posted {
                Ok(Posted::Sent) => {
                    progress.advance(reached, part.entries, now);
                    more = part.more || (was_full && !progress.is_full());
                    check |= progress.is_full();
                }
                Ok(Posted::Gone) => {
                    self.forget(id).await?;
                    return Ok(false);
                }
                rejected => {
                    // The rest follows when the client reads again. The last entry may be sent in part.
                    if let Some(last) = last {
                        let entries = part.entries.into_iter();
                        let entries = entries.filter(|entry| *entry < last.entry());
                        progress.advance(last, entries, now);
                    }
                    (check, more) = (true, false);
                    failure = rejected.err();
                }
            }
            if !more {
                break;
            }
        }
        let mut tasks = Vec::new();
        if check && progress.plan_check(now) {
            tasks.push((Task::Deliver, CHECK_AFTER));
        }
        if more {
            tasks.push((Task::Deliver, TimeDelta::zero()));
        }
        // Before the progress is stored, which says that they were sent.
        self.tasks.send(id, &tasks).await?;
        if progress != *before {
            // Another worker that was faster is not overwritten: some events are sent again.
            let saved = (self.store).save_progress(id, subscription, before, &progress);
            saved.await?;
        }
        failure.map_or(Ok(true), |failure| Err(failure.into()))
    }

    async fn part(
        &self,
        connection: &Connection,
        subscription: &Subscription,
        progress: &Progress,
        until: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Result<FeedPart, Error> {
        let reader = FeedReader {
            store: &self.store,
            tenant: &connection.listener.tenant,
            view: &connection.listener.view,
            filter: &subscription.filter,
            now,
            until,
            limit: PART_EVENTS,
            room: PART_BYTES,
        };
        reader.read(progress.position(), progress.ahead()).await
    }

    /// Posts events until one frame is rejected; returns the position of the last event that was sent, too.
    async fn post(
        &self,
        id: &str,
        progress: &Progress,
        events: Vec<(FeedPosition, serde_json::Value)>,
        now: DateTime<Utc>,
    ) -> (Option<FeedPosition>, Result<Posted, NotPosted>) {
        let mut sent = None;
        for (last, events) in frames(events) {
            let frame = ServerFrame::Events(events, progress.settled(last, now));
            match self.sockets.post(id, &frame).await {
                Ok(Posted::Sent) => sent = Some(last),
                rejected => return (sent, rejected),
            }
        }
        (sent, Ok(Posted::Sent))
    }
}

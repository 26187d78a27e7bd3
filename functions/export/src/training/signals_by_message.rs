//! The positions of all message signals of a period, by message. Only keys are read.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::stream::{self, StreamExt, TryStreamExt};
use hearback_domain::export::training::Days;
use hearback_domain::identity::identifier::{MessageId, TenantId};
use hearback_storage::message_signals::{MessageKey, SignalPosition};

use crate::{Exporter, Failure};

/// The maximum number of signals of a period. Their keys are in memory: 530 bytes each if ids have about forty
/// characters, which is a quarter of the function's memory.
pub(crate) const MAX_SIGNALS: usize = 500_000;
/// Shards that are read concurrently.
const SHARDS_AT_ONCE: usize = 16;

#[derive(Debug, Default)]
pub(super) struct SignalsByMessage(BTreeMap<MessageKey, Vec<SignalPosition>>);

impl Exporter {
    /// The positions of a tenant's message signals on these days.
    pub(super) async fn signals_by_message(
        &self,
        tenant: &TenantId,
        days: &Days,
    ) -> Result<SignalsByMessage, Failure> {
        let count = AtomicUsize::new(0);
        let shards = 0..self.store.shards();
        let days = days.each_from(days.from);
        let partitions = days.flat_map(|day| shards.clone().map(move |shard| (day, shard)));
        let pages = stream::iter(partitions)
            .map(async |(day, shard)| {
                let mut positions = Vec::new();
                let mut after = None;
                loop {
                    let page = self.store.signals_of_day(tenant, day, shard, after);
                    let (page, next) = page.await?;
                    if count.fetch_add(page.len(), Ordering::Relaxed) + page.len() > MAX_SIGNALS {
                        return Err(Failure::TooMany);
                    }
                    positions.extend(page);
                    after = next;
                    if after.is_none() {
                        return Ok(positions);
                    }
                }
            })
            .buffer_unordered(SHARDS_AT_ONCE);
        let signals = pages.try_fold(SignalsByMessage::default(), async |mut signals, page| {
            for position in page {
                let of_message = signals.0.entry(position.message()).or_default();
                of_message.push(position);
            }
            Ok(signals)
        });
        signals.await
    }
}

impl SignalsByMessage {
    /// The positions of the signals on messages with this id.
    pub(super) fn of(&self, message: &MessageId) -> &[SignalPosition] {
        self.0
            .get(&MessageKey::of(message))
            .map_or(&[], Vec::as_slice)
    }

    /// The positions of the signals on the next messages, at least `count` if there are that many, and the last of
    /// these messages.
    pub(super) fn after(
        &self,
        after: Option<&MessageKey>,
        count: usize,
    ) -> Option<(Vec<SignalPosition>, MessageKey)> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut positions = Vec::new();
        let mut last = None;
        for (message, of_message) in self.0.range((from, Bound::Unbounded)) {
            positions.extend(of_message.iter().cloned());
            last = Some(message);
            if positions.len() >= count {
                break;
            }
        }
        Some((positions, last?.clone()))
    }
}

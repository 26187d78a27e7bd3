//! Of which messages anything was said in a period, and where that is: keys alone, by message.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::stream::{self, StreamExt, TryStreamExt};
use hearback_domain::identifier::{MessageId, TenantId};
use hearback_domain::training::Days;
use hearback_storage::message_signals::{MessageKey, Place};

use crate::{Exporter, Failure};

/// Most signals of a period. Their keys are held in memory: 530 bytes each where names have some forty
/// characters, which is a quarter of the function's memory.
pub(crate) const MOST: usize = 500_000;
/// Shards of days that are read at once.
const AT_ONCE: usize = 16;

/// Where the signals of a period are, by message.
#[derive(Debug, Default)]
pub(super) struct Said(BTreeMap<MessageKey, Vec<Place>>);

impl Exporter {
    /// Where everything is that was said of a tenant's messages on these days.
    pub(super) async fn said(&self, tenant: &TenantId, days: &Days) -> Result<Said, Failure> {
        let held = AtomicUsize::new(0);
        let shards = 0..self.store.shards();
        let each = days.each_from(days.from);
        let looks = each.flat_map(|day| shards.clone().map(move |shard| (day, shard)));
        let places = stream::iter(looks)
            .map(async |(day, shard)| {
                let mut places = Vec::new();
                let mut after = None;
                loop {
                    let page = self.store.signals_of_day(tenant, day, shard, after);
                    let (page, next) = page.await?;
                    if held.fetch_add(page.len(), Ordering::Relaxed) + page.len() > MOST {
                        return Err(Failure::TooMany);
                    }
                    places.extend(page);
                    after = next;
                    if after.is_none() {
                        return Ok(places);
                    }
                }
            })
            .buffer_unordered(AT_ONCE);
        let said = places.try_fold(Said::default(), async |mut said, places| {
            for place in places {
                said.0.entry(place.message()).or_default().push(place);
            }
            Ok(said)
        });
        said.await
    }
}

impl Said {
    /// Where the signals on a message of this name are.
    pub(super) fn of(&self, message: &MessageId) -> &[Place] {
        self.0
            .get(&MessageKey::of(message))
            .map_or(&[], Vec::as_slice)
    }

    /// Where the signals on the next messages are, at least `count` if there are so many, and which is the
    /// last of these messages.
    pub(super) fn behind(
        &self,
        after: Option<&MessageKey>,
        count: usize,
    ) -> Option<(Vec<Place>, MessageKey)> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut places = Vec::new();
        let mut last = None;
        for (message, of_message) in self.0.range((from, Bound::Unbounded)) {
            places.extend(of_message.iter().cloned());
            last = Some(message);
            if places.len() >= count {
                break;
            }
        }
        Some((places, last?.clone()))
    }
}

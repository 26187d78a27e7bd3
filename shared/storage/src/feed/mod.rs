//! The feed: outcomes and retractions in the order of publication, found by two sparse indexes: one for each tenant,
//! by day, and one for each user. An index entry may arrive some time after its item.

mod reader;

use std::collections::BTreeSet;

use chrono::{DateTime, NaiveDate, Utc};
use futures::future::try_join_all;
use hearback_domain::identity::identifier::{TenantId, UserRef};
use hearback_domain::learning::publication::Outcome;
use hearback_domain::views::feed::{FeedEntry, FeedPosition};
use uuid::Uuid;

use crate::activity::shard_of;
use crate::attributes::{OUTCOME, RETRACTION};
use crate::item::{self, Builder, Item};
use crate::reads::{IndexRange, Key};
use crate::table::{BY_FEED, BY_FEED_USER, FEED, FEED_AT, FEED_USER};
use crate::{Error, Store, keys};

pub use reader::{FeedPart, FeedReader};

const ENTRY: &str = "feed entry";
/// Partitions that are read at the same time.
const AT_ONCE: usize = 16;

/// A part of the feed that one call reads.
#[derive(Debug, Clone, Copy)]
pub enum FeedPartition<'a> {
    /// A shard of a tenant's day.
    Shard(&'a TenantId, NaiveDate, u32),
    /// A user's feedback.
    User(UserRef<'a>),
}

/// The entries to read.
#[derive(Debug, Clone, Copy)]
pub struct FeedRange<'a> {
    /// The first index key, inclusive.
    pub from: &'a str,
    /// The last index key, inclusive.
    pub to: &'a str,
    /// Maximum number of entries, known ones included.
    pub limit: usize,
    /// Entries that are left out.
    pub known: &'a BTreeSet<FeedPosition>,
}

impl FeedPartition<'_> {
    /// The index, its partition key, and the value of that.
    fn key(&self) -> (&'static str, &'static str, String) {
        match self {
            Self::Shard(tenant, day, shard) => (BY_FEED, FEED, keys::feed(tenant, *day, *shard)),
            Self::User(user) => (BY_FEED_USER, FEED_USER, keys::user(*user)),
        }
    }
}

/// Entries of the feed.
#[derive(Debug, Default)]
pub struct FeedEntries {
    /// The entries, in order. One that cannot be read, has expired or was just deleted is left out.
    pub entries: Vec<FeedEntry>,
    /// The end of the last entry that was examined, if there may be more.
    pub rest: Option<FeedPosition>,
}

impl Store {
    /// Adds an item to the feeds of its tenant and of its user.
    pub(crate) fn in_feed(
        &self,
        item: Builder,
        owner: UserRef<'_>,
        position: &FeedPosition,
    ) -> Builder {
        let shard = self.feed_shard(position.event());
        item.string(
            FEED,
            keys::feed(owner.tenant, position.at().date_naive(), shard),
        )
        .string(FEED_USER, keys::user(owner))
        .string(FEED_AT, position.entry_key())
    }

    /// How many shards a tenant's day in the feed has: twice those of a project's day, because every event is in it.
    #[must_use]
    pub fn feed_shards(&self) -> u32 {
        2 * self.shards()
    }

    /// The shard of an event in the feed.
    #[must_use]
    pub fn feed_shard(&self, event: Uuid) -> u32 {
        // A digest, because ids may begin with the time.
        shard_of(&event.to_string(), self.feed_shards())
    }

    /// The entries of these partitions in a range. Eventually consistent. One call for each partition, half a read each
    /// for each 4 KB of keys; one for each hundred entries, a read each.
    pub async fn feed(
        &self,
        partitions: &[FeedPartition<'_>],
        range: &FeedRange<'_>,
        now: DateTime<Utc>,
    ) -> Result<FeedEntries, Error> {
        let FeedRange { limit, known, .. } = *range;
        if range.from > range.to {
            return Ok(FeedEntries::default());
        }
        let (mut found, mut more) = (Vec::new(), false);
        for partitions in partitions.chunks(AT_ONCE) {
            let parts = partitions.iter();
            let parts = parts.map(|partition| self.feed_keys(partition, range));
            for (keys, has_more) in try_join_all(parts).await? {
                found.extend(keys);
                more |= has_more;
            }
        }
        found.sort();
        more |= found.len() > limit;
        found.truncate(limit);
        let rest = found.last().filter(|_| more).map(|(at, _)| {
            FeedPosition::after_entry(at)
                .ok_or_else(|| Error::unreadable(ENTRY, "its key has no position"))
        });
        let rest = rest.transpose()?;
        let is_known = |at: &str| {
            let end = FeedPosition::after_entry(at);
            end.is_some_and(|end| known.contains(&end.entry()))
        };
        let new = found.into_iter().filter(|(at, _)| !is_known(at));
        let keys: Vec<Key> = new.map(|(_, key)| key).collect();
        let rows = self.get_batch(&keys).await?;
        let rows = keys.iter().zip(rows).filter_map(|(key, row)| {
            let row = row.filter(|row| !item::is_expired(row, now))?;
            // The others are listed.
            item::readable(&row, entry(key, &row)).flatten()
        });
        Ok(FeedEntries {
            entries: rows.collect(),
            rest,
        })
    }

    /// The first index keys of a partition, each with the key of its item, and whether there are more.
    async fn feed_keys(
        &self,
        partition: &FeedPartition<'_>,
        range: &FeedRange<'_>,
    ) -> Result<(Vec<(String, Key)>, bool), Error> {
        let (index, name, value) = partition.key();
        let keys = IndexRange {
            index,
            partition: (name, value),
            sort: FEED_AT,
            span: (range.from.to_owned(), range.to.to_owned()),
            latest_first: false,
        };
        self.index_keys(keys, range.limit).await
    }
}

/// The entry of an item; `None` for one that is not published.
fn entry((_, sort_key): &Key, row: &Item) -> Result<Option<FeedEntry>, Error> {
    if sort_key == keys::RETRACTION {
        let retraction = item::json(row, RETRACTION, RETRACTION)?;
        return Ok(Some(FeedEntry::Retracted(retraction)));
    }
    Ok(match item::json(row, OUTCOME, OUTCOME)? {
        Outcome::Processed(processed) => Some(FeedEntry::Processed(processed)),
        Outcome::Deduplicated { .. } => None,
    })
}

//! Reads a part of the feed: walks the days of a tenant or the entries of a user, and keeps the messages that a view
//! and a filter list.

use std::collections::BTreeSet;

use chrono::{DateTime, Days, NaiveTime, TimeDelta, Utc};
use hearback_domain::identity::identifier::{TenantId, UserRef};
use hearback_domain::text::payload::escaped_json_size;
use hearback_domain::views::feed::{FeedEntry, FeedFilter, FeedPosition, FeedView, SETTLED_AFTER};
use serde_json::Value;

use super::{FeedEntries, FeedPartition, FeedRange};
use crate::{Error, Store};

/// Entries that one round examines: as many as one call reads.
const READ_AT_ONCE: usize = 100;
/// Maximum rounds for a part. If few entries are listed, the part ends early.
const MAX_ROUNDS: usize = 12;
/// Maximum partitions that one round reads: shards of days. Each round without entries doubles the days of the next.
const MAX_PARTITIONS: u64 = 128;

/// A read of the feed.
#[derive(Debug, Clone, Copy)]
pub struct FeedReader<'a> {
    /// The table.
    pub store: &'a Store,
    /// The tenant.
    pub tenant: &'a TenantId,
    /// Whose feed it is.
    pub view: &'a FeedView,
    /// Which entries are listed.
    pub filter: &'a FeedFilter,
    /// The current time.
    pub now: DateTime<Utc>,
    /// The end of the period to read, inclusive.
    pub until: DateTime<Utc>,
    /// Maximum number of messages.
    pub limit: usize,
    /// Maximum size in bytes of JSON. The first message is read whatever its size.
    pub room: usize,
}

/// A part of the feed.
#[derive(Debug)]
pub struct FeedPart {
    /// The listed messages, each with its position.
    pub events: Vec<(FeedPosition, Value)>,
    /// The entries that were read to the end, whether they are listed or not.
    pub entries: Vec<FeedPosition>,
    /// Everything up to this position was examined.
    pub examined: FeedPosition,
    /// The same, without the id of an event that is not listed.
    pub reached: FeedPosition,
    /// Whether there may be more.
    pub more: bool,
}

/// What one call of the store reads.
struct Round<'a> {
    partitions: Vec<FeedPartition<'a>>,
    /// The last index key, inclusive.
    to: String,
    /// Where the next round begins if this one reads everything; `None` at the end.
    next: Option<FeedPosition>,
}

impl<'a> FeedReader<'a> {
    /// Reads what follows a position, without the entries that are `known`, until the part is full or the feed ends.
    pub async fn read(
        self,
        after: FeedPosition,
        known: &BTreeSet<FeedPosition>,
    ) -> Result<FeedPart, Error> {
        let mut part = Part {
            reader: self,
            events: Vec::new(),
            entries: Vec::new(),
            room: self.room,
            at: after,
        };
        let more = part.read(known).await?;
        let Part {
            events,
            entries,
            at,
            ..
        } = part;
        let instant = FeedPosition::before(at.at());
        let last = events.last().map(|(position, _)| *position);
        Ok(FeedPart {
            events,
            entries,
            examined: at,
            reached: last.map_or(instant, |last| last.max(instant)),
            more,
        })
    }

    /// The end of the period to read. Nothing is published later than now, except for clock skew.
    fn until(&self) -> DateTime<Utc> {
        self.until.min(self.now + SETTLED_AFTER)
    }

    /// The round that begins at a position and covers up to `days` days.
    fn round(&self, at: FeedPosition, days: u64) -> Round<'a> {
        let tenant = self.tenant;
        let users = match self.view {
            FeedView::Own(users) => Some(&**users),
            FeedView::OnBehalf { user, .. } => Some(std::slice::from_ref(user)),
            FeedView::Tenant { user, .. } => user.as_ref().map(std::slice::from_ref),
        };
        if let Some(users) = users {
            let users = users.iter();
            return Round {
                partitions: users
                    .map(|user| FeedPartition::User(UserRef { tenant, user }))
                    .collect(),
                to: FeedPosition::last_key(self.until()),
                next: None,
            };
        }
        let shards = self.store.feed_shards();
        let most = (MAX_PARTITIONS / u64::from(shards)).max(1);
        let days = days.min(most);
        let first = at.at().date_naive();
        let next = first.checked_add_days(Days::new(days));
        let next = next.map(|day| day.and_time(NaiveTime::MIN).and_utc());
        let next = next.filter(|next| *next <= self.until());
        let to = next.map_or(self.until(), |next| next - TimeDelta::microseconds(1));
        let days = first.iter_days().take_while(|day| *day <= to.date_naive());
        let partitions = days
            .flat_map(|day| (0..shards).map(move |shard| FeedPartition::Shard(tenant, day, shard)));
        Round {
            partitions: partitions.collect(),
            to: FeedPosition::last_key(to),
            next: next.map(FeedPosition::before),
        }
    }
}

/// A part that is being read.
struct Part<'a> {
    reader: FeedReader<'a>,
    events: Vec<(FeedPosition, Value)>,
    entries: Vec<FeedPosition>,
    /// Bytes that are left for messages.
    room: usize,
    /// Everything up to this position was examined.
    at: FeedPosition,
}

impl Part<'_> {
    /// Reads until the part is full or the feed ends. Returns whether there may be more.
    async fn read(&mut self, known: &BTreeSet<FeedPosition>) -> Result<bool, Error> {
        let FeedReader { store, now, .. } = self.reader;
        let mut days = 1;
        for _ in 0..MAX_ROUNDS {
            let round = self.reader.round(self.at, days);
            let range = FeedRange {
                from: &self.at.entry_key(),
                to: &round.to,
                limit: READ_AT_ONCE,
                known,
            };
            let read = store.feed(&round.partitions, &range, now);
            let FeedEntries { entries, rest } = read.await?;
            let is_empty = entries.is_empty() && rest.is_none();
            days = if is_empty { days * 2 } else { 1 };
            for entry in entries {
                if !self.add(&entry) {
                    return Ok(true);
                }
                self.entries.push(entry.position());
            }
            self.at = match (rest, round.next) {
                (Some(end), _) => end,
                (None, Some(next)) => next,
                (None, None) => return Ok(false),
            };
        }
        Ok(true)
    }

    /// Adds the messages of an entry. Returns `false` if the part has no room for one.
    fn add(&mut self, entry: &FeedEntry) -> bool {
        let FeedReader {
            view,
            filter,
            limit,
            ..
        } = self.reader;
        if !filter.lists(view, entry) {
            return true;
        }
        for (position, message) in entry.messages() {
            if position <= self.at || !filter.lists_message(&message) {
                continue;
            }
            let size = escaped_json_size(&message) + 1;
            if self.events.len() == limit || (size > self.room && !self.events.is_empty()) {
                return false;
            }
            self.room = self.room.saturating_sub(size);
            self.events.push((position, message));
            self.at = position;
        }
        true
    }
}

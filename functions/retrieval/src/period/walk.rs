//! The way to a page of the report.
//!
//! The report walks the activity markers of the project backwards, minute by minute, and reads
//! the reactions of each conversation that it meets. A conversation is listed at the minute of
//! its position ([`hearback_domain::period::position`]) and passed over at every other, so what
//! lies outside the window costs nothing, and nothing is counted that could drift.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use futures::stream::{self, StreamExt, TryStreamExt};
use hearback_domain::digest::digest;
use hearback_domain::identifier::ConversationId;
use hearback_domain::payload::{MAX_PAGE, carried};
use hearback_domain::period::{Feedback, Item, Position, Request, position};
use hearback_domain::reaction::{self, StoredReaction};
use hearback_domain::turn::ConversationRef;
use hearback_lambda::App;
use hearback_lambda::params::InProject;
use hearback_storage::Error;
use hearback_storage::activity::{Day, Marker, minute};
use hearback_storage::months::ActiveMonths;
use serde::{Deserialize, Serialize};

use super::minutes::{LAST_MINUTE, Slot, after, before, end_of, instant};
use crate::part::{Part, UpTo};
use crate::visible;

/// Conversations that are read at once.
const AT_ONCE: usize = 16;
/// Markers of a shard that are read at once.
const MARKERS: i32 = 250;
/// Queries after which a page ends early, with the minute that it is at: it has to end within a
/// function's time, however much of what it meets is not for it.
const MAX_QUERIES: u32 = 4000;
/// Bytes of a conversation beside its turns, at most.
const ITEM: usize = 4_000;
/// Bytes of a turn beside its name and its feedback, at most.
const TURN: usize = 100;
/// Days on which activity is looked for at once, after a day without.
const DAYS_AT_ONCE: usize = 16;

/// Where a page begins: what a cursor says.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Place {
    /// When the first page was read, in microseconds.
    as_of: i64,
    /// The next conversation's position is not after this, in microseconds …
    at: i64,
    /// … and if it is this, its mark is behind this one.
    after: Option<u64>,
    /// Conversations that were listed although a reaction that decided their position may have
    /// been under way: they are not listed again where they stood without it.
    listed: Vec<u64>,
    /// The conversation with which the page begins, of which feedback up to this was listed.
    #[serde(default)]
    continued: Option<(ConversationId, UpTo)>,
}

impl Place {
    pub(super) fn first(request: &Request, now: DateTime<Utc>) -> Self {
        // No reaction is from later than that: a period without end begins there.
        let latest = request.window.end.min(now + reaction::AHEAD);
        Self {
            as_of: now.timestamp_micros(),
            at: latest.timestamp_micros(),
            after: None,
            listed: Vec::new(),
            continued: None,
        }
    }

    /// Whether a conversation comes at this place or behind it.
    fn reaches(&self, at: i64, mark: u64) -> bool {
        match at.cmp(&self.at) {
            Ordering::Less => true,
            Ordering::Equal => self.after.is_none_or(|after| mark > after),
            Ordering::Greater => false,
        }
    }
}

/// A conversation that may be listed.
struct Candidate {
    /// Its position, in microseconds.
    at: i64,
    /// Tells it from others, and orders those of one position.
    mark: u64,
    in_flight: bool,
    item: Item,
    /// All that the caller may see of it.
    reactions: Vec<StoredReaction>,
}

/// A page that is being filled.
pub(super) struct Walk<'a> {
    app: &'a App,
    within: &'a InProject,
    request: &'a Request,
    as_of: DateTime<Utc>,
    place: Place,
    listed: HashSet<u64>,
    /// Positions that this page learned: a conversation is not read again where it is not listed.
    known: HashMap<u64, Option<Position>>,
    queries: u32,
    bytes: usize,
    items: Vec<Item>,
    /// Where there is anything to look for, once a day had nothing.
    months: Option<ActiveMonths>,
}

/// Whether the page is full.
#[derive(PartialEq, Eq)]
enum Room {
    Left,
    Full,
}

/// A page that is full.
pub(super) struct Walked {
    /// Its conversations.
    pub(super) items: Vec<Item>,
    /// Where the next one begins, if there is more.
    pub(super) next: Option<Place>,
}

/// How far a day was walked.
enum DayWalked {
    /// The page is full.
    Full,
    /// To its beginning; anybody was active on it, or nobody.
    Through { active: bool },
}

impl<'a> Walk<'a> {
    pub(super) fn new(
        app: &'a App,
        within: &'a InProject,
        request: &'a Request,
        place: Place,
    ) -> Self {
        Self {
            app,
            within,
            request,
            as_of: instant(place.as_of),
            listed: place.listed.iter().copied().collect(),
            place,
            known: HashMap::new(),
            queries: 0,
            bytes: 0,
            items: Vec::new(),
            months: None,
        }
    }

    /// Fills the page.
    pub(super) async fn page(mut self) -> Result<Walked, Error> {
        let more = self.go_on().await? == Room::Full || self.walk().await?;
        Ok(Walked {
            items: self.items,
            next: more.then_some(self.place),
        })
    }

    /// Lists the rest of the conversation in which the page before ended.
    async fn go_on(&mut self) -> Result<Room, Error> {
        let Some((conversation, after)) = self.place.continued.take() else {
            return Ok(Room::Left);
        };
        let reactions = self.reactions(&conversation).await?;
        let item = Item::of(&conversation, &reactions, self.request);
        Ok(match item {
            Some(item) => self.add_part(item, reactions, Some(&after)),
            None => Room::Left,
        })
    }

    /// Lists as much of a conversation as the page holds.
    fn add_part(
        &mut self,
        item: Item,
        mut reactions: Vec<StoredReaction>,
        after: Option<&UpTo>,
    ) -> Room {
        reactions.retain(|reaction| self.request.counts(&reaction.core));
        // A turn may have one reaction only, and is named beside it.
        let size = |reaction: &StoredReaction| {
            carried(&Feedback::of(reaction)) + carried(&reaction.core.at.turn) + TURN
        };
        let part = Part::of(reactions, after, MAX_PAGE - ITEM, size);
        if !part.reactions.is_empty() {
            let item = item.with_turns_of(&part.reactions);
            self.bytes += carried(&item) + 1;
            self.place.continued = part.rest.map(|rest| (item.conversation_id.clone(), rest));
            self.items.push(item);
        }
        match self.place.continued {
            Some(_) => Room::Full,
            None => Room::Left,
        }
    }

    /// Fills the page, and answers whether there is more.
    async fn walk(&mut self) -> Result<bool, Error> {
        let first = self.request.window.start.date_naive();
        let begin = instant(self.place.at);
        let (mut date, mut until) = (begin.date_naive(), minute(begin));
        while date >= first {
            match self.walk_day(date, until).await? {
                DayWalked::Full => return Ok(true),
                DayWalked::Through { active } => {
                    let before = date.pred_opt();
                    let next = match before {
                        Some(before) if !active => self.active_day(before, first).await?,
                        before => before,
                    };
                    let Some(next) = next else {
                        return Ok(false);
                    };
                    (date, until) = (next, LAST_MINUTE);
                }
            }
            if self.queries >= MAX_QUERIES && date >= first {
                self.place.at = end_of(date, LAST_MINUTE);
                self.place.after = None;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Lists the conversations of a day up to a minute.
    async fn walk_day(&mut self, date: NaiveDate, until: NaiveTime) -> Result<DayWalked, Error> {
        let start = self.request.window.start;
        let from = if date == start.date_naive() {
            minute(start)
        } else {
            NaiveTime::MIN
        };
        let mut active = false;
        let mut rest = Some(until).filter(|until| *until >= from);
        while let Some(until) = rest {
            let (minutes, next) = self.markers(date, from, until).await?;
            active |= !minutes.is_empty() || next.is_some();
            for (minute, conversations) in minutes.into_iter().rev() {
                let room = self.list(date, minute, conversations).await?;
                if room == Room::Full || self.queries >= MAX_QUERIES {
                    return Ok(DayWalked::Full);
                }
            }
            rest = next.filter(|next| *next >= from);
            if let Some(next) = rest
                && self.queries >= MAX_QUERIES
            {
                // Minutes in which nobody was active whom the caller may see.
                let at = end_of(date, next);
                if at < self.place.at {
                    (self.place.at, self.place.after) = (at, None);
                }
                return Ok(DayWalked::Full);
            }
        }
        Ok(DayWalked::Through { active })
    }

    /// The latest day from `date` backwards on which anybody was active, looked for on many days
    /// at once; or the day with which to go on looking.
    async fn active_day(
        &mut self,
        date: NaiveDate,
        first: NaiveDate,
    ) -> Result<Option<NaiveDate>, Error> {
        let Some(date) = self.months().await?.latest(date) else {
            return Ok(None);
        };
        let days: Vec<_> = std::iter::successors(Some(date), NaiveDate::pred_opt)
            .take_while(|day| *day >= first)
            .take(DAYS_AT_ONCE)
            .collect();
        let Some(last) = days.last().copied() else {
            return Ok(None);
        };
        let store = &self.app.store;
        let shards = store.shards();
        let mut looks = Vec::new();
        for date in days {
            let day = self.day(date, NaiveTime::MIN, LAST_MINUTE);
            for shard in 0..shards {
                looks.push(async move {
                    let (found, _) = store.activity(day, shard, Some(1)).await?;
                    Ok::<_, Error>((!found.is_empty()).then_some(date))
                });
            }
        }
        self.queries += u32::try_from(looks.len()).unwrap_or(u32::MAX);
        let found: Vec<_> = stream::iter(looks).buffered(AT_ONCE).try_collect().await?;
        Ok(found.into_iter().flatten().next().or(Some(last)))
    }

    /// The months in which anybody was active: read once for a page.
    async fn months(&mut self) -> Result<ActiveMonths, Error> {
        if let Some(months) = &self.months {
            return Ok(months.clone());
        }
        self.queries += 1;
        let (tenant, project) = (&self.within.tenant, &self.within.project);
        let months = self.app.store.active_months(tenant, project).await?;
        self.months = Some(months.clone());
        Ok(months)
    }

    fn day(&self, date: NaiveDate, from: NaiveTime, until: NaiveTime) -> Day<'a> {
        Day {
            tenant: &self.within.tenant,
            project: &self.within.project,
            date,
            from,
            until,
        }
    }

    /// Who was active in the latest minutes of a day up to `until`, complete for each minute; and
    /// the minute from which to go on.
    async fn markers(
        &mut self,
        date: NaiveDate,
        from: NaiveTime,
        until: NaiveTime,
    ) -> Result<(Minutes, Option<NaiveTime>), Error> {
        let pages = self.of_each_shard(date, from, until, Some(MARKERS)).await?;
        // Where a shard has more, its last minute may be cut in two.
        let cut = pages
            .iter()
            .filter(|(_, more)| *more)
            .filter_map(|(markers, _)| markers.last().map(|(minute, _)| *minute))
            .max();
        let Some(cut) = cut else {
            return Ok((self.by_minute(pages, from), None));
        };
        if cut < until {
            return Ok((self.by_minute(pages, after(cut)), Some(cut)));
        }
        // One minute alone is more than was read: read that whole.
        let whole = self.of_each_shard(date, until, until, None).await?;
        Ok((self.by_minute(whole, until), before(until)))
    }

    async fn of_each_shard(
        &mut self,
        date: NaiveDate,
        from: NaiveTime,
        until: NaiveTime,
        limit: Option<i32>,
    ) -> Result<Vec<(Vec<Marker>, bool)>, Error> {
        let store = &self.app.store;
        self.queries += store.shards();
        let day = self.day(date, from, until);
        let looks: Vec<_> = (0..store.shards())
            .map(|shard| store.activity(day, shard, limit))
            .collect();
        stream::iter(looks).buffered(AT_ONCE).try_collect().await
    }

    /// The conversations of each minute in which somebody was active whom the caller may see.
    fn by_minute(&self, pages: Vec<(Vec<Marker>, bool)>, from: NaiveTime) -> Minutes {
        let mut minutes = Minutes::new();
        for (minute, activity) in pages.into_iter().flat_map(|(markers, _)| markers) {
            if minute >= from && self.within.caller.sees(&activity.user) {
                minutes
                    .entry(minute)
                    .or_default()
                    .insert(activity.conversation);
            }
        }
        minutes
    }

    /// Lists the conversations whose position is in this minute.
    async fn list(
        &mut self,
        date: NaiveDate,
        minute: NaiveTime,
        conversations: BTreeSet<ConversationId>,
    ) -> Result<Room, Error> {
        let slot = Slot::new(date, minute);
        let unread: Vec<_> = conversations
            .into_iter()
            .filter(|conversation| self.may_be_in(slot, conversation))
            .map(|conversation| self.read(slot, conversation))
            .collect();
        let read: Vec<_> = stream::iter(unread).buffered(AT_ONCE).try_collect().await?;
        let mut candidates = Vec::new();
        for (mark, position, item) in read {
            self.known.insert(mark, position);
            if let (Some(position), Some((item, reactions))) = (position, item)
                && let Some(at) = self.place_of(slot, mark, position)
            {
                candidates.push(Candidate {
                    at,
                    mark,
                    in_flight: position.is_in_flight(),
                    item,
                    reactions,
                });
            }
        }
        candidates.sort_by_key(|candidate| (Reverse(candidate.at), candidate.mark));
        for candidate in candidates {
            if self.add(candidate) == Room::Full {
                return Ok(Room::Full);
            }
        }
        // What is left of the walk begins before this minute.
        self.place.at = slot.start - 1;
        self.place.after = None;
        Ok(Room::Left)
    }

    /// Whether a conversation could be listed in this slot, by what this page knows of it.
    fn may_be_in(&self, slot: Slot, conversation: &ConversationId) -> bool {
        let mark = mark(conversation);
        match self.known.get(&mark) {
            None => true,
            Some(None) => false,
            Some(Some(position)) => self.place_of(slot, mark, *position).is_some(),
        }
    }

    /// Where in this slot a conversation of this position is listed, if it is.
    ///
    /// At its latest reaction; but if that was under way when its minute was read, where it stood
    /// without it. There it was listed before, if that lies behind the walk already.
    fn place_of(&self, slot: Slot, mark: u64, position: Position) -> Option<i64> {
        if self.listed.contains(&mark) {
            return None;
        }
        let latest = Some(position.latest);
        let settled = position.settled.filter(|_| position.is_in_flight());
        [latest, settled]
            .into_iter()
            .flatten()
            .map(|ts| ts.timestamp_micros())
            .find(|at| (slot.start..slot.end).contains(at) && self.place.reaches(*at, mark))
    }

    /// A conversation's mark, position, and if that is in this slot what the report says of it.
    async fn read(&self, slot: Slot, conversation: ConversationId) -> Result<Read, Error> {
        let reactions = self.reactions(&conversation).await?;
        let mark = mark(&conversation);
        let position = position(&reactions, self.request.window, self.as_of);
        let item = position
            .filter(|position| self.place_of(slot, mark, *position).is_some())
            .and_then(|_| Item::of(&conversation, &reactions, self.request));
        Ok((mark, position, item.map(|item| (item, reactions))))
    }

    /// The reactions of a conversation that the caller may see.
    async fn reactions(&self, conversation: &ConversationId) -> Result<Vec<StoredReaction>, Error> {
        let at = ConversationRef {
            tenant: self.within.tenant.clone(),
            project: self.within.project.clone(),
            conversation: conversation.clone(),
        };
        let now = self.app.clock.now();
        let rows = self.app.store.reactions(&at, now).await?;
        Ok(visible(rows, &self.within.caller))
    }

    fn add(&mut self, candidate: Candidate) -> Room {
        let size = carried(&candidate.item) + 1;
        let too_large = self.bytes + size > MAX_PAGE - ITEM;
        if self.items.len() == self.request.limit || (too_large && !self.items.is_empty()) {
            return Room::Full;
        }
        self.listed.insert(candidate.mark);
        self.place.at = candidate.at;
        self.place.after = Some(candidate.mark);
        if candidate.in_flight {
            self.place.listed.push(candidate.mark);
        }
        if too_large {
            return self.add_part(candidate.item, candidate.reactions, None);
        }
        self.bytes += size;
        self.items.push(candidate.item);
        Room::Left
    }
}

/// A conversation's mark, position, and if it may be listed what the report says of it, and of what.
type Read = (u64, Option<Position>, Option<(Item, Vec<StoredReaction>)>);

/// Conversations by the minute in which somebody was active.
type Minutes = BTreeMap<NaiveTime, BTreeSet<ConversationId>>;

/// A quarter of a digest is enough to tell conversations apart.
fn mark(conversation: &ConversationId) -> u64 {
    let digest = digest([conversation.as_str()]);
    let half = digest.first_chunk().copied().unwrap_or_default();
    u64::from_be_bytes(half)
}

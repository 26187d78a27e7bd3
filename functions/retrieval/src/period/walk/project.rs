//! Searches the activity of all users of a project.

use chrono::{NaiveDate, NaiveTime};
use futures::stream::{self, StreamExt, TryStreamExt};
use hearback_storage::Error;
use hearback_storage::activity::{ActivityDay, Marker, minute};
use hearback_storage::months::ActiveMonths;

use super::page::{AT_ONCE, MAX_QUERIES, Room, Walk};
use crate::period::minutes::{LAST_MINUTE, Minutes, after, before, end_of, instant};

/// Markers of a shard that one call reads.
const MARKERS: i32 = 250;
/// Days that are searched for activity concurrently, after a day without any.
const DAYS_AT_ONCE: usize = 16;

/// How the walk over a day ended.
enum DayWalked {
    /// The page is full.
    Full,
    /// The whole day is done.
    Complete { active: bool },
}

impl<'a> Walk<'a> {
    /// Fills the page with the feedback of all users, and returns whether there is more.
    pub(super) async fn walk_all(&mut self) -> Result<bool, Error> {
        let first = self.request.start.date_naive();
        let begin = instant(self.position.at);
        let (mut date, mut until) = (begin.date_naive(), minute(begin));
        while date >= first {
            match self.walk_day(date, until).await? {
                DayWalked::Full => return Ok(true),
                DayWalked::Complete { active } => {
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
                self.position.at = end_of(date, LAST_MINUTE);
                self.position.after = None;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Lists the conversations of a day up to a minute.
    async fn walk_day(&mut self, date: NaiveDate, until: NaiveTime) -> Result<DayWalked, Error> {
        let start = self.request.start;
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
                // None of the conversations so far are listed at these minutes.
                let at = end_of(date, next);
                if at < self.position.at {
                    (self.position.at, self.position.after) = (at, None);
                }
                return Ok(DayWalked::Full);
            }
        }
        Ok(DayWalked::Complete { active })
    }

    /// The latest day with activity from `date` backwards, among a number of days; or the last of these days, to
    /// continue with.
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
        let mut queries = Vec::new();
        for date in days {
            let day = self.day(date, NaiveTime::MIN, LAST_MINUTE);
            for shard in 0..shards {
                queries.push(async move {
                    let (found, _) = store.activity(day, shard, Some(1)).await?;
                    Ok::<_, Error>((!found.is_empty()).then_some(date))
                });
            }
        }
        self.queries += u32::try_from(queries.len()).unwrap_or(u32::MAX);
        let found: Vec<_> = stream::iter(queries)
            .buffered(AT_ONCE)
            .try_collect()
            .await?;
        Ok(found.into_iter().flatten().next().or(Some(last)))
    }

    /// The months with activity, read once for each page.
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

    fn day(&self, date: NaiveDate, from: NaiveTime, until: NaiveTime) -> ActivityDay<'a> {
        ActivityDay {
            tenant: &self.within.tenant,
            project: &self.within.project,
            date,
            from,
            until,
        }
    }

    /// The active conversations of the latest minutes of a day up to `until`, and the minute to continue with. Each
    /// minute is complete.
    async fn markers(
        &mut self,
        date: NaiveDate,
        from: NaiveTime,
        until: NaiveTime,
    ) -> Result<(Minutes, Option<NaiveTime>), Error> {
        let pages = self.all_shards(date, from, until, Some(MARKERS)).await?;
        // The last minute of a shard with more markers may be incomplete.
        let incomplete = pages
            .iter()
            .filter(|(_, more)| *more)
            .filter_map(|(markers, _)| markers.last().map(|(minute, _)| *minute))
            .max();
        let Some(incomplete) = incomplete else {
            return Ok((Self::by_minute(pages, from), None));
        };
        if incomplete < until {
            return Ok((Self::by_minute(pages, after(incomplete)), Some(incomplete)));
        }
        // A single minute has more markers than one call reads: read all of them.
        let whole = self.all_shards(date, until, until, None).await?;
        Ok((Self::by_minute(whole, until), before(until)))
    }

    async fn all_shards(
        &mut self,
        date: NaiveDate,
        from: NaiveTime,
        until: NaiveTime,
        limit: Option<i32>,
    ) -> Result<Vec<(Vec<Marker>, bool)>, Error> {
        let store = &self.app.store;
        self.queries += store.shards();
        let day = self.day(date, from, until);
        let queries: Vec<_> = (0..store.shards())
            .map(|shard| store.activity(day, shard, limit))
            .collect();
        stream::iter(queries).buffered(AT_ONCE).try_collect().await
    }

    /// The active conversations of each minute.
    fn by_minute(pages: Vec<(Vec<Marker>, bool)>, from: NaiveTime) -> Minutes {
        let mut minutes = Minutes::new();
        for (minute, activity) in pages.into_iter().flat_map(|(markers, _)| markers) {
            if minute >= from {
                minutes
                    .entry(minute)
                    .or_default()
                    .insert(activity.conversation);
            }
        }
        minutes
    }
}

//! Searches a user's own activity.
//!
//! It reads the index of authors, not the days of the project, so that the number of calls depends only on data that
//! the caller may see. Otherwise the time of a response would show whether and when other users reacted.

use std::collections::VecDeque;

use chrono::{NaiveDate, NaiveTime};
use hearback_domain::identity::identifier::ConversationId;
use hearback_lambda::App;
use hearback_storage::Error;
use hearback_storage::activity::{ActivityCursor, UserDays, minute};

use super::page::{MAX_QUERIES, Room, Walk};
use crate::period::minutes::{Minutes, instant};

impl Walk<'_> {
    /// Fills the page with conversations of the caller's own feedback, and returns whether there is more.
    pub(super) async fn walk_own(&mut self) -> Result<bool, Error> {
        let (start, begin) = (self.request.start, instant(self.position.at));
        let mut days = Days::new(
            self.app,
            UserDays {
                tenant: &self.within.tenant,
                project: &self.within.project,
                user: &self.within.caller.user,
                days: (start.date_naive(), begin.date_naive()),
            },
        );
        while let Some((date, minutes)) = days.next().await? {
            for (at, conversations) in minutes.into_iter().rev() {
                let early = date == start.date_naive() && at < minute(start);
                let late = date == begin.date_naive() && at > minute(begin);
                if early || late {
                    continue;
                }
                if self.list(date, at, conversations).await? == Room::Full {
                    return Ok(true);
                }
            }
            if days.calls >= MAX_QUERIES {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The days on which a user was active, the latest first.
struct Days<'a> {
    app: &'a App,
    range: UserDays<'a>,
    /// Markers that were read and not returned yet.
    read: VecDeque<(NaiveDate, (NaiveTime, ConversationId))>,
    rest: Rest,
    calls: u32,
}

/// What is not read yet.
enum Rest {
    All,
    After(ActivityCursor),
    Nothing,
}

impl<'a> Days<'a> {
    fn new(app: &'a App, range: UserDays<'a>) -> Self {
        Self {
            app,
            range,
            read: VecDeque::new(),
            rest: Rest::All,
            calls: 0,
        }
    }

    /// The next earlier day, with all its minutes.
    async fn next(&mut self) -> Result<Option<(NaiveDate, Minutes)>, Error> {
        // A day is complete once a marker of another day is read.
        while !matches!(self.rest, Rest::Nothing) && self.newest() == self.oldest() {
            self.read_more().await?;
        }
        let Some(date) = self.newest() else {
            return Ok(None);
        };
        let mut minutes = Minutes::new();
        while let Some((_, (minute, active))) = self.read.pop_front_if(|(of, _)| *of == date) {
            minutes.entry(minute).or_default().insert(active);
        }
        Ok(Some((date, minutes)))
    }

    async fn read_more(&mut self) -> Result<(), Error> {
        let after = match std::mem::replace(&mut self.rest, Rest::Nothing) {
            Rest::All => None,
            Rest::After(cursor) => Some(cursor),
            Rest::Nothing => return Ok(()),
        };
        let page = self.app.store.user_activity(self.range, after).await?;
        self.calls += 1;
        self.rest = page.next.map_or(Rest::Nothing, Rest::After);
        self.read.extend(page.markers);
        Ok(())
    }

    fn newest(&self) -> Option<NaiveDate> {
        self.read.front().map(|(date, _)| *date)
    }

    fn oldest(&self) -> Option<NaiveDate> {
        self.read.back().map(|(date, _)| *date)
    }
}

//! One pass over what is kept of a user, under their name and their pseudonym.
//!
//! Files come first, while the table still tells what in them is the user's. What was found once is
//! remembered in the bucket, for files that are written while the pass is under way.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, TimeDelta, Utc};
use hearback_domain::erasure::{Erasure, Kind, Traces};
use hearback_domain::identifier::UserId;
use hearback_domain::mirror;
use hearback_domain::turn::{ConversationRef, TurnLog, TurnRef};
use hearback_storage::erasures::{Extent, Found, Listing, Next, Owner, Unit};
use hearback_storage::preferences::Freshness;
use hearback_storage::turns::IndexRow;
use serde_json::Value;

use crate::files::erase_files;
use crate::queue::{Step, Task};
use crate::{Eraser, Failure};

/// Where something is kept under a name. Claims come last: by them events are found.
const LISTINGS: [Listing; 5] = [
    Listing::Versions,
    Listing::Signals,
    Listing::Authored,
    Listing::Vectors,
    Listing::Claims,
];

pub(crate) struct Pass<'a> {
    eraser: &'a Eraser,
    erasure: Erasure,
    /// The user's, and their pseudonym.
    names: Vec<UserId>,
    task: Task,
    until: Option<DateTime<Utc>>,
}

impl<'a> Pass<'a> {
    pub(crate) fn new(
        eraser: &'a Eraser,
        erasure: Erasure,
        task: Task,
        until: Option<DateTime<Utc>>,
    ) -> Self {
        Self {
            eraser,
            names: erasure.names(&task.user),
            erasure,
            task,
            until,
        }
    }

    /// Makes the pass, or hands the rest of it on. One that found something is followed by another.
    pub(crate) async fn run(mut self) -> Result<(), Failure> {
        if let Step::Traces(listings, after) = self.task.step.clone() {
            if let Some(rest) = self.trace(listings, after).await? {
                return self.hand_on(rest).await;
            }
            self.task.step = Step::Files(None);
        }
        if let Step::Files(after) = self.task.step.clone()
            && let Some(next) = self.files(after).await?
        {
            return self.hand_on(Step::Files(Some(next))).await;
        }
        for user in self.names.clone() {
            for listing in LISTINGS {
                if !self.rows(&user, listing).await? {
                    return self.hand_on(Step::Rows).await;
                }
            }
        }
        if self.task.found || !self.close().await? {
            let again = Task::new(self.task.tenant, self.task.user, self.task.id);
            let after = self.eraser.erasures.settle();
            self.eraser.erasures.send(&again, after).await?;
        }
        Ok(())
    }

    /// Whether the erasure is done: not if another pass found something a while ago.
    async fn close(&self) -> Result<bool, Failure> {
        let now = self.eraser.clock.now();
        let quiet = now - self.eraser.erasures.settle();
        let store = &self.eraser.store;
        let (tenant, id) = (&self.task.tenant, self.task.id);
        let closing = store.close_erasure(self.owner(), &self.erasure, (quiet, now));
        // Or it was closed by a call whose answer was lost.
        if !closing.await? && self.is_open().await? {
            return Ok(false);
        }
        self.eraser.blobs.delete_traces(tenant, id).await?;
        Ok(true)
    }

    /// Whether there is anything to do still: the same message may have come to another worker, who is done.
    async fn is_open(&self) -> Result<bool, Failure> {
        let store = &self.eraser.store;
        let standing = store.erasure(self.owner(), Freshness::Latest).await?;
        let open = standing.filter(Erasure::is_open);
        Ok(open.is_some_and(|open| open.id == self.erasure.id))
    }

    /// Notes that something is there still, before it is removed.
    async fn found(&mut self) -> Result<(), Failure> {
        if !self.task.found {
            self.task.found = true;
            let now = self.eraser.clock.now();
            self.eraser.store.note_found(self.owner(), now).await?;
        }
        Ok(())
    }

    async fn hand_on(mut self, step: Step) -> Result<(), Failure> {
        self.task.step = step;
        let at_once = TimeDelta::zero();
        Ok(self.eraser.erasures.send(&self.task, at_once).await?)
    }

    fn owner(&self) -> Owner<'_> {
        (&self.task.tenant, &self.task.user)
    }

    /// Removes things and counts them.
    async fn erase(&self, kind: Kind, units: Vec<Unit>) -> Result<(), Failure> {
        let (store, open) = (&self.eraser.store, Some(&self.erasure));
        store.erase(self.owner(), open, kind, units).await?;
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.until
            .is_some_and(|until| self.eraser.clock.now() >= until)
    }

    /// Removes what files hold of the user, and answers behind which of them to go on.
    async fn files(&mut self, after: Option<String>) -> Result<Option<String>, Failure> {
        let (tenant, id) = (&self.task.tenant, self.task.id);
        let traces = self.eraser.blobs.traces(tenant, id).await?;
        let traces = traces.unwrap_or_default();
        let erased = {
            let belongs = |line: &Value| traces.left(line, tenant, &self.names);
            let is_over = || self.is_over();
            let blobs = &self.eraser.blobs;
            erase_files(blobs, tenant, &belongs, after.as_deref(), &is_over).await?
        };
        for (kind, count) in [
            (Kind::ExportRows, erased.export_lines),
            (Kind::ImportFiles, erased.import_files),
            (Kind::RejectedLines, erased.import_lines),
        ] {
            if count > 0 {
                self.found().await?;
                let store = &self.eraser.store;
                store.count_erased(self.owner(), kind, count).await?;
            }
        }
        Ok(erased.next)
    }

    /// Remembers by what the lines of the user's are told, as far as the table tells, and answers where to go
    /// on.
    async fn trace(
        &self,
        listings: usize,
        mut after: Option<Next>,
    ) -> Result<Option<Step>, Failure> {
        let Eraser { store, blobs, .. } = self.eraser;
        let (tenant, id) = (&self.task.tenant, self.task.id);
        let known = blobs.traces(tenant, id).await?;
        let mut traces = known.clone().unwrap_or_default();
        let mut rest = None;
        let mut seen = BTreeSet::new();
        let all = self.names.iter();
        let all = all.flat_map(|user| LISTINGS.map(|listing| (user, listing)));
        'listings: for (at, (user, listing)) in all.enumerate().skip(listings) {
            loop {
                let (owner, many) = ((tenant, user), (listing, Extent::Many));
                let page = store.kept_of(owner, many, after.as_ref()).await?;
                self.trace_page(user, page.found, &mut traces, &mut seen)
                    .await?;
                after = page.next;
                if self.is_over() {
                    let next = if after.is_some() { at } else { at + 1 };
                    rest = Some(Step::Traces(next, after));
                    break 'listings;
                }
                if after.is_none() {
                    break;
                }
            }
        }
        if known.as_ref() != Some(&traces) {
            blobs.put_traces(tenant, id, &traces).await?;
        }
        Ok(rest)
    }

    async fn trace_page<'b>(
        &'b self,
        user: &'b UserId,
        page: Vec<Found>,
        traces: &mut Traces,
        seen: &mut BTreeSet<(&'b UserId, ConversationRef)>,
    ) -> Result<(), Failure> {
        let store = &self.eraser.store;
        let mut turns = BTreeSet::new();
        for found in page {
            match found {
                Found::Event { id, .. } => _ = traces.acts.insert(id),
                Found::Signal { act, .. } => _ = traces.acts.insert(act),
                Found::Turn { at, .. } => _ = turns.insert(at),
                // Somebody was active in a conversation minute after minute.
                Found::Active { within, .. } if seen.insert((user, within.clone())) => {
                    let said = store.reactions_by(user, &within).await?;
                    let acts = said.into_iter().filter_map(|said| said.act);
                    traces.acts.extend(acts);
                }
                Found::Active { .. } | Found::Version(_) | Found::Trail(_) => {}
            }
        }
        let turns: Vec<_> = turns.into_iter().collect();
        for row in store.kept_turns(&turns).await?.into_iter().flatten() {
            if row.core.user_id == *user {
                traces.add_turn(&row.core);
            }
        }
        Ok(())
    }

    /// Removes what is found in a place under a name; answers whether that is all, or the time is up.
    async fn rows(&mut self, user: &UserId, listing: Listing) -> Result<bool, Failure> {
        let store = &self.eraser.store;
        let mut from = None;
        loop {
            let few = (listing, Extent::Few);
            let owner = (&self.task.tenant, user);
            let page = store.kept_of(owner, few, from.as_ref()).await?;
            self.remove(user, page.found).await?;
            from = page.next;
            if from.is_none() {
                return Ok(true);
            }
            if self.is_over() {
                return Ok(false);
            }
        }
    }

    async fn remove(&mut self, user: &UserId, page: Vec<Found>) -> Result<(), Failure> {
        if page.is_empty() {
            return Ok(());
        }
        if !self.is_open().await? {
            return Err(Failure::Done);
        }
        let is_left = |found: &Found| !matches!(found, Found::Turn { .. } | Found::Trail(_));
        if page.iter().any(is_left) {
            self.found().await?;
        }
        let (mut events, mut signals, mut versions) = (Vec::new(), Vec::new(), Vec::new());
        let mut trails = Vec::new();
        let mut active: BTreeMap<ConversationRef, Vec<Unit>> = BTreeMap::new();
        let mut turns: BTreeMap<TurnRef, Vec<Unit>> = BTreeMap::new();
        for found in page {
            match found {
                Found::Event { unit, .. } => events.push(unit),
                Found::Signal { unit, .. } => signals.push(unit),
                Found::Version(unit) => versions.push(unit),
                Found::Trail(unit) => trails.push(unit),
                Found::Active { within, marker } => active.entry(within).or_default().push(marker),
                Found::Turn { at, vector } => turns.entry(at).or_default().push(vector),
            }
        }
        self.erase(Kind::Events, events).await?;
        self.erase(Kind::Signals, signals).await?;
        self.erase(Kind::PreferenceVersions, versions).await?;
        for (within, markers) in active {
            self.reactions(user, &within).await?;
            trails.extend(markers);
        }
        // No marker leads to reactions of an older system; those on the user's own turns lie there.
        let conversations: BTreeSet<_> = turns.keys().map(|at| at.within.clone()).collect();
        for within in conversations {
            self.reactions(user, &within).await?;
        }
        for (at, vectors) in turns {
            if self.turn(user, &at).await? {
                trails.extend(vectors);
            }
        }
        Ok(self.eraser.store.remove(trails).await?)
    }

    /// Removes the user's reactions in a conversation, and what of them is in the logs of others.
    async fn reactions(&self, user: &UserId, within: &ConversationRef) -> Result<(), Failure> {
        let store = &self.eraser.store;
        let said = store.reactions_by(user, within).await?;
        let (counted, said): (Vec<_>, Vec<_>) = said.into_iter().partition(|said| said.counted);
        let about: BTreeSet<_> = said.iter().map(|said| &said.at).collect();
        for at in about {
            self.mirrors(user, at).await?;
        }
        let units = said.into_iter().map(|said| said.unit).collect();
        self.erase(Kind::Reactions, units).await?;
        // The signal or the event that it follows from is counted itself.
        let counted = counted.into_iter().map(|said| said.unit).collect();
        Ok(self.eraser.store.remove(counted).await?)
    }

    /// Takes what the user said out of the log of another's turn; their own is removed as a whole.
    async fn mirrors(&self, user: &UserId, at: &TurnRef) -> Result<(), Failure> {
        let Eraser { store, blobs, .. } = self.eraser;
        let now = self.eraser.clock.now();
        let foreign = |row: &IndexRow| row.core.user_id != *user;
        if store.kept_turn(at).await?.is_none_or(|row| !foreign(&row)) {
            return Ok(());
        }
        let unsay = |log: &mut TurnLog| {
            let before = log.turn_log.clone();
            mirror::hide(&mut log.turn_log, now, |other| other != user);
            log.turn_log != before
        };
        blobs.change_turn_log(store, at, unsay).await?;
        if let Some(row) = store.kept_turn(at).await? {
            let current = Some(row.hosted_uri.as_str());
            blobs
                .delete_old_turn_logs(at, self.settled(), current)
                .await?;
        }
        Ok(())
    }

    /// Removes a turn of the user's, with its log and its message, and answers whether nothing more leads
    /// there: not while somebody may be writing a log anew.
    async fn turn(&mut self, user: &UserId, at: &TurnRef) -> Result<bool, Failure> {
        let Eraser { store, blobs, .. } = self.eraser;
        let settled = self.settled();
        let Some(row) = store.kept_turn(at).await? else {
            let left = blobs.delete_old_turn_logs(at, settled, None).await?;
            if left {
                self.found().await?;
            }
            return Ok(!left);
        };
        if row.core.user_id != *user {
            // Theirs is what a registration left that lost against another's.
            let current = Some(row.hosted_uri.as_str());
            blobs.delete_old_turn_logs(at, settled, current).await?;
            return Ok(true);
        }
        self.found().await?;
        if let Some(message) = &row.core.message_id {
            store.remove_message(message, &row.core).await?;
        }
        let unit = vec![Unit::turn(&row.core)?];
        self.erase(Kind::Turns, unit).await?;
        blobs.delete_old_turn_logs(at, settled, None).await?;
        Ok(false)
    }

    /// What is older was not stored by anybody who is still about to point to it.
    fn settled(&self) -> DateTime<Utc> {
        self.eraser.clock.now() - self.eraser.erasures.settle()
    }
}

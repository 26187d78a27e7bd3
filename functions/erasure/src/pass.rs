//! One pass over what is kept of a user.
//!
//! Files come first, while the table still tells what in them is the user's. What was found once is
//! remembered in the bucket, for files that are written while the pass is under way.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use hearback_domain::erasure::{Erasure, Kind, Traces};
use hearback_domain::mirror;
use hearback_domain::turn::{ConversationRef, TurnLog, TurnRef};
use hearback_storage::erasures::{Found, Listing, Owner, Unit};

use crate::files::erase_files;
use crate::queue::{Step, Task};
use crate::{Eraser, Failure};

/// Where something of a user may be. Claims come last: by them events are found.
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
            erasure,
            task,
            until,
        }
    }

    /// Makes the pass, or hands the rest of it on. One that found something is followed by another.
    pub(crate) async fn run(mut self) -> Result<(), Failure> {
        if let Step::Files(after) = self.task.step.clone()
            && let Some(next) = self.files(after).await?
        {
            return self.hand_on(Step::Files(Some(next))).await;
        }
        for listing in LISTINGS {
            if !self.rows(listing).await? {
                return self.hand_on(Step::Rows).await;
            }
        }
        if self.task.found {
            let again = Task::new(self.task.tenant, self.task.user, self.task.id);
            let after = self.eraser.erasures.settle();
            return Ok(self.eraser.erasures.send(&again, after).await?);
        }
        self.close().await
    }

    async fn close(&self) -> Result<(), Failure> {
        let (tenant, id) = (&self.task.tenant, self.task.id);
        self.eraser.blobs.delete_traces(tenant, id).await?;
        let now = self.eraser.clock.now();
        let store = &self.eraser.store;
        Ok(store
            .close_erasure(self.owner(), &self.erasure, now)
            .await?)
    }

    async fn hand_on(mut self, step: Step) -> Result<(), Failure> {
        self.task.step = step;
        let now = chrono::TimeDelta::zero();
        Ok(self.eraser.erasures.send(&self.task, now).await?)
    }

    fn owner(&self) -> Owner<'_> {
        (&self.task.tenant, &self.task.user)
    }

    fn is_over(&self) -> bool {
        self.until
            .is_some_and(|until| self.eraser.clock.now() >= until)
    }

    /// Removes what files hold of the user, and answers behind which of them to go on.
    async fn files(&mut self, after: Option<String>) -> Result<Option<String>, Failure> {
        let traces = self.traces(after.is_none()).await?;
        let erased = {
            let owner = self.owner();
            let belongs = |line: &serde_json::Value| traces.left(line, owner);
            let is_over = || self.is_over();
            let (blobs, tenant) = (&self.eraser.blobs, &self.task.tenant);
            erase_files(blobs, tenant, &belongs, after.as_deref(), &is_over).await?
        };
        for (kind, count) in [
            (Kind::ExportRows, erased.export_lines),
            (Kind::ImportFiles, erased.import_files),
            (Kind::RejectedLines, erased.import_lines),
        ] {
            if count > 0 {
                self.task.found = true;
                let store = &self.eraser.store;
                store.count_erased(self.owner(), kind, count).await?;
            }
        }
        Ok(erased.next)
    }

    /// By what the lines of the user's are told. At the beginning of a pass the table tells.
    async fn traces(&self, begins: bool) -> Result<Traces, Failure> {
        let blobs = &self.eraser.blobs;
        let (tenant, id) = (&self.task.tenant, self.task.id);
        let known = blobs.traces(tenant, id).await?;
        let mut traces = known.clone().unwrap_or_default();
        if begins {
            for listing in LISTINGS {
                self.trace(listing, &mut traces).await?;
            }
            if known.as_ref() != Some(&traces) {
                blobs.put_traces(tenant, id, &traces).await?;
            }
        }
        Ok(traces)
    }

    async fn trace(&self, listing: Listing, traces: &mut Traces) -> Result<(), Failure> {
        let store = &self.eraser.store;
        let mut from = None;
        loop {
            let page = store.kept_of(self.owner(), listing, from).await?;
            for found in page.found {
                match found {
                    Found::Event { id, .. } => _ = traces.acts.insert(id),
                    Found::Signal { act, .. } => _ = traces.acts.insert(act),
                    Found::Turn { at, .. } => {
                        let names = (at.within.conversation.to_string(), at.turn.to_string());
                        traces.turns.insert(names);
                    }
                    Found::Active { within, .. } => {
                        let said = store.reactions_by(&self.task.user, &within).await?;
                        traces.acts.extend(said.into_iter().map(|(_, act, _)| act));
                    }
                    Found::Version(_) => {}
                }
            }
            from = page.next;
            if from.is_none() {
                return Ok(());
            }
        }
    }

    /// Removes what is found in a place; answers whether that is all, or the time is up.
    async fn rows(&mut self, listing: Listing) -> Result<bool, Failure> {
        let store = &self.eraser.store;
        let mut from = None;
        loop {
            let page = store.kept_of(self.owner(), listing, from).await?;
            self.task.found |= !page.found.is_empty();
            self.remove(page.found).await?;
            from = page.next;
            if from.is_none() {
                return Ok(true);
            }
            if self.is_over() {
                return Ok(false);
            }
        }
    }

    async fn remove(&self, page: Vec<Found>) -> Result<(), Failure> {
        let (mut events, mut signals, mut versions) = (Vec::new(), Vec::new(), Vec::new());
        let mut active: BTreeMap<ConversationRef, Vec<Unit>> = BTreeMap::new();
        let mut turns: BTreeMap<TurnRef, Vec<Unit>> = BTreeMap::new();
        for found in page {
            match found {
                Found::Event { unit, .. } => events.push(unit),
                Found::Signal { unit, .. } => signals.push(unit),
                Found::Version(unit) => versions.push(unit),
                Found::Active { within, marker } => active.entry(within).or_default().push(marker),
                Found::Turn { at, vector } => turns.entry(at).or_default().push(vector),
            }
        }
        let store = &self.eraser.store;
        store.erase(self.owner(), Kind::Events, events).await?;
        store.erase(self.owner(), Kind::Signals, signals).await?;
        let kind = Kind::PreferenceVersions;
        store.erase(self.owner(), kind, versions).await?;
        for (within, markers) in active {
            self.reactions(&within).await?;
            store.remove(markers).await?;
        }
        for (at, vectors) in turns {
            self.turn(&at).await?;
            store.remove(vectors).await?;
        }
        Ok(())
    }

    /// Removes the user's reactions in a conversation, and what of them is in the logs of others.
    async fn reactions(&self, within: &ConversationRef) -> Result<(), Failure> {
        let store = &self.eraser.store;
        let said = store.reactions_by(&self.task.user, within).await?;
        let mut about: Vec<_> = said.iter().map(|(at, ..)| at).collect();
        about.sort();
        about.dedup();
        for at in about {
            self.mirrors(at).await?;
        }
        let units = said.into_iter().map(|(_, _, unit)| unit).collect();
        store.erase(self.owner(), Kind::Reactions, units).await?;
        Ok(())
    }

    /// Takes what the user said out of the log of another's turn; their own is removed as a whole.
    async fn mirrors(&self, at: &TurnRef) -> Result<(), Failure> {
        let Eraser {
            store,
            blobs,
            clock,
            ..
        } = self.eraser;
        let user = &self.task.user;
        let Some(row) = store.turn(at).await? else {
            return Ok(());
        };
        if row.core.user_id == *user {
            return Ok(());
        }
        let unsay = |log: &mut TurnLog| {
            let before = log.turn_log.clone();
            mirror::hide(&mut log.turn_log, clock.now(), |other| other != user);
            log.turn_log != before
        };
        blobs.change_turn_log(store, at, unsay).await?;
        let Some(row) = store.turn(at).await? else {
            return Ok(());
        };
        // Versions from before. A later one may be on its way into the row.
        let opened = self.erasure.requested_at;
        let current = Some(row.hosted_uri.as_str());
        Ok(blobs.delete_old_turn_logs(at, opened, current).await?)
    }

    /// Removes a turn of the user's, with its log and its message. Of one whose registration died there
    /// is a log at most.
    async fn turn(&self, at: &TurnRef) -> Result<(), Failure> {
        let Eraser { store, blobs, .. } = self.eraser;
        let Some(row) = store.turn(at).await? else {
            // What is younger may be another's registration.
            let opened = self.erasure.requested_at;
            return Ok(blobs.delete_old_turn_logs(at, opened, None).await?);
        };
        if row.core.user_id != self.task.user {
            return Ok(());
        }
        if let Some(message) = &row.core.message_id {
            store.remove_message(message, &row.core).await?;
        }
        blobs.delete_turn_logs(at).await?;
        let unit = vec![Unit::turn(at)];
        store.erase(self.owner(), Kind::Turns, unit).await?;
        // A mirror may have moved the row on just before.
        Ok(blobs.delete_turn_logs(at).await?)
    }
}

//! One pass over a user's data, under their id and their pseudonym.
//!
//! Files come first, while the table still shows which of their lines are the user's. The ids that identify these lines
//! (the traces) are also stored in the bucket, to search files written during the pass.

mod conversations;

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, TimeDelta, Utc};
use hearback_domain::export::erasure::{Erasure, ErasureIds, RemovedKind};
use hearback_domain::identity::identifier::{UserId, UserRef};
use hearback_domain::turns::turn::{ConversationRef, TurnRef};
use hearback_storage::erasures::{DataSource, ErasureCursor, PageSize, PersonalData, RowGroup};
use hearback_storage::preferences::Freshness;
use serde_json::Value;

use crate::files::erase_files;
use crate::queue::{Step, Task};
use crate::{Eraser, Failure};

/// The sources of a user's data. Claims come last, because events are found by them.
const SOURCES: [DataSource; 5] = [
    DataSource::Versions,
    DataSource::Signals,
    DataSource::AuthorIndex,
    DataSource::Vectors,
    DataSource::Claims,
];

pub(crate) struct Pass<'a> {
    eraser: &'a Eraser,
    erasure: Erasure,
    /// The user's id and their pseudonym.
    names: Vec<UserId>,
    task: Task,
    until: Option<DateTime<Utc>>,
    /// Whether a row that leads to data cannot be read.
    damaged: bool,
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
            damaged: false,
        }
    }

    /// Runs the pass, or a part of it. A pass that found something is followed by another.
    pub(crate) async fn run(mut self) -> Result<(), Failure> {
        if let Step::Traces(done, after) = self.task.step.clone() {
            if let Some(rest) = self.trace(done, after).await? {
                return self.continue_later(rest).await;
            }
            self.task.step = Step::Files(None);
        }
        if let Step::Files(after) = self.task.step.clone()
            && let Some(next) = self.files(after).await?
        {
            return self.continue_later(Step::Files(Some(next))).await;
        }
        if let Step::Search(name, after) = self.task.step.clone() {
            let next = match self.names.get(name).cloned() {
                Some(user) => self.search(&user, after).await?,
                None => None,
            };
            return match next {
                Some(_) => self.continue_later(Step::Search(name, next)).await,
                // The next pass collects the traces of turns that can be found again, before it removes them.
                None => self.repeat().await,
            };
        }
        for (name, user) in self.names.clone().into_iter().enumerate() {
            for source in SOURCES {
                if !self.rows(&user, source).await? {
                    return self.continue_later(Step::Rows).await;
                }
            }
            if self.damaged {
                self.note_found().await?;
                tracing::warn!(
                    tenant = %self.task.tenant,
                    damaged = true,
                    "a row that leads to a user's data cannot be read: the whole table is searched"
                );
                return self.continue_later(Step::Search(name, None)).await;
            }
        }
        if self.task.found || !self.close().await? {
            self.repeat().await?;
        }
        Ok(())
    }

    /// Starts another pass after a delay, when no operation can still add data that this pass missed.
    async fn repeat(self) -> Result<(), Failure> {
        let again = Task::new(self.task.tenant, self.task.user, self.task.id);
        let after = self.eraser.erasures.settle();
        Ok(self.eraser.erasures.send(&again, after).await?)
    }

    /// Closes the erasure, unless another pass found something recently. Returns whether it is closed.
    async fn close(&self) -> Result<bool, Failure> {
        let now = self.eraser.clock.now();
        let quiet_since = now - self.eraser.erasures.settle();
        let store = &self.eraser.store;
        let (tenant, id) = (&self.task.tenant, self.task.id);
        let closing = store.close_erasure(self.owner(), &self.erasure, quiet_since, now);
        // An earlier call whose response was lost may have closed it.
        if !closing.await? && self.is_open().await? {
            return Ok(false);
        }
        self.eraser.blobs.delete_traces(tenant, id).await?;
        Ok(true)
    }

    /// Whether the erasure is still open: another worker may have received the same message and closed it.
    async fn is_open(&self) -> Result<bool, Failure> {
        let store = &self.eraser.store;
        let latest = store.erasure(self.owner(), Freshness::Latest).await?;
        let open = latest.filter(Erasure::is_open);
        Ok(open.is_some_and(|open| open.id == self.erasure.id))
    }

    /// Notes that the pass found something, before that is removed.
    async fn note_found(&mut self) -> Result<(), Failure> {
        if !self.task.found {
            self.task.found = true;
            let now = self.eraser.clock.now();
            self.eraser.store.note_found(self.owner(), now).await?;
        }
        Ok(())
    }

    async fn continue_later(mut self, step: Step) -> Result<(), Failure> {
        self.task.step = step;
        let no_delay = TimeDelta::zero();
        Ok(self.eraser.erasures.send(&self.task, no_delay).await?)
    }

    fn owner(&self) -> UserRef<'_> {
        UserRef::new(&self.task.tenant, &self.task.user)
    }

    /// Removes rows and counts them.
    async fn erase(&self, kind: RemovedKind, units: Vec<RowGroup>) -> Result<(), Failure> {
        let (store, open) = (&self.eraser.store, Some(&self.erasure));
        store.erase(self.owner(), open, kind, units).await?;
        Ok(())
    }

    fn is_out_of_time(&self) -> bool {
        self.until
            .is_some_and(|until| self.eraser.clock.now() >= until)
    }

    /// Removes the user's data from files, and returns the key after which to continue, if there are more.
    async fn files(&mut self, after: Option<String>) -> Result<Option<String>, Failure> {
        let (tenant, id) = (&self.task.tenant, self.task.id);
        let traces = self.eraser.blobs.traces(tenant, id).await?;
        let traces = traces.unwrap_or_default();
        let erased = {
            let belongs = |line: &Value| traces.matches(line, tenant, &self.names);
            let is_out_of_time = || self.is_out_of_time();
            let blobs = &self.eraser.blobs;
            erase_files(blobs, tenant, &belongs, after.as_deref(), &is_out_of_time).await?
        };
        for (kind, count) in [
            (RemovedKind::ExportRows, erased.export_lines),
            (RemovedKind::ImportFiles, erased.import_files),
            (RemovedKind::RejectedLines, erased.import_lines),
        ] {
            if count > 0 {
                self.note_found().await?;
                let store = &self.eraser.store;
                store.count_erased(self.owner(), kind, count).await?;
            }
        }
        Ok(erased.next)
    }

    /// Stores the traces of the user's lines that the table has, and returns the step to continue with, if there are
    /// more.
    async fn trace(
        &self,
        done: usize,
        mut after: Option<ErasureCursor>,
    ) -> Result<Option<Step>, Failure> {
        let Eraser { store, blobs, .. } = self.eraser;
        let (tenant, id) = (&self.task.tenant, self.task.id);
        let known = blobs.traces(tenant, id).await?;
        let mut traces = known.clone().unwrap_or_default();
        let mut rest = None;
        let mut seen = BTreeSet::new();
        let all = self.names.iter();
        let all = all.flat_map(|user| SOURCES.map(|source| (user, source)));
        'sources: for (at, (user, source)) in all.enumerate().skip(done) {
            loop {
                let owner = UserRef { tenant, user };
                let page = store
                    .personal_data(owner, source, PageSize::Full, after.as_ref())
                    .await?;
                self.trace_page(user, page.found, &mut traces, &mut seen)
                    .await?;
                after = page.next;
                if self.is_out_of_time() {
                    let next = if after.is_some() { at } else { at + 1 };
                    rest = Some(Step::Traces(next, after));
                    break 'sources;
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
        page: Vec<PersonalData>,
        traces: &mut ErasureIds,
        seen: &mut BTreeSet<(&'b UserId, ConversationRef)>,
    ) -> Result<(), Failure> {
        let store = &self.eraser.store;
        let mut turns = BTreeSet::new();
        for found in page {
            match found {
                PersonalData::Event { id, .. } => _ = traces.acts.insert(id),
                PersonalData::Signal { act, .. } => traces.acts.extend(act),
                PersonalData::Turn { at, .. } => _ = turns.insert(at),
                // A conversation has an activity marker for each active minute.
                PersonalData::Active { within, .. } if seen.insert((user, within.clone())) => {
                    let reactions = store.reactions_by(user, &within).await?;
                    let reactions = reactions.with_traced(&within, traces);
                    let acts = reactions.into_iter().filter_map(|reaction| reaction.act);
                    traces.acts.extend(acts);
                }
                PersonalData::Active { .. }
                | PersonalData::Version(_)
                | PersonalData::Orphan(_)
                | PersonalData::Damaged(_) => {}
            }
        }
        for (at, turn) in store.erasable_turns(turns).await? {
            match turn.core {
                Some(core) if core.user_id == *user => traces.add_turn(&core),
                Some(_) => {}
                None => traces.add_unreadable_turn(&at),
            }
        }
        Ok(())
    }

    /// Searches the whole table for data of a user, stores its traces for the next pass and removes it, and then the
    /// rows that should have led to it. Returns where to continue, if the time is up before.
    async fn search(
        &mut self,
        user: &UserId,
        mut after: Option<ErasureCursor>,
    ) -> Result<Option<ErasureCursor>, Failure> {
        let Eraser { store, blobs, .. } = self.eraser;
        let (tenant, id) = (self.task.tenant.clone(), self.task.id);
        let owner = UserRef::new(&tenant, user);
        let vectors = store.damaged_vectors(owner).await?;
        loop {
            let page = store.search_personal_data(owner, &vectors, after.as_ref());
            let page = page.await?;
            if !page.found.is_empty() {
                let mut traces = blobs.traces(&tenant, id).await?.unwrap_or_default();
                self.trace_page(user, page.found.clone(), &mut traces, &mut BTreeSet::new())
                    .await?;
                blobs.put_traces(&tenant, id, &traces).await?;
                self.remove(user, page.found).await?;
            }
            after = page.next;
            if after.is_none() {
                break;
            }
            if self.is_out_of_time() {
                return Ok(after);
            }
        }
        for source in SOURCES {
            let mut from = None;
            loop {
                let page = store
                    .personal_data(owner, source, PageSize::Full, from.as_ref())
                    .await?;
                let damaged = page.found.into_iter().filter_map(|found| match found {
                    PersonalData::Damaged(unit) => Some(unit),
                    _ => None,
                });
                store.remove(damaged.collect()).await?;
                from = page.next;
                if from.is_none() {
                    break;
                }
            }
        }
        Ok(None)
    }

    /// Removes a user's rows of one source; returns `false` if the time is up before all are removed.
    async fn rows(&mut self, user: &UserId, source: DataSource) -> Result<bool, Failure> {
        let store = &self.eraser.store;
        let mut from = None;
        loop {
            let owner = UserRef::new(&self.task.tenant, user);
            let page = store
                .personal_data(owner, source, PageSize::Removal, from.as_ref())
                .await?;
            self.remove(user, page.found).await?;
            from = page.next;
            if from.is_none() {
                return Ok(true);
            }
            if self.is_out_of_time() {
                return Ok(false);
            }
        }
    }

    async fn remove(&mut self, user: &UserId, page: Vec<PersonalData>) -> Result<(), Failure> {
        if page.is_empty() {
            return Ok(());
        }
        if !self.is_open().await? {
            return Err(Failure::Done);
        }
        let is_data = |found: &PersonalData| {
            !matches!(
                found,
                PersonalData::Turn { .. } | PersonalData::Orphan(_) | PersonalData::Damaged(_)
            )
        };
        if page.iter().any(is_data) {
            self.note_found().await?;
        }
        let (mut events, mut signals, mut versions) = (Vec::new(), Vec::new(), Vec::new());
        let mut index_rows = Vec::new();
        let mut active: BTreeMap<ConversationRef, Vec<RowGroup>> = BTreeMap::new();
        let mut turns: BTreeMap<TurnRef, Vec<RowGroup>> = BTreeMap::new();
        for found in page {
            match found {
                PersonalData::Event { unit, .. } => events.push(unit),
                PersonalData::Signal { unit, .. } => signals.push(unit),
                PersonalData::Version(unit) => versions.push(unit),
                PersonalData::Orphan(unit) => index_rows.push(unit),
                PersonalData::Active { within, marker } => {
                    active.entry(within).or_default().extend(marker);
                }
                // Kept until a search has found the data that it leads to.
                PersonalData::Damaged(_) => self.damaged = true,
                PersonalData::Turn { at, vector } => turns.entry(at).or_default().push(vector),
            }
        }
        self.erase(RemovedKind::Events, events).await?;
        self.erase(RemovedKind::Signals, signals).await?;
        self.erase(RemovedKind::PreferenceVersions, versions)
            .await?;
        for (within, markers) in active {
            self.reactions(user, &within).await?;
            index_rows.extend(markers);
        }
        // Reactions of an older system have no markers; those on the user's own turns are in these conversations.
        let conversations: BTreeSet<_> = turns.keys().map(|at| at.within.clone()).collect();
        for within in conversations {
            self.reactions(user, &within).await?;
        }
        for (at, vectors) in turns {
            if self.turn(user, &at).await? {
                index_rows.extend(vectors);
            }
        }
        Ok(self.eraser.store.remove(index_rows).await?)
    }

    /// The time before which every log that was written is either referenced or garbage.
    fn settled(&self) -> DateTime<Utc> {
        self.eraser.clock.now() - self.eraser.erasures.settle()
    }
}

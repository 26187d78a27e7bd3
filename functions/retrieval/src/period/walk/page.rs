//! A page of the report: what is on it, and when it is full.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use hearback_domain::feedback::reaction::StoredReaction;
use hearback_domain::feedback::reported::ReportedFeedback;
use hearback_domain::identity::identifier::ConversationId;
use hearback_domain::text::payload::{MAX_PAGE, escaped_json_size};
use hearback_domain::turns::turn::ConversationRef;
use hearback_domain::views::period::{ConversationFeedback, ConversationPosition, PeriodRequest};
use hearback_lambda::App;
use hearback_lambda::params::InProject;
use hearback_storage::Error;
use hearback_storage::months::ActiveMonths;

use super::position::PeriodPosition;
use crate::part::{Part, UpTo};
use crate::period::minutes::instant;
use crate::visible;

/// Calls that are made concurrently.
pub(super) const AT_ONCE: usize = 16;
/// Queries after which a page ends early, so that it ends within the time of the function, however many conversations
/// it skips.
pub(super) const MAX_QUERIES: u32 = 4000;
/// The maximum size of a conversation without its turns, in bytes.
const ITEM_OVERHEAD: usize = 4_000;
/// The maximum size of a turn without its id and its feedback, in bytes.
const TURN_OVERHEAD: usize = 100;

/// A conversation that may be listed.
pub(super) struct Candidate {
    /// Its position, in microseconds.
    pub(super) at: i64,
    /// A digest of its id, which orders conversations of one position.
    pub(super) mark: u64,
    pub(super) in_flight: bool,
    pub(super) item: ConversationFeedback,
    /// Its reactions that the caller may see.
    pub(super) reactions: Vec<StoredReaction>,
}

/// A page in progress.
pub(in crate::period) struct Walk<'a> {
    pub(super) app: &'a App,
    pub(super) within: &'a InProject,
    pub(super) request: &'a PeriodRequest,
    pub(super) as_of: DateTime<Utc>,
    pub(super) position: PeriodPosition,
    pub(super) listed: HashSet<u64>,
    /// The positions of conversations that were read for this page. They are not read again to be skipped.
    pub(super) known: HashMap<u64, Option<ConversationPosition>>,
    pub(super) queries: u32,
    pub(super) bytes: usize,
    pub(super) items: Vec<ConversationFeedback>,
    /// The months with activity, read after the first day without any.
    pub(super) months: Option<ActiveMonths>,
}

/// Whether the page is full.
#[derive(PartialEq, Eq)]
pub(super) enum Room {
    Left,
    Full,
}

impl<'a> Walk<'a> {
    pub(in crate::period) fn new(
        app: &'a App,
        within: &'a InProject,
        request: &'a PeriodRequest,
        position: PeriodPosition,
    ) -> Self {
        Self {
            app,
            within,
            request,
            as_of: instant(position.as_of),
            listed: position.listed.iter().copied().collect(),
            position,
            known: HashMap::new(),
            queries: 0,
            bytes: 0,
            items: Vec::new(),
            months: None,
        }
    }

    /// Lists the rest of the conversation in which the previous page ended.
    pub(super) async fn add_rest(&mut self) -> Result<Room, Error> {
        let Some((conversation, after)) = self.position.continued.take() else {
            return Ok(Room::Left);
        };
        let reactions = self.reactions(&conversation).await?;
        let item =
            ConversationFeedback::of(&conversation, &reactions, self.request, &self.within.caller);
        Ok(match item {
            Some(item) => self.add_part(item, reactions, Some(&after)),
            None => Room::Left,
        })
    }

    /// Lists as much of a conversation as fits on the page.
    fn add_part(
        &mut self,
        item: ConversationFeedback,
        mut reactions: Vec<StoredReaction>,
        after: Option<&UpTo>,
    ) -> Room {
        reactions.retain(|reaction| self.request.counts(&reaction.core));
        // Each reaction may be the only one of its turn, with the turn's id.
        let size = |reaction: &StoredReaction| {
            escaped_json_size(&ReportedFeedback::of(reaction))
                + escaped_json_size(&reaction.core.at.turn)
                + TURN_OVERHEAD
        };
        let part = Part::of(reactions, after, MAX_PAGE - ITEM_OVERHEAD, size);
        if !part.reactions.is_empty() {
            let item = item.with_turns_of(&part.reactions);
            self.bytes += escaped_json_size(&item) + 1;
            self.position.continued = part.rest.map(|rest| (item.conversation_id.clone(), rest));
            self.items.push(item);
        }
        match self.position.continued {
            Some(_) => Room::Full,
            None => Room::Left,
        }
    }

    /// The reactions of a conversation that the caller may see.
    pub(super) async fn reactions(
        &self,
        conversation: &ConversationId,
    ) -> Result<Vec<StoredReaction>, Error> {
        let at = ConversationRef {
            tenant: self.within.tenant.clone(),
            project: self.within.project.clone(),
            conversation: conversation.clone(),
        };
        let now = self.app.clock.now();
        let rows = self.app.store.reactions(&at, now).await?;
        Ok(visible(rows, &self.within.caller))
    }

    pub(super) fn add(&mut self, candidate: Candidate) -> Room {
        let size = escaped_json_size(&candidate.item) + 1;
        let too_large = self.bytes + size > MAX_PAGE - ITEM_OVERHEAD;
        if self.items.len() == self.request.limit.to::<usize>()
            || (too_large && !self.items.is_empty())
        {
            return Room::Full;
        }
        self.listed.insert(candidate.mark);
        self.position.at = candidate.at;
        self.position.after = Some(candidate.mark);
        if candidate.in_flight {
            self.position.listed.push(candidate.mark);
        }
        if too_large {
            return self.add_part(candidate.item, candidate.reactions, None);
        }
        self.bytes += size;
        self.items.push(candidate.item);
        Room::Left
    }
}

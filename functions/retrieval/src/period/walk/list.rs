//! Lists the conversations of a minute whose position is in it.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use chrono::{NaiveDate, NaiveTime};
use futures::stream::{self, StreamExt, TryStreamExt};
use hearback_domain::feedback::reaction::StoredReaction;
use hearback_domain::identity::identifier::ConversationId;
use hearback_domain::text::digest::digest;
use hearback_domain::views::period::{ConversationFeedback, ConversationPosition, position};
use hearback_storage::Error;

use super::page::{AT_ONCE, Candidate, Room, Walk};
use crate::period::minutes::Slot;

impl Walk<'_> {
    /// Lists those of these conversations whose position is in the minute.
    pub(super) async fn list(
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
                && let Some(at) = self.listed_at(slot, mark, position)
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
        // The walk continues before this minute.
        self.position.at = slot.start - 1;
        self.position.after = None;
        Ok(Room::Left)
    }

    /// Whether a conversation may be listed in this slot, as far as is known.
    fn may_be_in(&self, slot: Slot, conversation: &ConversationId) -> bool {
        let mark = mark(conversation);
        match self.known.get(&mark) {
            None => true,
            Some(None) => false,
            Some(Some(position)) => self.listed_at(slot, mark, *position).is_some(),
        }
    }

    /// Where in this slot a conversation is listed, if it is.
    ///
    /// It is listed at its latest reaction. If that may have been in flight when its minute was read, the conversation
    /// is listed at its position without that reaction, unless it was listed before.
    fn listed_at(&self, slot: Slot, mark: u64, position: ConversationPosition) -> Option<i64> {
        if self.listed.contains(&mark) {
            return None;
        }
        let latest = Some(position.latest);
        let settled = position.settled.filter(|_| position.is_in_flight());
        [latest, settled]
            .into_iter()
            .flatten()
            .map(|ts| ts.timestamp_micros())
            .find(|at| (slot.start..slot.end).contains(at) && self.position.reaches(*at, mark))
    }

    /// Reads a conversation: its mark, its position and, if that is in this slot, its feedback.
    async fn read(
        &self,
        slot: Slot,
        conversation: ConversationId,
    ) -> Result<ReadConversation, Error> {
        let reactions = self.reactions(&conversation).await?;
        let mark = mark(&conversation);
        let position = position(&reactions, self.request.window(), self.as_of);
        let item = position
            .filter(|position| self.listed_at(slot, mark, *position).is_some())
            .and_then(|_| {
                let caller = &self.within.caller;
                ConversationFeedback::of(&conversation, &reactions, self.request, caller)
            });
        Ok((mark, position, item.map(|item| (item, reactions))))
    }
}

/// The mark and the position of a conversation and, if it may be listed, its item with the reactions.
type ReadConversation = (
    u64,
    Option<ConversationPosition>,
    Option<(ConversationFeedback, Vec<StoredReaction>)>,
);

/// A quarter of a digest is enough to distinguish conversations.
fn mark(conversation: &ConversationId) -> u64 {
    let digest = digest([conversation.as_str()]);
    let quarter = digest.first_chunk().copied().unwrap_or_default();
    u64::from_be_bytes(quarter)
}

//! Removes what a user has in conversations: reactions with their mirrors in logs, and turns with their logs and messages.

use std::collections::BTreeSet;

use hearback_domain::export::erasure::RemovedKind;
use hearback_domain::feedback::mirror;
use hearback_domain::identity::identifier::{MessageId, UserId};
use hearback_domain::turns::turn::{ConversationRef, TurnLog, TurnRef};
use hearback_storage::Error;
use hearback_storage::erasures::ErasableTurn;

use super::Pass;
use crate::{Eraser, Failure};

impl Pass<'_> {
    /// Removes the user's reactions in a conversation, and their mirrors in the logs of other users' turns.
    pub(super) async fn reactions(
        &self,
        user: &UserId,
        within: &ConversationRef,
    ) -> Result<(), Failure> {
        let store = &self.eraser.store;
        let rows = store.reactions_by(user, within).await?;
        // Only those that cannot be read need the traces.
        let traces = if rows.has_unknown() {
            let (tenant, id) = (&self.task.tenant, self.task.id);
            self.eraser.blobs.traces(tenant, id).await?
        } else {
            None
        };
        let rows = rows.with_traced(within, &traces.unwrap_or_default());
        let (counted, reactions): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.counted);
        let turns: BTreeSet<_> = reactions
            .iter()
            .filter_map(|reaction| reaction.at.as_ref())
            .collect();
        for at in turns {
            self.mirrors(user, at).await?;
        }
        let units = reactions
            .into_iter()
            .map(|reaction| reaction.unit)
            .collect();
        self.erase(RemovedKind::Reactions, units).await?;
        // Not counted here: the message signal or the event of such a row is counted.
        let counted = counted.into_iter().map(|row| row.unit).collect();
        Ok(self.eraser.store.remove(counted).await?)
    }

    /// Removes the user's mirrors from the log of another user's turn. The user's own turns are removed completely.
    async fn mirrors(&self, user: &UserId, at: &TurnRef) -> Result<(), Failure> {
        let Eraser { store, blobs, .. } = self.eraser;
        let now = self.eraser.clock.now();
        let Some(turn) = store.erasable_turn(at).await? else {
            return Ok(());
        };
        let Some(core) = turn.core else {
            warn_of_mirrors(at);
            return Ok(());
        };
        if core.user_id == *user {
            return Ok(());
        }
        let remove_mirrors = |log: &mut TurnLog| {
            let before = log.turn_log.clone();
            mirror::hide(&mut log.turn_log, now, |other| other != user);
            log.turn_log != before
        };
        match blobs.change_turn_log(store, at, remove_mirrors).await {
            // It is another user's, and is not deleted.
            Err(Error::Unreadable { .. }) => {
                warn_of_mirrors(at);
                return Ok(());
            }
            changed => changed?,
        }
        let turn = store.erasable_turn(at).await?;
        if let Some(current) = turn.and_then(|turn| turn.hosted_uri) {
            blobs
                .delete_old_turn_logs(at, self.settled(), Some(&current))
                .await?;
        }
        Ok(())
    }

    /// Removes a turn of the user, with its log and its message, and returns whether its vectors can be removed too:
    /// not while a writer may still replace a log.
    pub(super) async fn turn(&mut self, user: &UserId, at: &TurnRef) -> Result<bool, Failure> {
        let Eraser { store, blobs, .. } = self.eraser;
        let settled = self.settled();
        let Some(found) = store.erasable_turn(at).await? else {
            let left = blobs.delete_old_turn_logs(at, settled, None).await?;
            if left {
                self.note_found().await?;
            }
            return Ok(!left);
        };
        if found
            .core
            .as_ref()
            .is_some_and(|core| core.user_id != *user)
        {
            // Only a registration that conflicted with this turn left logs of the user.
            if let Some(current) = &found.hosted_uri {
                blobs
                    .delete_old_turn_logs(at, settled, Some(current))
                    .await?;
            }
            return Ok(true);
        }
        // An unreadable turn belongs to this user, because the user has its vector.
        self.note_found().await?;
        match &found.core {
            Some(core) => {
                if let Some(message) = &core.message_id
                    && !store.remove_message(message, core).await?
                {
                    // It may be damaged.
                    store.remove_message_of(message, at).await?;
                }
            }
            None => {
                if let Some(message) = self.logged_message(&found).await? {
                    store.remove_message_of(&message, at).await?;
                }
            }
        }
        self.erase(RemovedKind::Turns, vec![found.unit]).await?;
        blobs.delete_old_turn_logs(at, settled, None).await?;
        Ok(false)
    }

    /// The message of a turn whose row cannot be read, from its log.
    async fn logged_message(&self, turn: &ErasableTurn) -> Result<Option<MessageId>, Failure> {
        let Some(uri) = &turn.hosted_uri else {
            return Ok(None);
        };
        let log = match self.eraser.blobs.turn_log(uri).await {
            Err(Error::Unreadable { .. }) => None,
            log => log?,
        };
        let answer = log.and_then(|log| log.assistant);
        let message = answer.and_then(|mut answer| Some(answer.get_mut("message_id")?.take()));
        Ok(message.and_then(|message| serde_json::from_value(message).ok()))
    }
}

fn warn_of_mirrors(at: &TurnRef) {
    tracing::warn!(
        tenant = %at.within.tenant,
        damaged = true,
        "mirrors in the log of a turn that cannot be read are not removed"
    );
}

//! Processes a reaction to a turn: stores the retraction of the event that it replaced, updates the turn's status,
//! stores its own event in the ledger, and mirrors it to the turn's log. Each step may be repeated.

use hearback_domain::feedback::mirror;
use hearback_domain::feedback::reaction::{Origin, ReactionCore, StoredReaction};
use hearback_domain::learning::ledger::{event_of, retraction_of};
use hearback_lambda::clock::Clock;
use hearback_storage::{Blobs, Store, if_readable};

use crate::failure::Failure;

/// Processes one reaction.
pub(crate) async fn process(
    store: &Store,
    blobs: &Blobs,
    clock: Clock,
    reaction: &ReactionCore,
) -> Result<(), Failure> {
    if let Some(retraction) = retraction_of(reaction, clock.now()) {
        store.put_retraction(&retraction).await?;
    }
    // The text is only in the table. If another act has replaced the reaction, its text is gone, and the message of
    // that act retracts this one.
    let current = store.reaction(reaction).await?;
    if let Some(StoredReaction { core, .. }) = &current
        && core.own
        && core.origin == Origin::User
    {
        // The current reaction may be later than this one. It counts.
        store.note_given_feedback(core).await?;
    }
    let current = current.filter(|current| current.core.id == reaction.id);
    let text = current.as_ref().map_or("", |current| &current.text);
    if let Some(event) = event_of(reaction, text) {
        store.put_event(&event).await?;
    }
    match current {
        Some(current) if reaction.mirror => mirror(store, blobs, &current).await,
        _ => Ok(()),
    }
}

async fn mirror(store: &Store, blobs: &Blobs, reaction: &StoredReaction) -> Result<(), Failure> {
    let at = &reaction.core.at;
    let write = |log: &mut _| mirror::write(log, reaction);
    // The reaction counts also if the log or its turn cannot be read.
    let mirrored = blobs.change_turn_log(store, at, write).await;
    if_readable(mirrored, &at.within.tenant)?;
    Ok(())
}

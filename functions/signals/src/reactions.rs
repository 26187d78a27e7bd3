//! What follows from a reaction on a turn: the withdrawal of what it replaced, how the turn was
//! taken, its own event in the ledger, and its mirror in the turn's log. Each step may be repeated.

use hearback_domain::ledger::{event_of, retraction_of};
use hearback_domain::mirror;
use hearback_domain::reaction::{Means, Origin, ReactionCore, StoredReaction};
use hearback_lambda::clock::Clock;
use hearback_storage::{Blobs, Store};

use crate::work::Failure;

/// Works off one reaction.
pub(crate) async fn work_off(
    store: &Store,
    blobs: &Blobs,
    clock: Clock,
    reaction: &ReactionCore,
) -> Result<(), Failure> {
    if let Some(retraction) = retraction_of(reaction, clock.now()) {
        store.put_retraction(&retraction).await?;
    }
    // What was written with it stands in the table alone. If another act took its place since,
    // its words are gone with it, and it is withdrawn by the message of that act.
    let standing = store.reaction(reaction).await?;
    if let Some(StoredReaction { core, .. }) = &standing
        && core.own
        && core.origin == Origin::User
    {
        // What stands now, which may be later than this: the later one counts.
        let turn = (&core.at, core.turn_ts);
        let act = (core.reaction, core.ts);
        store.note_said(turn, Means::Reaction, act).await?;
    }
    let standing = standing.filter(|standing| standing.core.id == reaction.id);
    let text = standing.as_ref().map_or("", |standing| &standing.text);
    if let Some(event) = event_of(reaction, text) {
        store.put_event(&event).await?;
    }
    match standing {
        Some(standing) if reaction.mirror => mirror(store, blobs, &standing).await,
        _ => Ok(()),
    }
}

/// Writes a reaction into its turn's log.
async fn mirror(store: &Store, blobs: &Blobs, reaction: &StoredReaction) -> Result<(), Failure> {
    let at = &reaction.core.at;
    let write = |log: &mut _| mirror::write(log, reaction);
    Ok(blobs.change_turn_log(store, at, write).await?)
}

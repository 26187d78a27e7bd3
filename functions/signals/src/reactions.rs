//! What follows from a reaction on a turn: the withdrawal of what it replaced, how the turn was
//! taken, its own event in the ledger, and its mirror in the turn's log. Each step may be repeated.

use hearback_domain::ledger::{event_of, retraction_of};
use hearback_domain::mirror;
use hearback_domain::reaction::{Origin, ReactionCore, StoredReaction};
use hearback_storage::turns::Moved;
use hearback_storage::{Blobs, Error, Store};

use crate::work::Failure;

/// How often a turn's log is tried when others write into it too.
const MIRROR_TRIES: usize = 20;

/// Works off one reaction.
pub(crate) async fn work_off(
    store: &Store,
    blobs: &Blobs,
    reaction: &ReactionCore,
) -> Result<(), Failure> {
    if let Some(retraction) = retraction_of(reaction) {
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
        store.note_said(&core.at, core.reaction, core.ts).await?;
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

/// Writes a reaction into its turn's log. The log is written anew beside the old one, and the
/// index row then points there if it still pointed to what was read: of two at once, the one that
/// loses starts again from what the other wrote.
async fn mirror(store: &Store, blobs: &Blobs, reaction: &StoredReaction) -> Result<(), Failure> {
    let at = &reaction.core.at;
    let mut written: Option<String> = None;
    for _ in 0..MIRROR_TRIES {
        let Some(row) = store.turn(at).await? else {
            return Ok(());
        };
        // A version has the name of its content, so another worker on the same reaction may have
        // moved the row to the very version that this one lost with.
        if let Some(lost) = written.take().filter(|lost| *lost != row.hosted_uri) {
            forget(blobs, &lost).await;
        }
        let Some(mut log) = blobs.turn_log(&row.hosted_uri).await? else {
            // Somebody else moved the row on and deleted this version.
            continue;
        };
        if !mirror::write(&mut log.turn_log, reaction) {
            return Ok(());
        }
        let to = blobs.put_turn_log(at, &log).await?;
        match store.move_turn_log(at, &row.hosted_uri, &to).await? {
            Moved::Done => {
                forget(blobs, &row.hosted_uri).await;
                return Ok(());
            }
            Moved::Lost => written = Some(to),
        }
    }
    Err(Failure::Contended)
}

/// Deletes a version that nobody points to. If that fails, it lies there unread until the turn is
/// erased.
async fn forget(blobs: &Blobs, hosted_uri: &str) {
    if let Err(error) = blobs.delete_turn_log(hosted_uri).await {
        let error: Error = error;
        tracing::warn!(%error, "a version of a turn log was not deleted");
    }
}

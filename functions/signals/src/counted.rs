//! Counts a signal or an event for its turn: writes a row among the turn's reactions and, if the feedback is from the
//! turn's own user, updates the turn's status. Each step may be repeated, and acts may arrive in any order: the latest
//! act counts.

use hearback_domain::events::event::EventCore;
use hearback_domain::feedback::counted;
use hearback_domain::feedback::reaction::{FeedbackKind, StoredReaction};
use hearback_domain::turns::turn::TurnCore;
use hearback_lambda::clock::Clock;
use hearback_storage::{Attempt, Store, Versioned, unless_unreadable, update};
use uuid::Uuid;

use crate::failure::Failure;

/// Maximum attempts of one conditional write. Only other deliveries of the same feedback write the same row.
const ATTEMPTS: usize = 20;

/// Counts feedback for its turn. `erased` is the last erasure of the user's data, if there was one.
pub(crate) async fn count(
    store: &Store,
    reaction: StoredReaction,
    erased: Option<Uuid>,
) -> Result<(), Failure> {
    put(store, &reaction, erased).await?;
    let core = &reaction.core;
    // An event without a verdict has no effect on the status.
    let has_verdict = core.reaction.is_some() || core.kind != FeedbackKind::Event;
    if core.own && has_verdict {
        store.note_given_feedback(core).await?;
    }
    Ok(())
}

/// Writes the row, unless the current one is that of a later act.
async fn put(
    store: &Store,
    reaction: &StoredReaction,
    erased: Option<Uuid>,
) -> Result<(), Failure> {
    let written = update(ATTEMPTS, None, |current: Option<Versioned<_>>| async move {
        let value = current.as_ref().map(|current| &current.value);
        let Some(next) = reaction.clone().replacement_of(value) else {
            return Ok(Attempt::Finished(()));
        };
        // An erasure finds the row by the marker, even the tombstone of an event that never counted.
        if next.core.is_reportable() || next.core.is_event_tombstone() {
            // The marker is written before the row, so that no report misses the row.
            store.mark_activity_once(&next.core, erased).await?;
        }
        let replaced = store.put_counted(&next, current.as_ref()).await?;
        Ok::<_, Failure>(Attempt::of(replaced, ()))
    });
    written.await?.ok_or(Failure::Contended)
}

/// Counts an event for its turn.
pub(crate) async fn count_event(
    store: &Store,
    clock: Clock,
    event: &EventCore,
    turn: &TurnCore,
    erased: Option<Uuid>,
) -> Result<(), Failure> {
    if !counted::counts(event) {
        return Ok(());
    }
    // Queue messages contain no free text.
    let comment = if event.commented {
        let stored = store.event(&event.tenant, event.feedback_id, clock.now());
        stored.await?.and_then(|stored| stored.text.comment)
    } else {
        None
    };
    let reaction = counted::of_event(event, comment, turn, clock.now());
    count(store, reaction, erased).await
}

/// Stops an event from counting for its turn, now and later: the event may be processed after its withdrawal.
pub(crate) async fn uncount_event(
    store: &Store,
    clock: Clock,
    event: &EventCore,
    erased: Option<Uuid>,
) -> Result<(), Failure> {
    let turn = turn_of(store, clock, event).await?;
    let Some(turn) = turn.filter(|_| counted::counts(event)) else {
        return Ok(());
    };
    let tombstone = counted::of_withdrawn_event(event, &turn, clock.now());
    put(store, &tombstone, erased).await?;
    if tombstone.core.own && counted::has_verdict(event) {
        store.note_given_feedback(&tombstone.core).await?;
    }
    Ok(())
}

/// The turn that an event is about, if it is registered and can be read.
pub(crate) async fn turn_of(
    store: &Store,
    clock: Clock,
    event: &EventCore,
) -> Result<Option<TurnCore>, Failure> {
    let Some(at) = counted::turn_of(event) else {
        return Ok(None);
    };
    let turn = store.turn(&at, clock.now()).await;
    let turn = unless_unreadable(turn, &event.tenant)?;
    Ok(turn.map(|turn| turn.core))
}

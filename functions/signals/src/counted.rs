//! Counting what a signal or an event says of a turn: its row among the turn's reactions, and the turn's status
//! where it is the turn's own user who said it. Each step may be repeated, and comes in any order with those of
//! other acts: the latest act counts.

use hearback_domain::counted;
use hearback_domain::event::EventCore;
use hearback_domain::reaction::{Means, StoredReaction};
use hearback_lambda::clock::Clock;
use hearback_storage::{Replaced, Standing, Store};
use uuid::Uuid;

use crate::work::Failure;

/// How often a row is tried that others write too: of one user's signal, that is its other deliveries.
const TRIES: usize = 20;

/// Counts what somebody said. `erased` is the last erasure of their data, if there was one.
pub(crate) async fn count(
    store: &Store,
    said: StoredReaction,
    erased: Option<Uuid>,
) -> Result<(), Failure> {
    put(store, &said, erased).await?;
    let core = &said.core;
    // An event is never taken back: one without a verdict says nothing of how the turn was taken.
    let tells = core.reaction.is_some() || core.means != Means::Event;
    if core.own && tells {
        let turn = (&core.at, core.turn_ts);
        let act = (core.reaction, core.ts);
        store.note_said(turn, core.means, act).await?;
    }
    Ok(())
}

/// Puts the row, unless that of a later act is there.
async fn put(store: &Store, said: &StoredReaction, erased: Option<Uuid>) -> Result<(), Failure> {
    let mut standing: Option<Standing<StoredReaction>> = None;
    for _ in 0..TRIES {
        let held = standing.as_ref().map(|standing| &standing.held);
        let Some(next) = said.clone().counted_over(held) else {
            return Ok(());
        };
        if next.core.says_something() {
            // First, so that no report misses what counts.
            store.mark_activity_once(&next.core, erased).await?;
        }
        match store.put_counted(&next, standing.as_ref()).await? {
            Replaced::Done => return Ok(()),
            Replaced::Lost(now) => standing = now.map(|held| *held),
        }
    }
    Err(Failure::Contended)
}

/// Counts an event for the turn that it names, if it names one that is registered.
pub(crate) async fn count_event(
    store: &Store,
    clock: Clock,
    event: &EventCore,
    erased: Option<Uuid>,
) -> Result<(), Failure> {
    let Some(at) = counted::turn_of(event).filter(|_| counted::counts(event)) else {
        return Ok(());
    };
    let Some(turn) = store.turn(&at, clock.now()).await? else {
        return Ok(());
    };
    // What was written travels with no message.
    let comment = if event.commented {
        let stored = store.event(&event.tenant, event.feedback_id, clock.now());
        stored.await?.and_then(|stored| stored.text.comment)
    } else {
        None
    };
    let said = counted::of_event((event, comment), &turn.core, clock.now());
    count(store, said, erased).await
}

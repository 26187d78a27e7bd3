//! Processes a signal on a message: stores the retraction of the event that it replaced or withdrew, counts the signal
//! for its turn, and stores its own event in the ledger. Each step may be repeated.

use hearback_domain::feedback::counted;
use hearback_domain::feedback::message_signal::{MessageSignal, SignalCore, StoredSignal};
use hearback_domain::learning::ledger::{event_of_signal, retraction_of_signal};
use hearback_domain::turns::turn::TurnRef;
use hearback_lambda::clock::Clock;
use hearback_storage::{Store, unless_unreadable};
use uuid::Uuid;

use crate::counted::count;
use crate::failure::Failure;

/// Processes one signal, or its tombstone. `erased` is the last erasure of its user's data, if there was one.
pub(crate) async fn process(
    store: &Store,
    clock: Clock,
    signal: &SignalCore,
    erased: Option<Uuid>,
) -> Result<(), Failure> {
    if let Some(retraction) = retraction_of_signal(signal, clock.now()) {
        store.put_retraction(&retraction).await?;
    }
    let now = clock.now();
    if let Some(before) = &signal.moved_from {
        uncount(store, clock, signal, before, erased).await?;
    }
    if signal.retracted {
        let tombstone = StoredSignal {
            core: signal.clone(),
            reason: None,
        };
        return match counted::of_signal(&tombstone, now) {
            Some(reaction) => count(store, reaction, erased).await,
            None => Ok(()),
        };
    }
    // The text is only in the table. If another act has replaced the signal, its text is gone, and the message of that
    // act retracts this one and counts.
    let current = match signal.signal {
        MessageSignal::Regenerate => None,
        _ => store.signal(signal, now).await?,
    };
    let own = current.filter(|current| current.core.act == signal.act);
    if let Some(reaction) = own.as_ref().and_then(|own| counted::of_signal(own, now)) {
        count(store, reaction, erased).await?;
    }
    let signal = StoredSignal {
        core: signal.clone(),
        reason: own.and_then(|own| own.reason),
    };
    if let Some(event) = event_of_signal(&signal, now) {
        store.put_event(&event).await?;
    }
    Ok(())
}

/// Stops a signal from counting for the turn from which it moved.
async fn uncount(
    store: &Store,
    clock: Clock,
    signal: &SignalCore,
    before: &TurnRef,
    erased: Option<Uuid>,
) -> Result<(), Failure> {
    let turn = store.turn(before, clock.now()).await;
    let Some(turn) = unless_unreadable(turn, &before.within.tenant)? else {
        return Ok(());
    };
    let tombstone = StoredSignal {
        core: SignalCore {
            at: before.clone(),
            turn_ts: turn.core.ts,
            own: turn.core.user_id == signal.user_id,
            retracted: true,
            ..signal.clone()
        },
        reason: None,
    };
    match counted::of_signal(&tombstone, clock.now()) {
        Some(reaction) => count(store, reaction, erased).await,
        None => Ok(()),
    }
}

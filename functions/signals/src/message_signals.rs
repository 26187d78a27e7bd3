//! What follows from a signal on a message: the withdrawal of what it replaced or took back, what it counts for
//! its turn, and its own event in the ledger. Each step may be repeated.

use hearback_domain::counted;
use hearback_domain::ledger::{event_of_signal, retraction_of_signal};
use hearback_domain::message_signal::{MessageSignal, SignalCore, StoredSignal};
use hearback_lambda::clock::Clock;
use hearback_storage::Store;
use uuid::Uuid;

use crate::counted::count;
use crate::work::Failure;

/// Works off one signal, or its tombstone. `erased` is the last erasure of its user's data, if there was one.
pub(crate) async fn work_off(
    store: &Store,
    clock: Clock,
    (signal, erased): (&SignalCore, Option<Uuid>),
) -> Result<(), Failure> {
    if let Some(retraction) = retraction_of_signal(signal, clock.now()) {
        store.put_retraction(&retraction).await?;
    }
    let now = clock.now();
    if signal.retracted {
        let tombstone = StoredSignal {
            core: signal.clone(),
            reason: None,
        };
        return match counted::of_signal(&tombstone, now) {
            Some(nothing) => count(store, nothing, erased).await,
            None => Ok(()),
        };
    }
    // What was written with it stands in the table alone. If another act took its place since, its words are
    // gone with it, and that act's own message withdraws it and counts.
    let standing = match signal.signal {
        MessageSignal::Regenerate => None,
        _ => store.signal(signal, now).await?,
    };
    let own = standing.filter(|standing| standing.core.act == signal.act);
    if let Some(said) = own.as_ref().and_then(|own| counted::of_signal(own, now)) {
        count(store, said, erased).await?;
    }
    let said = StoredSignal {
        core: signal.clone(),
        reason: own.and_then(|own| own.reason),
    };
    if let Some(event) = event_of_signal(&said, now) {
        store.put_event(&event).await?;
    }
    Ok(())
}

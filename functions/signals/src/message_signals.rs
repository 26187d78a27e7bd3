//! What follows from a signal on a message: the withdrawal of what it replaced or took back, and its
//! own event in the ledger. Each step may be repeated.

use hearback_domain::ledger::{event_of_signal, retraction_of_signal};
use hearback_domain::message_signal::{SignalCore, StoredSignal};
use hearback_lambda::clock::Clock;
use hearback_storage::Store;

use crate::work::Failure;

/// Works off one signal, or its tombstone.
pub(crate) async fn work_off(
    store: &Store,
    clock: Clock,
    signal: &SignalCore,
) -> Result<(), Failure> {
    if let Some(retraction) = retraction_of_signal(signal, clock.now()) {
        store.put_retraction(&retraction).await?;
    }
    if signal.retracted {
        return Ok(());
    }
    let reason = if signal.signal.tells_reason() {
        reason(store, clock, signal).await?
    } else {
        None
    };
    let said = StoredSignal {
        core: signal.clone(),
        reason,
    };
    if let Some(event) = event_of_signal(&said, clock.now()) {
        store.put_event(&event).await?;
    }
    Ok(())
}

/// What was written with a signal, which stands in the table alone. If another act took its place
/// since, its words are gone with it, and it is withdrawn by the message of that act.
async fn reason(
    store: &Store,
    clock: Clock,
    signal: &SignalCore,
) -> Result<Option<String>, Failure> {
    let standing = store.signal(signal, clock.now()).await?;
    let own = standing.filter(|standing| standing.core.act == signal.act);
    Ok(own.and_then(|standing| standing.reason))
}

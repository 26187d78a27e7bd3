//! Machine reactions, from detections.

use chrono::{DateTime, Utc};
use hearback_detection::Detection;
use hearback_domain::caller::Caller;
use hearback_domain::reaction::{NewReaction, StoredReaction};
use hearback_domain::turn::TurnCore;
use hearback_lambda::App;
use hearback_storage::{Error, Replaced};

/// The machine reaction to a turn, for a message of the time `ts`; `None` if the confidence is too low.
pub(crate) fn reaction(
    app: &App,
    caller: &Caller,
    turn: &TurnCore,
    detection: &Detection,
    ts: DateTime<Utc>,
) -> Option<StoredReaction> {
    let now = app.clock.now();
    let inferred = NewReaction::inferred(detection, ts.min(now))?;
    let mirror = app.mirrors(&turn.at.within);
    let reaction = inferred.on(turn, caller, mirror, now);
    Some(reaction.with_keyed_id(&app.pseudonyms))
}

/// Stores a machine reaction, and returns the name of its artifact. Repeatable: an existing reaction is the same.
pub(crate) async fn put(app: &App, reaction: &StoredReaction) -> Result<String, Error> {
    app.store.mark_activity(&reaction.core).await?;
    Ok(match app.store.put_reaction(reaction, None).await? {
        Replaced::Conflict(Some(current)) => current.value.core.rn(),
        Replaced::Done | Replaced::Conflict(None) => reaction.core.rn(),
    })
}

//! The machine's reaction to a turn, of what was detected about it.

use chrono::{DateTime, Utc};
use hearback_domain::caller::Caller;
use hearback_domain::detection::Detection;
use hearback_domain::reaction::{Posted, StoredReaction};
use hearback_domain::turn::TurnCore;
use hearback_lambda::App;
use hearback_storage::{Error, Replaced};

/// What the machine infers of a message of `ts` about a turn, if it is sure enough.
pub(crate) fn reaction(
    app: &App,
    caller: &Caller,
    turn: &TurnCore,
    (detection, ts): (&Detection, DateTime<Utc>),
) -> Option<StoredReaction> {
    let now = app.clock.now();
    let inferred = Posted::inferred(detection, ts.min(now))?;
    let mirror = app.mirrors(&turn.at.within);
    let reaction = inferred.about(turn, caller, mirror, now);
    Some(reaction.named_by(&app.pseudonyms))
}

/// Writes a reaction of the machine, and answers the name of its artifact. May be repeated: a reaction that
/// stands says the same.
pub(crate) async fn put(app: &App, reaction: &StoredReaction) -> Result<String, Error> {
    app.store.mark_activity(&reaction.core).await?;
    Ok(match app.store.put_reaction(reaction, None).await? {
        Replaced::Lost(Some(standing)) => standing.held.core.rn(),
        Replaced::Done | Replaced::Lost(None) => reaction.core.rn(),
    })
}

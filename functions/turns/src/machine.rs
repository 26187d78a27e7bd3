//! The machine's reaction to a turn, of what was detected about it.

use chrono::{DateTime, Utc};
use hearback_domain::caller::Caller;
use hearback_domain::detection::Detection;
use hearback_domain::reaction::Posted;
use hearback_domain::turn::TurnCore;
use hearback_lambda::App;
use hearback_storage::{Error, Replaced};

/// Writes down what the machine infers of a message of `ts` about a turn, if it is sure enough, and
/// answers the name of the reaction's artifact. May be repeated: a reaction that stands says the
/// same.
pub(crate) async fn react(
    app: &App,
    caller: &Caller,
    turn: &TurnCore,
    (detection, ts): (&Detection, DateTime<Utc>),
) -> Result<Option<String>, Error> {
    let now = app.clock.now();
    let Some(inferred) = Posted::inferred(detection, ts.min(now)) else {
        return Ok(None);
    };
    let mirror = app.mirrors(&turn.at.within);
    let reaction = inferred
        .about(turn, caller, mirror, now)
        .named_by(&app.pseudonyms);
    app.store.mark_activity(&reaction.core).await?;
    Ok(Some(
        match app.store.put_reaction(&reaction, None).await? {
            Replaced::Lost(Some(standing)) => standing.held.core.rn(),
            Replaced::Done | Replaced::Lost(None) => reaction.core.rn(),
        },
    ))
}

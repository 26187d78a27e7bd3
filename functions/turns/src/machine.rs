//! Machine reactions, from detections.

use chrono::{DateTime, Utc};
use hearback_detection::Detection;
use hearback_domain::feedback::reaction::{NewReaction, ReactionUpdate, StoredReaction};
use hearback_domain::identity::caller::Caller;
use hearback_domain::turns::turn::TurnCore;
use hearback_lambda::App;
use hearback_storage::{Attempt, Error, Versioned, update};

/// The machine reaction to a turn, for a message of the time `ts`; `None` if the confidence is too low.
pub(crate) fn reaction(
    app: &App,
    caller: &Caller,
    turn: &TurnCore,
    detection: &Detection,
    ts: DateTime<Utc>,
) -> Option<StoredReaction> {
    let inferred = NewReaction::inferred(detection, ts)?;
    Some(stored(app, caller, turn, inferred))
}

/// The machine reaction to the turn that a message names; `None` if the confidence is too low.
pub(crate) fn named(
    app: &App,
    caller: &Caller,
    turn: &TurnCore,
    (message, detection): (&str, &Detection),
) -> Option<StoredReaction> {
    let inferred = NewReaction::inferred(detection, app.clock.now())?;
    Some(stored(app, caller, turn, inferred.heard_in(message)))
}

fn stored(app: &App, caller: &Caller, turn: &TurnCore, inferred: NewReaction) -> StoredReaction {
    let now = app.clock.now();
    let mirror = app.mirrors(&turn.at.within);
    let reaction = inferred.on(turn, caller, mirror, now);
    reaction.with_keyed_id(&app.pseudonyms)
}

/// Attempts of one write among concurrent ones. Only repeats of the same statement compete for it.
const ATTEMPTS: usize = 20;

/// Stores a machine reaction, and returns the name of its artifact; `None` if a person took it back. Repeatable: an
/// existing reaction is the same, whose time is updated if the user says it again. One call, two if that is the case.
pub(crate) async fn put(app: &App, reaction: &StoredReaction) -> Result<Option<String>, Error> {
    app.store.mark_activity(&reaction.core).await?;
    let put = Box::pin(update(
        ATTEMPTS,
        None,
        |current: Option<Versioned<_>>| async move {
            let value = current.as_ref().map(|current| &current.value);
            let next = match reaction.clone().resolve(value) {
                ReactionUpdate::Write(next) => next,
                ReactionUpdate::Repeat(current) => {
                    return Ok(Attempt::Finished(Some(current.core.rn())));
                }
                ReactionUpdate::Superseded | ReactionUpdate::NothingToWithdraw => {
                    return Ok(Attempt::Finished(None));
                }
            };
            let replaced = app.store.put_reaction(&next, current.as_ref()).await?;
            Ok::<_, Error>(Attempt::of(replaced, Some(next.core.rn())))
        },
    ));
    // Too many repeats at once: one of them is stored.
    Ok(put.await?.unwrap_or_else(|| Some(reaction.core.rn())))
}

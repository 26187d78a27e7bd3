//! What a turn says of the one before it: detected at its registration, and noted with that turn.

use hearback_domain::caller::Caller;
use hearback_domain::detection::{Exchange, FeedbackType};
use hearback_domain::embedded::Embedded;
use hearback_domain::follow_up::{FollowUp, Precedence, SESSION, UserFeedback};
use hearback_domain::language::Language;
use hearback_domain::turn::{Turn, TurnCore};
use hearback_lambda::App;
use hearback_storage::Error;
use hearback_storage::turns::IndexRow;
use hearback_storage::vectors::{Span, TurnVector};

use crate::{Registry, machine};

/// What a turn says of the one before it, and that one; `None` if it follows none within a session.
pub(crate) async fn detect(
    registry: &Registry,
    turn: &Turn,
) -> Result<Option<(FollowUp, TurnCore)>, Error> {
    let app = &registry.app.app;
    let Some((previous, vector)) = previous(app, &turn.core).await? else {
        return Ok(None);
    };
    let answer = previous.summary.answer();
    let detection = registry.detector.detect(&Exchange {
        prev_query: Some(&previous.summary.user),
        prev_response: Some(&answer),
        message: turn.query(),
        language: turn.core.language.as_ref().map(Language::as_str),
        embedding_similarity: similarity(turn, &vector),
    });
    // What the user said of it on purpose ends a row of rejections.
    let goes_on =
        detection.feedback_type == FeedbackType::Rejected && !previous.status.is_excused();
    let before = if goes_on {
        app.store
            .rejections_before(&previous, app.clock.now())
            .await?
    } else {
        0
    };
    let turn = previous.core.at.turn.clone();
    let follow_up = FollowUp::of(turn, detection, before);
    Ok(Some((follow_up, previous.core)))
}

/// The cosine of the embeddings that the caller made of both turns, if there are both.
fn similarity(turn: &Turn, previous: &TurnVector) -> Option<f64> {
    let own = Embedded::given(turn.embedding.as_deref()?);
    own.cosine(&previous.mark.embedder, &previous.embedding)
}

/// The turn of the same user in the same conversation that was last before this one, with its
/// vector, if that was within a session. Of one that has no answer yet nothing can be said.
async fn previous(app: &App, turn: &TurnCore) -> Result<Option<(IndexRow, TurnVector)>, Error> {
    let owner = (&turn.at.within.tenant, &turn.user_id);
    let span = Span {
        from: turn.ts - SESSION,
        to: turn.ts,
    };
    for earlier in app.store.latest_turns(owner, span).await? {
        let mark = &earlier.mark;
        if mark.at.within != turn.at.within || mark.at == turn.at {
            continue;
        }
        let row = app.store.turn(&mark.at, app.clock.now()).await?;
        let row = row.filter(|row| row.is_marked(&turn.user_id, mark.ts));
        if let Some(row) = row {
            return Ok((!row.core.open).then_some((row, earlier)));
        }
    }
    Ok(None)
}

/// Notes with the turn before what this one says of it, and writes down what the machine infers of
/// that, if it is sure enough. Each step may be repeated.
pub(crate) async fn note(
    app: &App,
    caller: &Caller,
    turn: &TurnCore,
    (follow_up, previous): (&FollowUp, &TurnCore),
) -> Result<(), Error> {
    let feedback = UserFeedback::of(follow_up, turn.at.turn.clone(), app.clock.now());
    let precedence = Precedence::of_follow_up(turn.ts, &turn.at.turn);
    if !app
        .store
        .note_inferred((&previous.at, previous.ts), &feedback, precedence)
        .await?
    {
        // Another turn came nearer after it: that one tells.
        return Ok(());
    }
    let said = (&follow_up.detection, turn.ts);
    if let Some(reaction) = machine::reaction(app, caller, previous, said) {
        machine::put(app, &reaction).await?;
    }
    Ok(())
}

/// Notes again what a turn that is known says, for a registration that may have died before.
pub(crate) async fn note_again(app: &App, caller: &Caller, known: &IndexRow) -> Result<(), Error> {
    let Some(follow_up) = &known.follow_up else {
        return Ok(());
    };
    let mut at = known.core.at.clone();
    at.turn = follow_up.previous_turn_id.clone();
    match app.store.turn(&at, app.clock.now()).await? {
        Some(previous) => note(app, caller, &known.core, (follow_up, &previous.core)).await,
        None => Ok(()),
    }
}

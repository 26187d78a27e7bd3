//! A body for a turn that is known: its repeat, its completion, or another body.
//!
//! A completion stores the whole log beside that of the open turn, then changes the row under the condition
//! that it still is what was read, and last gives the turn's vector its answer's part. A repeat sees to
//! it that all of this was done. Of two completions the one whose row update was first wins.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use hearback_domain::caller::Caller;
use hearback_domain::registration::{Conflict, Resolution};
use hearback_domain::turn::Turn;
use hearback_lambda::Problem;
use hearback_storage::turns::{IndexRow, Moved};

use crate::wire::Registered;
use crate::{Registry, enter_message, fits, follow_up};

/// How often a turn is looked at that others write to meanwhile.
const TRIES: usize = 20;

/// Answers a body for a turn that is known.
pub(crate) async fn settle(
    registry: &Registry,
    caller: &Caller,
    turn: &Turn,
    mut known: IndexRow,
) -> Result<Response, Problem> {
    let app = &registry.app;
    for _ in 0..TRIES {
        if turn.core.user_id != known.core.user_id {
            return Err(conflict(&Conflict::Owner));
        }
        if turn.is_repeat_of(&known.core) {
            return repeated(registry, caller, turn, known).await;
        }
        if let Some(log) = app.blobs.turn_log(&known.hosted_uri).await? {
            match turn.resolve(&known.core, log) {
                Resolution::Repeat => return repeated(registry, caller, turn, known).await,
                Resolution::Conflict(reason) => return Err(conflict(&reason)),
                Resolution::Completes(whole) => {
                    fits(&whole.log)?;
                    if complete(registry, &whole, &known).await? {
                        known.core = whole.core;
                        return repeated(registry, caller, turn, known).await;
                    }
                }
            }
        }
        // Somebody else changed the row meanwhile.
        let now = app.app.clock.now();
        let row = app.app.store.turn(&turn.core.at, now).await?;
        let row = row.ok_or_else(|| Problem::no_such("turn"))?;
        if row == known {
            // The bucket has deleted its log, so nothing tells what it holds.
            return Err(conflict(&Conflict::Body));
        }
        known = row;
    }
    Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable")
        .detail("Too many changes of this turn at once. Try again."))
}

/// Completes an open turn, and answers whether it is this completion that counts. What one that lost
/// stored is removed.
async fn complete(registry: &Registry, whole: &Turn, open: &IndexRow) -> Result<bool, Problem> {
    let app = &registry.app;
    let store = &app.app.store;
    enter_message(app, whole).await?;
    let log = app.blobs.put_turn_log(&whole.core, &whole.log).await?;
    if store.complete_turn(whole, (open, &log)).await? == Moved::Done {
        app.blobs.forget(&open.hosted_uri).await;
        return Ok(true);
    }
    let Some(row) = store.kept_turn(&whole.core.at).await? else {
        app.blobs.delete_turn_log(&log).await?;
        return Ok(false);
    };
    // It may be this completion after all, whose answer was lost: then the log of the open turn is left.
    let left = if row.hosted_uri == log {
        &open.hosted_uri
    } else {
        &log
    };
    app.blobs.forget(left).await;
    if row.core.message_id != whole.core.message_id
        && let Some(message) = &whole.core.message_id
    {
        store.remove_message(message, &whole.core).await?;
    }
    Ok(false)
}

/// Answers what is registered, and sees to it that all of it was done.
async fn repeated(
    registry: &Registry,
    caller: &Caller,
    turn: &Turn,
    known: IndexRow,
) -> Result<Response, Problem> {
    let app = &registry.app.app;
    // What the caller gave before stays the turn's vector.
    if turn.completed(&known.core) && (turn.embedding.is_some() || !known.embedded) {
        let vector = app
            .embeddings
            .of(turn.embedding.as_deref(), &turn.texts())
            .await;
        app.store.put_vector(&known.core, &vector).await?;
    }
    follow_up::note_again(app, caller, &known).await?;
    Ok(Json(Registered::of(&known.core, known.follow_up)).into_response())
}

fn conflict(reason: &Conflict) -> Problem {
    Problem::new(StatusCode::CONFLICT, "turn_conflict").detail(reason.to_string())
}

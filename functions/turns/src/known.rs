//! A request for a registered turn: a repeat, a completion, or a conflict.
//!
//! A completion stores the complete log next to that of the open turn, updates the row on the condition that it has not
//! changed, and then replaces the turn's vector. A repeat makes sure that all of this is done. Of two completions, the
//! first to update the row counts.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use hearback_domain::feedback::registration::{Conflict, Resolution};
use hearback_domain::identity::caller::Caller;
use hearback_domain::turns::turn::Turn;
use hearback_lambda::Problem;
use hearback_storage::turn_rows::IndexRow;
use hearback_storage::turns::TurnUpdate;

use crate::wire::RegisteredTurn;
use crate::{Registry, check_size, enter_message, follow_up};

/// Maximum attempts of one request while other requests change the turn.
const ATTEMPTS: usize = 20;

pub(crate) async fn register_again(
    registry: &Registry,
    caller: &Caller,
    turn: &Turn,
    mut known: IndexRow,
) -> Result<Response, Problem> {
    let app = &registry.app;
    for _ in 0..ATTEMPTS {
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
                Resolution::Completes(completed) => {
                    check_size(&completed.log)?;
                    if complete(registry, &completed, &known).await? {
                        known.core = completed.core;
                        return repeated(registry, caller, turn, known).await;
                    }
                }
            }
        }
        // The row was changed concurrently.
        let now = app.app.clock.now();
        let row = app.app.store.turn(&turn.core.at, now).await?;
        let row = row.ok_or_else(|| Problem::no_such("turn"))?;
        if row == known {
            // The log was deleted, so the body cannot be compared.
            return Err(conflict(&Conflict::Body));
        }
        known = row;
    }
    let detail = "Too many changes of this turn at once. Try again.";
    Err(Problem::contended(detail))
}

/// Completes an open turn, and returns whether this completion counts. If another one does, the data of this one is
/// removed.
async fn complete(registry: &Registry, turn: &Turn, open: &IndexRow) -> Result<bool, Problem> {
    let app = &registry.app;
    let store = &app.app.store;
    enter_message(app, turn).await?;
    let log = app.blobs.put_turn_log(&turn.core, &turn.log).await?;
    if store.complete_turn(turn, open, &log).await? == TurnUpdate::Done {
        app.blobs.discard_turn_log(&open.hosted_uri).await;
        return Ok(true);
    }
    let Some(row) = store.kept_turn(&turn.core.at).await? else {
        app.blobs.delete_turn_log(&log).await?;
        return Ok(false);
    };
    // If the row has this log, this completion counts, and the response to the update was lost.
    let unused = if row.hosted_uri == log {
        &open.hosted_uri
    } else {
        &log
    };
    app.blobs.discard_turn_log(unused).await;
    if row.core.message_id != turn.core.message_id
        && let Some(message) = &turn.core.message_id
    {
        store.remove_message(message, &turn.core).await?;
    }
    Ok(false)
}

/// Makes sure that the registration is complete, and responds with the registered turn.
async fn repeated(
    registry: &Registry,
    caller: &Caller,
    turn: &Turn,
    known: IndexRow,
) -> Result<Response, Problem> {
    let app = &registry.app.app;
    // An embedding that the caller submitted before is kept.
    if turn.completed(&known.core) && (turn.embedding.is_some() || !known.embedded) {
        let vector = app
            .embeddings
            .of(turn.embedding.as_deref(), &turn.texts())
            .await;
        app.store.put_vector(&known.core, &vector).await?;
    }
    follow_up::note_again(app, caller, &known).await?;
    Ok(Json(RegisteredTurn::of(&known.core, known.follow_up)).into_response())
}

fn conflict(reason: &Conflict) -> Problem {
    Problem::new(StatusCode::CONFLICT, "turn_conflict").detail(reason.to_string())
}

//! The registry of turns: what a user said and what was answered.
//!
//! A turn's message goes into the directory first, its log to the bucket next, and its index row
//! last: the row is what makes a turn known, so a registration that dies on the way left nothing
//! that anybody sees, and the next one goes on from there.

mod wire;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use hearback_domain::turn::{Refused, Turn};
use hearback_lambda::body::JsonBody;
use hearback_lambda::params::InTurn;
use hearback_lambda::problem::ProblemDocument;
use hearback_lambda::routes::Routes;
use hearback_lambda::{Problem, WithBlobs, routes};
use hearback_storage::Written;
use hearback_storage::turns::IndexRow;

use wire::{Registered, Registration};

/// Largest body of a turn, in bytes.
pub const MAX_BODY: usize = 5 * 1024 * 1024;

/// Every route of this function.
pub fn routes() -> Routes<WithBlobs> {
    routes!(WithBlobs => register)
}

/// Register a turn
///
/// The identical body again changes nothing; another one for a known turn is refused.
#[utoipa::path(
    put,
    path = "/conversations/{tenant}/{project}/{conversation_id}/turns/{turn_id}",
    tag = "turns",
    params(
        ("tenant" = String, Path, description = "The token's tenant"),
        ("project" = String, Path, description = "A project that the token holds"),
        ("conversation_id" = String, Path, description = "The conversation"),
        ("turn_id" = String, Path, description = "The turn"),
    ),
    request_body = Registration,
    responses(
        (status = 201, description = "Registered", body = Registered),
        (status = 200, description = "Registered before, with the same body", body = Registered),
        (status = 400, description = "The body is not JSON or breaks the schema", body = ProblemDocument),
        (status = 401, description = "No valid token", body = ProblemDocument),
        (status = 403, description = "Not the token's tenant or project, or another user's turn without `feedback:on-behalf`", body = ProblemDocument),
        (status = 409, description = "The turn is known with another body, or its message is another turn's", body = ProblemDocument),
        (status = 413, description = "The body has more than 5 MiB", body = ProblemDocument),
        (status = 503, description = "The store could not be reached; try again", body = ProblemDocument),
    ),
    security(("bearer" = []))
)]
async fn register(
    State(app): State<WithBlobs>,
    InTurn { at, caller }: InTurn,
    JsonBody(body): JsonBody<MAX_BODY>,
) -> Result<Response, Problem> {
    let turn = Turn::parse(at, &body, &caller, app.app.clock.now()).map_err(refused)?;
    if let Some(known) = app.app.store.turn(&turn.core.at).await? {
        return repeated(&turn, &known);
    }
    enter_message(&app, &turn).await?;
    let log = app.blobs.put_turn_log(&turn.core.at, &turn.log).await?;
    match app.app.store.put_turn(&turn, &log).await? {
        Written::New => Ok((StatusCode::CREATED, Json(Registered::of(&turn.core))).into_response()),
        Written::Known => lost(&app, &turn, &log).await,
    }
}

/// A message is of one turn.
async fn enter_message(app: &WithBlobs, turn: &Turn) -> Result<(), Problem> {
    let Some(message) = &turn.core.message_id else {
        return Ok(());
    };
    match app.app.store.put_message(message, &turn.core).await? {
        None => Ok(()),
        Some(_) => Err(Problem::new(StatusCode::CONFLICT, "message_conflict")
            .detail("This message_id is another turn's.")),
    }
}

/// Somebody else registered the turn meanwhile: what is not theirs is taken away again.
async fn lost(app: &WithBlobs, turn: &Turn, log: &str) -> Result<Response, Problem> {
    let known = app.app.store.turn(&turn.core.at).await?;
    let known = known.ok_or_else(Problem::not_found)?;
    if known.hosted_uri != log {
        app.blobs.delete_turn_log(log).await?;
    }
    if known.core.message_id != turn.core.message_id
        && let Some(message) = &turn.core.message_id
    {
        app.app.store.remove_message(message, &turn.core).await?;
    }
    repeated(turn, &known)
}

fn repeated(turn: &Turn, known: &IndexRow) -> Result<Response, Problem> {
    if known.core.fingerprint == turn.core.fingerprint {
        Ok(Json(Registered::of(&known.core)).into_response())
    } else {
        Err(Problem::new(StatusCode::CONFLICT, "turn_conflict")
            .detail("This turn is registered with another body."))
    }
}

fn refused(refused: Refused) -> Problem {
    match refused {
        Refused::Invalid(errors) => Problem::invalid(errors),
        Refused::Forbidden(forbidden) => forbidden.into(),
    }
}

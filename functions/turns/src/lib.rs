//! The registry of turns: what a user said and what was answered.
//!
//! A turn's message goes into the directory first, its vector next, then its log to the bucket, and
//! its index row last: the row is what makes a turn known, so a registration that dies on the way
//! left nothing that anybody sees, and the next one goes on from there. The vector comes before the log
//! because an erasure finds the log by it. What the turn says of the one
//! before it (`follow_up.rs`) stands in the row, and is noted with that turn after; the repeat of a
//! registration notes it again, which changes nothing.
//!
//! A turn may be opened with what the user said alone, so that an agent learns what that says of the turn
//! before it answers; a body with the answer completes it (`known.rs`).

mod detect;
mod follow_up;
mod infer;
mod known;
mod machine;
mod registry;
mod wire;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use hearback_domain::caller::Caller;
use hearback_domain::payload;
use hearback_domain::turn::{Refused, Turn, TurnLog};
use hearback_lambda::body::JsonBody;
use hearback_lambda::params::InTurn;
use hearback_lambda::problem::ProblemDocument;
use hearback_lambda::routes::Routes;
use hearback_lambda::{Problem, WithBlobs, routes};
use hearback_storage::Written;

pub use registry::{Registry, detector};
use wire::{Registered, Registration};

/// Largest body of a turn, in bytes.
pub const MAX_BODY: usize = payload::MAX_BODY;

/// Every route of this function.
pub fn routes() -> Routes<Registry> {
    routes!(Registry => register)
        .and(detect::routes())
        .and(infer::routes())
}

/// Register a turn
///
/// Answers with what the turn says of the one before it. Without `assistant` the turn is open until a
/// body with the same `user` and an `assistant` completes it and adds what the first body left out. A
/// body that says nothing new changes nothing; one that contradicts what is registered is rejected.
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
        (status = 200, description = "Completed, or registered before with the same body", body = Registered),
        (status = 400, description = "The body is not JSON or breaks the schema", body = ProblemDocument),
        (status = 401, description = "No valid token", body = ProblemDocument),
        (status = 403, description = "Not the token's tenant or project, or another user's turn without `feedback:on-behalf`", body = ProblemDocument),
        (status = 409, description = "The turn is known with another body or is another user's, its message is another turn's, or its user's data is being erased", body = ProblemDocument),
        (status = 413, description = "The body has more than 4 MiB, or its log more than an answer holds", body = ProblemDocument),
        (status = 503, description = "The store could not be reached; try again", body = ProblemDocument),
    ),
    security(("bearer" = []))
)]
async fn register(
    State(registry): State<Registry>,
    InTurn { at, caller }: InTurn,
    JsonBody(body): JsonBody<MAX_BODY>,
) -> Result<Response, Problem> {
    let app = &registry.app;
    let now = app.app.clock.now();
    let mut turn = Turn::parse(at, &body, &caller, now).map_err(refused)?;
    fits(&turn.log)?;
    turn.core.expires_at = registry.retention.until(now);
    let core = &turn.core;
    let taken = app
        .app
        .refuse_while_erased(&core.at.within.tenant, &core.user_id);
    let (known, taken) = futures::join!(app.app.store.turn(&core.at, now), taken);
    taken?;
    let known = known?;
    if let Some(known) = known {
        return known::settle(&registry, &caller, &turn, known).await;
    }
    let follow_up = follow_up::detect(&registry, &turn).await?;
    enter_message(app, &turn).await?;
    let vector = (app.app.embeddings)
        .of(turn.embedding.as_deref(), &turn.texts())
        .await;
    app.app.store.put_vector(&turn.core, &vector).await?;
    let log = app.blobs.put_turn_log(&turn.core, &turn.log).await?;
    let said = follow_up.as_ref().map(|(follow_up, _)| follow_up);
    let row = (log.as_str(), said);
    match app.app.store.put_turn(&turn, row, now).await? {
        Written::New => {
            if let Some((follow_up, previous)) = &follow_up {
                let said = (follow_up, previous);
                follow_up::note(&app.app, &caller, &turn.core, said).await?;
            }
            let follow_up = follow_up.map(|(follow_up, _)| follow_up);
            let registered = Registered::of(&turn.core, follow_up);
            Ok((StatusCode::CREATED, Json(registered)).into_response())
        }
        Written::Known => lost(&registry, &caller, &turn, &log).await,
    }
}

/// Refuses a log that is more than an answer holds.
fn fits(log: &TurnLog) -> Result<(), Problem> {
    if log.fits() {
        return Ok(());
    }
    let max = TurnLog::MAX;
    Err(Problem::body_too_large(&format!(
        "a log of at most {max} bytes, counting each quote and backslash twice"
    )))
}

/// A message is of one turn.
async fn enter_message(app: &WithBlobs, turn: &Turn) -> Result<(), Problem> {
    let Some(message) = &turn.core.message_id else {
        return Ok(());
    };
    let now = app.app.clock.now();
    let entered = app.app.store.put_message(message, &turn.core, now);
    match entered.await? {
        None => Ok(()),
        Some(_) => Err(Problem::new(StatusCode::CONFLICT, "message_conflict")
            .detail("This message_id is another turn's.")),
    }
}

/// Somebody else registered the turn meanwhile: what is not theirs is taken away again.
async fn lost(
    registry: &Registry,
    caller: &Caller,
    turn: &Turn,
    log: &str,
) -> Result<Response, Problem> {
    let app = &registry.app;
    let now = app.app.clock.now();
    let known = app.app.store.turn(&turn.core.at, now).await?;
    let known = known.ok_or_else(|| Problem::no_such("turn"))?;
    if known.hosted_uri != log {
        app.blobs.delete_turn_log(log).await?;
    }
    if known.core.message_id != turn.core.message_id
        && let Some(message) = &turn.core.message_id
    {
        app.app.store.remove_message(message, &turn.core).await?;
    }
    known::settle(registry, caller, turn, known).await
}

fn refused(refused: Refused) -> Problem {
    match refused {
        Refused::Invalid(errors) => Problem::invalid(errors),
        Refused::Forbidden(forbidden) => forbidden.into(),
    }
}

//! The registry of turns: users' messages and their answers.
//!
//! A registration writes the entry of the message directory, the vector, the log in the bucket and, last, the index
//! row. A turn exists once it has its row, so a registration that crashes leaves nothing visible, and a retry
//! continues. The vector is written before the log because an erasure finds the log by it. The feedback of the turn on
//! the previous one (`follow_up.rs`) is in the row, and is then stored with the previous turn too; a repeated
//! registration stores it again, which changes nothing.
//!
//! A turn may be registered with the user's message alone, so that an agent has the feedback on the previous turn
//! before it answers. A second request with the answer completes the turn (`known.rs`).
//!
//! | start with | for |
//! |---|---|
//! | `register_turn` | a registration |
//! | `detect.rs` | a detection that is not stored |
//! | `infer.rs` | feedback from a message that names no turn |
//! | `correct.rs` | what was inferred about a turn and is wrong |
//!
//! Turns are read in `functions/retrieval`. The rules of detection are in `shared/detection`.

mod correct;
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
use hearback_domain::identity::caller::Caller;
use hearback_domain::text::payload;
use hearback_domain::turns::turn::{Turn, TurnLog, TurnRequest};
use hearback_lambda::body::JsonBody;
use hearback_lambda::params::InTurn;
use hearback_lambda::problem::ProblemDocument;
use hearback_lambda::rejections::{BodyRejections, ForbiddenRejection};
use hearback_lambda::routes::Routes;
use hearback_lambda::{Problem, WithBlobs, routes};
use hearback_storage::Written;

pub use registry::{Registry, detector};
use wire::RegisteredTurn;

/// Largest body of a turn, in bytes.
pub const MAX_BODY: usize = payload::MAX_BODY;

/// Every route of this function.
pub fn routes() -> Routes<Registry> {
    routes!(Registry => register_turn)
        .and(detect::routes())
        .and(infer::routes())
        .and(correct::routes())
}

/// Register a turn
///
/// Responds with the feedback of the turn on the one before it. Without `assistant` the turn is open until a
/// body with the same `user` and an `assistant` completes it and adds what the first body left out. A
/// body with nothing new changes nothing; one that contradicts the registered turn is rejected.
#[utoipa::path(
    put,
    path = "/conversations/{tenant}/{project}/{conversation_id}/turns/{turn_id}",
    tag = "turns",
    params(
        InTurn,
    ),
    request_body = TurnRequest,
    responses(
        (status = 201, description = "Registered", body = RegisteredTurn),
        (status = 200, description = "Completed, or registered before with the same body", body = RegisteredTurn),
        (status = 409, description = "The turn is registered with another body or by another user, its message belongs to another turn, or its user's data is being erased", body = ProblemDocument),
        BodyRejections,
        ForbiddenRejection,
    ),
    security(("bearer" = []))
)]
async fn register_turn(
    State(registry): State<Registry>,
    InTurn { at, caller }: InTurn,
    JsonBody(body): JsonBody<MAX_BODY>,
) -> Result<Response, Problem> {
    let app = &registry.app;
    let now = app.app.clock.now();
    let mut turn = Turn::parse(at, &body, &caller, now)?;
    check_size(&turn.log)?;
    turn.core.expires_at = registry.retention.until(now);
    let core = &turn.core;
    let erasure = app.app.reject_during_erasure(core.owner());
    let (known, erasure) = futures::join!(app.app.store.turn(&core.at, now), erasure);
    erasure?;
    let known = known?;
    if let Some(known) = known {
        return known::register_again(&registry, &caller, &turn, known).await;
    }
    let follow_up = follow_up::detect(&registry, &turn).await?;
    enter_message(app, &turn).await?;
    let vector = (app.app.embeddings)
        .of(turn.embedding.as_deref(), &turn.texts())
        .await;
    app.app.store.put_vector(&turn.core, &vector).await?;
    let log = app.blobs.put_turn_log(&turn.core, &turn.log).await?;
    let detected = follow_up.as_ref().map(|(follow_up, _)| follow_up);
    let put = app.app.store.put_turn(&turn, &log, detected, now);
    match put.await? {
        Written::New => {
            if let Some((follow_up, previous)) = &follow_up {
                follow_up::note(&app.app, &caller, &turn.core, follow_up, previous).await?;
            }
            let follow_up = follow_up.map(|(follow_up, _)| follow_up);
            let registered = RegisteredTurn::of(&turn.core, follow_up);
            Ok((StatusCode::CREATED, Json(registered)).into_response())
        }
        Written::AlreadyExists => already_registered(&registry, &caller, &turn, &log).await,
    }
}

/// Rejects a log that is larger than a response can be.
fn check_size(log: &TurnLog) -> Result<(), Problem> {
    if log.fits() {
        return Ok(());
    }
    let max = TurnLog::MAX;
    Err(Problem::body_too_large(&format!(
        "a log of at most {max} bytes, counting each quote and backslash twice"
    )))
}

/// Adds the message to the directory, in which a message belongs to one turn.
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

/// Another registration succeeded first: removes the data of this one.
async fn already_registered(
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
    known::register_again(registry, caller, turn, known).await
}

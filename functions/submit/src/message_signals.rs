//! Signals on messages: say, say otherwise, take back.
//!
//! The message is looked up before anything is written, among those of the caller's projects and no
//! others: nobody learns what exists elsewhere. The signal is put where the user's
//! last one stood, under the condition that it still stands there. Its place in the ledger follows
//! from the table's stream.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use hearback_domain::caller::Caller as DomainCaller;
use hearback_domain::identifier::{MessageId, ProjectId};
use hearback_domain::message_signal::{MessageSignal, Posted, Step, StoredSignal};
use hearback_domain::turn::TurnCore;
use hearback_lambda::body::JsonBody;
use hearback_lambda::caller::Caller;
use hearback_lambda::params::Params;
use hearback_lambda::problem::ProblemDocument;
use hearback_lambda::routes::Routes;
use hearback_lambda::{App, Problem, routes};
use hearback_storage::{Replaced, Standing};
use serde::Serialize;
use utoipa::ToSchema;

/// Largest body of a signal, in bytes.
pub const MAX_BODY: usize = 16 * 1024;
/// How often a place is tried that others want too. Only the same user, with the same message,
/// wants the same one.
const TRIES: usize = 50;

/// The routes of message signals.
pub(crate) fn routes() -> Routes<App> {
    routes!(App => say, take_back)
}

/// A signal as callers post it.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({
    "message_id": "msg_abc", "chat_id": "chat_xyz", "signal": "not_helpful",
    "reason": "Wrong tool: should have used the calendar instead."
}))]
struct SignalBody {
    /// The message, by the name with which its turn was registered.
    #[schema(min_length = 1, max_length = 256)]
    message_id: String,
    /// What is said of it.
    signal: MessageSignal,
    /// Up to 4,096 characters; of an `edit`, the text that replaces the answer. Left out, a repeat
    /// keeps what stands; `null` erases it.
    #[schema(max_length = 4096)]
    reason: Option<String>,
    /// The conversation in which it was said. One of another project of the caller's moves the
    /// signal there.
    #[schema(min_length = 1, max_length = 256)]
    chat_id: Option<String>,
    /// The trace of the answer; the turn's own if left out.
    #[schema(min_length = 1, max_length = 256)]
    trace_id: Option<String>,
    /// Let no model learn from it.
    #[schema(default = false)]
    exclude_from_training: Option<bool>,
    /// The user whose signal it is, with `feedback:on-behalf`; the caller without.
    #[schema(min_length = 1, max_length = 256)]
    user_id: Option<String>,
}

/// The signal that stands.
#[derive(Serialize, ToSchema)]
#[schema(as = SignalSaid)]
struct Said {
    /// Its name: always the same for one user, message and signal.
    #[schema(example = "fb_3f0c94a1d1b04c539a770f2e6c1b94d4")]
    id: String,
}

/// Say something of a message
///
/// One row for each user, message and signal: a repeat replaces it. A message that is unknown and
/// one of a project that the token does not hold are answered alike.
#[utoipa::path(
    post,
    path = "/api/v1/feedback",
    tag = "message signals",
    request_body = SignalBody,
    responses(
        (status = 201, description = "It stands", body = Said),
        (status = 200, description = "It stands in the place of what stood there", body = Said),
        (status = 400, description = "The body is not JSON or breaks the schema", body = ProblemDocument),
        (status = 401, description = "No valid token", body = ProblemDocument),
        (status = 403, description = "For another user without `feedback:on-behalf`", body = ProblemDocument),
        (status = 404, description = "No such message, or not in a project of the caller's", body = ProblemDocument),
        (status = 409, description = "The user's data is being erased", body = ProblemDocument),
        (status = 413, description = "The body has more than 16 KiB", body = ProblemDocument),
        (status = 503, description = "The store could not be reached; try again", body = ProblemDocument),
    ),
    security(("bearer" = []))
)]
async fn say(
    State(app): State<App>,
    Caller(caller): Caller,
    JsonBody(body): JsonBody<MAX_BODY>,
) -> Result<Response, Problem> {
    let mut posted = Posted::parse(&body).map_err(Problem::invalid)?;
    let caller = caller.on_behalf_of(posted.user_id.take())?;
    // Both to their end: an unknown message costs what a foreign one does.
    let taken = app.refuse_while_erased(&caller.tenant, &caller.user);
    let (found, taken) = futures::join!(look_up(&app, &caller, &posted), taken);
    let (turn, mut standing) = found?;
    taken?;
    for _ in 0..TRIES {
        let seen = standing.as_ref().map(|standing| &standing.held);
        let chat_in = other_project(&app, &caller, (&posted, &turn), seen).await?;
        let step = posted.over(&turn, &caller, chat_in, (seen, app.clock.now()));
        let (status, next) = match step {
            Step::Create(next) => (StatusCode::CREATED, next),
            Step::Replace(next) => (StatusCode::OK, next),
            Step::Repeat(held) => return Ok(said(StatusCode::OK, &held)),
        };
        match app.store.put_signal(&next, standing.as_ref()).await? {
            Replaced::Done => return Ok(said(status, &next)),
            Replaced::Lost(now) => standing = now.map(|standing| *standing),
        }
    }
    Err(contended())
}

/// The turn of the message, if it is in a project of the caller's, and the signal that stands.
async fn look_up(
    app: &App,
    caller: &DomainCaller,
    posted: &Posted,
) -> Result<(TurnCore, Option<Standing<StoredSignal>>), Problem> {
    let now = app.clock.now();
    let (entry, standing) = app
        .store
        .message_and_signal(caller, &posted.message_id, (posted.signal, now))
        .await?;
    let entry = entry.ok_or_else(|| Problem::no_such("message"))?;
    // The directory may name a message of a registration that was never finished.
    let turn = app.store.turn(&entry.at, now).await?.map(|row| row.core);
    let turn = turn.filter(|turn| turn.message_id.as_ref() == Some(&posted.message_id));
    Ok((turn.ok_or_else(|| Problem::no_such("message"))?, standing))
}

/// The other project of the caller's in which the chat is, if it is in one.
async fn other_project(
    app: &App,
    caller: &DomainCaller,
    (posted, turn): (&Posted, &TurnCore),
    standing: Option<&StoredSignal>,
) -> Result<Option<ProjectId>, Problem> {
    let Some(chat) = posted.elsewhere(turn, caller, standing) else {
        return Ok(None);
    };
    let own = &turn.at.within.project;
    let others: Vec<_> = (caller.projects.iter())
        .filter(|project| *project != own)
        .cloned()
        .collect();
    Ok(app.store.project_of(&caller.tenant, &others, chat).await?)
}

fn said(status: StatusCode, signal: &StoredSignal) -> Response {
    let id = signal.core.id();
    (status, Json(Said { id })).into_response()
}

/// Take back what was said of a message
///
/// Of the caller's own alone, and the same whether or not it was said.
#[utoipa::path(
    delete,
    path = "/api/v1/feedback",
    tag = "message signals",
    params(
        ("message_id" = String, Query, description = "The message"),
        ("signal" = MessageSignal, Query, description = "What was said of it"),
        ("user_id" = Option<String>, Query, min_length = 1, max_length = 256, description = "The user who said it, with `feedback:on-behalf`; the caller without"),
    ),
    responses(
        (status = 204, description = "It does not stand"),
        (status = 400, description = "A parameter is missing or wrong", body = ProblemDocument),
        (status = 401, description = "No valid token", body = ProblemDocument),
        (status = 403, description = "For another user without `feedback:on-behalf`", body = ProblemDocument),
        (status = 503, description = "The store could not be reached; try again", body = ProblemDocument),
    ),
    security(("bearer" = []))
)]
async fn take_back(
    State(app): State<App>,
    Caller(caller): Caller,
    mut params: Params,
) -> Result<StatusCode, Problem> {
    params.require(&["message_id", "signal"]);
    let message = params.optional::<MessageId>("message_id");
    let signal = params.one_of("signal", MessageSignal::NAMES);
    let (Some(message), Some(signal)) = (message, signal) else {
        return Err(params.problem());
    };
    let own = caller.user.clone();
    let caller = params.on_behalf(caller)?;
    // A user takes back its own with any token; a back end what is in the projects that it holds.
    let reaches = |held: &StoredSignal| caller.user == own || caller.holds(&held.core.workspace);
    // Not refused while the caller is erased: a tombstone takes a row's place or is not written.
    let owner = (&caller.tenant, &caller.user);
    let store = &app.store;
    let standing = store.standing_signal(owner, &message, (signal, app.clock.now()));
    let mut standing = standing.await?;
    for _ in 0..TRIES {
        let seen = standing.as_ref();
        let withdrawn = seen.filter(|seen| reaches(&seen.held));
        let Some(tombstone) = withdrawn.and_then(|seen| seen.held.retract(app.clock.now())) else {
            return Ok(StatusCode::NO_CONTENT);
        };
        match store.put_signal(&tombstone, seen).await? {
            Replaced::Done => return Ok(StatusCode::NO_CONTENT),
            Replaced::Lost(now) => standing = now.map(|standing| *standing),
        }
    }
    Err(contended())
}

fn contended() -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable")
        .detail("Too many signals on this message at once. Try again.")
}

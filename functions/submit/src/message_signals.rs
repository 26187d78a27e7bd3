//! Message signals: send, replace, withdraw.
//!
//! The message is first looked up among those of the caller's projects, so that a caller learns nothing about others.
//! The signal then replaces the user's current one, on the condition that that is still current. The signal generator
//! adds the event to the ledger, from the table's stream.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use hearback_domain::events::recency::Recency;
use hearback_domain::feedback::message_signal::{
    MessageSignal, MessageSignalRequest, SignalUpdate, StoredSignal,
};
use hearback_domain::identity::caller::Caller;
use hearback_domain::identity::identifier::{MessageId, ProjectId, UserId};
use hearback_domain::turns::turn::TurnCore;
use hearback_lambda::body::Body;
use hearback_lambda::caller::VerifiedCaller;
use hearback_lambda::params::Parameters;
use hearback_lambda::problem::ProblemDocument;
use hearback_lambda::rejections::{BodyRejections, ForbiddenRejection, Rejections};
use hearback_lambda::routes::Routes;
use hearback_lambda::{App, Problem, routes};
use hearback_storage::{Attempt, Versioned, unless_unreadable, update};
use hearback_wire::request;
use serde::Serialize;
use utoipa::ToSchema;

/// Largest body of a signal, in bytes.
pub const MAX_BODY: usize = 16 * 1024;
/// Attempts of one write among concurrent ones. Only the same user, with the same message, competes for it.
const ATTEMPTS: usize = 50;

/// The routes of message signals.
pub(crate) fn routes() -> Routes<App> {
    routes!(App => send_message_signal, withdraw_message_signal)
}

request! {
    /// The signal that is withdrawn.
    struct WithdrawalQuery, query {
        /// The message.
        "message_id" => message_id: required MessageId,
        /// The signal.
        "signal" => signal: required MessageSignal,
        /// The user whose signal it is, with `feedback:on-behalf`; the caller if left out.
        "user_id" => user_id: optional UserId,
    }
}

/// The id of a signal.
#[derive(Serialize, ToSchema)]
struct MessageSignalId {
    /// Always the same for one user, message and signal.
    #[schema(example = "fb_3f0c94a1d1b04c539a770f2e6c1b94d4")]
    id: String,
}

/// Rate a message
///
/// There is one signal for each user, message and kind: a repeat replaces it. With `exclusive`, the contrary ones are
/// withdrawn once it is stored; a retry withdraws what is left. Of contrary signals that are sent at once, the latest
/// stays. The response is the same for an unknown
/// message and for one of a project that the token does not have. The body has at most 16 KiB.
#[utoipa::path(
    post,
    path = "/api/v1/feedback",
    tag = "message signals",
    request_body = MessageSignalRequest,
    responses(
        (status = 201, description = "The signal is stored", body = MessageSignalId),
        (status = 200, description = "The signal replaces the current one", body = MessageSignalId),
        (status = 404, description = "No such message, or not in a project of the caller's", body = ProblemDocument),
        (status = 409, description = "The user's data is being erased", body = ProblemDocument),
        BodyRejections,
        ForbiddenRejection,
    ),
    security(("bearer" = []))
)]
async fn send_message_signal(
    State(app): State<App>,
    VerifiedCaller(caller): VerifiedCaller,
    Body(mut posted): Body<MessageSignalRequest, MAX_BODY>,
) -> Result<Response, Problem> {
    let own = caller.user.clone();
    let caller = caller.on_behalf_of(posted.user_id.take())?;
    // Both are awaited: the time of the response must not reveal whether the message exists in another project.
    let erasure = app.reject_during_erasure(caller.user_ref());
    let (found, erasure) = futures::join!(look_up(&app, &caller, &posted), erasure);
    let (turn, current) = found?;
    erasure?;
    let (app, caller, posted, turn) = (&app, &caller, &posted, &turn);
    let sent = update(ATTEMPTS, current, |current| async move {
        let value = current.as_ref().map(|current| &current.value);
        let chat_project = other_project(app, caller, posted, turn, value).await?;
        let resolved = posted.resolve(turn, caller, chat_project, value, app.clock.now());
        let (status, next) = match resolved {
            SignalUpdate::Create(next) => (StatusCode::CREATED, next),
            SignalUpdate::Replace(next) => (StatusCode::OK, next),
            SignalUpdate::Repeat(current) => {
                return Ok(Attempt::Finished((StatusCode::OK, current)));
            }
        };
        let next = Box::new(next.with_keyed_act(value, &app.pseudonyms));
        let replaced = app.store.put_signal(&next, current.as_ref()).await?;
        Ok::<_, Problem>(Attempt::of(replaced, (status, next)))
    });
    let (status, signal) = sent.await?.ok_or_else(contended)?;
    if posted.exclusive {
        // After the new signal is stored: a user who changes their mind always has one that counts.
        keep_latest(app, caller, &own, &signal).await?;
    }
    let id = signal.core.id();
    Ok((status, Json(MessageSignalId { id })).into_response())
}

/// Withdraws the signals that are contrary to this one and earlier. If one of them is later, it withdraws this one: of two
/// requests at the same time each may read before the other's signal is stored, and exactly one must stay.
async fn keep_latest(
    app: &App,
    caller: &Caller,
    own: &UserId,
    signal: &StoredSignal,
) -> Result<(), Problem> {
    let StoredSignal { core, .. } = signal;
    for contrary in core.signal.contrary() {
        let message = &core.message_id;
        let before = Some(core.recency());
        let later = withdraw(app, caller, own, message, *contrary, before).await?;
        if later.is_some() {
            withdraw(app, caller, own, message, core.signal, later).await?;
            return Ok(());
        }
    }
    Ok(())
}

/// The turn of the message, if it is in a project of the caller's, and the current signal.
async fn look_up(
    app: &App,
    caller: &Caller,
    posted: &MessageSignalRequest,
) -> Result<(TurnCore, Option<Versioned<StoredSignal>>), Problem> {
    let now = app.clock.now();
    let (entry, current) = app
        .store
        .message_and_signal(caller, &posted.message_id, posted.signal, now)
        .await?;
    let entry = entry.ok_or_else(|| Problem::no_such("message"))?;
    // The message directory may have an entry of a registration that was never completed.
    let turn = app.store.turn(&entry.at, now).await?.map(|row| row.core);
    let turn = turn.filter(|turn| turn.message_id.as_ref() == Some(&posted.message_id));
    Ok((turn.ok_or_else(|| Problem::no_such("message"))?, current))
}

/// Another project of the caller that has the chat, if there is one.
async fn other_project(
    app: &App,
    caller: &Caller,
    posted: &MessageSignalRequest,
    turn: &TurnCore,
    current: Option<&StoredSignal>,
) -> Result<Option<ProjectId>, Problem> {
    let Some(chat) = posted.chat_to_look_up(turn, caller, current) else {
        return Ok(None);
    };
    let own = &turn.at.within.project;
    let others: Vec<_> = (caller.projects.iter())
        .filter(|project| *project != own)
        .cloned()
        .collect();
    Ok(app.store.project_of(&caller.tenant, &others, chat).await?)
}

/// Withdraw a signal on a message
///
/// Only the caller's own. The response is the same whether or not there was one.
#[utoipa::path(
    delete,
    path = "/api/v1/feedback",
    tag = "message signals",
    params(
        WithdrawalQuery,
    ),
    responses(
        (status = 204, description = "The signal does not exist any more"),
        Rejections,
        ForbiddenRejection,
    ),
    security(("bearer" = []))
)]
async fn withdraw_message_signal(
    State(app): State<App>,
    VerifiedCaller(caller): VerifiedCaller,
    Parameters(query): Parameters<WithdrawalQuery>,
) -> Result<StatusCode, Problem> {
    let own = caller.user.clone();
    let caller = caller.on_behalf_of(query.user_id)?;
    // Allowed during an erasure: a tombstone only replaces an existing row.
    let (message, signal) = (&query.message_id, query.signal);
    withdraw(&app, &caller, &own, message, signal, None).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Withdraws a signal, if there is one. `own` is the user of the token. With `before`, only one that is earlier; the
/// position of a later one is returned.
async fn withdraw(
    app: &App,
    caller: &Caller,
    own: &UserId,
    message: &MessageId,
    signal: MessageSignal,
    before: Option<Recency>,
) -> Result<Option<Recency>, Problem> {
    // Users withdraw their own signals with any token, and a back end those in the projects of its token.
    let may_withdraw =
        |signal: &StoredSignal| caller.user == *own || caller.holds(&signal.core.workspace);
    let owner = caller.user_ref();
    let store = &app.store;
    let current = store
        .current_signal(owner, message, signal, app.clock.now())
        .await;
    let current = match before {
        // The signal that is contrary to it counts, whatever this one was.
        Some(_) => unless_unreadable(current, &caller.tenant)?,
        None => current?,
    };
    let (clock, may_withdraw) = (app.clock, &may_withdraw);
    let withdrawn = update(ATTEMPTS, current, |current| async move {
        let own = current
            .as_ref()
            .filter(|current| may_withdraw(&current.value));
        let Some(tombstone) = own.and_then(|current| current.value.retract(clock.now())) else {
            return Ok(Attempt::Finished(None));
        };
        let recency = own.map(|current| current.value.core.recency());
        if before.is_some() && recency > before {
            return Ok(Attempt::Finished(recency));
        }
        let replaced = store.put_signal(&tombstone, current.as_ref()).await?;
        Ok::<_, Problem>(Attempt::of(replaced, None))
    });
    withdrawn.await?.ok_or_else(contended)
}

fn contended() -> Problem {
    Problem::contended("Too many signals on this message at once. Try again.")
}

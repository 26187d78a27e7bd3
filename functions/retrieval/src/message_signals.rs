//! What the caller said of messages: its own rows, whatever its scope.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use hearback_domain::digest::digest;
use hearback_domain::message_signal::{MessageSignal, StoredSignal};
use hearback_domain::payload::{MAX_PAGE, carried};
use hearback_lambda::caller::Caller;
use hearback_lambda::params::Params;
use hearback_lambda::problem::ProblemDocument;
use hearback_lambda::routes::Routes;
use hearback_lambda::{App, Problem, WithBlobs, routes};
use hearback_storage::keys;
use hearback_storage::message_signals::Wanted;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

/// Rows on a page, unless the caller says otherwise.
const DEFAULT_LIMIT: u64 = 100;
/// Most rows on a page.
const MAX_LIMIT: u64 = 500;
/// Most calls to the table for a page. A filter may leave out nearly all of what is read; the page
/// then ends early.
const MAX_CALLS: usize = 10;

pub(crate) fn routes() -> Routes<WithBlobs> {
    routes!(WithBlobs => signals)
}

/// A signal on a message.
#[derive(Serialize, ToSchema)]
struct Row {
    id: String,
    message_id: String,
    /// The project in which it counts.
    workspace_id: String,
    chat_id: Option<String>,
    trace_id: Option<String>,
    signal: MessageSignal,
    reason: Option<String>,
    exclude_from_training: bool,
    /// Its event: `GET /v1/feedback/{feedbackId}` tells what came of it.
    feedback_id: Uuid,
    /// When it was first said.
    created_at: DateTime<Utc>,
    /// When it last changed.
    updated_at: DateTime<Utc>,
}

impl From<StoredSignal> for Row {
    fn from(StoredSignal { core, reason }: StoredSignal) -> Self {
        Self {
            id: core.id(),
            message_id: core.message_id.into(),
            workspace_id: core.workspace.into(),
            chat_id: core.chat_id.map(Into::into),
            trace_id: core.trace_id.map(Into::into),
            signal: core.signal,
            reason,
            exclude_from_training: core.exclude_from_training,
            feedback_id: core.act,
            created_at: core.created_at,
            updated_at: core.updated_at,
        }
    }
}

/// A page of signals.
#[derive(Serialize, ToSchema)]
#[schema(as = SignalPage)]
struct Page {
    /// By message and signal.
    feedback: Vec<Row>,
    /// Where the next page begins; `null` at the end.
    next_cursor: Option<String>,
}

/// What the caller said of messages
///
/// In its projects. A page may end before `limit`; the list ends where `next_cursor` is `null`.
#[utoipa::path(
    get,
    path = "/api/v1/feedback",
    tag = "message signals",
    params(
        ("message_id" = Option<String>, Query, description = "Of this message"),
        ("signal" = Option<MessageSignal>, Query, description = "This signal"),
        ("limit" = Option<u16>, Query, minimum = 1, maximum = 500, description = "Most rows on the page, 100 if left out"),
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before"),
        ("user_id" = Option<String>, Query, min_length = 1, max_length = 256, description = "The user whose signals, with `feedback:on-behalf`; the caller without"),
    ),
    responses(
        (status = 200, description = "A page of the caller's own signals", body = Page),
        (status = 400, description = "A parameter is wrong, or the cursor is not of this query", body = ProblemDocument),
        (status = 401, description = "No valid token", body = ProblemDocument),
        (status = 403, description = "For another user without `feedback:on-behalf`", body = ProblemDocument),
        (status = 503, description = "The store could not be reached; try again", body = ProblemDocument),
    ),
    security(("bearer" = []))
)]
async fn signals(
    State(app): State<App>,
    Caller(caller): Caller,
    mut params: Params,
) -> Result<Json<Page>, Problem> {
    let wanted = Wanted {
        message: params.optional("message_id"),
        signal: params.one_of("signal", MessageSignal::NAMES),
    };
    let limit = params
        .number("limit", 1, MAX_LIMIT)
        .unwrap_or(DEFAULT_LIMIT);
    let limit = usize::try_from(limit).unwrap_or_default();
    let caller = params.on_behalf(caller)?;
    let owner = (&caller.tenant, &caller.user);
    let query = digest([
        "message signals",
        caller.tenant.as_str(),
        caller.user.as_str(),
        wanted
            .message
            .as_ref()
            .map_or("", |message| message.as_str()),
        wanted.signal.map_or("", MessageSignal::as_str),
    ]);
    let mut after: Option<String> = match params.text("cursor") {
        None => None,
        Some(cursor) => Some(app.cursors.open(&query, cursor).map_err(Problem::cursor)?),
    };
    let mut page = Vec::new();
    let mut bytes = 0;
    // The key of the last row on the page.
    let mut last = None;
    'page: for _ in 0..MAX_CALLS {
        let left = i32::try_from(limit - page.len()).unwrap_or(1);
        let found = app
            .store
            .signals_of(owner, (&wanted, app.clock.now()), after.as_deref(), left);
        let (rows, next) = found.await?;
        after = next;
        // Who left a project left its messages, too.
        for said in rows
            .into_iter()
            .filter(|said| caller.holds(&said.core.workspace))
        {
            let key = keys::message_signal(&said.core.message_id, said.core.signal);
            let row = Row::from(said);
            bytes += carried(&row);
            if bytes > MAX_PAGE {
                after = last;
                break 'page;
            }
            last = Some(key);
            page.push(row);
        }
        if after.is_none() || page.len() == limit {
            break;
        }
    }
    Ok(Json(Page {
        feedback: page,
        next_cursor: after.map(|after| app.cursors.seal(&query, &after)),
    }))
}

//! The caller's own message signals, whatever its scopes.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use hearback_domain::feedback::message_signal::{MessageSignal, StoredSignal};
use hearback_domain::identity::identifier::{MessageId, UserId};
use hearback_domain::text::digest::digest;
use hearback_domain::text::page::{DEFAULT_LIMIT, PageLimit};
use hearback_domain::text::payload::{MAX_PAGE, escaped_json_size};
use hearback_lambda::caller::VerifiedCaller;
use hearback_lambda::params::Parameters;
use hearback_lambda::rejections::{ForbiddenRejection, Rejections};
use hearback_lambda::routes::Routes;
use hearback_lambda::{App, Problem, WithBlobs, routes};
use hearback_storage::message_signals::SignalFilter;
use hearback_storage::message_signals::signal_sort_key;
use hearback_wire::request;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

/// Calls to the table for a page, at most. If a filter leaves out nearly all rows, the page ends early.
const MAX_CALLS: usize = 10;

pub(crate) fn routes() -> Routes<WithBlobs> {
    routes!(WithBlobs => list_message_signals)
}

/// A signal on a message.
#[derive(Serialize, ToSchema)]
struct ListedMessageSignal {
    id: String,
    message_id: String,
    /// The project in which it counts.
    workspace_id: String,
    #[schema(required = true)]
    chat_id: Option<String>,
    #[schema(required = true)]
    trace_id: Option<String>,
    signal: MessageSignal,
    #[schema(required = true)]
    reason: Option<String>,
    exclude_from_training: bool,
    /// Its event: `GET /v1/feedback/{feedbackId}` has the outcome.
    feedback_id: Uuid,
    /// When it was first given.
    created_at: DateTime<Utc>,
    /// When it last changed.
    updated_at: DateTime<Utc>,
}

impl From<StoredSignal> for ListedMessageSignal {
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
struct MessageSignalPage {
    /// By message and signal.
    feedback: Vec<ListedMessageSignal>,
    /// Where the next page begins; `null` at the end.
    #[schema(required = true)]
    next_cursor: Option<String>,
}

request! {
    /// Which signals are listed.
    struct MessageSignalQuery, query {
        /// Signals on this message.
        "message_id" => message_id: optional MessageId,
        /// This signal.
        "signal" => signal: optional MessageSignal,
        /// The maximum number of rows on the page.
        "limit" => limit: optional PageLimit = DEFAULT_LIMIT,
        /// `next_cursor` of the previous page.
        "cursor" => cursor: optional String,
        /// The user whose signals are listed, with `feedback:on-behalf`; the caller if left out.
        "user_id" => user_id: optional UserId,
    }
}

/// The caller's signals on messages
///
/// In the projects of the token. A page may end before `limit`; the list ends where `next_cursor` is `null`.
#[utoipa::path(
    get,
    path = "/api/v1/feedback",
    tag = "message signals",
    params(
        MessageSignalQuery,
    ),
    responses(
        (status = 200, description = "A page of the caller's own signals", body = MessageSignalPage),
        Rejections,
        ForbiddenRejection,
    ),
    security(("bearer" = []))
)]
async fn list_message_signals(
    State(app): State<App>,
    VerifiedCaller(caller): VerifiedCaller,
    Parameters(query): Parameters<MessageSignalQuery>,
) -> Result<Json<MessageSignalPage>, Problem> {
    let filter = SignalFilter {
        message: query.message_id,
        signal: query.signal,
    };
    let limit: usize = query.limit.to();
    let caller = caller.on_behalf_of(query.user_id)?;
    let owner = caller.user_ref();
    let digest = digest([
        "message signals",
        caller.tenant.as_str(),
        caller.user.as_str(),
        filter
            .message
            .as_ref()
            .map_or("", |message| message.as_str()),
        filter.signal.map_or("", MessageSignal::as_str),
    ]);
    let mut after: Option<String> = match query.cursor {
        None => None,
        Some(cursor) => Some(
            app.cursors
                .open(&digest, &cursor)
                .map_err(Problem::cursor)?,
        ),
    };
    let mut page = Vec::new();
    let mut bytes = 0;
    // The key of the last row on the page.
    let mut last = None;
    'page: for _ in 0..MAX_CALLS {
        let left = i32::try_from(limit - page.len()).unwrap_or(1);
        let found = app
            .store
            .signals_of(owner, &filter, app.clock.now(), after.as_deref(), left);
        let (rows, next) = found.await?;
        after = next;
        // The token may no longer hold the project of an older signal.
        for signal in rows
            .into_iter()
            .filter(|signal| caller.holds(&signal.core.workspace))
        {
            let key = signal_sort_key(&signal.core);
            let row = ListedMessageSignal::from(signal);
            bytes += escaped_json_size(&row);
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
    Ok(Json(MessageSignalPage {
        feedback: page,
        next_cursor: after.map(|after| app.cursors.seal(&digest, &after)),
    }))
}

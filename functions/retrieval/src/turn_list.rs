//! Turns by status: the caller's own, or with `feedback:report` those of the project.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use hearback_detection::FeedbackStatus;
use hearback_domain::feedback::follow_up::FollowUpCorrection;
use hearback_domain::identity::caller::{Caller, Scope};
use hearback_domain::identity::identifier::UserId;
use hearback_domain::text::digest::digest;
use hearback_domain::text::page::{DEFAULT_LIMIT, PageLimit};
use hearback_domain::text::payload::{MAX_PAGE, escaped_json_size};
use hearback_lambda::params::{InProject, Parameters};
use hearback_lambda::rejections::{ForbiddenRejection, Rejections};
use hearback_lambda::routes::Routes;
use hearback_lambda::{App, Problem, WithBlobs, routes};
use hearback_storage::turn_rows::IndexRow;
use hearback_storage::turns_by_status::{TurnPosition, TurnsByStatus};
use hearback_wire::{request, wire_names};
use serde::Serialize;
use utoipa::ToSchema;

/// The caller's own turns that one call reads.
const READ_AT_ONCE: usize = 100;
/// Calls to the table for a page, at most. If few of the turns have the status, the page ends early.
const MAX_CALLS: usize = 10;

/// The statuses that can be listed. A turn without feedback is neutral, and neutral turns are not listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum KnownStatus {
    Rejected,
    Accepted,
}

wire_names!(KnownStatus {
    Rejected = "rejected",
    Accepted = "accepted",
});

impl From<KnownStatus> for FeedbackStatus {
    fn from(status: KnownStatus) -> Self {
        match status {
            KnownStatus::Rejected => Self::Rejected,
            KnownStatus::Accepted => Self::Accepted,
        }
    }
}

request! {
    /// Which turns are listed.
    struct TurnListQuery, query {
        /// The status of the turns.
        "user_feedback_status" => status: required KnownStatus,
        /// Turns from this time on (RFC 3339).
        "from" => from: optional DateTime<Utc>,
        /// Turns up to this time, included.
        "to" => to: optional DateTime<Utc>,
        /// The maximum number of turns on the page.
        "limit" => limit: optional PageLimit = DEFAULT_LIMIT,
        /// `next_cursor` of the previous page.
        "cursor" => cursor: optional String,
        /// The user in whose view the turns are listed, with `feedback:on-behalf`; the caller if left out.
        "user_id" => user_id: optional UserId,
    }
}

pub(crate) fn routes() -> Routes<WithBlobs> {
    routes!(WithBlobs => list_turns_by_status)
}

/// A turn with its status.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ListedTurn {
    conversation_id: String,
    turn_id: String,
    /// Whose turn it is.
    user_id: String,
    /// The time of the turn.
    ts: DateTime<Utc>,
    /// The user's verdict.
    user_feedback_status: FeedbackStatus,
    /// The confidence of the verdict, 0 to 1.
    feedback_confidence: f64,
    /// The turn that rejected it.
    #[schema(required = true)]
    rejection_detected_in: Option<String>,
    /// How the user's next message rejects it, if that decides the status.
    #[schema(required = true)]
    correction_type: Option<FollowUpCorrection>,
    /// Whether a person corrected what was inferred, and that decides the status.
    corrected: bool,
    #[schema(required = true)]
    strategy: Option<String>,
    #[schema(required = true)]
    artifact_type: Option<String>,
    #[schema(required = true)]
    task_type: Option<String>,
    #[schema(required = true)]
    agent_id: Option<String>,
}

impl From<IndexRow> for ListedTurn {
    fn from(row: IndexRow) -> Self {
        let (core, status) = (row.core, row.status);
        Self {
            conversation_id: core.at.within.conversation.into(),
            turn_id: core.at.turn.into(),
            user_id: core.user_id.into(),
            ts: core.ts,
            user_feedback_status: status.status(),
            feedback_confidence: status.confidence(),
            rejection_detected_in: status.rejection_detected_in().map(ToString::to_string),
            correction_type: status.correction_type(),
            corrected: status.is_corrected(),
            strategy: core.strategy.map(Into::into),
            artifact_type: core.artifact_type.map(Into::into),
            task_type: core.task_type.map(Into::into),
            agent_id: core.agent_id.map(Into::into),
        }
    }
}

/// A page of turns.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ListedTurnPage {
    /// The turns, in the order of the list.
    pub(crate) turns: Vec<ListedTurn>,
    /// Where the next page begins; `null` at the end.
    #[schema(required = true)]
    pub(crate) next_cursor: Option<String>,
}

/// Turns by status
///
/// The caller's own, or with `feedback:report` those of the project, the latest first. A page may end before
/// `limit`; the list ends where `next_cursor` is `null`.
#[utoipa::path(
    get,
    path = "/conversations/{tenant}/{project}/turns",
    tag = "turns",
    params(
        InProject,
        TurnListQuery,
    ),
    responses(
        (status = 200, description = "A page of turns", body = ListedTurnPage),
        Rejections,
        ForbiddenRejection,
    ),
    security(("bearer" = []))
)]
async fn list_turns_by_status(
    State(app): State<App>,
    within: InProject,
    Parameters(list): Parameters<TurnListQuery>,
) -> Result<Json<ListedTurnPage>, Problem> {
    let limit: usize = list.limit.to();
    let caller = within.caller.clone().on_behalf_of(list.user_id)?;
    let listed = TurnsByStatus {
        tenant: &within.tenant,
        project: &within.project,
        status: list.status.into(),
        span: (
            list.from.unwrap_or(DateTime::UNIX_EPOCH),
            list.to.unwrap_or(DateTime::<Utc>::MAX_UTC),
        ),
        now: app.clock.now(),
    };
    let query = fingerprint(&caller, &listed);
    let mut after: Option<TurnPosition> = match list.cursor {
        None => None,
        Some(cursor) => Some(app.cursors.open(&query, &cursor).map_err(Problem::cursor)?),
    };
    let (mut turns, mut bytes) = (Vec::new(), 0);
    let more = 'page: {
        for _ in 0..MAX_CALLS {
            let page = if caller.has(Scope::Report) {
                let left = limit - turns.len();
                app.store
                    .turns_by_status(&listed, after.as_ref(), left)
                    .await?
            } else {
                let user = &caller.user;
                app.store
                    .own_turns_by_status(user, &listed, after.as_ref(), READ_AT_ONCE)
                    .await?
            };
            for (position, row) in page.rows {
                let turn = ListedTurn::from(row);
                let size = escaped_json_size(&turn) + 1;
                if turns.len() == limit || (!turns.is_empty() && bytes + size > MAX_PAGE) {
                    break 'page true;
                }
                bytes += size;
                turns.push(turn);
                after = Some(position);
            }
            let Some(next) = page.next else {
                break 'page false;
            };
            after = Some(next);
            if turns.len() == limit {
                break;
            }
        }
        true
    };
    let next = after.filter(|_| more);
    Ok(Json(ListedTurnPage {
        turns,
        next_cursor: next.map(|next| app.cursors.seal(&query, &next)),
    }))
}

fn fingerprint(caller: &Caller, listed: &TurnsByStatus<'_>) -> [u8; 32] {
    let (from, to) = listed.span;
    let [from, to] = [from, to].map(|instant| instant.timestamp_micros().to_string());
    digest([
        "turns by status",
        listed.tenant.as_str(),
        listed.project.as_str(),
        caller.view(),
        listed.status.as_str(),
        &from,
        &to,
    ])
}

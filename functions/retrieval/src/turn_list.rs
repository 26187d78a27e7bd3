//! Turns by how they were taken: the caller's own, or with `feedback:report` those of the project.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use hearback_domain::caller::{Caller, Scope};
use hearback_domain::detection::FeedbackType;
use hearback_domain::digest::digest;
use hearback_domain::follow_up::Correction;
use hearback_domain::payload::{MAX_PAGE, carried};
use hearback_lambda::params::{InProject, Params};
use hearback_lambda::problem::ProblemDocument;
use hearback_lambda::routes::Routes;
use hearback_lambda::{App, Problem, WithBlobs, routes};
use hearback_storage::statuses::{Listed, Place};
use hearback_storage::turns::IndexRow;
use serde::Serialize;
use utoipa::ToSchema;

/// Turns on a page, unless the caller says otherwise.
const DEFAULT_LIMIT: u64 = 100;
/// Most turns on a page.
const MAX_LIMIT: u64 = 500;
/// The caller's own turns that one call looks at.
const LOOKED_AT: usize = 100;
/// Most calls for a page. Few of what is looked at may be of the status; the page then ends early.
const MAX_CALLS: usize = 10;
/// What can be asked for: a turn is neutral if nothing is known of it.
const STATUSES: &[(&str, FeedbackType)] = &[
    ("rejected", FeedbackType::Rejected),
    ("accepted", FeedbackType::Accepted),
];

pub(crate) fn routes() -> Routes<WithBlobs> {
    routes!(WithBlobs => turns_by_status)
}

/// A turn, as it was taken.
#[derive(Debug, Serialize, ToSchema)]
struct ListedTurn {
    conversation_id: String,
    turn_id: String,
    /// Whose turn it is.
    user_id: String,
    /// When it was.
    ts: DateTime<Utc>,
    /// How it was taken.
    user_feedback_status: FeedbackType,
    /// How sure that is, 0 to 1.
    feedback_confidence: f64,
    /// The turn in which it was found to be rejected.
    rejection_detected_in: Option<String>,
    /// How the user's message rejects it, if that counts.
    correction_type: Option<Correction>,
    strategy: Option<String>,
    artifact_type: Option<String>,
    task_type: Option<String>,
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
            strategy: core.strategy.map(Into::into),
            artifact_type: core.artifact_type.map(Into::into),
            task_type: core.task_type.map(Into::into),
            agent_id: core.agent_id.map(Into::into),
        }
    }
}

/// A page of turns.
#[derive(Debug, Serialize, ToSchema)]
struct ListedTurnPage {
    /// The turns, the latest first.
    turns: Vec<ListedTurn>,
    /// Where the next page begins; `null` at the end.
    next_cursor: Option<String>,
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
        ("tenant" = String, Path, description = "The token's tenant"),
        ("project" = String, Path, description = "A project that the token holds"),
        ("user_feedback_status" = String, Query, description = "`rejected` or `accepted`"),
        ("from" = Option<String>, Query, format = DateTime, description = "Turns from this time on (RFC 3339)"),
        ("to" = Option<String>, Query, format = DateTime, description = "Turns up to this time, included"),
        ("limit" = Option<u16>, Query, minimum = 1, maximum = 500, description = "Most turns on the page, 100 if left out"),
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before"),
        ("user_id" = Option<String>, Query, min_length = 1, max_length = 256, description = "The user in whose view, with `feedback:on-behalf`; the caller without"),
    ),
    responses(
        (status = 200, description = "A page of turns", body = ListedTurnPage),
        (status = 400, description = "A parameter is missing or wrong, or the cursor is not of this query", body = ProblemDocument),
        (status = 401, description = "No valid token", body = ProblemDocument),
        (status = 403, description = "Not the token's tenant or project, or for another user without `feedback:on-behalf`", body = ProblemDocument),
        (status = 503, description = "The store could not be reached; try again", body = ProblemDocument),
    ),
    security(("bearer" = []))
)]
async fn turns_by_status(
    State(app): State<App>,
    within: InProject,
    mut params: Params,
) -> Result<Json<ListedTurnPage>, Problem> {
    params.require(&["user_feedback_status"]);
    let status = params.one_of("user_feedback_status", STATUSES);
    let (from, to) = (params.time("from"), params.time("to"));
    let limit = params.number("limit", 1, MAX_LIMIT);
    let limit = usize::try_from(limit.unwrap_or(DEFAULT_LIMIT)).unwrap_or_default();
    let caller = params.on_behalf(within.caller.clone())?;
    let Some(status) = status else {
        return Err(params.problem());
    };
    let listed = Listed {
        tenant: &within.tenant,
        project: &within.project,
        status,
        span: (
            from.unwrap_or(DateTime::UNIX_EPOCH),
            to.unwrap_or(DateTime::<Utc>::MAX_UTC),
        ),
        now: app.clock.now(),
    };
    let query = fingerprint(&caller, &listed);
    let mut after: Option<Place> = match params.text("cursor") {
        None => None,
        Some(cursor) => Some(app.cursors.open(&query, cursor).map_err(Problem::cursor)?),
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
                    .own_turns_by_status(user, &listed, after.as_ref(), LOOKED_AT)
                    .await?
            };
            for (place, row) in page.rows {
                let turn = ListedTurn::from(row);
                let size = carried(&turn) + 1;
                if turns.len() == limit || (!turns.is_empty() && bytes + size > MAX_PAGE) {
                    break 'page true;
                }
                bytes += size;
                turns.push(turn);
                after = Some(place);
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

/// Tells one query from every other.
fn fingerprint(caller: &Caller, listed: &Listed<'_>) -> [u8; 32] {
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

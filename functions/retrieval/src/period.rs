//! The report of a period: conversations with feedback, the latest first.

mod minutes;
mod walk;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use hearback_domain::period::{Item, Request};
use hearback_lambda::body::JsonBody;
use hearback_lambda::params::InProject;
use hearback_lambda::problem::ProblemDocument;
use hearback_lambda::routes::Routes;
use hearback_lambda::{App, Problem, WithBlobs, routes};
use serde::Serialize;
use utoipa::ToSchema;

use crate::MAX_BODY;
use walk::{Place, Walk};

pub(crate) fn routes() -> Routes<WithBlobs> {
    routes!(WithBlobs => conversations_in_period)
}

/// The request as callers post it.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({
    "start": "2025-11-01T00:00:00Z", "end": "2025-11-06T23:59:59Z",
    "include_turns": true, "limit": 100, "cursor": null
}))]
struct PeriodRequest {
    /// RFC 3339 with an offset, included.
    #[schema(format = DateTime)]
    start: String,
    /// RFC 3339 with an offset, included.
    #[schema(format = DateTime)]
    end: String,
    /// Whether to list the feedback of each turn.
    include_turns: Option<bool>,
    /// Most conversations on the page.
    #[schema(minimum = 1, maximum = 500, default = 100)]
    limit: Option<u16>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
    /// The user in whose view, with `feedback:on-behalf`; the caller without.
    #[schema(min_length = 1, max_length = 256)]
    user_id: Option<String>,
}

/// A page of the report.
#[derive(Serialize, ToSchema)]
#[schema(as = PeriodPage)]
struct Page {
    tenant: String,
    project: String,
    window: Window,
    /// The conversations, the latest first.
    items: Vec<Item>,
    /// Where the next page begins; `null` at the end.
    next_cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
struct Window {
    start: DateTime<Utc>,
    end: DateTime<Utc>,
}

/// Conversations with feedback in a period
///
/// The latest first, each once, however much feedback arrives while the pages are read. With
/// `feedback:report` over all users, without over the caller's own feedback. A page may end
/// before `limit`; the report ends where `next_cursor` is `null`.
#[utoipa::path(
    post,
    path = "/conversations/{tenant}/{project}/feedback/conversations-in-period",
    tag = "reports",
    params(
        ("tenant" = String, Path, description = "The token's tenant"),
        ("project" = String, Path, description = "A project that the token holds"),
    ),
    request_body = PeriodRequest,
    responses(
        (status = 200, description = "A page of the report", body = Page),
        (status = 400, description = "The body is not JSON or breaks the schema, or the cursor is not of this query", body = ProblemDocument),
        (status = 401, description = "No valid token", body = ProblemDocument),
        (status = 403, description = "Not the token's tenant or project, or for another user without `feedback:on-behalf`", body = ProblemDocument),
        (status = 413, description = "The body has more than 1 MiB", body = ProblemDocument),
        (status = 503, description = "The store could not be reached; try again", body = ProblemDocument),
    ),
    security(("bearer" = []))
)]
async fn conversations_in_period(
    State(app): State<App>,
    mut within: InProject,
    JsonBody(body): JsonBody<MAX_BODY>,
) -> Result<Json<Page>, Problem> {
    let mut request = Request::parse(&body).map_err(Problem::invalid)?;
    within.caller = within.caller.on_behalf_of(request.user_id.take())?;
    let (tenant, project) = (within.tenant.as_str(), within.project.as_str());
    let query = request.fingerprint(tenant, project, within.caller.view());
    let place = match &request.cursor {
        None => Place::first(&request, app.clock.now()),
        Some(cursor) => app.cursors.open(&query, cursor).map_err(Problem::cursor)?,
    };
    let walked = Walk::new(&app, &within, &request, place).page().await?;
    Ok(Json(Page {
        tenant: within.tenant.to_string(),
        project: within.project.to_string(),
        window: Window {
            start: request.window.start,
            end: request.window.end,
        },
        items: walked.items,
        next_cursor: walked.next.map(|next| app.cursors.seal(&query, &next)),
    }))
}

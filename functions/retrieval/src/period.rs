//! The report of a period: conversations with feedback, the latest first.

mod minutes;
mod walk;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use hearback_domain::views::period::{ConversationFeedback, PeriodRequest};
use hearback_lambda::body::JsonBody;
use hearback_lambda::params::InProject;
use hearback_lambda::rejections::{BodyRejections, ForbiddenRejection};
use hearback_lambda::routes::Routes;
use hearback_lambda::{App, Problem, WithBlobs, routes};
use serde::Serialize;
use utoipa::ToSchema;

use crate::MAX_BODY;
use walk::{PeriodPosition, Walk};

pub(crate) fn routes() -> Routes<WithBlobs> {
    routes!(WithBlobs => list_conversations_in_period)
}

/// A page of the report.
#[derive(Serialize, ToSchema)]
struct PeriodPage {
    tenant: String,
    project: String,
    window: PeriodWindow,
    /// The conversations, the latest first.
    items: Vec<ConversationFeedback>,
    /// Where the next page begins; `null` at the end.
    #[schema(required = true)]
    next_cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
struct PeriodWindow {
    start: DateTime<Utc>,
    end: DateTime<Utc>,
}

/// Conversations with feedback in a period
///
/// The latest first, each once, however much feedback arrives while the pages are read. With `feedback:report` the
/// report has the feedback of all users, otherwise the caller's own. A page may end before `limit`; the report ends
/// where `next_cursor` is `null`.
#[utoipa::path(
    post,
    path = "/conversations/{tenant}/{project}/feedback/conversations-in-period",
    tag = "reports",
    params(
        InProject,
    ),
    request_body = PeriodRequest,
    responses(
        (status = 200, description = "A page of the report", body = PeriodPage),
        BodyRejections,
        ForbiddenRejection,
    ),
    security(("bearer" = []))
)]
async fn list_conversations_in_period(
    State(app): State<App>,
    mut within: InProject,
    JsonBody(body): JsonBody<MAX_BODY>,
) -> Result<Json<PeriodPage>, Problem> {
    let mut request = PeriodRequest::parse(&body).map_err(Problem::invalid)?;
    within.caller = within.caller.on_behalf_of(request.user_id.take())?;
    let (tenant, project) = (within.tenant.as_str(), within.project.as_str());
    let query = request.fingerprint(tenant, project, within.caller.view());
    let position = match &request.cursor {
        None => PeriodPosition::first(&request, app.clock.now()),
        Some(cursor) => app.cursors.open(&query, cursor).map_err(Problem::cursor)?,
    };
    let page = Walk::new(&app, &within, &request, position).page().await?;
    Ok(Json(PeriodPage {
        tenant: within.tenant.to_string(),
        project: within.project.to_string(),
        window: PeriodWindow {
            start: request.start,
            end: request.end,
        },
        items: page.items,
        next_cursor: page.next.map(|next| app.cursors.seal(&query, &next)),
    }))
}

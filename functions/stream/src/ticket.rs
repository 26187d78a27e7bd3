//! Tickets. A browser cannot send a header with a WebSocket, and a token does not belong in a URL.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use chrono::{DateTime, Utc};
use hearback_domain::views::feed::FeedView;
use hearback_domain::views::live::{Listener, TICKET_LIFETIME};
use hearback_lambda::caller::{TokenEnd, VerifiedCaller};
use hearback_lambda::problem::ProblemDocument;
use hearback_lambda::rejections::Rejections;
use hearback_lambda::routes::Routes;
use hearback_lambda::{Problem, routes};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::LiveFeed;

/// The setting that names the URL to connect to. Without it, it is that of the HTTP API.
pub const STREAM_URL: &str = "HEARBACK_STREAM_URL";
/// The path to connect to.
pub const PATH: &str = "/v1/feedback/events";

pub(crate) fn routes() -> Routes<LiveFeed> {
    routes!(LiveFeed => create_stream_ticket)
}

/// A ticket.
#[derive(Serialize, ToSchema)]
struct StreamTicket {
    /// The ticket. It is as good as the token while it can be used: never log it.
    ticket: String,
    /// Where to connect, as `<url>?ticket=<ticket>`.
    url: String,
    /// When it expires, 60 seconds from now.
    #[serde(rename = "expiresAt")]
    expires_at: DateTime<Utc>,
}

/// Ticket for the live feed
///
/// Opens one WebSocket, within 60 seconds, with what the token allows now. The connection receives the caller's own
/// events, or with `feedback:report` those of the tenant, as `GET /v1/feedback/events` lists them, and ends when the
/// token expires.
#[utoipa::path(
    post,
    path = "/v1/feedback/events/ticket",
    tag = "feedback",
    responses(
        (status = 201, description = "The ticket", body = StreamTicket),
        (status = 409, description = "The user's data is being erased", body = ProblemDocument),
        Rejections,
    ),
    security(("bearer" = []))
)]
async fn create_stream_ticket(
    State(live): State<LiveFeed>,
    VerifiedCaller(caller): VerifiedCaller,
    TokenEnd(token_ends): TokenEnd,
    headers: HeaderMap,
) -> Result<(StatusCode, Json<StreamTicket>), Problem> {
    let app = &live.app;
    app.reject_during_erasure(caller.user_ref()).await?;
    let pseudonym = app.pseudonyms.user(&caller.tenant, &caller.user).ok();
    let listener = Listener {
        view: FeedView::of(&caller, pseudonym, None)?,
        tenant: caller.tenant,
        user: caller.user,
        token_ends,
        since: app.clock.now(),
    };
    // 244 random bits.
    let ticket = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
    app.store.put_ticket(&ticket, &listener).await?;
    let ticket = StreamTicket {
        ticket,
        url: match &live.url {
            Some(url) => url.clone(),
            None => url_of(&headers),
        },
        expires_at: listener.since + TICKET_LIFETIME,
    };
    Ok((StatusCode::CREATED, Json(ticket)))
}

/// The URL at the host that a request names.
fn url_of(headers: &HeaderMap) -> String {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let is_tls = text(header::HeaderName::from_static("x-forwarded-proto")) == Some("https");
    let scheme = if is_tls { "wss" } else { "ws" };
    format!(
        "{scheme}://{}{PATH}",
        text(header::HOST).unwrap_or_default()
    )
}

//! The routes by which a tenant's administrators register webhooks.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use hearback_domain::identity::caller::{Caller, Forbidden, Scope};
use hearback_domain::identity::identifier::{ProjectId, WebhookName};
use hearback_domain::learning::publication::{Action, Subject};
use hearback_domain::views::feed::EventType;
use hearback_domain::views::webhook::{
    MAX_WEBHOOKS, PauseReason, Readiness, Webhook, WebhookRequest,
};
use hearback_lambda::body::Body;
use hearback_lambda::caller::VerifiedCaller;
use hearback_lambda::params::{OfWebhook, PathId};
use hearback_lambda::problem::ProblemDocument;
use hearback_lambda::rejections::{BodyRejections, ForbiddenRejection, Rejections};
use hearback_lambda::routes::Routes;
use hearback_lambda::{Problem, routes};
use serde::Serialize;
use utoipa::ToSchema;

use super::registry::{RegisterError, WebhookRegistry};

/// Bytes of a request.
const LIMIT: usize = 64 * 1024;

/// The routes.
pub fn routes() -> Routes<WebhookRegistry> {
    routes!(WebhookRegistry => list_webhooks, put_webhook, delete_webhook, rotate_webhook_secret, test_webhook)
}

/// The status of a webhook.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum WebhookStatus {
    /// Its last calls succeeded, or it was not called yet.
    Active,
    /// Calls fail since `failingSince`. Its messages are sent again for a day.
    Failing,
    /// It failed for a day, or the target answered 410. Nothing is sent until it is put again.
    Paused,
}

/// A webhook.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookDocument {
    /// Its name, unique in the tenant.
    name: String,
    /// The target.
    url: String,
    /// Subjects of the messages; empty for all.
    subjects: Vec<Subject>,
    /// `eventType`s of the messages; empty for all.
    event_types: Vec<EventType>,
    /// Outcomes of processed feedback; empty for all.
    outcomes: Vec<Action>,
    /// Projects; empty for all of `tokenProjects`.
    projects: Vec<String>,
    /// The projects of the token that put the webhook: it receives no message of another project. Left out if an
    /// operator has put it.
    #[serde(skip_serializing_if = "Option::is_none")]
    token_projects: Option<Vec<String>>,
    /// When it was made.
    created_at: DateTime<Utc>,
    /// The status.
    status: WebhookStatus,
    /// Since when no call has succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    failing_since: Option<DateTime<Utc>>,
    /// Why the last call failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_failure: Option<String>,
    /// When it was paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    paused_at: Option<DateTime<Utc>>,
    /// Why it is paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pause_reason: Option<PauseReason>,
    /// The secret that signs its calls. Only where it is new: it is not shown again.
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
}

/// The webhooks of a tenant.
#[derive(Debug, Serialize, ToSchema)]
struct WebhookList {
    /// By name, 20 at most.
    webhooks: Vec<WebhookDocument>,
}

/// A new secret.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct WebhookSecretDocument {
    /// The secret. It is not shown again.
    secret: String,
    /// Until when the secret before signs, too.
    previous_expires_at: DateTime<Utc>,
}

/// The outcome of a test.
#[derive(Debug, Serialize, ToSchema)]
struct WebhookTest {
    /// Whether the target has accepted the message.
    delivered: bool,
    /// The status with which it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    /// Why it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl WebhookDocument {
    /// What is told about a webhook at this time.
    #[must_use]
    pub fn of(webhook: Webhook, now: DateTime<Utc>, with_secret: bool) -> Self {
        let texts = |projects: Vec<ProjectId>| projects.into_iter().map(String::from).collect();
        let status = match (webhook.readiness(now), &webhook.failing) {
            (Readiness::Paused, _) => WebhookStatus::Paused,
            (_, Some(_)) => WebhookStatus::Failing,
            (_, None) => WebhookStatus::Active,
        };
        let failing = webhook.failing.as_ref();
        let paused = failing.and_then(|failing| failing.paused);
        Self {
            status,
            failing_since: failing.map(|failing| failing.since),
            last_failure: failing.map(|failing| failing.last.clone()),
            paused_at: paused.map(|(at, _)| at),
            pause_reason: paused.map(|(_, reason)| reason),
            secret: with_secret.then(|| webhook.secret.as_str().to_owned()),
            name: webhook.name.into(),
            url: webhook.url,
            subjects: webhook.filter.subjects,
            event_types: webhook.filter.event_types,
            outcomes: webhook.filter.outcomes,
            projects: texts(webhook.filter.projects),
            token_projects: webhook.filter.token_projects.map(texts),
            created_at: webhook.created_at,
        }
    }
}

impl From<RegisterError> for Problem {
    fn from(error: RegisterError) -> Self {
        match error {
            RegisterError::BadUrl(detail) => {
                Self::invalid_member("/url", detail.trim_start_matches("the URL "))
            }
            RegisterError::TooMany => Self::new(StatusCode::CONFLICT, "too_many_webhooks")
                .detail(format!("A tenant may have {MAX_WEBHOOKS} webhooks.")),
            RegisterError::NotFound => Self::not_found(),
            RegisterError::Storage(error) => error.into(),
        }
    }
}

fn administrator(caller: Caller) -> Result<Caller, Problem> {
    caller.require(Scope::Admin)?;
    Ok(caller)
}

/// List the webhooks
///
/// All webhooks of the tenant, each with its status. Needs `feedback:admin`, like every route of webhooks.
#[utoipa::path(
    get,
    path = "/v1/webhooks",
    tag = "webhooks",
    responses(
        (status = 200, description = "The webhooks", body = WebhookList),
        Rejections,
        ForbiddenRejection,
    ),
    security(("bearer" = []))
)]
async fn list_webhooks(
    State(registry): State<WebhookRegistry>,
    VerifiedCaller(caller): VerifiedCaller,
) -> Result<Json<WebhookList>, Problem> {
    let caller = administrator(caller)?;
    let webhooks = registry.list(&caller.tenant).await?.into_iter();
    let now = registry.now();
    let webhooks = webhooks.map(|webhook| WebhookDocument::of(webhook, now, false));
    Ok(Json(WebhookList {
        webhooks: webhooks.collect(),
    }))
}

/// Put a webhook
///
/// Makes a webhook, which receives what is published from now on, or changes its target and its filter. A paused one is
/// called again. The response to a new one has its secret.
#[utoipa::path(
    put,
    path = "/v1/webhooks/{name}",
    tag = "webhooks",
    params(OfWebhook),
    request_body = WebhookRequest,
    responses(
        (status = 201, description = "The new webhook, with its secret", body = WebhookDocument),
        (status = 200, description = "The changed webhook", body = WebhookDocument),
        (status = 409, description = "The tenant has 20 webhooks already", body = ProblemDocument),
        BodyRejections,
        ForbiddenRejection,
    ),
    security(("bearer" = []))
)]
async fn put_webhook(
    State(registry): State<WebhookRegistry>,
    VerifiedCaller(caller): VerifiedCaller,
    PathId(name): PathId<WebhookName>,
    Body(request): Body<WebhookRequest, LIMIT>,
) -> Result<Response, Problem> {
    let caller = administrator(caller)?;
    if let Some(projects) = &request.projects
        && !projects.iter().all(|project| caller.holds(project))
    {
        return Err(Forbidden::AnotherProject.into());
    }
    let put = registry.put(&caller.tenant, &name, &request, Some(caller.projects));
    let (webhook, is_new) = put.await?;
    let status = if is_new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    let document = WebhookDocument::of(webhook, registry.now(), is_new);
    Ok((status, Json(document)).into_response())
}

/// Remove a webhook
///
/// Messages that wait for it are not sent any more.
#[utoipa::path(
    delete,
    path = "/v1/webhooks/{name}",
    tag = "webhooks",
    params(OfWebhook),
    responses(
        (status = 204, description = "The webhook is removed"),
        (status = 404, description = "There is no such webhook", body = ProblemDocument),
        Rejections,
        ForbiddenRejection,
    ),
    security(("bearer" = []))
)]
async fn delete_webhook(
    State(registry): State<WebhookRegistry>,
    VerifiedCaller(caller): VerifiedCaller,
    PathId(name): PathId<WebhookName>,
) -> Result<StatusCode, Problem> {
    let caller = administrator(caller)?;
    registry.remove(&caller.tenant, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Renew a secret
///
/// Calls are signed with the new secret, and for a day also with the one before.
#[utoipa::path(
    post,
    path = "/v1/webhooks/{name}/secret",
    tag = "webhooks",
    params(OfWebhook),
    responses(
        (status = 200, description = "The new secret", body = WebhookSecretDocument),
        (status = 404, description = "There is no such webhook", body = ProblemDocument),
        Rejections,
        ForbiddenRejection,
    ),
    security(("bearer" = []))
)]
async fn rotate_webhook_secret(
    State(registry): State<WebhookRegistry>,
    VerifiedCaller(caller): VerifiedCaller,
    PathId(name): PathId<WebhookName>,
) -> Result<Json<WebhookSecretDocument>, Problem> {
    let caller = administrator(caller)?;
    let webhook = registry.rotate(&caller.tenant, &name).await?;
    let previous = webhook.previous_secrets.into_iter().next();
    Ok(Json(WebhookSecretDocument {
        secret: webhook.secret.as_str().to_owned(),
        previous_expires_at: previous.map_or_else(|| registry.now(), |(_, until)| until),
    }))
}

/// Test a webhook
///
/// Sends a signed message with the `eventType` `webhook.test` now, and tells what the target answered.
#[utoipa::path(
    post,
    path = "/v1/webhooks/{name}/test",
    tag = "webhooks",
    params(OfWebhook),
    responses(
        (status = 200, description = "The outcome", body = WebhookTest),
        (status = 404, description = "There is no such webhook", body = ProblemDocument),
        Rejections,
        ForbiddenRejection,
    ),
    security(("bearer" = []))
)]
async fn test_webhook(
    State(registry): State<WebhookRegistry>,
    VerifiedCaller(caller): VerifiedCaller,
    PathId(name): PathId<WebhookName>,
) -> Result<Json<WebhookTest>, Problem> {
    let caller = administrator(caller)?;
    let tested = registry.test(&caller.tenant, &name).await?;
    Ok(Json(WebhookTest {
        delivered: tested.accepted.is_some(),
        status: tested.accepted,
        reason: tested.failure,
    }))
}

//! Calls the functions' routes in this process as API Gateway does.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, StatusCode};
use hearback_lambda::http::service;
use hearback_storage::Store;
use hearback_storage::events::StoredEvent;
use lambda_http::request::RequestContext;
use serde_json::{Value, json};

use crate::engine::Engine;

/// All functions on an engine.
pub fn functions_of(engine: &Engine) -> Router {
    service(hearback_local::gateway::functions(
        engine.with_blobs(engine.store.clone()),
        engine.erasures(),
    ))
}

/// The stored event of the tenant `acme` with this id.
pub async fn stored_event(store: &Store, id: &Value) -> Option<StoredEvent> {
    let id = id.as_str().unwrap().parse().unwrap();
    let tenant = "acme".try_into().unwrap();
    let now = chrono::Utc::now();
    store.event(&tenant, id, now).await.unwrap()
}

/// The caller of a request.
#[derive(Debug, Clone, Copy)]
pub struct Caller<'a> {
    /// The user.
    pub user: &'a str,
    /// The user's tenant.
    pub tenant: &'a str,
    /// The only project.
    pub project: &'a str,
    /// The scopes.
    pub scope: &'a str,
}

/// Calls a route as ada of the tenant `acme`, with one project and scopes.
pub async fn call(
    functions: &Router,
    (project, scope): (&str, &str),
    request: (Method, &str),
    body: &Value,
) -> (StatusCode, Value) {
    let caller = Caller {
        user: "ada",
        tenant: "acme",
        project,
        scope,
    };
    call_as(functions, caller, request, body).await
}

/// Calls a route.
pub async fn call_as(
    functions: &Router,
    caller: Caller<'_>,
    request: (Method, &str),
    body: &Value,
) -> (StatusCode, Value) {
    let claims = json!({
        "sub": caller.user,
        "tenant": caller.tenant,
        "projects": format!("[{}]", caller.project),
        "scope": caller.scope,
    });
    call_with(functions, &claims, request, body).await
}

/// Calls a route with claims as API Gateway passes them on: each is a string.
pub async fn call_with(
    functions: &Router,
    claims: &Value,
    (method, path): (Method, &str),
    body: &Value,
) -> (StatusCode, Value) {
    let context = json!({"authorizer": {"jwt": {"claims": claims}}, "http": {"method": "POST"}});
    let context = RequestContext::ApiGatewayV2(serde_json::from_value(context).unwrap());
    let request = Request::builder()
        .method(method)
        .uri(path)
        .extension(context)
        .body(Body::from(body.to_string()))
        .unwrap();
    let response = tower::ServiceExt::oneshot(functions.clone(), request).await;
    let response = response.unwrap();
    let status = response.status();
    let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (status, serde_json::from_slice(&bytes).unwrap_or_default())
}

//! The functions' routes, called in this process as API Gateway calls them.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, StatusCode};
use lambda_http::request::RequestContext;
use serde_json::{Value, json};

/// Calls a route as ada of the tenant `acme`, with one project and scopes.
pub async fn call(
    functions: &Router,
    (project, scope): (&str, &str),
    (method, path): (Method, &str),
    body: &Value,
) -> (StatusCode, Value) {
    let claims = json!({
        "sub": "ada", "tenant": "acme", "projects": format!("[{project}]"), "scope": scope
    });
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

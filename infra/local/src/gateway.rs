//! What API Gateway does: checks the token, hands its claims to the function's own router, and
//! answers nothing else. Besides, `/health`, `/openapi.json`, `/docs` and `/demo`, without a token.

use std::sync::Arc;

use anyhow::Result;
use axum::extract::{Request, State};
use axum::http::header;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use hearback_batch::Intake;
use hearback_erasure::{Erasures, Requests};
use hearback_lambda::caller::Unauthorized;
use hearback_turns::Registry;
use lambda_http::request::RequestContext;
use serde_json::json;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{License, OpenApi};
use utoipa_swagger_ui::{Config, SwaggerUi};

use crate::demo;
use crate::load::Load;
use crate::token::{Claims, Tokens};

/// Every route of every function.
pub fn functions(registry: impl Into<Registry>, erasures: Erasures) -> Router {
    let registry = registry.into();
    let app = registry.app.clone();
    let requests = Requests::new(app.app.clone(), erasures);
    hearback_submit::routes()
        .router(app.app.clone())
        .merge(hearback_batch::routes().router(Intake::from(app.app.clone())))
        .merge(hearback_preferences::routes().router(app.app.clone()))
        .merge(hearback_erasure::routes().router(requests))
        .merge(hearback_turns::routes().router(registry))
        .merge(hearback_retrieval::routes().router(app))
}

/// The description of the API.
#[must_use]
pub fn openapi() -> OpenApi {
    let mut document = OpenApi::default();
    document.merge(hearback_submit::routes().description());
    document.merge(hearback_batch::routes().description());
    document.merge(hearback_retrieval::routes().description());
    document.merge(hearback_turns::routes().description());
    document.merge(hearback_preferences::routes().description());
    document.merge(hearback_erasure::routes().description());
    "Hearback".clone_into(&mut document.info.title);
    env!("CARGO_PKG_VERSION").clone_into(&mut document.info.version);
    document.info.contact = None;
    document.info.license = Some(License::new("Apache-2.0"));
    document.info.description =
        Some("Hears what users make of an AI's answers and turns it into learning.".to_owned());
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .bearer_format("JWT")
        .build();
    document
        .components
        .get_or_insert_default()
        .add_security_scheme("bearer", SecurityScheme::Http(bearer));
    document
}

/// The gateway of these functions.
pub fn router(functions: Router, tokens: Tokens, load: Load) -> Router {
    let functions = functions
        .route_layer(from_fn_with_state(Arc::new(tokens), authorize))
        .route_layer(from_fn_with_state(load, count));
    hearback_lambda::http::service(
        functions
            .route("/health", get(async || Json(json!({"status": "ok"}))))
            .merge(demo::routes())
            .merge(
                SwaggerUi::new("/docs")
                    .url("/openapi.json", openapi())
                    // The page would have an outside host check the description.
                    .config(Config::default().validator_url("none")),
            ),
    )
}

async fn count(State(load): State<Load>, request: Request, next: Next) -> Response {
    let _under_way = load.begin();
    next.run(request).await
}

async fn authorize(
    State(tokens): State<Arc<Tokens>>,
    mut request: Request,
    next: Next,
) -> Response {
    let claims = request
        .headers()
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .and_then(|(_, token)| tokens.check(token.trim()));
    let Some(context) = claims.and_then(|claims| context(&claims).ok()) else {
        return Unauthorized.into_response();
    };
    request.extensions_mut().insert(context);
    next.run(request).await
}

/// The claims as an HTTP API hands them to a function: every one as text, a list as `[a b]`, or
/// as JSON where that could not be told apart.
fn context(claims: &Claims) -> Result<RequestContext> {
    let projects = if claims.projects.iter().any(|project| project.contains(' ')) {
        serde_json::to_string(&claims.projects)?
    } else {
        format!("[{}]", claims.projects.join(" "))
    };
    let context = json!({
        "authorizer": {"jwt": {"claims": {
            "sub": claims.sub,
            "tenant": claims.tenant,
            "projects": projects,
            "scope": claims.scope,
        }}},
        "http": {"method": "GET"},
    });
    Ok(RequestContext::ApiGatewayV2(serde_json::from_value(
        context,
    )?))
}

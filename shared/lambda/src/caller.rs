//! The caller of a request, from the claims that API Gateway's JWT authorizer verified.
//!
//! An HTTP API hands every claim on as text: a list comes as `[a b]`. Project ids with spaces are
//! told apart if the claim is itself a JSON array in a string.

use std::collections::HashMap;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hearback_domain::caller::Caller as DomainCaller;
use lambda_http::request::RequestContext;

use crate::Problem;

/// Whoever calls, with a valid token.
#[derive(Debug, Clone)]
pub struct Caller(pub DomainCaller);

/// There is no valid token: 401.
#[derive(Debug, Clone, Copy)]
pub struct Unauthorized;

impl IntoResponse for Unauthorized {
    fn into_response(self) -> Response {
        let mut response = Problem::new(StatusCode::UNAUTHORIZED, "unauthorized")
            .detail("A valid bearer token is needed.")
            .into_response();
        response
            .headers_mut()
            .insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        response
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Unauthorized;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Unauthorized> {
        let Some(RequestContext::ApiGatewayV2(context)) = parts.extensions.get() else {
            return Err(Unauthorized);
        };
        let authorizer = context.authorizer.as_ref().ok_or(Unauthorized)?;
        let jwt = authorizer.jwt.as_ref().ok_or(Unauthorized)?;
        from_claims(&jwt.claims).map(Self).ok_or(Unauthorized)
    }
}

/// Reads the claims; a token without a user or a tenant is nobody's.
fn from_claims(claims: &HashMap<String, String>) -> Option<DomainCaller> {
    let claim = |name: &str| claims.get(name).map(String::as_str);
    Some(DomainCaller {
        user: claim("sub")?.try_into().ok()?,
        tenant: claim("tenant")?.try_into().ok()?,
        projects: list(claim("projects").unwrap_or_default())
            .into_iter()
            .map(TryInto::try_into)
            .collect::<Result<_, _>>()
            .ok()?,
        scopes: claim("scope")
            .unwrap_or_default()
            .split_whitespace()
            .map(ToOwned::to_owned)
            .collect(),
    })
}

fn list(claim: &str) -> Vec<String> {
    serde_json::from_str(claim).unwrap_or_else(|_| {
        claim
            .trim_start_matches('[')
            .trim_end_matches(']')
            .split_whitespace()
            .map(ToOwned::to_owned)
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_claim_is_read_in_both_of_its_forms() {
        assert_eq!(list("[support billing]"), ["support", "billing"]);
        assert_eq!(list(r#"["my project", "b"]"#), ["my project", "b"]);
        assert_eq!(list(""), [""; 0]);
    }
}

//! The caller of a request, from the claims that API Gateway's JWT authorizer verified.

use std::convert::Infallible;
use std::time::Duration;

use aws_lambda_events::apigw::ApiGatewayRequestAuthorizerJwtDescription;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, TimeDelta, Utc};
use hearback_domain::identity::caller::Caller;
use hearback_domain::identity::claims::{ProjectsClaim, caller};
use lambda_http::request::RequestContext;

use crate::Problem;
use crate::settings::{BadSetting, setting};

/// A caller with a valid token.
#[derive(Debug, Clone)]
pub struct VerifiedCaller(pub Caller);

/// 401: the request has no valid token.
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

impl<S: Sync> FromRequestParts<S> for VerifiedCaller {
    type Rejection = Unauthorized;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Unauthorized> {
        let jwt = jwt(parts).ok_or(Unauthorized)?;
        let format = parts.extensions.get().copied().unwrap_or_default();
        caller(&jwt.claims, format).map(Self).ok_or(Unauthorized)
    }
}

/// When the token of a request expires, if its claims say so.
#[derive(Debug, Clone, Copy)]
pub struct TokenEnd(pub Option<DateTime<Utc>>);

impl<S: Sync> FromRequestParts<S> for TokenEnd {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let end = jwt(parts).and_then(|jwt| jwt.claims.get("exp"));
        Ok(Self(end.map(|end| numeric_date(end))))
    }
}

/// A time in seconds since 1970, which may have a fraction or an exponent. A value that cannot be parsed counts as already
/// expired.
fn numeric_date(text: &str) -> DateTime<Utc> {
    let seconds = text.parse().unwrap_or_default();
    let since_epoch = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    let end = TimeDelta::from_std(since_epoch).ok();
    let end = end.and_then(|end| DateTime::UNIX_EPOCH.checked_add_signed(end));
    end.unwrap_or(DateTime::UNIX_EPOCH)
}

/// The verified token of a request.
fn jwt(parts: &Parts) -> Option<&ApiGatewayRequestAuthorizerJwtDescription> {
    let RequestContext::ApiGatewayV2(context) = parts.extensions.get()? else {
        return None;
    };
    context.authorizer.as_ref()?.jwt.as_ref()
}

/// The setting for the format of the claim `projects`: `list`, `json` or `name`.
pub const PROJECTS_CLAIM: &str = "HEARBACK_PROJECTS_CLAIM";

/// Reads [`PROJECTS_CLAIM`]; the default is a list.
pub fn projects_claim() -> Result<ProjectsClaim, BadSetting> {
    match setting(PROJECTS_CLAIM).as_deref() {
        Err(_) | Ok("" | "list") => Ok(ProjectsClaim::List),
        Ok("json") => Ok(ProjectsClaim::Json),
        Ok("name") => Ok(ProjectsClaim::Name),
        Ok(_) => Err(BadSetting::Unusable(
            PROJECTS_CLAIM,
            "it is not list, json or name".to_owned(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_token_may_have_a_fraction_or_an_exponent() {
        for text in ["1587749276", "1587749276.5", "1.587749276e+09"] {
            assert_eq!(numeric_date(text).timestamp(), 1_587_749_276, "{text}");
        }
        for text in ["", "never", "-1", "NaN", "inf", "1e300"] {
            assert_eq!(numeric_date(text), DateTime::UNIX_EPOCH, "{text}");
        }
    }
}

//! Authentication of the engines' callers: programs on this machine that sign with the folder's key pair.
//!
//! Every page in a browser on this machine can send requests to the engines' ports. So all requests from pages are
//! rejected, and no response has a CORS header that would let a page read it. Requests that are not signed with the
//! folder's key pair are rejected too.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use chrono::Utc;

use super::rejection::EngineRejection;
use super::sigv4::Verifier;
use crate::hosts::Hosts;

/// The largest body, in bytes, that is read to check its signature: the limit of both engines.
const MAX_BODY: usize = 16 * 1_048_576;

const FROM_A_PAGE: EngineRejection = EngineRejection {
    code: "AccessDeniedException",
    message: "A page in a browser must not call this engine: the request has an Origin header.",
};
const UNKNOWN_HOST: EngineRejection = EngineRejection {
    code: "AccessDeniedException",
    message: "This engine serves only loopback names such as 127.0.0.1: the request has another Host header.",
};
const TOO_LARGE: EngineRejection = EngineRejection {
    code: "RequestEntityTooLargeException",
    message: "The body cannot be read, or is larger than 16 MiB.",
};

/// Rejects requests from pages: browsers send the page's origin in `Origin`, and the host name that it used in `Host`.
pub(super) fn check_origin(uri: &Uri, headers: &HeaderMap) -> Result<(), EngineRejection> {
    if headers.contains_key(header::ORIGIN) {
        return Err(FROM_A_PAGE);
    }
    if !Hosts::default().includes(uri, headers) {
        return Err(UNKNOWN_HOST);
    }
    Ok(())
}

/// Middleware that rejects requests without a valid signature.
pub(super) async fn require_signature(
    State(verifier): State<Arc<Verifier>>,
    request: Request,
    next: Next,
) -> Response {
    match verified(&verifier, request).await {
        Ok(request) => next.run(request).await,
        Err(rejection) => rejection.into_response(),
    }
}

async fn verified(verifier: &Verifier, request: Request) -> Result<Request, EngineRejection> {
    let (head, body) = request.into_parts();
    check_origin(&head.uri, &head.headers)?;
    // The body is read only if the sender claims to have the key pair.
    let claim = verifier.claim(&head.headers, Utc::now())?;
    let body = to_bytes(body, MAX_BODY).await.map_err(|_| TOO_LARGE)?;
    verifier.verify(&claim, &head, &body)?;
    Ok(Request::from_parts(head, Body::from(body)))
}

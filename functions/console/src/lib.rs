//! The console, at `/console`: a page, a script and a style sheet made of the files of `web/`, which call the API from the
//! browser. Loading them needs no token; their calls do.
//!
//! A view is an address below `/console`, and all of them load the same page. Its files have addresses with a version,
//! which changes with their content, so that browsers keep them.

mod sign_in;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
    REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

pub use sign_in::SignIn;

const PAGE: &str = include_str!(concat!(env!("OUT_DIR"), "/index.html"));

/// A file that the page loads.
struct File {
    name: &'static str,
    media_type: &'static str,
    content: &'static [u8],
    /// The content with gzip.
    compressed: &'static [u8],
}

include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// The page, and its content security policy.
struct Page {
    html: String,
    policy: String,
}

/// The routes of the page and its files.
pub fn routes(sign_in: &SignIn) -> Router {
    let page_of = Arc::new(Page {
        html: sign_in.described(PAGE),
        policy: sign_in.policy(),
    });
    Router::new()
        .route("/console", get(page))
        .route("/console/", get(page))
        .route("/console/{view}", get(page))
        .route("/console/assets/{version}/{name}", get(asset))
        .with_state(page_of)
}

async fn page(State(page): State<Arc<Page>>) -> Response {
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CONTENT_SECURITY_POLICY, &page.policy),
        (CACHE_CONTROL, "no-cache"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
    ];
    (headers, page.html.clone()).into_response()
}
async fn asset(Path((version, name)): Path<(String, String)>, request: HeaderMap) -> Response {
    let file = FILES.iter().find(|file| file.name == name);
    // Another version has other files under the same names, which do not fit together with these.
    let Some(file) = file.filter(|_| version == VERSION) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let headers = [
        (CONTENT_TYPE, file.media_type),
        (CACHE_CONTROL, "public, max-age=31536000, immutable"),
        (VARY, "accept-encoding"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    let accepted = request
        .get(ACCEPT_ENCODING)
        .and_then(|value| value.to_str().ok());
    if accepted.is_some_and(|encodings| encodings.contains("gzip")) {
        return (headers, [(CONTENT_ENCODING, "gzip")], file.compressed).into_response();
    }
    (headers, file.content).into_response()
}

//! The demo page of the browser client, at `/demo`. Loading the page needs no token; its API calls do.

use axum::Router;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::routing::get;

/// The only project that the page writes to, so that a demo does not change real projects. `clients/web/demo/demo.js`
/// has the same constant.
pub(crate) const PROJECT: &str = "hearback-demo";

/// As strict as possible, to show that the client works under such a policy.
const POLICY: &str = "default-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'; object-src 'none'; require-trusted-types-for 'script'";

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const ICON: &str = "image/svg+xml";

const PAGE: &str = include_str!("../../../clients/web/demo/index.html");

macro_rules! client {
    ($($file:literal),+ $(,)?) => {
        &[$((concat!("/demo/", $file), include_str!(concat!("../../../clients/web/", $file)))),+]
    };
}

/// The client's files, with paths below `/demo` as below `clients/web`.
const CLIENT: &[(&str, &str)] = client![
    "hearback-feedback.js",
    "hearback-live.js",
    "src/client.js",
    "src/configuration.js",
    "src/editor.js",
    "src/element.js",
    "src/message.js",
    "src/parts.js",
    "src/reason-row.js",
    "src/reasons.js",
    "src/store.js",
    "src/style.js",
];

/// The files of the page: path, media type, content.
const FILES: [(&str, &str, &str); 5] = [
    ("/demo", HTML, PAGE),
    ("/demo/", HTML, PAGE),
    (
        "/demo/demo.js",
        SCRIPT,
        include_str!("../../../clients/web/demo/demo.js"),
    ),
    (
        "/demo/demo.css",
        STYLE,
        include_str!("../../../clients/web/demo/demo.css"),
    ),
    (
        "/demo/icon.svg",
        ICON,
        include_str!("../../../clients/web/demo/icon.svg"),
    ),
];

/// The routes of the page's files.
pub(crate) fn routes() -> Router {
    let client = CLIENT.iter().map(|(path, script)| (*path, SCRIPT, *script));
    FILES
        .into_iter()
        .chain(client)
        .fold(Router::new(), |router, (path, media_type, content)| {
            let headers = [
                (CONTENT_TYPE, media_type),
                (CONTENT_SECURITY_POLICY, POLICY),
                // Another version of the bundle has other files under the same names.
                (CACHE_CONTROL, "no-cache"),
            ];
            router.route(path, get(async move || (headers, content)))
        })
}

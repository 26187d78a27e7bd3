//! The common parts of the functions: callers, errors and AWS clients.
//!
//! It knows HTTP and Lambda, but no rules, which are in the domain crate. A function's `main`
//! passes its routes to [`serve`].
//!
//! Of our crates it imports `domain`, `scrub`, `storage` and `wire`.

pub mod accept;
pub mod anonymous;
pub mod app;
pub mod aws;
pub mod body;
pub mod caller;
pub mod clock;
pub mod dead_letters;
pub mod embedder;
pub mod event_path;
pub mod events;
pub mod http;
pub mod params;
pub mod problem;
pub mod queue;
pub mod rejections;
pub mod routes;
pub mod settings;
pub mod telemetry;
pub mod visibility;

pub use app::{App, FromEnv, WithBlobs};
pub use problem::Problem;
pub use settings::{BadSetting, MissingSetting};

use axum::{Extension, Router};
use lambda_runtime::Error;
use routes::Routes;
use tower::util::MapRequest;

/// Runs a function of HTTP routes on Lambda until it is shut down.
pub async fn serve<S: FromEnv>(routes: Routes<S>) -> Result<(), Error> {
    telemetry::init();
    let app = S::from_env()?;
    serve_router(routes.router(app)).await
}

/// The same for a router.
pub async fn serve_router(router: Router) -> Result<(), Error> {
    let router = router.layer(Extension(caller::projects_claim()?));
    let service = http::service(router);
    lambda_http::run(MapRequest::new(service, event_path::with_encoded_uri)).await
}

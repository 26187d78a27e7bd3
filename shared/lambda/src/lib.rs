//! What the functions have in common: who calls, what an error looks like, how AWS is reached.
//!
//! It knows HTTP and Lambda, and no rule: those are in the domain crate. A function's `main`
//! hands its routes to [`serve`] and is done.

pub mod accept;
pub mod app;
pub mod aws;
pub mod body;
pub mod caller;
pub mod clock;
pub mod dead_letters;
pub mod embedder;
pub mod event_path;
pub mod http;
pub mod params;
pub mod problem;
pub mod queue;
pub mod routes;
pub mod telemetry;

pub use app::{App, BadSetting, FromEnv, MissingSetting, WithBlobs};
pub use problem::Problem;

use lambda_runtime::Error;
use routes::Routes;
use tower::util::MapRequest;

/// Runs a function of HTTP routes on Lambda until it is shut down.
pub async fn serve<S: FromEnv>(routes: Routes<S>) -> Result<(), Error> {
    telemetry::init();
    let app = S::from_env()?;
    let service = http::service(routes.router(app));
    lambda_http::run(MapRequest::new(service, event_path::literal)).await
}

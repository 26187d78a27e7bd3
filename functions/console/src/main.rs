//! Runs the function `console` on Lambda.

use hearback_console::SignIn;

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), lambda_runtime::Error> {
    hearback_lambda::telemetry::init();
    hearback_lambda::serve_router(hearback_console::routes(&SignIn::from_env())).await
}

//! Runs the function `export` on Lambda, invoked directly.

use std::time::Duration;

use hearback_export::Exporter;
use hearback_lambda::telemetry;
use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::Value;

/// The remaining time at which an invocation stops: more than a batch of rows takes.
const MARGIN: Duration = Duration::from_mins(1);

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Error> {
    telemetry::init();
    let exporter = Exporter::from_env()?;
    let exporter = &exporter;
    lambda_runtime::run(service_fn(|event: LambdaEvent<Value>| async move {
        let until = event.context.deadline().checked_sub(MARGIN);
        let answer = exporter
            .handle(&event.payload, until.map(Into::into))
            .await?;
        Ok::<_, Error>(answer)
    }))
    .await
}

//! Runs the enrichment of the results' pipe on Lambda: stream records in, messages out.

use hearback_lambda::telemetry;
use hearback_signals::publish::Publisher;
use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::Value;

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Error> {
    telemetry::init();
    let publisher = Publisher::from_env();
    let publisher = &publisher;
    lambda_runtime::run(service_fn(|event: LambdaEvent<Vec<Value>>| async move {
        publisher
            .messages(&event.payload)
            .await
            .map_err(Error::from)
    }))
    .await
}

//! Runs the function `ingest` on Lambda, triggered by its queue.

use aws_lambda_events::sqs::SqsEvent;
use hearback_batch::Ingest;
use hearback_lambda::telemetry;
use lambda_runtime::{Error, LambdaEvent, service_fn};

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Error> {
    telemetry::init();
    let ingest = Ingest::from_env()?;
    let ingest = &ingest;
    lambda_runtime::run(service_fn(|event: LambdaEvent<SqsEvent>| async move {
        Ok::<_, Error>(ingest.handle(event.payload).await)
    }))
    .await
}

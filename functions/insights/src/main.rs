//! Runs the function `insights` on Lambda, triggered by its queue.

use aws_lambda_events::sqs::SqsEvent;
use hearback_insights::Counter;
use hearback_lambda::telemetry;
use lambda_runtime::{Error, LambdaEvent, service_fn};

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Error> {
    telemetry::init();
    let counter = Counter::from_env()?;
    let counter = &counter;
    lambda_runtime::run(service_fn(|event: LambdaEvent<SqsEvent>| async move {
        Ok::<_, Error>(counter.handle(event.payload).await)
    }))
    .await
}

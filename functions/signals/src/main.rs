//! Runs the signal generator on Lambda, triggered by its queue.

use aws_lambda_events::sqs::SqsEvent;
use hearback_lambda::telemetry;
use hearback_signals::Generator;
use lambda_runtime::{Error, LambdaEvent, service_fn};

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Error> {
    telemetry::init();
    let generator = Generator::from_env()?;
    let generator = &generator;
    lambda_runtime::run(service_fn(|event: LambdaEvent<SqsEvent>| async move {
        Ok::<_, Error>(generator.handle(event.payload).await)
    }))
    .await
}

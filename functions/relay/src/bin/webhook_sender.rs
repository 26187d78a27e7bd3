//! Runs the function `webhook-sender` on Lambda, triggered by its queue.

use aws_lambda_events::sqs::SqsEvent;
use hearback_lambda::telemetry;
use hearback_relay::{Relay, Webhooks};
use lambda_runtime::{Error, LambdaEvent, service_fn};

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Error> {
    telemetry::init();
    let relay = Relay::<Webhooks>::from_env()?;
    let relay = &relay;
    lambda_runtime::run(service_fn(|event: LambdaEvent<SqsEvent>| async move {
        Ok::<_, Error>(relay.handle(event.payload).await)
    }))
    .await
}

//! Runs the function `fanout` on Lambda, triggered by its queue.

use aws_lambda_events::sqs::SqsEvent;
use hearback_lambda::telemetry;
use hearback_stream::Fanout;
use lambda_runtime::{Error, LambdaEvent, service_fn};

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Error> {
    telemetry::init();
    let fanout = Fanout::from_env()?;
    let fanout = &fanout;
    lambda_runtime::run(service_fn(|event: LambdaEvent<SqsEvent>| async move {
        Ok::<_, Error>(fanout.handle(event.payload).await)
    }))
    .await
}

//! Runs the function `eraser` on Lambda, triggered by its queue.

use std::time::Duration;

use aws_lambda_events::sqs::SqsEvent;
use hearback_erasure::Eraser;
use hearback_lambda::telemetry;
use lambda_runtime::{Error, LambdaEvent, service_fn};

/// An invocation stops when this much time is left. A page or a long file takes less.
const MARGIN: Duration = Duration::from_mins(5);

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Error> {
    telemetry::init();
    let eraser = Eraser::from_env()?;
    let eraser = &eraser;
    lambda_runtime::run(service_fn(|event: LambdaEvent<SqsEvent>| async move {
        let until = event.context.deadline().checked_sub(MARGIN);
        Ok::<_, Error>(eraser.handle(event.payload, until.map(Into::into)).await)
    }))
    .await
}

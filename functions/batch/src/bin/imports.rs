//! Runs the function `imports` on Lambda, triggered by its queue.

use std::time::Duration;

use aws_lambda_events::sqs::SqsEvent;
use hearback_batch::Importer;
use hearback_lambda::telemetry;
use lambda_runtime::{Error, LambdaEvent, service_fn};

/// The remaining time at which an invocation stops: more than the events in progress take, even if the table throttles
/// each of them for more than a minute.
const MARGIN: Duration = Duration::from_mins(5);

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Error> {
    telemetry::init();
    let importer = Importer::from_env()?;
    let importer = &importer;
    lambda_runtime::run(service_fn(|event: LambdaEvent<SqsEvent>| async move {
        let until = event.context.deadline().checked_sub(MARGIN);
        Ok::<_, Error>(importer.handle(event.payload, until.map(Into::into)).await)
    }))
    .await
}

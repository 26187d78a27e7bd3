//! Hides received messages from other workers.

use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::http::HttpResponse;
use aws_sdk_sqs::error::SdkError;
use aws_sdk_sqs::operation::change_message_visibility_batch::ChangeMessageVisibilityBatchError;
use aws_sdk_sqs::types::ChangeMessageVisibilityBatchRequestEntry;

/// The maximum number of messages in one call of [`hide`].
pub const LARGEST_CALL: usize = 10;

/// Hides received messages, each named by its receipt handle, for so many seconds from now. One call. A message that SQS
/// does not hide keeps its visibility timeout.
pub async fn hide<'a>(
    client: &Client,
    queue_url: &str,
    messages: impl Iterator<Item = (&'a str, i32)>,
) -> Result<(), SdkError<ChangeMessageVisibilityBatchError, HttpResponse>> {
    let entries = messages
        .enumerate()
        .filter_map(|(index, (handle, seconds))| {
            ChangeMessageVisibilityBatchRequestEntry::builder()
                .id(index.to_string())
                .receipt_handle(handle)
                .visibility_timeout(seconds)
                .build()
                .ok()
        });
    client
        .change_message_visibility_batch()
        .queue_url(queue_url)
        .set_entries(Some(entries.collect()))
        .send()
        .await
        .map(|_| ())
}

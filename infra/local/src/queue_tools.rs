//! Queues of a running bundle or a deployed stack: `hearback tail`, and calls that other commands share.

use std::io::Write;

use anyhow::{Context, Result};
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{Message, MessageSystemAttributeName, QueueAttributeName};
use hearback_domain::learning::publication::Subject;
use tokio_util::sync::CancellationToken;

use crate::names::Names;

const BATCH: i32 = 10;

/// Prints the messages of the subjects, one a line, and deletes them. Runs until `stop`, or with `drain` until the
/// queues are empty.
pub async fn tail(
    client: &Client,
    names: &Names,
    subjects: &[Subject],
    drain: bool,
    stop: &CancellationToken,
) -> Result<()> {
    let followed = subjects.iter().map(|subject| async move {
        let queue = url(client, &names.subject(*subject)).await?;
        follow(client, &queue, drain).await
    });
    match stop
        .run_until_cancelled(futures::future::try_join_all(followed))
        .await
    {
        Some(result) => result.map(|_| ()),
        None => Ok(()),
    }
}

async fn follow(client: &Client, queue_url: &str, drain: bool) -> Result<()> {
    // What was submitted just before the command is published within about a second.
    let wait = if drain { 2 } else { 20 };
    loop {
        let messages = receive(client, queue_url, wait).await?;
        if messages.is_empty() && drain {
            return Ok(());
        }
        for message in messages {
            // Print before deleting, so that no message is lost.
            let mut out = std::io::stdout().lock();
            writeln!(out, "{}", message.body.as_deref().unwrap_or_default())?;
            out.flush()?;
            drop(out);
            delete(client, queue_url, &message).await?;
        }
    }
}

pub(crate) async fn url(client: &Client, name: &str) -> Result<String> {
    client
        .get_queue_url()
        .queue_name(name)
        .send()
        .await
        .with_context(|| format!("queue {name} does not exist; is the bundle running?"))?
        .queue_url
        .with_context(|| format!("queue {name} has no URL"))
}

/// The approximate number of messages of a queue, hidden ones included.
pub(crate) async fn count(client: &Client, queue_url: &str) -> Result<usize> {
    let names = [
        QueueAttributeName::ApproximateNumberOfMessages,
        QueueAttributeName::ApproximateNumberOfMessagesNotVisible,
    ];
    let call = client.get_queue_attributes().queue_url(queue_url);
    let response = call.set_attribute_names(Some(names.into())).send().await;
    let attributes = response.context("cannot read the queue")?.attributes;
    let counts = attributes.unwrap_or_default().into_values();
    counts.map(|count| Ok(count.parse::<usize>()?)).sum()
}

pub(crate) async fn receive(
    client: &Client,
    queue_url: &str,
    wait_seconds: i32,
) -> Result<Vec<Message>> {
    let received = client
        .receive_message()
        .queue_url(queue_url)
        .max_number_of_messages(BATCH)
        .wait_time_seconds(wait_seconds)
        .message_system_attribute_names(MessageSystemAttributeName::All)
        .message_attribute_names("All")
        .send()
        .await
        .context("cannot read the queue")?;
    Ok(received.messages.unwrap_or_default())
}

pub(crate) async fn delete(client: &Client, queue_url: &str, message: &Message) -> Result<()> {
    client
        .delete_message()
        .queue_url(queue_url)
        .receipt_handle(message.receipt_handle.as_deref().unwrap_or_default())
        .send()
        .await
        .map(|_| ())
        .context("cannot delete a message")
}

//! Commands on the queues of a running bundle, or of a deployed stack: follow the published
//! subjects, and move dead letters back.

use std::io::Write;

use anyhow::{Context, Result};
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{Message, MessageSystemAttributeName};
use hearback_domain::publication::Subject;
use hearback_lambda::dead_letters::REASON;
use tokio_util::sync::CancellationToken;

use crate::names::Names;

const BATCH: i32 = 10;

/// Prints what is published under the subjects, one message a line, as a consumer: what was
/// printed is deleted. Follows until `stop`, or with `drain` until the queues are empty.
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
    let wait = if drain { 0 } else { 20 };
    loop {
        let messages = receive(client, queue_url, wait).await?;
        if messages.is_empty() && drain {
            return Ok(());
        }
        for message in messages {
            // Printed first: a message is deleted only once it was seen.
            let mut out = std::io::stdout().lock();
            writeln!(out, "{}", message.body.as_deref().unwrap_or_default())?;
            out.flush()?;
            drop(out);
            delete(client, queue_url, &message).await?;
        }
    }
}

/// Moves the dead letters of the signal generator back to its queue, and says how many and why
/// they had died.
pub async fn redrive(client: &Client, names: &Names) -> Result<usize> {
    let from = url(client, &names.dead_letters()).await?;
    let to = url(client, &names.signals()).await?;
    let mut moved = 0;
    loop {
        let messages = receive(client, &from, 0).await?;
        if messages.is_empty() {
            return Ok(moved);
        }
        for message in messages {
            let reason = message
                .message_attributes
                .as_ref()
                .and_then(|attributes| attributes.get(REASON)?.string_value.clone())
                .unwrap_or_else(|| "the signal generator died".to_owned());
            // Sent first: between the two calls a message is in both queues, never in none.
            client
                .send_message()
                .queue_url(&to)
                .message_body(message.body.as_deref().unwrap_or_default())
                .send()
                .await
                .context("a message cannot be sent back")?;
            delete(client, &from, &message).await?;
            moved += 1;
            writeln!(
                std::io::stdout().lock(),
                "{} moved back; it had failed because: {reason}",
                message.message_id.as_deref().unwrap_or_default()
            )?;
        }
    }
}

async fn url(client: &Client, name: &str) -> Result<String> {
    client
        .get_queue_url()
        .queue_name(name)
        .send()
        .await
        .with_context(|| format!("queue {name} is not there; is the bundle running?"))?
        .queue_url
        .with_context(|| format!("queue {name} has no URL"))
}

async fn receive(client: &Client, queue_url: &str, wait_seconds: i32) -> Result<Vec<Message>> {
    let received = client
        .receive_message()
        .queue_url(queue_url)
        .max_number_of_messages(BATCH)
        .wait_time_seconds(wait_seconds)
        .message_system_attribute_names(MessageSystemAttributeName::All)
        .message_attribute_names("All")
        .send()
        .await
        .context("the queue cannot be read")?;
    Ok(received.messages.unwrap_or_default())
}

async fn delete(client: &Client, queue_url: &str, message: &Message) -> Result<()> {
    client
        .delete_message()
        .queue_url(queue_url)
        .receipt_handle(message.receipt_handle.as_deref().unwrap_or_default())
        .send()
        .await
        .map(|_| ())
        .context("a message cannot be deleted")
}

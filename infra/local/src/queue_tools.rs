//! Commands on the queues of a running bundle, or of a deployed stack: follow the published
//! subjects, and move dead letters back.

use std::collections::BTreeSet;
use std::io::Write;

use anyhow::{Context, Result};
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{Message, MessageSystemAttributeName};
use hearback_domain::publication::Subject;
use hearback_lambda::dead_letters::REASON;
use hearback_storage::Store;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::bundle::Clients;
use crate::delivery::{Outgoing, Sent, send};
use crate::names::Names;
use crate::relay::{self, Target};
use crate::stream::Stream;

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

/// What became of the dead letters of the stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Redelivered {
    /// Letters whose records are delivered, or of whose items nothing is left.
    pub moved: usize,
    /// Letters that stay, because their records still cannot be delivered.
    pub left: usize,
}

/// Delivers again what the relay or a pipe could not deliver, and says what became of each letter. A record is read
/// by the key that its letter has, as its item is now; or, if the letter has its place in the stream, from there.
pub async fn redrive_stream(
    clients: &Clients,
    names: &Names,
    store: &Store,
) -> Result<Redelivered> {
    let from = url(&clients.sqs, &names.stream_dead_letters()).await?;
    let mut done = Redelivered::default();
    let mut seen = BTreeSet::new();
    loop {
        let messages = receive(&clients.sqs, &from, 0).await?;
        // One that stays comes again, once others had time to look at it.
        let fresh: Vec<_> = (messages.into_iter())
            .filter(|message| seen.insert(message.message_id.clone()))
            .collect();
        if fresh.is_empty() {
            return Ok(done);
        }
        for message in fresh {
            let id = message.message_id.as_deref().unwrap_or_default();
            let became = match redeliver(clients, names, store, &message).await {
                Ok(records) => {
                    delete(&clients.sqs, &from, &message).await?;
                    done.moved += 1;
                    format!("done; records delivered: {records}")
                }
                Err(error) => {
                    done.left += 1;
                    format!("stays: {error:#}")
                }
            };
            writeln!(std::io::stdout().lock(), "{id} {became}")?;
        }
    }
}

/// Delivers the records of a letter, and says how many there are.
async fn redeliver(
    clients: &Clients,
    names: &Names,
    store: &Store,
    letter: &Message,
) -> Result<usize> {
    let letter = serde_json::from_str(letter.body.as_deref().unwrap_or_default());
    let letter: Value = letter.context("the letter is not JSON")?;
    let records = match letter.get("DDBStreamBatchInfo") {
        Some(batch) => {
            let text = |name: &str| {
                let text = batch.get(name).and_then(Value::as_str);
                text.with_context(|| format!("the letter has no {name}"))
            };
            let stream = Stream::new(clients.streams.clone(), text("streamArn")?.to_owned());
            let (from, to) = (text("startSequenceNumber")?, text("endSequenceNumber")?);
            stream.between(text("shardId")?, from, to).await?
        }
        None => store.record(&letter).await?.into_iter().collect(),
    };
    let mut outgoing = Vec::new();
    for record in &records {
        for (target, body) in relay::messages(record)? {
            let name = match target {
                Target::Signals => names.signals(),
                Target::Subject(subject) => names.subject(subject),
            };
            let queue = url(&clients.sqs, &name).await?;
            outgoing.push(Outgoing { queue, body });
        }
    }
    for sent in send(&clients.sqs, &outgoing).await {
        match sent {
            Sent::Done => {}
            Sent::Refused(code) | Sent::Failed(code) => {
                anyhow::bail!("a message of it was not taken: {code}")
            }
        }
    }
    Ok(records.len())
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

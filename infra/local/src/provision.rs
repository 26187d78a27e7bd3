//! Creates the resources that `template.yaml` declares, if they do not exist. Safe to repeat.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Context, Result};
use aws_sdk_s3::operation::create_bucket::CreateBucketError;
use aws_sdk_sqs::types::QueueAttributeName;
use hearback_domain::learning::publication::Subject;
use hearback_lambda::queue::{OUTLET_RECEIVES, REDRIVE_RECEIVES};
use hearback_storage::Store;

use crate::names::Names;

/// Retention of messages, as in the template: 14 days.
const RETENTION: Duration = Duration::from_hours(14 * 24);

/// Receives after which a message of a subject goes to the DLQ.
pub const SUBJECT_RECEIVES: u32 = 5;

/// The URLs of the queues.
#[derive(Debug, Clone)]
pub struct QueueUrls {
    /// The queue of the signal generator.
    pub signals: String,
    /// The signal generator's queue of imported events, which must not delay others.
    pub signals_bulk: String,
    /// Dead letters of the signal generator.
    pub dead_letters: String,
    /// The queue to which back ends send events.
    pub ingest: String,
    /// Dead letters of the ingest queue.
    pub ingest_dead_letters: String,
    /// The queue of imports.
    pub imports: String,
    /// Dead letters of imports.
    pub imports_dead_letters: String,
    /// The queue of erasures.
    pub erasures: String,
    /// Dead letters of erasures.
    pub erasures_dead_letters: String,
    /// The queue of the fan-out.
    pub fanout: String,
    /// Dead letters of the fan-out.
    pub fanout_dead_letters: String,
    /// The queue of insights.
    pub insights: String,
    /// Dead letters of insights.
    pub insights_dead_letters: String,
    /// The queue of what is published to NATS.
    pub nats: String,
    /// Dead letters of NATS.
    pub nats_dead_letters: String,
    /// The queue of what is sent to webhooks.
    pub webhooks: String,
    /// Dead letters of webhooks.
    pub webhooks_dead_letters: String,
    /// Dead letters of the table's stream.
    pub stream_dead_letters: String,
    subjects: HashMap<Subject, String>,
}

impl QueueUrls {
    /// The queue of a subject.
    pub fn subject(&self, subject: Subject) -> Result<&str> {
        let url = self.subjects.get(&subject).map(String::as_str);
        url.with_context(|| format!("no queue for {}", subject.as_str()))
    }
}

/// Creates the table.
pub async fn table(store: &Store) -> Result<()> {
    store
        .create_table()
        .await
        .context("cannot create the table")
}

/// Creates the bucket.
pub async fn bucket(client: &aws_sdk_s3::Client, names: &Names) -> Result<()> {
    match client.create_bucket().bucket(names.bucket()).send().await {
        Ok(_) => Ok(()),
        Err(error)
            if error.as_service_error().is_some_and(|error| {
                matches!(
                    error,
                    CreateBucketError::BucketAlreadyOwnedByYou(_)
                        | CreateBucketError::BucketAlreadyExists(_)
                )
            }) =>
        {
            Ok(())
        }
        Err(error) => Err(error).context("cannot create the bucket"),
    }
}

/// Creates the queues with this visibility timeout.
pub async fn queues(
    client: &aws_sdk_sqs::Client,
    names: &Names,
    visibility: Duration,
) -> Result<QueueUrls> {
    let alone = async |name: String| queue(client, &name, visibility, None).await;
    let feeding = async |name: String, dead_letters: &str, receives| {
        queue(client, &name, visibility, Some((dead_letters, receives))).await
    };
    let pair = async |name: String, dead_letters: String, receives| {
        let dead_letters = alone(dead_letters).await?;
        let url = feeding(name, &dead_letters, receives).await?;
        anyhow::Ok((url, dead_letters))
    };
    let (signals, dead_letters) =
        pair(names.signals(), names.dead_letters(), REDRIVE_RECEIVES).await?;
    let (ingest, ingest_dead_letters) = pair(
        names.ingest(),
        names.ingest_dead_letters(),
        REDRIVE_RECEIVES,
    )
    .await?;
    let (imports, imports_dead_letters) = pair(
        names.imports(),
        names.imports_dead_letters(),
        REDRIVE_RECEIVES,
    )
    .await?;
    let (erasures, erasures_dead_letters) = pair(
        names.erasures(),
        names.erasures_dead_letters(),
        REDRIVE_RECEIVES,
    )
    .await?;
    let (fanout, fanout_dead_letters) = pair(
        names.fanout(),
        names.fanout_dead_letters(),
        REDRIVE_RECEIVES,
    )
    .await?;
    let (insights, insights_dead_letters) = pair(
        names.insights(),
        names.insights_dead_letters(),
        REDRIVE_RECEIVES,
    )
    .await?;
    let (nats, nats_dead_letters) =
        pair(names.nats(), names.nats_dead_letters(), OUTLET_RECEIVES).await?;
    let (webhooks, webhooks_dead_letters) = pair(
        names.webhooks(),
        names.webhooks_dead_letters(),
        OUTLET_RECEIVES,
    )
    .await?;
    let subjects_dead_letters = alone(names.subjects_dead_letters()).await?;
    let mut subjects = HashMap::new();
    for (_, subject) in Subject::NAMES {
        let name = names.subject(*subject);
        let url = feeding(name, &subjects_dead_letters, SUBJECT_RECEIVES).await?;
        subjects.insert(*subject, url);
    }
    Ok(QueueUrls {
        signals,
        signals_bulk: feeding(names.signals_bulk(), &dead_letters, REDRIVE_RECEIVES).await?,
        dead_letters,
        ingest,
        ingest_dead_letters,
        imports,
        imports_dead_letters,
        erasures,
        erasures_dead_letters,
        fanout,
        fanout_dead_letters,
        insights,
        insights_dead_letters,
        nats,
        nats_dead_letters,
        webhooks,
        webhooks_dead_letters,
        stream_dead_letters: alone(names.stream_dead_letters()).await?,
        subjects,
    })
}

/// Creates a queue. An existing queue is not changed: it may belong to a deployed stack.
async fn queue(
    client: &aws_sdk_sqs::Client,
    name: &str,
    visibility: Duration,
    dead_letters: Option<(&str, u32)>,
) -> Result<String> {
    let known = client.get_queue_url().queue_name(name).send().await;
    if let Some(url) = known.ok().and_then(|found| found.queue_url) {
        return Ok(url);
    }
    let mut attributes = HashMap::from([
        (
            QueueAttributeName::VisibilityTimeout,
            visibility.as_secs().to_string(),
        ),
        (
            QueueAttributeName::MessageRetentionPeriod,
            RETENTION.as_secs().to_string(),
        ),
    ]);
    if let Some((dead_letters, receives)) = dead_letters {
        let policy = serde_json::json!({
            "deadLetterTargetArn": arn(client, dead_letters).await?,
            "maxReceiveCount": receives,
        });
        attributes.insert(QueueAttributeName::RedrivePolicy, policy.to_string());
    }
    client
        .create_queue()
        .queue_name(name)
        .set_attributes(Some(attributes))
        .send()
        .await
        .with_context(|| format!("cannot create queue {name}"))?
        .queue_url
        .with_context(|| format!("queue {name} has no URL"))
}

async fn arn(client: &aws_sdk_sqs::Client, url: &str) -> Result<String> {
    client
        .get_queue_attributes()
        .queue_url(url)
        .attribute_names(QueueAttributeName::QueueArn)
        .send()
        .await
        .context("cannot read the ARN of a queue")?
        .attributes
        .and_then(|mut attributes| attributes.remove(&QueueAttributeName::QueueArn))
        .context("a queue has no ARN")
}

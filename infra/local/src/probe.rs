//! Checks whether table, queues and bucket can be written and read, when `/health` is requested, and at most every two
//! seconds.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, KeySchemaElement, KeyType,
    ScalarAttributeType,
};
use aws_sdk_sqs::types::QueueAttributeName;
use chrono::Utc;
use serde_json::{Value, json};
use tokio::sync::{Mutex, OnceCell};
use tokio::time::{Instant, timeout};

use crate::clients::Clients;
use crate::health::Health;
use crate::names::Names;

/// How long a result is valid.
const VALIDITY: Duration = Duration::from_secs(2);
const TIMEOUT: Duration = Duration::from_secs(3);
/// Key of the items that are written and read.
const KEY: &str = "probe";
/// Minimum free bytes of the disk: databases and their logs grow by several megabytes at a time.
const MIN_FREE: u64 = 16 * 1024 * 1024;
/// Retention of the probe's queue, in seconds; the minimum of SQS.
const RETENTION_SECONDS: &str = "60";

/// Checks the stores of a bundle.
#[derive(Debug, Clone)]
pub struct Probe(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    clients: Clients,
    names: Names,
    health: Health,
    /// The data folder, if the engines are embedded. Without it, checks only read.
    folder: Option<PathBuf>,
    queue: OnceCell<String>,
    last: Mutex<Option<(Instant, Vec<Value>)>>,
}

impl Probe {
    /// A probe of these clients. `folder` is the data folder of embedded engines.
    #[must_use]
    pub fn new(clients: Clients, names: Names, health: Health, folder: Option<PathBuf>) -> Self {
        Self(Arc::new(Inner {
            clients,
            names,
            health,
            folder,
            queue: OnceCell::new(),
            last: Mutex::default(),
        }))
    }

    /// Whether the bundle is ready, and the document of `/health`.
    pub async fn report(&self) -> (bool, Value) {
        // Boxed because the futures of SDK calls are large.
        let failures = Box::pin(self.check()).await;
        let document = self.0.health.document_with(failures);
        let is_ready = document.get("status").is_some_and(|status| status == "ok");
        (is_ready, document)
    }

    /// Returns the failures. Concurrent calls wait for the same result.
    async fn check(&self) -> Vec<Value> {
        let mut last = self.0.last.lock().await;
        if let Some((at, failures)) = last.as_ref()
            && at.elapsed() < VALIDITY
        {
            return failures.clone();
        }
        let inner = &self.0;
        let (table, queue, bucket) = tokio::join!(
            with_timeout(inner.table()),
            with_timeout(inner.queue()),
            with_timeout(inner.bucket()),
        );
        let results = [
            ("table", table),
            ("queue", queue),
            ("bucket", bucket),
            ("disk", inner.disk()),
        ];
        let failures = results.into_iter().filter_map(|(part, result)| {
            let reason = format!("{:#}", result.err()?);
            Some(json!({"part": part, "reason": reason}))
        });
        let failures: Vec<_> = failures.collect();
        *last = Some((Instant::now(), failures.clone()));
        failures
    }
}

async fn with_timeout(probe: impl Future<Output = Result<()>>) -> Result<()> {
    timeout(TIMEOUT, probe)
        .await
        .context("it does not respond in time")?
}

impl Inner {
    /// Reads the bundle's table, and writes to a separate one, whose stream nothing processes.
    async fn table(&self) -> Result<()> {
        let dynamodb = &self.clients.dynamodb;
        let key = |name: &str| (name.to_owned(), AttributeValue::S(KEY.to_owned()));
        let read = dynamodb
            .get_item()
            .table_name(self.names.table())
            .set_key(Some([key("PK"), key("SK")].into()));
        read.send().await.map_err(|error| failed("read", &error))?;
        if self.folder.is_none() {
            return Ok(());
        }
        let at = AttributeValue::N(Utc::now().timestamp_millis().to_string());
        let put = || {
            dynamodb
                .put_item()
                .table_name(self.names.probe())
                .set_item(Some([key("PK"), ("at".to_owned(), at.clone())].into()))
                .send()
        };
        let Err(error) = put().await else {
            return Ok(());
        };
        let is_new = error.as_service_error().is_some_and(
            aws_sdk_dynamodb::operation::put_item::PutItemError::is_resource_not_found_exception,
        );
        if !is_new {
            return Err(failed("write", &error));
        }
        self.create_table().await?;
        put().await.map_err(|error| failed("write", &error))?;
        Ok(())
    }

    async fn create_table(&self) -> Result<()> {
        let attribute = AttributeDefinition::builder()
            .attribute_name("PK")
            .attribute_type(ScalarAttributeType::S);
        let key = KeySchemaElement::builder()
            .attribute_name("PK")
            .key_type(KeyType::Hash);
        let create = self
            .clients
            .dynamodb
            .create_table()
            .table_name(self.names.probe())
            .attribute_definitions(attribute.build()?)
            .key_schema(key.build()?)
            .billing_mode(BillingMode::PayPerRequest);
        create
            .send()
            .await
            .map_err(|error| failed("write", &error))?;
        Ok(())
    }

    /// Looks up the signal generator's queue, and sends to a separate one with a short retention and no consumer.
    async fn queue(&self) -> Result<()> {
        let sqs = &self.clients.sqs;
        let url = sqs.get_queue_url().queue_name(self.names.signals());
        url.send().await.map_err(|error| failed("read", &error))?;
        if self.folder.is_none() {
            return Ok(());
        }
        let create = || async {
            let created = sqs
                .create_queue()
                .queue_name(self.names.probe())
                .attributes(
                    QueueAttributeName::MessageRetentionPeriod,
                    RETENTION_SECONDS,
                )
                .send();
            let created = created.await.map_err(|error| failed("write", &error))?;
            created.queue_url.context("the queue has no URL")
        };
        let queue = self.queue.get_or_try_init(create).await?;
        let send = sqs.send_message().queue_url(queue).message_body(KEY);
        send.send().await.map_err(|error| failed("write", &error))?;
        Ok(())
    }

    /// Looks up the bundle's bucket, and writes and reads an object in a separate one.
    async fn bucket(&self) -> Result<()> {
        let s3 = &self.clients.s3;
        let head = s3.head_bucket().bucket(self.names.bucket());
        head.send().await.map_err(|error| failed("read", &error))?;
        if self.folder.is_none() {
            return Ok(());
        }
        let bucket = self.names.probe();
        let written = Utc::now().to_rfc3339();
        let put = || {
            let body = written.clone().into_bytes().into();
            s3.put_object().bucket(&bucket).key(KEY).body(body).send()
        };
        if put().await.is_err() {
            // The bucket may exist already. The second put reports the error.
            let _ = s3.create_bucket().bucket(&bucket).send().await;
            put().await.map_err(|error| failed("write", &error))?;
        }
        let get = s3.get_object().bucket(&bucket).key(KEY).send().await;
        let body = get.map_err(|error| failed("read", &error))?.body;
        let read = body.collect().await.context("read failed")?.into_bytes();
        anyhow::ensure!(read == written, "read something else than was written");
        Ok(())
    }

    fn disk(&self) -> Result<()> {
        self.folder.as_deref().map_or(Ok(()), has_room)
    }
}

/// Whether the disk of a folder has room for what the bundle writes.
fn has_room(folder: &Path) -> Result<()> {
    let disk = rustix::fs::statvfs(folder).context("cannot read the state of the disk")?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    anyhow::ensure!(free >= MIN_FREE, "it has {} MB left", free / 1_000_000);
    Ok(())
}

/// The error code of a call; the message could quote data.
fn failed<E, R>(what: &str, error: &aws_sdk_dynamodb::error::SdkError<E, R>) -> anyhow::Error
where
    E: aws_sdk_dynamodb::error::ProvideErrorMetadata,
{
    anyhow::anyhow!("{what} failed: {}", hearback_lambda::aws::error_code(error))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_a_failure() {
        has_room(&std::env::temp_dir()).unwrap();
        // Linux reports that this one has no free block.
        let error = has_room(Path::new("/proc")).unwrap_err();
        assert_eq!(error.to_string(), "it has 0 MB left");
    }
}

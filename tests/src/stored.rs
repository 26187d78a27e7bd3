//! Everything that is stored, read without the API.

use std::collections::BTreeMap;
use std::time::Duration;

use hearback_local::clients::Clients;
use hearback_local::names::Names;

use crate::app::eventually;
use crate::queue::count;
use crate::rows::{rows, text};

/// The store counts as settled when nothing changes for this time.
const QUIET: Duration = Duration::from_millis(1_200);

/// Everything in the table and in the bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Every item, as text.
    pub items: Vec<String>,
    /// Every object, by its key.
    pub objects: BTreeMap<String, Vec<u8>>,
}

impl Stored {
    /// Reads everything, once all events are processed, nothing waits for the processor and nothing changes any more.
    pub async fn settled(clients: &Clients, names: &Names) -> Self {
        let mut queues = Vec::new();
        for name in [names.signals(), names.signals_bulk(), names.insights()] {
            let found = clients.sqs.get_queue_url().queue_name(name).send().await;
            queues.extend(found.unwrap().queue_url);
        }
        let are_empty = || async {
            let counts = queues.iter().map(|queue| count(&clients.sqs, queue));
            futures::future::join_all(counts)
                .await
                .iter()
                .all(|count| *count == 0)
        };
        eventually(|| async {
            let before = Self::read(clients, names).await;
            let rows = |kind: &str| before.with(&format!("(\"SK\", S(\"{kind}\"))")).len();
            if rows("EVENT") != rows("RESULT") || !are_empty().await {
                return None;
            }
            tokio::time::sleep(QUIET).await;
            let is_settled = are_empty().await && Self::read(clients, names).await == before;
            is_settled.then_some(before)
        })
        .await
    }

    /// Reads everything. An object that is deleted meanwhile is skipped.
    pub async fn read(clients: &Clients, names: &Names) -> Self {
        let items = rows(&clients.dynamodb, &names.table()).await;
        let mut items: Vec<_> = items.iter().map(text).collect();
        items.sort();
        let bucket = names.bucket();
        let mut objects = BTreeMap::new();
        let listed = clients.s3.list_objects_v2().bucket(&bucket).send();
        for object in listed.await.unwrap().contents() {
            let key = object.key().unwrap();
            let get = clients.s3.get_object().bucket(&bucket).key(key);
            let found = match get.send().await {
                Ok(found) => found,
                Err(error) => {
                    let gone = error.into_service_error().is_no_such_key();
                    assert!(gone, "{key} cannot be read");
                    continue;
                }
            };
            let body = found.body.collect().await.unwrap();
            objects.insert(key.to_owned(), body.to_vec());
        }
        Self { items, objects }
    }

    /// The items that contain a text, and the keys of objects that contain it in their content or key.
    #[must_use]
    pub fn with(&self, text: &str) -> Vec<&str> {
        let items = self.items.iter().filter(|item| item.contains(text));
        let objects = self.objects.iter().filter(|(key, body)| {
            let found = body.windows(text.len()).any(|part| part == text.as_bytes());
            found || key.contains(text)
        });
        let objects = objects.map(|(key, _)| key);
        items.chain(objects).map(String::as_str).collect()
    }
}

//! Every byte that is stored, seen past the API.

use std::collections::BTreeMap;
use std::time::Duration;

use hearback_local::bundle::Clients;
use hearback_local::names::Names;

use crate::app::eventually;

/// How long nothing must change.
const QUIET: Duration = Duration::from_millis(700);

/// Everything in the table and in the bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Every item, its attributes in order.
    pub items: Vec<String>,
    /// Every object, by its key.
    pub objects: BTreeMap<String, Vec<u8>>,
}

impl Stored {
    /// Reads everything, once all events are worked off and nothing changes any more: what follows from a
    /// request comes after it.
    pub async fn settled(clients: &Clients, names: &Names) -> Self {
        eventually(|| async {
            let before = Self::read(clients, names).await;
            let rows = |kind: &str| before.with(&format!("(\"SK\", S(\"{kind}\"))")).len();
            if rows("EVENT") != rows("RESULT") {
                return None;
            }
            tokio::time::sleep(QUIET).await;
            (Self::read(clients, names).await == before).then_some(before)
        })
        .await
    }

    /// Reads everything; an object that goes meanwhile is gone.
    pub async fn read(clients: &Clients, names: &Names) -> Self {
        let mut items = Vec::new();
        let mut from = None;
        loop {
            let page = clients.dynamodb.scan().table_name(names.table());
            let page = page.set_exclusive_start_key(from).send().await.unwrap();
            for item in page.items() {
                let mut attributes: Vec<_> = item.iter().map(|pair| format!("{pair:?}")).collect();
                attributes.sort();
                items.push(attributes.join("\n"));
            }
            from = page.last_evaluated_key;
            if from.is_none() {
                break;
            }
        }
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

    /// Where a text is: items, and the keys of objects that have it in them or in their key.
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

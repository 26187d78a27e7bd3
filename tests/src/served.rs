//! A bundle that runs as a process, and clients of its gateway, table and queue.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use aws_sdk_dynamodb::types::{AttributeValue, KeysAndAttributes};
use futures::stream::{self, StreamExt};
use hearback_local::engines::Access;
use hearback_local::files::TOKEN_KEY_FILE;
use hearback_local::names::Names;
use hearback_local::token::{Claims, Tokens};
use hearback_storage::table::{PK, SK};
use reqwest::{Method, RequestBuilder};
use serde_json::Value;

use crate::events::{acceptance, id};
use crate::process::Process;
use crate::queue::count;

/// Keys of one `BatchGetItem`.
const KEYS: usize = 100;
/// Concurrent calls.
const CALLS: usize = 32;

/// A partition key and a sort key.
pub type Key = (String, String);
/// An item of the table.
pub type Item = HashMap<String, AttributeValue>;

/// Clients of a bundle.
pub struct Served {
    /// The DynamoDB engine.
    pub dynamodb: aws_sdk_dynamodb::Client,
    http: reqwest::Client,
    sqs: aws_sdk_sqs::Client,
    signals: String,
    address: String,
    tokens: Tokens,
}

/// A client of the DynamoDB engine on a folder.
pub fn dynamodb(data: &Path) -> aws_sdk_dynamodb::Client {
    aws_sdk_dynamodb::Client::new(&access(data).dynamodb().config())
}

/// The endpoints and the key pair of the engines on a folder.
pub fn access(data: &Path) -> Access {
    let access = Access::of_folder(data).unwrap();
    access.expect("a bundle was started on the folder")
}

impl Served {
    /// Clients of the bundle that this process runs on this folder.
    pub fn by(process: &Process, data: &Path) -> Self {
        let access = access(data);
        let sqs = &access.endpoints.sqs;
        Self {
            dynamodb: dynamodb(data),
            http: reqwest::Client::new(),
            signals: format!("{sqs}/000000000000/{}", Names::default().signals()),
            sqs: aws_sdk_sqs::Client::new(&access.sqs().config()),
            address: process.address.clone(),
            tokens: Tokens::new(&std::fs::read(data.join(TOKEN_KEY_FILE)).unwrap()),
        }
    }

    /// A request of a user of `acme`.
    pub fn request(&self, user: &str, method: Method, path: &str) -> RequestBuilder {
        self.request_with("", user, method, path)
    }

    /// A request of a back end with the scope `feedback:on-behalf`.
    pub fn by_back_end(&self, method: Method, path: &str) -> RequestBuilder {
        self.request_with("feedback:on-behalf", "back-end", method, path)
    }

    /// A request of a user with scopes.
    pub fn request_with(
        &self,
        scope: &str,
        user: &str,
        method: Method,
        path: &str,
    ) -> RequestBuilder {
        let token = self.tokens.sign(Claims {
            sub: user.to_owned(),
            tenant: "acme".to_owned(),
            projects: vec!["order-service".to_owned()],
            scope: scope.to_owned(),
        });
        let request = self
            .http
            .request(method, format!("http://{}{path}", self.address));
        request.bearer_auth(token.unwrap())
    }

    /// Waits until everything submitted before is processed: the stream is in order, so the last event is processed
    /// and the queue is empty.
    pub async fn settled(&self) {
        let last = acceptance("last");
        let submit = self.by_back_end(Method::POST, "/v1/feedback/submit");
        let submitted = submit.json(&last).send().await.unwrap();
        assert_eq!(submitted.status(), 202);
        let path = format!("/v1/feedback/{}", id(&last));
        loop {
            let read = self.by_back_end(Method::GET, &path).send().await.unwrap();
            let processed = read.json::<Value>().await.unwrap()["status"] == "processed";
            if processed && self.queued().await == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Messages that wait for the signal generator or that it is processing.
    pub async fn queued(&self) -> usize {
        count(&self.sqs, &self.signals).await
    }
}

/// The items with these keys that exist. They are read by key, because the engine is slow to scan a million items.
pub async fn items(
    dynamodb: &aws_sdk_dynamodb::Client,
    table: &str,
    keys: impl IntoIterator<Item = Key>,
) -> Vec<Item> {
    let keys: Vec<Key> = keys.into_iter().collect();
    let pages = keys.chunks(KEYS).map(|keys| {
        let keys = keys.iter().map(|(pk, sk)| {
            let text = |text: &String| AttributeValue::S(text.clone());
            HashMap::from([(PK.to_owned(), text(pk)), (SK.to_owned(), text(sk))])
        });
        let wanted = KeysAndAttributes::builder().set_keys(Some(keys.collect()));
        let get = dynamodb.batch_get_item();
        let get = get.request_items(table, wanted.build().unwrap());
        async move {
            let found = get.send().await.unwrap();
            assert!(found.unprocessed_keys.unwrap_or_default().is_empty());
            let mut tables = found.responses.unwrap_or_default();
            tables.remove(table).unwrap_or_default()
        }
    });
    let pages: Vec<Vec<Item>> = stream::iter(pages).buffer_unordered(CALLS).collect().await;
    pages.into_iter().flatten().collect()
}

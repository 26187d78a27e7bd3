//! A bundle that runs as a process, seen from outside: its gateway, its table, its queue.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use aws_sdk_dynamodb::types::{AttributeValue, KeysAndAttributes};
use aws_sdk_sqs::types::QueueAttributeName;
use futures::stream::{self, StreamExt};
use hearback_lambda::aws::Aws;
use hearback_local::engines::Endpoints;
use hearback_local::names::Names;
use hearback_local::token::{Claims, KEY_FILE, Tokens};
use hearback_storage::table::{PK, SK};
use reqwest::{Method, RequestBuilder};
use serde_json::Value;

use crate::events::{acceptance, id};
use crate::process::Process;

/// Keys that one call reads.
const KEYS: usize = 100;
/// Calls under way at once.
const CALLS: usize = 32;

/// A partition key and a sort key.
pub type Key = (String, String);
/// An item of the table.
pub type Item = HashMap<String, AttributeValue>;

/// Clients of a bundle.
pub struct Served {
    /// Its table's engine.
    pub dynamodb: aws_sdk_dynamodb::Client,
    http: reqwest::Client,
    sqs: aws_sdk_sqs::Client,
    signals: String,
    address: String,
    tokens: Tokens,
}

/// A client of the table's engine on a folder.
pub fn dynamodb(data: &Path) -> aws_sdk_dynamodb::Client {
    aws_sdk_dynamodb::Client::new(&Aws::local(endpoints(data).dynamodb).config())
}

fn endpoints(data: &Path) -> Endpoints {
    let endpoints = std::fs::read(data.join("endpoints.json")).unwrap();
    serde_json::from_slice(&endpoints).unwrap()
}

impl Served {
    /// Clients of the bundle that this process runs on this folder.
    pub fn by(process: &Process, data: &Path) -> Self {
        let sqs = endpoints(data).sqs;
        Self {
            dynamodb: dynamodb(data),
            http: reqwest::Client::new(),
            signals: format!("{sqs}/000000000000/{}", Names::default().signals()),
            sqs: aws_sdk_sqs::Client::new(&Aws::local(sqs).config()),
            address: process.address.clone(),
            tokens: Tokens::new(&std::fs::read(data.join(KEY_FILE)).unwrap()),
        }
    }

    /// A request by a user of `acme`, not sent yet.
    pub fn request(&self, user: &str, method: Method, path: &str) -> RequestBuilder {
        self.request_with("", user, method, path)
    }

    /// A request by a back end that speaks for its users.
    pub fn by_back_end(&self, method: Method, path: &str) -> RequestBuilder {
        self.request_with("feedback:on-behalf", "back-end", method, path)
    }

    fn request_with(&self, scope: &str, user: &str, method: Method, path: &str) -> RequestBuilder {
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

    /// Waits until everything submitted before is processed: an event that is submitted last is,
    /// so the stream was carried that far, and the queue is empty.
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

    /// Messages that wait for the signal generator, or are with it.
    pub async fn queued(&self) -> u32 {
        let counts = self
            .sqs
            .get_queue_attributes()
            .queue_url(&self.signals)
            .attribute_names(QueueAttributeName::ApproximateNumberOfMessages)
            .attribute_names(QueueAttributeName::ApproximateNumberOfMessagesNotVisible)
            .send()
            .await
            .unwrap();
        let counts = counts.attributes.unwrap_or_default();
        counts
            .values()
            .map(|count| count.parse::<u32>().unwrap())
            .sum()
    }
}

/// The items of these keys, as far as they are there. They are read by their keys: a scan of a million
/// items is not what the engine is made for.
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

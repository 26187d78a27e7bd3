//! Poison records and messages: a record that cannot be sent or read becomes a dead letter with its reason, and
//! all others are delivered once.

mod messages;
mod relay;

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_sqs::types::Message;
use hearback_domain::learning::publication::Subject;
use hearback_lambda::dead_letters::DeadLetters;
use hearback_local::names::Names;
use hearback_local::redrive::{DeadLetterQueue, OutletQueue, RedriveSummary, redrive};
use hearback_local::stream::Stream;
use hearback_signals::publish::Publisher;
use hearback_tests::app::{TestApp, eventually};
use hearback_tests::engine::Engine;
use hearback_tests::events::{acceptance, id};
use hearback_tests::functions::{call, functions_of};
use hearback_tests::queue::{self, count};
use hearback_tests::turns::event_message;
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

type Item = HashMap<String, AttributeValue>;

fn text(value: impl Into<String>) -> AttributeValue {
    AttributeValue::S(value.into())
}

/// The item of an event, by its sort key.
async fn item(client: &aws_sdk_dynamodb::Client, table: &str, event: &str, sk: &str) -> Item {
    eventually(|| async {
        let found = client.get_item().table_name(table).consistent_read(true);
        let found = found.key("PK", text(format!("EVENT#acme#{event}")));
        found.key("SK", text(sk)).send().await.unwrap().item
    })
    .await
}

/// A client without timeouts, because a debug build is slow with large items.
fn without_timeouts(app: &TestApp) -> aws_sdk_dynamodb::Client {
    let config = app.bundle.access.as_ref().unwrap().dynamodb().config();
    let config = aws_sdk_dynamodb::config::Builder::from(&config);
    let config = config.timeout_config(TimeoutConfig::disabled());
    aws_sdk_dynamodb::Client::from_conf(config.build())
}

/// Waits until a queue has this many messages, hidden ones included.
async fn wait_for_messages(sqs: &aws_sdk_sqs::Client, queue: &str, wanted: usize) {
    for _ in 0..1_800 {
        if count(sqs, queue).await >= wanted {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!(
        "{} of {wanted} messages in {queue}",
        count(sqs, queue).await
    );
}

async fn put(client: &aws_sdk_dynamodb::Client, table: &str, item: Item) {
    let put = client.put_item().table_name(table).set_item(Some(item));
    put.send().await.unwrap();
}

/// A copy of an item for another event, with one attribute rewritten.
fn copy_with(item: &Item, event: &str, (name, value): (&str, &str)) -> Item {
    let mut item = item.clone();
    item.insert("PK".to_owned(), text(format!("EVENT#acme#{event}")));
    item.insert(name.to_owned(), text(value));
    item
}

/// Receives all messages of a queue, and leaves them there, hidden.
async fn receive_all(sqs: &aws_sdk_sqs::Client, queue: &str) -> Vec<Message> {
    let mut all = Vec::new();
    loop {
        let received = sqs.receive_message().queue_url(queue);
        let received = received.max_number_of_messages(10).visibility_timeout(600);
        let received = received.message_attribute_names("All").send().await;
        match received.unwrap().messages {
            Some(messages) if !messages.is_empty() => all.extend(messages),
            _ => return all,
        }
    }
}

fn attribute<'a>(message: &'a Message, name: &str) -> &'a str {
    message.message_attributes().unwrap()[name]
        .string_value()
        .unwrap()
}

#[tokio::test]
async fn a_stored_row_with_characters_that_sqs_rejects_is_processed_and_blocks_no_other() {
    let app = TestApp::start().await;
    let (ada, table) = (app.token("ada"), Names::default().table());
    let dynamodb = &app.bundle.clients.dynamodb;
    let first = acceptance("ada");
    app.submit(&ada, &first).await;
    let stored = item(dynamodb, &table, &id(&first), "EVENT").await;
    let old = Uuid::new_v4().to_string();
    let core = stored["core"].as_s().unwrap();
    let core = core.replace(&id(&first), &old);
    let core = core.replace("session-abc", "\u{FFFF}\u{FFFE}");
    let core = core.replace("\"artifactId\"", "\"was\"");
    put(dynamodb, &table, copy_with(&stored, &old, ("core", &core))).await;
    let last = acceptance("ada");
    app.submit(&ada, &last).await;
    for event in [id(&last), old] {
        assert_eq!(app.outcome(&ada, &event).await["status"], "processed");
    }
    // Their results are published, too.
    let queue = app.bundle.queues.subject(Subject::FeedbackProcessed);
    let queue = queue.unwrap().to_owned();
    let sqs = &app.bundle.clients.sqs;
    eventually(|| async { (count(sqs, &queue).await == 3).then_some(()) }).await;
    assert_eq!(count(sqs, &app.bundle.queues.stream_dead_letters).await, 0);
}

/// Rows that no pipe can send, each with a part of the reason of its dead letter.
fn poison_rows(event: &Item) -> Vec<(Item, &'static str)> {
    let new_id = || Uuid::new_v4().to_string();
    let result = |attribute| {
        let mut result = copy_with(event, &new_id(), attribute);
        result.insert("SK".to_owned(), text("RESULT"));
        result
    };
    // In JSON each of these characters has six bytes, so that the message exceeds the limit of a queue.
    let long = "\u{1}".repeat(180_000);
    vec![
        (result(("outcome", "no json")), "stored stream record"),
        (
            result(("outcome", r#"{"status":"?"}"#)),
            "stored stream record",
        ),
        (result(("other", "")), "outcome is missing"),
        (
            copy_with(event, &new_id(), ("core", &long)),
            "a queue rejected",
        ),
    ]
}

#[tokio::test]
async fn poison_records_go_to_the_dlq_and_all_others_are_delivered_once() {
    for seed in 1..=2_usize {
        let app = TestApp::start().await;
        let (ada, table) = (app.token("ada"), Names::default().table());
        let (dynamodb, sqs) = (&without_timeouts(&app), &app.bundle.clients.sqs);
        let first = acceptance("ada");
        app.submit(&ada, &first).await;
        let stored = item(dynamodb, &table, &id(&first), "EVENT").await;
        let mut events = vec![id(&first)];
        let mut expected = Vec::new();
        // Poison rows of every kind, in an order that the seed gives, some in a row.
        let mut state = seed;
        let mut poison = poison_rows(&stored);
        // The last kind is slow, so it occurs once.
        let others = (0..3).flat_map(|_| poison_rows(&stored).into_iter().take(3));
        poison.extend(others);
        while !poison.is_empty() {
            state = state.wrapping_mul(1_103_515_245).wrapping_add(12_345);
            if (state >> 16).is_multiple_of(2) {
                let at = (state >> 18) % poison.len();
                let (row, reason) = poison.swap_remove(at);
                expected.push((row["PK"].as_s().unwrap().clone(), reason));
                put(dynamodb, &table, row).await;
            } else {
                let event = acceptance("ada");
                app.submit(&ada, &event).await;
                events.push(id(&event));
            }
        }
        for event in &events {
            assert_eq!(app.outcome(&ada, event).await["status"], "processed");
        }
        let queues = &app.bundle.queues;
        let dead_letters = &queues.stream_dead_letters;
        wait_for_messages(sqs, dead_letters, expected.len()).await;
        let reasons: BTreeMap<String, String> = receive_all(sqs, dead_letters)
            .await
            .iter()
            .map(|message| {
                let body: Value = serde_json::from_str(message.body().unwrap()).unwrap();
                // The dead letter has the key of the item, and nothing of its content.
                assert!(body["dynamodb"]["NewImage"].is_null(), "{body}");
                let key = body["dynamodb"]["Keys"]["PK"]["S"].as_str().unwrap();
                (key.to_owned(), attribute(message, "reason").to_owned())
            })
            .collect();
        assert_eq!(reasons.len(), expected.len(), "{reasons:?}");
        for (key, reason) in &expected {
            assert!(reasons[key].contains(reason), "{}", reasons[key]);
        }
        // Each outcome was published once.
        let processed = queues.subject(Subject::FeedbackProcessed).unwrap();
        wait_for_messages(sqs, processed, events.len()).await;
        let mut published: Vec<_> = receive_all(sqs, processed)
            .await
            .iter()
            .map(|message| {
                let message: Value = serde_json::from_str(message.body().unwrap()).unwrap();
                id(&message)
            })
            .collect();
        published.sort();
        events.sort();
        assert_eq!(published, events, "seed {seed}");
        // The health endpoint reports the dead letters, without a token.
        let health = app.send(app.request(Method::GET, "/health")).await.body;
        assert_eq!(health["status"], "ok", "{health}");
        assert_eq!(health["relay"]["dead_letters"], expected.len());
        assert!(health["relay"]["lag_seconds"].is_number(), "{health}");
    }
}

/// An engine with a processed event.
async fn processed() -> (Engine, String) {
    let engine = Engine::start().await;
    let event = acceptance("ada");
    let submit = (Method::POST, "/v1/feedback/submit");
    let caller = ("order-service", "");
    call(&functions_of(&engine), caller, submit, &event).await;
    let message = event_message(&engine, &event["feedbackId"]).await;
    let generator = engine.generator(engine.store.clone());
    let response = generator.handle(queue::batch([message])).await;
    assert!(response.batch_item_failures.is_empty());
    (engine, id(&event))
}

fn result_of(event: &str) -> Value {
    let key = format!("EVENT#acme#{event}");
    json!({"eventName": "INSERT", "dynamodb": {"Keys": {"PK": {"S": key}, "SK": {"S": "RESULT"}}}})
}

#[tokio::test]
async fn an_unreadable_result_does_not_fail_the_rest_of_its_batch() {
    let (engine, event) = processed().await;
    let readable = engine.store.record(&result_of(&event)).await.unwrap();
    let readable = readable.unwrap();
    let poison = json!({"eventName": "INSERT", "dynamodb": {
        "Keys": {"PK": {"S": "EVENT#acme#poison"}, "SK": {"S": "RESULT"}},
        "NewImage": {"outcome": {"S": "{"}},
    }});
    let sqs = &engine.clients.sqs;
    let dead_letters = DeadLetters::new(sqs.clone(), &engine.queues.stream_dead_letters);
    let publisher = Publisher::new(Some(dead_letters));
    for batch in [
        [readable.clone(), poison.clone()],
        [poison.clone(), readable.clone()],
    ] {
        let messages = publisher.messages(&batch).await.unwrap();
        assert_eq!(messages[0]["feedbackId"], event.as_str());
        let dead_letters = receive_all(sqs, &engine.queues.stream_dead_letters).await;
        assert_eq!(dead_letters.len(), 1);
        let record: Value = serde_json::from_str(dead_letters[0].body().unwrap()).unwrap();
        assert_eq!(record["dynamodb"]["Keys"], poison["dynamodb"]["Keys"]);
        assert!(attribute(&dead_letters[0], "reason").contains("stored stream record"));
    }
    // Without the DLQ the batch fails, so that the pipe splits it.
    assert!(
        Publisher::new(None)
            .messages(&[readable, poison])
            .await
            .is_err()
    );
}

#[tokio::test]
async fn redrive_delivers_repaired_records_and_keeps_the_others() {
    let app = TestApp::start().await;
    let (ada, names) = (app.token("ada"), Names::default());
    let (clients, queues) = (&app.bundle.clients, &app.bundle.queues);
    let event = acceptance("ada");
    app.submit(&ada, &event).await;
    app.outcome(&ada, &id(&event)).await;
    let readable = item(&clients.dynamodb, &names.table(), &id(&event), "RESULT").await;
    let [repaired, broken] = [(); 2].map(|()| Uuid::new_v4().to_string());
    for poison in [&repaired, &broken] {
        let row = copy_with(&readable, poison, ("outcome", "no json"));
        put(&clients.dynamodb, &names.table(), row).await;
    }
    let dead_letters = &queues.stream_dead_letters;
    let remaining = || async { count(&clients.sqs, dead_letters).await };
    eventually(|| async { (remaining().await == 2).then_some(()) }).await;
    let outcome = readable["outcome"].as_s().unwrap();
    let outcome = outcome.replace(&id(&event), &repaired);
    let row = copy_with(&readable, &repaired, ("outcome", &outcome));
    put(&clients.dynamodb, &names.table(), row).await;

    let done = redrive(
        clients,
        &names,
        &app.bundle.store,
        DeadLetterQueue::Stream,
        &[],
    )
    .await
    .unwrap();
    assert_eq!(
        done,
        RedriveSummary {
            moved: 1,
            remaining: 1
        }
    );
    let queue = queues.subject(Subject::FeedbackProcessed).unwrap();
    let published = receive_all(&clients.sqs, queue).await;
    let published: Vec<Value> = published
        .iter()
        .map(|message| serde_json::from_str(message.body().unwrap()).unwrap())
        .collect();
    assert_eq!(published.len(), 2, "{published:?}");
    assert!(published.iter().any(|message| id(message) == repaired));
    assert_eq!(remaining().await, 1, "the unreadable record stays");
}

#[tokio::test]
async fn redrive_reads_the_stream_position_in_the_dead_letter_of_a_pipe() {
    let (engine, event) = processed().await;
    let arn = engine.store.stream_arn().await.unwrap();
    let mut stream = Stream::new(engine.clients.streams.clone(), arn.clone());
    stream.open(&BTreeMap::new()).await.unwrap();
    let shard = stream.shards().remove(0);
    let positions = stream.read(&shard).await.unwrap().positions;
    let dead_letter = json!({"requestContext": {"condition": "RetryAttemptsExhausted"}, "DDBStreamBatchInfo": {
        "shardId": shard, "streamArn": arn, "batchSize": positions.len(),
        "startSequenceNumber": positions[0].sequence, "endSequenceNumber": positions.last().unwrap().sequence,
    }});
    let sqs = &engine.clients.sqs;
    let send = sqs.send_message().message_body(dead_letter.to_string());
    let send = send.queue_url(&engine.queues.stream_dead_letters);
    send.send().await.unwrap();
    let (clients, names) = (&engine.clients, &engine.names);
    let outlets = [OutletQueue::Nats, OutletQueue::Webhooks];
    let queue = DeadLetterQueue::Stream;
    let done = redrive(clients, names, &engine.store, queue, &outlets).await;
    assert_eq!(
        done.unwrap(),
        RedriveSummary {
            moved: 1,
            remaining: 0
        }
    );
    assert_eq!(count(sqs, &engine.queues.signals).await, 1);
    let queue = engine.queues.subject(Subject::FeedbackProcessed).unwrap();
    let published = receive_all(sqs, queue).await.remove(0);
    assert!(published.body().unwrap().contains(&event));
    for outlet in [&engine.queues.nats, &engine.queues.webhooks] {
        let bodies = receive_all(sqs, outlet).await;
        assert!(
            bodies
                .iter()
                .any(|message| message.body() == published.body()),
            "{outlet}"
        );
    }
    assert_eq!(count(sqs, &engine.queues.stream_dead_letters).await, 0);
}

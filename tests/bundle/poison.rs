//! One record that cannot be carried or read stops no other: it is a dead letter, with its reason, and the others
//! are carried once.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::time::Duration;

use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_sqs::types::{Message, MessageAttributeValue, QueueAttributeName};
use hearback_domain::publication::Subject;
use hearback_lambda::aws::Aws;
use hearback_lambda::dead_letters::DeadLetters;
use hearback_local::health::Health;
use hearback_local::names::Names;
use hearback_local::queue_tools::{Redelivered, redrive_stream};
use hearback_local::relay::Relay;
use hearback_local::stream::Stream;
use hearback_signals::publish::Publisher;
use hearback_tests::app::{TestApp, eventually};
use hearback_tests::engine::Engine;
use hearback_tests::events::{acceptance, id};
use hearback_tests::faults::{Fault, Faults};
use hearback_tests::functions::{call, functions_of};
use hearback_tests::queue;
use hearback_tests::turns::event_message;
use reqwest::Method;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
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

/// A client that waits for as long as it takes: a debug build is slow with what is large.
fn patient(app: &TestApp) -> aws_sdk_dynamodb::Client {
    let endpoints = app.bundle.endpoints.as_ref().unwrap();
    let config = Aws::local(&endpoints.dynamodb).config();
    let config = aws_sdk_dynamodb::config::Builder::from(&config);
    let config = config.timeout_config(TimeoutConfig::disabled());
    aws_sdk_dynamodb::Client::from_conf(config.build())
}

/// Waits until a queue has so many messages, hidden ones included.
async fn reaches(sqs: &aws_sdk_sqs::Client, queue: &str, wanted: usize) {
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
fn altered(item: &Item, event: &str, (name, value): (&str, &str)) -> Item {
    let mut item = item.clone();
    item.insert("PK".to_owned(), text(format!("EVENT#acme#{event}")));
    item.insert(name.to_owned(), text(value));
    item
}

/// All messages of a queue, which nobody else reads; they stay there, hidden.
async fn drained(sqs: &aws_sdk_sqs::Client, queue: &str) -> Vec<Message> {
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

/// How many messages a queue has, hidden ones included.
async fn count(sqs: &aws_sdk_sqs::Client, queue: &str) -> usize {
    let told = sqs.get_queue_attributes().queue_url(queue);
    let told = told.attribute_names(QueueAttributeName::All).send().await;
    let told = told.unwrap().attributes.unwrap();
    let counts = [
        QueueAttributeName::ApproximateNumberOfMessages,
        QueueAttributeName::ApproximateNumberOfMessagesNotVisible,
    ];
    counts
        .iter()
        .map(|count| told[count].parse::<usize>().unwrap())
        .sum()
}

#[tokio::test]
async fn a_row_of_before_with_what_no_queue_carries_is_processed_and_stops_no_other() {
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
    put(dynamodb, &table, altered(&stored, &old, ("core", &core))).await;
    let last = acceptance("ada");
    app.submit(&ada, &last).await;
    for event in [id(&last), old] {
        assert_eq!(app.outcome(&ada, &event).await["status"], "processed");
    }
    // Their messages could be carried too.
    let queue = app.bundle.queues.subject(Subject::FeedbackProcessed);
    let queue = queue.unwrap().to_owned();
    let sqs = &app.bundle.clients.sqs;
    eventually(|| async { (count(sqs, &queue).await == 3).then_some(()) }).await;
    assert_eq!(count(sqs, &app.bundle.queues.stream_dead_letters).await, 0);
}

/// Rows that no pipe can carry, each with a part of the reason that its dead letter has.
fn poisons(event: &Item) -> Vec<(Item, &'static str)> {
    let fresh = || Uuid::new_v4().to_string();
    let result = |attribute| {
        let mut result = altered(event, &fresh(), attribute);
        result.insert("SK".to_owned(), text("RESULT"));
        result
    };
    // As JSON each of these characters takes six bytes: a message longer than any queue takes.
    let long = "\u{1}".repeat(180_000);
    vec![
        (result(("outcome", "no json")), "stored stream record"),
        (
            result(("outcome", r#"{"status":"?"}"#)),
            "stored stream record",
        ),
        (result(("other", "")), "outcome is missing"),
        (altered(event, &fresh(), ("core", &long)), "a queue refused"),
    ]
}

#[tokio::test]
async fn poisonous_records_are_dead_letters_and_all_others_are_carried_once() {
    for seed in 1..=2_usize {
        let app = TestApp::start().await;
        let (ada, table) = (app.token("ada"), Names::default().table());
        let (dynamodb, sqs) = (&patient(&app), &app.bundle.clients.sqs);
        let first = acceptance("ada");
        app.submit(&ada, &first).await;
        let stored = item(dynamodb, &table, &id(&first), "EVENT").await;
        let mut events = vec![id(&first)];
        let mut expected = Vec::new();
        // Poison of every kind, at places that the seed gives, and several in a row.
        let mut state = seed;
        let mut poison = poisons(&stored);
        // The last kind is slow.
        let others = (0..3).flat_map(|_| poisons(&stored).into_iter().take(3));
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
        let letters = &queues.stream_dead_letters;
        reaches(sqs, letters, expected.len()).await;
        let told: BTreeMap<String, String> = drained(sqs, letters)
            .await
            .iter()
            .map(|letter| {
                let body: Value = serde_json::from_str(letter.body().unwrap()).unwrap();
                // Where the item is, and nothing of what is in it.
                assert!(body["dynamodb"]["NewImage"].is_null(), "{body}");
                let key = body["dynamodb"]["Keys"]["PK"]["S"].as_str().unwrap();
                (key.to_owned(), attribute(letter, "reason").to_owned())
            })
            .collect();
        assert_eq!(told.len(), expected.len(), "{told:?}");
        for (key, reason) in &expected {
            assert!(told[key].contains(reason), "{}", told[key]);
        }
        // Each outcome was published once, whatever was beside it.
        let processed = queues.subject(Subject::FeedbackProcessed).unwrap();
        reaches(sqs, processed, events.len()).await;
        let mut published: Vec<_> = drained(sqs, processed)
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
        // It is told, without a token.
        let health = app.send(app.request(Method::GET, "/health")).await.body;
        assert_eq!(health["status"], "ok", "{health}");
        assert_eq!(health["relay"]["dead_letters"], expected.len());
        assert!(health["relay"]["lag_seconds"].is_number(), "{health}");
    }
}

/// Carries what is in the table of an engine until so many messages are in the queue of the signal generator.
async fn carry(engine: &Engine, sqs: aws_sdk_sqs::Client, position: &Path, until: usize) -> Value {
    let health = Health::default();
    let stream = engine.store.stream_arn().await.unwrap();
    let relay = Relay {
        stream: Stream::new(engine.clients.streams.clone(), stream),
        store: engine.store.clone(),
        blobs: engine.blobs(),
        sqs,
        queues: engine.queues.clone(),
        position: position.to_owned(),
        health: health.clone(),
    };
    let stop = CancellationToken::new();
    let running = tokio::spawn(relay.run(stop.clone()));
    let queue = &engine.queues.signals;
    let settled = || health.document(chrono::Utc::now())["relay"]["lag_seconds"].is_number();
    eventually(|| async {
        let there = count(&engine.clients.sqs, queue).await;
        (there >= until && settled()).then_some(())
    })
    .await;
    stop.cancel();
    running.await.unwrap();
    health.document(chrono::Utc::now())
}

#[tokio::test]
async fn what_failed_is_tried_again_and_nothing_beside_it_is_delivered_twice() {
    const EVENTS: usize = 25;
    let engines = Engine::start().await;
    // None of these is done, so that a message that is there twice was sent twice.
    for fault in [Fault::Refused, Fault::Throttled, Fault::Unreachable] {
        for at in 1..=3 {
            let engine = engines.beside().await;
            let functions = functions_of(&engine);
            for _ in 0..EVENTS {
                let submit = (Method::POST, "/v1/feedback/submit");
                let caller = ("order-service", "");
                call(&functions, caller, submit, &acceptance("ada")).await;
            }
            let folder = tempfile::tempdir().unwrap();
            let position = folder.path().join("relay.json");
            let faults = Faults::at(at, fault);
            let sqs = faults.config(&Aws::local(&engine.endpoints.sqs).config());
            let sqs = aws_sdk_sqs::Client::new(&sqs);
            carry(&engine, sqs, &position, EVENTS).await;
            let there = count(&engine.clients.sqs, &engine.queues.signals).await;
            assert_eq!(there, EVENTS, "{fault:?} at call {at}");
            // One that is started again goes on from there.
            let plain = engine.clients.sqs.clone();
            carry(&engine, plain, &position, EVENTS).await;
            let there = count(&engine.clients.sqs, &engine.queues.signals).await;
            assert_eq!(there, EVENTS, "after a restart, {fault:?} at call {at}");
        }
    }
}

/// An engine with an event that was processed.
async fn processed() -> (Engine, String) {
    let engine = Engine::start().await;
    let event = acceptance("ada");
    let submit = (Method::POST, "/v1/feedback/submit");
    let caller = ("order-service", "");
    call(&functions_of(&engine), caller, submit, &event).await;
    let message = event_message(&engine, &event["feedbackId"]).await;
    let generator = engine.generator(engine.store.clone());
    let answer = generator.handle(queue::batch([message])).await;
    assert!(answer.batch_item_failures.is_empty());
    (engine, id(&event))
}

fn result_of(event: &str) -> Value {
    let key = format!("EVENT#acme#{event}");
    json!({"eventName": "INSERT", "dynamodb": {"Keys": {"PK": {"S": key}, "SK": {"S": "RESULT"}}}})
}

#[tokio::test]
async fn a_result_that_cannot_be_read_fails_no_other_of_its_batch() {
    let (engine, event) = processed().await;
    let good = engine.store.record(&result_of(&event)).await.unwrap();
    let good = good.unwrap();
    let poison = json!({"eventName": "INSERT", "dynamodb": {
        "Keys": {"PK": {"S": "EVENT#acme#poison"}, "SK": {"S": "RESULT"}},
        "NewImage": {"outcome": {"S": "{"}},
    }});
    let sqs = &engine.clients.sqs;
    let letters = DeadLetters::new(sqs.clone(), &engine.queues.stream_dead_letters);
    let publisher = Publisher::new(Some(letters));
    for batch in [
        [good.clone(), poison.clone()],
        [poison.clone(), good.clone()],
    ] {
        let messages = publisher.messages(&batch).await.unwrap();
        assert_eq!(messages[0]["feedbackId"], event.as_str());
        let letters = drained(sqs, &engine.queues.stream_dead_letters).await;
        assert_eq!(letters.len(), 1);
        let letter: Value = serde_json::from_str(letters[0].body().unwrap()).unwrap();
        assert_eq!(letter["dynamodb"]["Keys"], poison["dynamodb"]["Keys"]);
        assert!(attribute(&letters[0], "reason").contains("stored stream record"));
    }
    // Without that queue the batch fails, and the pipe divides it.
    assert!(
        Publisher::new(None)
            .messages(&[good, poison])
            .await
            .is_err()
    );
}

#[tokio::test]
async fn redrive_delivers_what_is_repaired_and_leaves_what_is_not() {
    let app = TestApp::start().await;
    let (ada, names) = (app.token("ada"), Names::default());
    let (clients, queues) = (&app.bundle.clients, &app.bundle.queues);
    let event = acceptance("ada");
    app.submit(&ada, &event).await;
    app.outcome(&ada, &id(&event)).await;
    let good = item(&clients.dynamodb, &names.table(), &id(&event), "RESULT").await;
    let [repaired, broken] = [(); 2].map(|()| Uuid::new_v4().to_string());
    for poison in [&repaired, &broken] {
        let row = altered(&good, poison, ("outcome", "no json"));
        put(&clients.dynamodb, &names.table(), row).await;
    }
    let letters = &queues.stream_dead_letters;
    let there = || async { count(&clients.sqs, letters).await };
    eventually(|| async { (there().await == 2).then_some(()) }).await;
    let outcome = good["outcome"].as_s().unwrap();
    let outcome = outcome.replace(&id(&event), &repaired);
    let row = altered(&good, &repaired, ("outcome", &outcome));
    put(&clients.dynamodb, &names.table(), row).await;

    let done = redrive_stream(clients, &names, &app.bundle.store)
        .await
        .unwrap();
    assert_eq!(done, Redelivered { moved: 1, left: 1 });
    let queue = queues.subject(Subject::FeedbackProcessed).unwrap();
    let published = drained(&clients.sqs, queue).await;
    let published: Vec<Value> = published
        .iter()
        .map(|message| serde_json::from_str(message.body().unwrap()).unwrap())
        .collect();
    assert_eq!(published.len(), 2, "{published:?}");
    assert!(published.iter().any(|message| id(message) == repaired));
    assert_eq!(there().await, 1, "the one that cannot be read stays");
}

#[tokio::test]
async fn redrive_reads_the_place_in_the_stream_that_a_pipe_left() {
    let (engine, event) = processed().await;
    let arn = engine.store.stream_arn().await.unwrap();
    let mut stream = Stream::new(engine.clients.streams.clone(), arn.clone());
    stream.open(&BTreeMap::new()).await.unwrap();
    let shard = stream.shards().remove(0);
    let places = stream.read(&shard).await.unwrap().places;
    let letter = json!({"requestContext": {"condition": "RetryAttemptsExhausted"}, "DDBStreamBatchInfo": {
        "shardId": shard, "streamArn": arn, "batchSize": places.len(),
        "startSequenceNumber": places[0].sequence, "endSequenceNumber": places.last().unwrap().sequence,
    }});
    let sqs = &engine.clients.sqs;
    let send = sqs.send_message().message_body(letter.to_string());
    let send = send.queue_url(&engine.queues.stream_dead_letters);
    send.send().await.unwrap();
    let done = redrive_stream(&engine.clients, &engine.names, &engine.store).await;
    assert_eq!(done.unwrap(), Redelivered { moved: 1, left: 0 });
    assert_eq!(count(sqs, &engine.queues.signals).await, 1);
    let queue = engine.queues.subject(Subject::FeedbackProcessed).unwrap();
    let published = drained(sqs, queue).await.remove(0);
    assert!(published.body().unwrap().contains(&event));
    assert_eq!(count(sqs, &engine.queues.stream_dead_letters).await, 0);
}

/// What no consumer can make anything of, written by nobody who knows the product.
const GARBAGE: [&str; 8] = [
    "no json",
    "null",
    "7",
    "\"\"",
    "[[]]",
    "{\"dynamodb\": {\"Keys\": {\"SK\": {\"S\": 7}}, \"NewImage\": []}}",
    "{\"import\": {\"tenant\": \"\", \"id\": 1}, \"work\": \"?\"}",
    "{\"tenant\": \"\u{1F642}\", \"user\": \"\", \"id\": \"-\", \"step\": \"rows\", \"found\": 1}",
];

#[tokio::test]
async fn poison_in_a_queue_ends_in_its_dead_letters_and_what_is_between_is_processed() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    let (sqs, queues, names) = (
        &app.bundle.clients.sqs,
        &app.bundle.queues,
        Names::default(),
    );
    let tenant = MessageAttributeValue::builder().data_type("String");
    let tenant = tenant.string_value("acme").build().unwrap();
    let send = |queue: &str, body: String| {
        let send = sqs.send_message().queue_url(queue).message_body(body);
        let send = send.message_attributes("tenant", tenant.clone());
        async move { send.send().await.unwrap() }
    };
    let mut events = Vec::new();
    for garbage in GARBAGE {
        for queue in [
            &queues.signals,
            &queues.ingest,
            &queues.imports,
            &queues.erasures,
        ] {
            send(queue, garbage.to_owned()).await;
        }
        let [posted, sent] = [(); 2].map(|()| acceptance("ada"));
        app.submit(&ada, &posted).await;
        send(&queues.ingest, sent.to_string()).await;
        events.extend([id(&posted), id(&sent)]);
    }
    let erasure = app.delete(&app.token("eve"), "/v1/users/eve/data").await;
    assert_eq!(erasure.status, 202);
    let import = hearback_storage::files::import_key(&"acme".try_into().unwrap(), "events.jsonl");
    let imported = acceptance("ada");
    let file = imported.to_string().into_bytes();
    let import = import.unwrap();
    app.bundle.blobs.put_file(&import, file).await.unwrap();
    let told = hearback_batch::notification(&import, None);
    send(&queues.imports, told).await;
    events.push(id(&imported));

    for event in &events {
        let status = eventually(|| async {
            let answer = app.get(&ada, &format!("/v1/feedback/{event}")).await;
            let status = answer.body["status"].as_str()?.to_owned();
            (status != "queued").then_some(status)
        });
        assert_eq!(status.await, "processed");
    }
    eventually(|| async {
        let path = "/v1/users/eve/data/erasure";
        let answer = app.get(&app.token("eve"), path).await;
        (answer.body["status"] == "done").then_some(())
    })
    .await;
    for letters in [
        names.dead_letters(),
        names.ingest_dead_letters(),
        names.imports_dead_letters(),
        names.erasures_dead_letters(),
    ] {
        let url = sqs.get_queue_url().queue_name(&letters).send().await;
        let url = url.unwrap().queue_url.unwrap();
        reaches(sqs, &url, GARBAGE.len()).await;
        let there = drained(sqs, &url).await;
        if letters == names.ingest_dead_letters() {
            for letter in &there {
                assert_eq!(attribute(letter, "tenant"), "acme", "{letter:?}");
                assert!(!attribute(letter, "reason").is_empty());
            }
            continue;
        }
        // A slow worker may send a letter that another has sent too; there is one for each, and no other.
        for letter in &there {
            assert!(GARBAGE.contains(&letter.body().unwrap()), "{letter:?}");
        }
        for garbage in GARBAGE {
            let is_there = there.iter().any(|letter| letter.body() == Some(garbage));
            assert!(is_there, "{garbage} is not in {letters}");
        }
    }
}

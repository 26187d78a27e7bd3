//! When functions stop retrying a failing message, and how often they hand work over to their own queue.

use aws_lambda_events::sqs::{SqsEvent, SqsMessage, SqsMessageAttribute};
use aws_sdk_sqs::types::Message;
use chrono::{DateTime, TimeDelta, Utc};
use hearback_lambda::queue::{HOPS, LAST_RECEIVES, MAX_HOPS, MAX_RECEIVES};
use hearback_storage::Store;
use hearback_tests::engine::Engine;
use hearback_tests::events::acceptance;
use hearback_tests::queue;

use crate::erasure_steps::world::World;

/// A message with a receive count and a number of hops.
fn message(body: &str, receives: u32, hops: Option<u32>) -> SqsEvent {
    let mut message = SqsMessage::default();
    message.message_id = Some("1".to_owned());
    message.body = Some(body.to_owned());
    let count = "ApproximateReceiveCount".to_owned();
    message.attributes.insert(count, receives.to_string());
    if let Some(hops) = hops {
        let mut attribute = SqsMessageAttribute::default();
        attribute.string_value = Some(hops.to_string());
        message
            .message_attributes
            .insert(HOPS.to_owned(), attribute);
    }
    queue::batch([message])
}

/// The messages of a queue.
async fn received(engine: &Engine, queue: &str) -> Vec<Message> {
    let receive = engine.clients.sqs.receive_message().queue_url(queue);
    let receive = receive.max_number_of_messages(10).visibility_timeout(0);
    let received = receive.message_attribute_names("All").send().await;
    received.unwrap().messages.unwrap_or_default()
}

fn attribute<'a>(message: &'a Message, name: &str) -> &'a str {
    let attributes = message.message_attributes.as_ref().unwrap();
    attributes[name].string_value().unwrap()
}

/// The bodies and reasons of a queue of dead letters.
async fn dead_letters(engine: &Engine, queue: &str) -> Vec<(String, String)> {
    let dead_letters = received(engine, queue).await;
    let with_reasons = dead_letters.iter().map(|message| {
        let body = message.body().unwrap().to_owned();
        (body, attribute(message, "reason").to_owned())
    });
    with_reasons.collect()
}

/// A store whose table does not exist.
fn missing_table(engine: &Engine) -> Store {
    Store::new(engine.clients.dynamodb.clone(), "missing")
}

#[tokio::test]
async fn a_long_throttled_message_does_not_go_to_the_dlq_at_its_first_failure() {
    let engine = Engine::start().await;
    let world = World::of(&engine);
    let event = acceptance("ada");
    let sent = world.submitted(&event).await;
    let body = sent.body.as_deref().unwrap();
    let generator = engine.generator(missing_table(&engine));
    for receives in [MAX_RECEIVES, MAX_RECEIVES + 1, LAST_RECEIVES - 1] {
        let response = generator.handle(message(body, receives, None)).await;
        assert_eq!(
            response.batch_item_failures.len(),
            1,
            "the message is redelivered"
        );
    }
    let dead = &engine.queues.dead_letters;
    assert_eq!(dead_letters(&engine, dead).await, []);
    let response = generator.handle(message(body, LAST_RECEIVES, None)).await;
    assert!(response.batch_item_failures.is_empty());
    let dead_letters = dead_letters(&engine, dead).await;
    assert_eq!(dead_letters.len(), 1);
    assert_eq!(dead_letters[0].0, body);
    assert!(dead_letters[0].1.contains("failed"), "{dead_letters:?}");
}

#[tokio::test]
async fn an_unreadable_step_of_an_import_or_erasure_goes_to_the_dlq_with_its_reason() {
    let engine = Engine::start().await;
    let eraser = engine.eraser(engine.store.clone(), engine.blobs());
    let importer = engine.importer(engine.store.clone());
    for receives in [MAX_RECEIVES - 1, MAX_RECEIVES] {
        let redelivered = usize::from(receives < MAX_RECEIVES);
        let response = eraser.handle(message("{}", receives, None), None).await;
        assert_eq!(response.batch_item_failures.len(), redelivered);
        let response = importer.handle(message("{}", receives, None), None).await;
        assert_eq!(response.batch_item_failures.len(), redelivered);
    }
    let expected = [(
        "{}".to_owned(),
        "the message has an unknown format".to_owned(),
    )];
    let queues = &engine.queues;
    for dead in [&queues.erasures_dead_letters, &queues.imports_dead_letters] {
        assert_eq!(dead_letters(&engine, dead).await, expected);
    }
}

#[tokio::test]
async fn an_erasure_that_never_ends_goes_to_the_dlq_with_its_reason() {
    let engine = Engine::start().await;
    let world = World::of(&engine);
    world.create_data().await;
    world.erase().await;
    let erasures = &engine.queues.erasures;
    let queued = received(&engine, erasures).await;
    assert_eq!(attribute(&queued[0], HOPS), "0");
    world.take_message().await.unwrap();
    let body = queued[0].body().unwrap();
    // The deadline has always passed, so the eraser hands over.
    let eraser = world.eraser();
    let over: DateTime<Utc> = Utc::now() - TimeDelta::hours(1);
    let last = message(body, 1, Some(MAX_HOPS - 1));
    let response = eraser.handle(last, Some(over)).await;
    assert!(response.batch_item_failures.is_empty());
    let handed_on = received(&engine, erasures).await;
    assert_eq!(handed_on.len(), 1);
    assert_eq!(attribute(&handed_on[0], HOPS), MAX_HOPS.to_string());
    world.take_message().await.unwrap();

    let body = handed_on[0].body().unwrap();
    let response = eraser
        .handle(message(body, 1, Some(MAX_HOPS)), Some(over))
        .await;
    assert!(response.batch_item_failures.is_empty());
    assert!(received(&engine, erasures).await.is_empty());
    let dead = &engine.queues.erasures_dead_letters;
    let reason = format!("handed on {MAX_HOPS} times without an end");
    assert_eq!(
        dead_letters(&engine, dead).await,
        [(body.to_owned(), reason)]
    );
    // After the redrive the hops count from zero, and the erasure completes.
    let dead_letter = received(&engine, dead).await.remove(0);
    let moved = engine.clients.sqs.send_message().queue_url(erasures);
    let moved = moved.message_body(dead_letter.body().unwrap()).send().await;
    moved.unwrap();
    world.finish().await;
    world.assert_gone().await;
}

#[tokio::test]
async fn an_import_that_never_ends_goes_to_the_dlq_with_its_reason() {
    let engine = Engine::start().await;
    let importer = engine.importer(engine.store.clone());
    let imports = &engine.queues.imports;
    let key = "imports/acme/events.jsonl";
    let lines = format!("{}\n{}\n", acceptance("ada"), acceptance("eve"));
    let put = engine.blobs().put_file(key, lines.into_bytes()).await;
    put.unwrap();
    let begin = hearback_batch::notification(key, None);
    let response = importer.handle(message(&begin, 1, None), None).await;
    assert!(response.batch_item_failures.is_empty());
    let pieces = received(&engine, imports).await;
    assert_eq!(pieces.len(), 1);
    assert_eq!(attribute(&pieces[0], HOPS), "1");
    let body = pieces[0].body().unwrap();
    let endless = message(body, 1, Some(MAX_HOPS));
    let response = importer.handle(endless, None).await;
    assert!(response.batch_item_failures.is_empty());
    let dead = &engine.queues.imports_dead_letters;
    let reason = format!("handed on {MAX_HOPS} times without an end");
    assert_eq!(
        dead_letters(&engine, dead).await,
        [(body.to_owned(), reason)]
    );
    let piece = message(body, 1, Some(MAX_HOPS - 1));
    let response = importer.handle(piece, None).await;
    assert!(response.batch_item_failures.is_empty());
    let stored = queue::submitted(&engine, "EVENT").await;
    assert_eq!(stored.len(), 2, "the piece was processed");
}

//! How long a function tries a message that fails, and how often it hands work on to its own queue.

use aws_lambda_events::sqs::{SqsEvent, SqsMessage, SqsMessageAttribute};
use aws_sdk_sqs::types::Message;
use chrono::{DateTime, TimeDelta, Utc};
use hearback_lambda::queue::{HOPS, LAST_RECEIVES, MAX_HOPS, MAX_RECEIVES};
use hearback_storage::Store;
use hearback_tests::engine::Engine;
use hearback_tests::events::acceptance;
use hearback_tests::queue;

use crate::erasure_steps::world::World;

/// A message as it comes when it was received so often, and its work handed on so often.
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

/// Messages of a queue, which may have been sent to come later.
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
async fn letters(engine: &Engine, queue: &str) -> Vec<(String, String)> {
    let letters = received(engine, queue).await;
    let told = letters.iter().map(|letter| {
        let body = letter.body().unwrap().to_owned();
        (body, attribute(letter, "reason").to_owned())
    });
    told.collect()
}

/// A table that is not there.
fn nowhere(engine: &Engine) -> Store {
    Store::new(engine.clients.dynamodb.clone(), "nowhere")
}

#[tokio::test]
async fn a_message_that_was_throttled_for_long_is_not_given_up_at_its_first_failure() {
    let engine = Engine::start().await;
    let world = World::of(&engine);
    let event = acceptance("ada");
    let sent = world.submitted(&event).await;
    let body = sent.body.as_deref().unwrap();
    let generator = engine.generator(nowhere(&engine));
    for receives in [MAX_RECEIVES, MAX_RECEIVES + 1, LAST_RECEIVES - 1] {
        let answer = generator.handle(message(body, receives, None)).await;
        assert_eq!(answer.batch_item_failures.len(), 1, "it comes again");
    }
    let dead = &engine.queues.dead_letters;
    assert_eq!(letters(&engine, dead).await, []);
    let answer = generator.handle(message(body, LAST_RECEIVES, None)).await;
    assert!(answer.batch_item_failures.is_empty());
    let letters = letters(&engine, dead).await;
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].0, body);
    assert!(letters[0].1.contains("failed"), "{letters:?}");
}

#[tokio::test]
async fn a_step_of_an_import_or_an_erasure_that_cannot_be_read_is_a_dead_letter_with_its_reason() {
    let engine = Engine::start().await;
    let eraser = engine.eraser(engine.store.clone(), engine.blobs());
    let importer = engine.importer(engine.store.clone());
    for receives in [MAX_RECEIVES - 1, MAX_RECEIVES] {
        let comes_again = usize::from(receives < MAX_RECEIVES);
        let answer = eraser.handle(message("{}", receives, None), None).await;
        assert_eq!(answer.batch_item_failures.len(), comes_again);
        let answer = importer.handle(message("{}", receives, None), None).await;
        assert_eq!(answer.batch_item_failures.len(), comes_again);
    }
    let expected = [("{}".to_owned(), "the message is none of ours".to_owned())];
    let queues = &engine.queues;
    for dead in [&queues.erasures_dead_letters, &queues.imports_dead_letters] {
        assert_eq!(letters(&engine, dead).await, expected);
    }
}

#[tokio::test]
async fn an_erasure_that_never_ends_is_a_dead_letter_with_its_reason() {
    let engine = Engine::start().await;
    let world = World::of(&engine);
    world.leave().await;
    world.erase().await;
    let erasures = &engine.queues.erasures;
    let asked = received(&engine, erasures).await;
    assert_eq!(attribute(&asked[0], HOPS), "0");
    world.taken().await.unwrap();
    let body = asked[0].body().unwrap();
    // Its time is always up, so it hands on.
    let eraser = world.eraser();
    let over: DateTime<Utc> = Utc::now() - TimeDelta::hours(1);
    let last = message(body, 1, Some(MAX_HOPS - 1));
    let answer = eraser.handle(last, Some(over)).await;
    assert!(answer.batch_item_failures.is_empty());
    let handed_on = received(&engine, erasures).await;
    assert_eq!(handed_on.len(), 1);
    assert_eq!(attribute(&handed_on[0], HOPS), MAX_HOPS.to_string());
    world.taken().await.unwrap();

    let body = handed_on[0].body().unwrap();
    let answer = eraser
        .handle(message(body, 1, Some(MAX_HOPS)), Some(over))
        .await;
    assert!(answer.batch_item_failures.is_empty());
    assert!(received(&engine, erasures).await.is_empty());
    let dead = &engine.queues.erasures_dead_letters;
    let reason = format!("handed on {MAX_HOPS} times without an end");
    assert_eq!(letters(&engine, dead).await, [(body.to_owned(), reason)]);
    // Moved back it begins to count anew, and the erasure is done.
    let letter = received(&engine, dead).await.remove(0);
    let moved = engine.clients.sqs.send_message().queue_url(erasures);
    let moved = moved.message_body(letter.body().unwrap()).send().await;
    moved.unwrap();
    world.finish().await;
    world.assert_gone().await;
}

#[tokio::test]
async fn an_import_that_never_ends_is_a_dead_letter_with_its_reason() {
    let engine = Engine::start().await;
    let importer = engine.importer(engine.store.clone());
    let imports = &engine.queues.imports;
    let key = "imports/acme/events.jsonl";
    let lines = format!("{}\n{}\n", acceptance("ada"), acceptance("eve"));
    let put = engine.blobs().put_file(key, lines.into_bytes()).await;
    put.unwrap();
    let begin = hearback_batch::notification(key, None);
    let answer = importer.handle(message(&begin, 1, None), None).await;
    assert!(answer.batch_item_failures.is_empty());
    let pieces = received(&engine, imports).await;
    assert_eq!(pieces.len(), 1);
    assert_eq!(attribute(&pieces[0], HOPS), "1");
    let body = pieces[0].body().unwrap();
    let endless = message(body, 1, Some(MAX_HOPS));
    let answer = importer.handle(endless, None).await;
    assert!(answer.batch_item_failures.is_empty());
    let dead = &engine.queues.imports_dead_letters;
    let reason = format!("handed on {MAX_HOPS} times without an end");
    assert_eq!(letters(&engine, dead).await, [(body.to_owned(), reason)]);
    let piece = message(body, 1, Some(MAX_HOPS - 1));
    let answer = importer.handle(piece, None).await;
    assert!(answer.batch_item_failures.is_empty());
    let stored = queue::submitted(&engine, "EVENT").await;
    assert_eq!(stored.len(), 2, "the piece was worked off");
}

//! The signal generator under redelivery, races, and crashes between any two of its calls.

use aws_lambda_events::sqs::{SqsBatchResponse, SqsMessage};
use futures::future::join_all;
use hearback_domain::events::event::FeedbackEvent;
use hearback_domain::events::submission::Submission;
use hearback_domain::identity::caller::Caller;
use hearback_domain::identity::identifier::{TenantId, UserId, UserRef};
use hearback_domain::identity::privacy::Pseudonyms;
use hearback_domain::learning::preferences::{Cause, Version};
use hearback_domain::learning::publication::Outcome;
use hearback_lambda::clock::Clock;
use hearback_signals::Generator;
use hearback_storage::Store;
use hearback_storage::preferences::{Freshness, VersionRange};
use hearback_tests::engine::Engine;
use hearback_tests::events::acceptance;
use hearback_tests::faults::{Fault, Faults};
use hearback_tests::function_set::FunctionSet;
use hearback_tests::queue;
use serde_json::{Value, json};

fn parsed(body: &Value) -> FeedbackEvent {
    let caller = Caller {
        user: body["userId"].as_str().unwrap().try_into().unwrap(),
        tenant: "acme".try_into().unwrap(),
        projects: Vec::new(),
        scopes: Vec::new(),
    };
    let pseudonyms = Pseudonyms::new("key");
    Submission::parse(body, &caller, &pseudonyms, chrono::Utc::now())
        .unwrap()
        .event
}

/// Stores an event, and returns the message that the pipe sends for it.
async fn stored(store: &Store, body: &Value) -> (FeedbackEvent, SqsMessage) {
    let event = parsed(body);
    store.put_event(&event).await.unwrap();
    let core = serde_json::to_string(&event.core).unwrap();
    let record = json!({
        "eventName": "INSERT",
        "dynamodb": {"Keys": {}, "NewImage": {"core": {"S": core}}}
    });
    let mut message = SqsMessage::default();
    message.message_id = Some(event.core.feedback_id.to_string());
    message.body = Some(record.to_string());
    (event, message)
}

pub async fn deliver(generator: &Generator, messages: &[SqsMessage]) -> SqsBatchResponse {
    generator.handle(queue::batch(messages.to_vec())).await
}

/// Delivers messages to a generator that crashes at a call, then to two generators concurrently, and once more.
pub async fn deliver_through_a_crash(engine: &Engine, faults: &Faults, messages: &[SqsMessage]) {
    let crashing = FunctionSet::at(engine, faults, Clock::system()).generator;
    deliver(&crashing, messages).await;
    let generator = engine.generator(engine.store.clone());
    join_all([deliver(&generator, messages), deliver(&generator, messages)]).await;
    let last = deliver(&generator, messages).await;
    assert!(last.batch_item_failures.is_empty());
}

async fn versions(store: &Store, user: &str) -> Vec<Version> {
    let tenant: TenantId = "acme".try_into().unwrap();
    let user: UserId = user.try_into().unwrap();
    let page = VersionRange {
        after: 0,
        before: None,
        limit: None,
        freshness: Freshness::Latest,
    };
    let owner = UserRef::new(&tenant, &user);
    let stored = store.versions(owner, page).await.unwrap();
    let versions = stored.into_iter().map(|stored| stored.version.unwrap());
    versions.collect()
}

fn samples(versions: &[Version]) -> u64 {
    let newest = versions.first().expect("a version");
    newest.preferences.artifact_preferences["unknown"]
        .sample_count
        .unwrap()
}

/// Asserts that version numbers have no gap and that no event is in two versions.
fn assert_sound(versions: &[Version]) {
    let numbers: Vec<_> = versions
        .iter()
        .rev()
        .map(|version| version.number)
        .collect();
    let expected: Vec<_> = (1..=u64::try_from(versions.len()).unwrap()).collect();
    assert_eq!(numbers, expected);
    let mut learned_from: Vec<_> = versions
        .iter()
        .flat_map(|version| match &version.cause {
            Cause::Feedback { feedback_ids, .. } => feedback_ids.clone(),
            Cause::Update | Cause::Reset => Vec::new(),
        })
        .collect();
    let all = learned_from.len();
    learned_from.sort_unstable();
    learned_from.dedup();
    assert_eq!(
        learned_from.len(),
        all,
        "preferences learned from an event twice"
    );
}

async fn outcome(store: &Store, event: &FeedbackEvent) -> Option<Outcome> {
    let core = &event.core;
    store
        .event(&core.tenant, core.feedback_id, chrono::Utc::now())
        .await
        .unwrap()
        .unwrap()
        .outcome
}

#[tokio::test]
async fn a_redelivery_changes_nothing() {
    let engine = Engine::start().await;
    let generator = engine.generator(engine.store.clone());
    let (event, message) = stored(&engine.store, &acceptance("ada")).await;
    let twice = [message.clone(), message.clone()];
    assert!(
        deliver(&generator, &twice)
            .await
            .batch_item_failures
            .is_empty()
    );
    let first = outcome(&engine.store, &event).await;
    assert!(matches!(first, Some(Outcome::Processed(_))));
    for _ in 0..3 {
        assert!(
            deliver(&generator, &twice)
                .await
                .batch_item_failures
                .is_empty()
        );
    }
    assert_eq!(outcome(&engine.store, &event).await, first);
    let versions = versions(&engine.store, "ada").await;
    assert_sound(&versions);
    assert_eq!((versions.len(), samples(&versions)), (1, 1));
}

#[tokio::test]
async fn a_crash_between_any_two_calls_does_not_change_the_result() {
    let engine = Engine::start().await;
    let crashes = Faults::at_each_call(Fault::Crashed, async |faults| {
        let call = faults.at_call();
        let user = format!("user-{call}");
        // Two events that change preferences, one that repeats the first, and one that changes nothing.
        let first = acceptance(&user);
        let mut repeat = first.clone();
        repeat["feedbackId"] = acceptance(&user)["feedbackId"].clone();
        let mut silent = acceptance(&user);
        silent["feedbackType"] = json!("dwell-time");
        silent["data"] = json!({"timeSpent": 3});
        let mut delivered = Vec::new();
        for body in [&first, &acceptance(&user), &repeat, &silent] {
            delivered.push(stored(&engine.store, body).await);
        }
        let messages: Vec<_> = delivered
            .iter()
            .map(|(_, message)| message.clone())
            .collect();

        let crashing = FunctionSet::at(&engine, faults, Clock::system()).generator;
        let response = deliver(&crashing, &messages).await;
        assert_eq!(faults.crashed(), !response.batch_item_failures.is_empty());

        let generator = engine.generator(engine.store.clone());
        let again = deliver(&generator, &messages).await;
        assert!(again.batch_item_failures.is_empty());
        let versions = versions(&engine.store, &user).await;
        assert_sound(&versions);
        assert_eq!(samples(&versions), 2, "crashed at call {call}");
        for (at, (event, _)) in delivered.iter().enumerate() {
            let deduplicated = matches!(
                outcome(&engine.store, event).await.expect("an outcome"),
                Outcome::Deduplicated { duplicate_of, .. }
                    if duplicate_of == delivered[0].0.core.feedback_id
            );
            assert_eq!(deduplicated, at == 2, "event {at}, crashed at call {call}");
        }
    })
    .await;
    // The generator crashed at each call of the batch.
    assert!(crashes >= 8, "only {crashes} crashes");
}

#[tokio::test]
async fn racing_generators_learn_once_from_the_same_messages() {
    let engine = Engine::start().await;
    let mut messages = Vec::new();
    for _ in 0..30 {
        messages.push(stored(&engine.store, &acceptance("ada")).await.1);
    }
    // Each message is delivered to three generators, in batches that overlap differently.
    let generator = engine.generator(engine.store.clone());
    let batches = [10, 7, 4]
        .into_iter()
        .flat_map(|size| messages.chunks(size));
    let responses = join_all(batches.map(|batch| deliver(&generator, batch))).await;
    // A message that lost too many races is delivered again.
    if responses
        .iter()
        .any(|response| !response.batch_item_failures.is_empty())
    {
        assert!(
            deliver(&generator, &messages)
                .await
                .batch_item_failures
                .is_empty()
        );
    }
    let versions = versions(&engine.store, "ada").await;
    assert_sound(&versions);
    assert_eq!(samples(&versions), 30);
}

#[tokio::test]
async fn a_crossing_learned_before_a_crash_is_still_published_after_it() {
    let engine = Engine::start().await;
    let generator = engine.generator(engine.store.clone());
    let mut messages = Vec::new();
    let mut events = Vec::new();
    for _ in 0..20 {
        let (event, message) = stored(&engine.store, &acceptance("ada")).await;
        events.push(event);
        messages.push(message);
    }
    deliver(&generator, &messages[..19]).await;
    // Read, claim, version: the generator crashes after it has written the version and before the outcome.
    let crashing = engine.generator(engine.failing_store(&Faults::at(3, Fault::Crashed)));
    let response = deliver(&crashing, &messages[19..]).await;
    assert_eq!(response.batch_item_failures.len(), 1);
    deliver(&generator, &messages[19..]).await;
    let Some(Outcome::Processed(processed)) = outcome(&engine.store, &events[19]).await else {
        panic!("not processed")
    };
    let hints = processed
        .signals()
        .into_iter()
        .filter_map(|signal| signal.exploration_hint);
    assert_eq!(hints.count(), 1);
    let versions = versions(&engine.store, "ada").await;
    assert_eq!(samples(&versions), 20);
}

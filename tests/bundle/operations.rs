//! What operators see of the queues, and moving dead letters back with a request.

use aws_sdk_sqs::Client;
use axum::http::Method;
use hearback_domain::learning::publication::Subject;
use hearback_lambda::http::service;
use hearback_local::redrive::DeadLetterQueue;
use hearback_operations::{MOST, Queues};
use hearback_tests::app::TestApp;
use hearback_tests::engine::Engine;
use hearback_tests::events::{acceptance, id};
use hearback_tests::faults::{Fault, Faults};
use hearback_tests::functions::call;
use hearback_tests::queue;
use serde_json::{Value, json};

use crate::redrive::{send, url};

const QUEUES: &str = "/v1/operations/queues";
const OPERATE: &str = "feedback:operate";
/// A body that no response may have.
const BODY: &str = "what a user wrote";

fn redrive(queue: &str) -> String {
    format!("/v1/operations/dead-letters/{queue}/redrive")
}

/// The member of a list whose `key` is this name.
fn named<'a>(list: &'a Value, key: &str, name: &str) -> &'a Value {
    let mut list = list.as_array().unwrap().iter();
    let found = list.find(|member| member[key] == name);
    found.unwrap_or_else(|| panic!("no {name}"))
}

#[tokio::test]
async fn operators_see_what_waits_and_why_dead_letters_failed() {
    let app = TestApp::start().await;
    let (sqs, queues) = (&app.bundle.clients.sqs, &app.bundle.queues);
    // Nothing consumes the queue of NATS here.
    send(sqs, &queues.nats, BODY, &[]).await;
    let invalid = "invalid_request: /context/labels/anna must be a label";
    for (queue, reason) in [
        (&queues.ingest_dead_letters, invalid),
        (&queues.ingest_dead_letters, "the table was unavailable"),
        (&queues.ingest_dead_letters, "not an event"),
        (&queues.ingest_dead_letters, "not an event"),
    ] {
        send(sqs, queue, BODY, &[("reason", reason), ("tenant", "acme")]).await;
    }
    send(sqs, &queues.dead_letters, BODY, &[]).await;
    let operator = app.token_of("root", "acme", OPERATE);
    // Reading does not hide a dead letter from the next reader.
    for _ in 0..2 {
        let response = app.get(&operator, QUEUES).await;
        assert_eq!(response.status, 200, "{}", response.body);
        // The names of an event's members are content, too.
        let text = response.body.to_string();
        assert!(!text.contains(BODY) && !text.contains("anna"), "{text}");
        let (work, dead) = (&response.body["queues"], &response.body["deadLetters"]);
        let nats = named(work, "name", "nats");
        assert_eq!(
            (&nats["waiting"], &nats["processing"]),
            (&json!(1), &json!(0))
        );
        assert_eq!(named(work, "name", "feedback-processed")["waiting"], 0);
        let ingest = named(dead, "queue", "ingest");
        assert_eq!(ingest["count"], 4);
        assert_eq!(
            ingest["reasons"],
            json!([
                {"reason": "not an event", "count": 2},
                {"reason": "invalid_request", "count": 1},
                {"reason": "the table was unavailable", "count": 1},
            ])
        );
        let signals = named(dead, "queue", "signals");
        let crashed = json!([{"reason": "the signal generator crashed", "count": 1}]);
        assert_eq!(signals["reasons"], crashed);
        assert_eq!(named(dead, "queue", "erasures")["count"], 0);
    }
}

#[tokio::test]
async fn a_dead_letter_that_is_moved_back_is_processed() {
    let app = TestApp::start().await;
    let event = acceptance("ada");
    let attributes = [
        ("tenant", "acme"),
        ("reason", "the table was unavailable"),
        ("hops", "7"),
    ];
    let dead_letters = &app.bundle.queues.ingest_dead_letters;
    let sqs = &app.bundle.clients.sqs;
    send(sqs, dead_letters, &event.to_string(), &attributes).await;
    let operator = app.token_of("root", "globex", OPERATE);
    let moved = app.post(&operator, &redrive("ingest"), &Value::Null).await;
    assert_eq!(moved.body, json!({"moved": 1, "failed": 0, "remaining": 0}));
    let outcome = app.outcome(&app.token("ada"), &id(&event)).await;
    assert_eq!(outcome["status"], "processed");
    let again = app.post(&operator, &redrive("ingest"), &Value::Null).await;
    assert_eq!(again.body["moved"], 0);
}

#[tokio::test]
async fn a_request_moves_a_hundred_dead_letters_and_keeps_those_without_an_origin() {
    let app = TestApp::start().await;
    let (sqs, queues) = (&app.bundle.clients.sqs, &app.bundle.queues);
    let dead_letters = &queues.nats_dead_letters;
    let all = u32::try_from(MOST + 5).unwrap();
    for number in 0..all {
        send(sqs, dead_letters, &number.to_string(), &[("reason", "x")]).await;
    }
    let operator = app.token_of("root", "acme", OPERATE);
    for (query, moved, remaining) in [
        ("", 100, 5),
        ("?most=2", 2, 3),
        ("?most=100", 3, 0),
        ("", 0, 0),
    ] {
        let path = redrive("nats") + query;
        let outcome = app.post(&operator, &path, &Value::Null).await;
        assert_eq!(
            outcome.body,
            json!({"moved": moved, "failed": 0, "remaining": remaining})
        );
    }
    let found = queue::drain(sqs, &queues.nats).await;
    let mut bodies: Vec<u32> = (found.iter())
        .map(|message| message.body.as_ref().unwrap().parse().unwrap())
        .collect();
    bodies.sort_unstable();
    assert_eq!(bodies, Vec::from_iter(0..all));
    let too_many = redrive("nats") + "?most=101";
    let too_many = app.post(&operator, &too_many, &Value::Null).await;
    assert_eq!(too_many.status, 400);

    let subjects = url(sqs, "hearback-subjects-dead-letters").await;
    send(sqs, &subjects, "no message", &[]).await;
    let outcome = app
        .post(&operator, &redrive("subjects"), &Value::Null)
        .await;
    assert_eq!(
        outcome.body,
        json!({"moved": 0, "failed": 1, "remaining": 1})
    );
}

#[tokio::test]
async fn what_cannot_be_moved_back_is_rejected_with_what_to_do() {
    let app = TestApp::start().await;
    let operator = app.token_of("root", "acme", OPERATE);
    for (queue, status, part) in [
        ("stream", 409, "hearback redrive --queue stream"),
        ("fanout", 409, "Delete them"),
        // Only a deployed stack has it.
        ("deliveries", 404, "no such dead-letter queue"),
        ("probe", 404, "no such dead-letter queue"),
    ] {
        let response = app.post(&operator, &redrive(queue), &Value::Null).await;
        assert_eq!(response.status, status, "{queue}");
        let detail = response.body["detail"].as_str().unwrap();
        assert!(detail.contains(part), "{detail}");
    }
}

/// The topic sends a message to the queue of its subject, and to insights what is counted.
#[tokio::test]
async fn what_the_topic_could_not_send_goes_to_every_queue_that_lacks_it() {
    let engine = Engine::start().await;
    let (sqs, urls) = (&engine.clients.sqs, &engine.queues);
    let name = engine.names.dead_letters_of(DeadLetterQueue::Deliveries);
    let created = sqs.create_queue().queue_name(name).send().await.unwrap();
    let dead_letters = created.queue_url.unwrap();
    for body in [
        json!({"eventType": "turn.changed"}),
        json!({"eventType": "feedback.processed"}),
        json!({"eventType": "learning.signal.generated", "signalType": "policy_update"}),
        json!({"eventType": "other"}),
    ] {
        send(sqs, &dead_letters, &body.to_string(), &[]).await;
    }
    let queues = Queues::beside(sqs.clone(), &urls.signals);
    let functions = service(hearback_operations::routes().router(queues));
    let path = redrive("deliveries");
    let request = (Method::POST, path.as_str());
    let (_, outcome) = call(&functions, ("root", OPERATE), request, &Value::Null).await;
    assert_eq!(outcome, json!({"moved": 3, "failed": 1, "remaining": 1}));
    for (queue, count) in [
        (urls.insights.as_str(), 2),
        (urls.subject(Subject::FeedbackProcessed).unwrap(), 1),
        (urls.subject(Subject::Policy).unwrap(), 1),
    ] {
        assert_eq!(queue::count(sqs, queue).await, count, "{queue}");
    }
}

#[tokio::test]
async fn no_dead_letter_is_lost_whatever_call_fails() {
    let engine = Engine::start().await;
    let (sqs, urls) = (&engine.clients.sqs, &engine.queues);
    for fault in [Fault::Unreachable, Fault::Unanswered, Fault::Crashed] {
        let calls = Faults::at_each_call(fault, async |faults| {
            for body in ["a", "b"] {
                send(sqs, &urls.nats_dead_letters, body, &[("reason", "x")]).await;
            }
            let faulty = Client::new(&faults.config(&engine.access.sqs().config()));
            let queues = Queues::beside(faulty, &urls.signals);
            let functions = service(hearback_operations::routes().router(queues));
            let path = redrive(DeadLetterQueue::Nats.as_str());
            let request = (Method::POST, path.as_str());
            call(&functions, ("root", OPERATE), request, &Value::Null).await;

            let mut found = queue::drain(sqs, &urls.nats).await;
            // One that was received and not moved is hidden for a second.
            while !queue::is_empty(sqs, &urls.nats_dead_letters).await {
                found.extend(queue::drain(sqs, &urls.nats_dead_letters).await);
            }
            let mut bodies: Vec<_> = found.into_iter().filter_map(|found| found.body).collect();
            bodies.sort_unstable();
            // Between sending and deleting it is in both queues.
            bodies.dedup();
            assert_eq!(bodies, ["a", "b"], "{fault:?} at {}", faults.at_call());
        })
        .await;
        // The count, a receive, and for each a send and a deletion.
        assert_eq!(calls, 6);
    }
}

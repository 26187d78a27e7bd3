//! `hearback redrive` moves the dead letters of every queue back.

use std::path::Path;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::MessageAttributeValue;
use hearback_domain::learning::publication::Subject;
use hearback_local::provision::SUBJECT_RECEIVES;
use hearback_tests::app::{TestApp, eventually};
use hearback_tests::events::{acceptance, id};
use hearback_tests::process::run;
use serde_json::json;

/// `hearback redrive --queue …` on a folder: whether it succeeded, and what it printed.
async fn redrive(data: &Path, queue: &str) -> (bool, String) {
    let data = data.display().to_string();
    let ended = run(["redrive", "--queue", queue, "--data", &data]).await;
    let output = [ended.stdout, ended.stderr].concat();
    (ended.status.success(), String::from_utf8(output).unwrap())
}

/// Sends a message with attributes to a queue.
pub async fn send(sqs: &Client, queue: &str, body: &str, attributes: &[(&str, &str)]) {
    let mut send = sqs.send_message().queue_url(queue).message_body(body);
    for (name, value) in attributes {
        let value = MessageAttributeValue::builder()
            .data_type("String")
            .string_value(*value)
            .build();
        send = send.message_attributes(*name, value.unwrap());
    }
    send.send().await.unwrap();
}

/// The bodies of the messages in a queue, which stay visible.
async fn bodies(sqs: &Client, queue: &str) -> Vec<String> {
    let received = sqs.receive_message().queue_url(queue);
    let received = received.max_number_of_messages(10).visibility_timeout(0);
    let received = received.message_attribute_names("All").send().await;
    let messages = received.unwrap().messages.unwrap_or_default();
    messages
        .into_iter()
        .filter_map(|message| message.body)
        .collect()
}

pub async fn url(sqs: &Client, name: &str) -> String {
    let found = sqs.get_queue_url().queue_name(name).send().await;
    found.unwrap().queue_url.unwrap()
}

#[tokio::test]
async fn redrive_keeps_the_tenant_of_a_message_and_moves_one_that_fails_again_only_once() {
    let folder = tempfile::tempdir().unwrap();
    let app = TestApp::on(Some(folder.path().to_owned())).await;
    let (sqs, queues) = (&app.bundle.clients.sqs, &app.bundle.queues);
    let event = acceptance("ada");
    let dead_letters = &queues.ingest_dead_letters;
    let attributes = [
        ("tenant", "acme"),
        ("reason", "the table was unavailable"),
        ("hops", "7"),
    ];
    send(sqs, dead_letters, &event.to_string(), &attributes).await;
    send(sqs, dead_letters, "no json", &[("reason", "not JSON")]).await;
    let (succeeded, output) = redrive(folder.path(), "ingest").await;
    assert!(succeeded, "{output}");
    assert!(output.contains("the table was unavailable"), "{output}");
    assert!(output.ends_with("2 dead letters moved back\n"), "{output}");
    let outcome = app.outcome(&app.token("ada"), &id(&event)).await;
    assert_eq!(outcome["status"], "processed");
    eventually(|| async { (bodies(sqs, dead_letters).await.len() == 1).then_some(()) }).await;
}

#[tokio::test]
async fn steps_of_imports_and_erasures_go_back_to_their_queues() {
    let folder = tempfile::tempdir().unwrap();
    let app = TestApp::on(Some(folder.path().to_owned())).await;
    let (sqs, queues) = (&app.bundle.clients.sqs, &app.bundle.queues);
    // Steps of an unknown import and an unknown erasure, which end immediately.
    let id = "f47ac10b-58cc-4372-a567-0e02b2c3d479";
    let pass = json!({"tenant": "acme", "user": "ada", "id": id, "step": "rows", "found": false});
    let begin = json!({"Records": []});
    for (queue, dead_letters, body) in [
        ("erasures", &queues.erasures_dead_letters, pass),
        ("imports", &queues.imports_dead_letters, begin),
    ] {
        let attributes = [("reason", "the bucket was unavailable"), ("hops", "1000")];
        send(sqs, dead_letters, &body.to_string(), &attributes).await;
        let (succeeded, output) = redrive(folder.path(), queue).await;
        assert!(succeeded, "{output}");
        assert!(output.contains("the bucket was unavailable"), "{output}");
        assert!(output.ends_with("1 dead letter moved back\n"), "{output}");
        assert!(bodies(sqs, dead_letters).await.is_empty(), "{queue}");
    }
}

#[tokio::test]
async fn messages_of_subjects_go_back_to_the_queue_of_their_subject() {
    let folder = tempfile::tempdir().unwrap();
    let app = TestApp::on(Some(folder.path().to_owned())).await;
    let (sqs, queues) = (&app.bundle.clients.sqs, &app.bundle.queues);
    let reward = queues.subject(Subject::Reward).unwrap();
    // SQS moves a message that a subscriber receives too often to the DLQ.
    send(sqs, reward, "what a subscriber fails on", &[]).await;
    for _ in 0..SUBJECT_RECEIVES {
        assert_eq!(bodies(sqs, reward).await.len(), 1);
    }
    assert!(bodies(sqs, reward).await.is_empty());
    // The subject of a message without that history is read from its body.
    let dead_letters = url(sqs, "hearback-subjects-dead-letters").await;
    for body in [
        json!({"eventType": "learning.signal.generated", "signalType": "policy_update"}),
        json!({"eventType": "feedback.retracted"}),
        json!({"eventType": "other"}),
    ] {
        send(sqs, &dead_letters, &body.to_string(), &[]).await;
    }
    let (succeeded, output) = redrive(folder.path(), "subjects").await;
    assert!(!succeeded, "one message stays: {output}");
    assert!(output.contains("3 dead letters moved back\n"), "{output}");
    assert_eq!(bodies(sqs, reward).await, ["what a subscriber fails on"]);
    for (subject, part) in [
        (Subject::Policy, "policy_update"),
        (Subject::FeedbackProcessed, "feedback.retracted"),
    ] {
        let found = bodies(sqs, queues.subject(subject).unwrap()).await;
        assert!(found.len() == 1 && found[0].contains(part), "{found:?}");
    }
    // A queue that exists only in AWS.
    let (succeeded, output) = redrive(folder.path(), "deliveries").await;
    assert!(!succeeded);
    assert!(
        output.contains("hearback-deliveries-dead-letters"),
        "{output}"
    );
}

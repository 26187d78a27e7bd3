//! Messages that no consumer can read become dead letters of their queue, and the others are processed.

use aws_sdk_sqs::types::MessageAttributeValue;

use super::*;

/// Messages that no consumer can read.
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
async fn poison_messages_go_to_the_dlq_of_their_queue_and_the_others_are_processed() {
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
    let notification = hearback_batch::notification(&import, None);
    send(&queues.imports, notification).await;
    events.push(id(&imported));

    for event in &events {
        let status = eventually(|| async {
            let response = app.get(&ada, &format!("/v1/feedback/{event}")).await;
            let status = response.body["status"].as_str()?.to_owned();
            (status != "queued").then_some(status)
        });
        assert_eq!(status.await, "processed");
    }
    eventually(|| async {
        let path = "/v1/users/eve/data/erasure";
        let response = app.get(&app.token("eve"), path).await;
        (response.body["status"] == "done").then_some(())
    })
    .await;
    for dead_letters in [
        names.dead_letters(),
        names.ingest_dead_letters(),
        names.imports_dead_letters(),
        names.erasures_dead_letters(),
    ] {
        let url = sqs.get_queue_url().queue_name(&dead_letters).send().await;
        let url = url.unwrap().queue_url.unwrap();
        wait_for_messages(sqs, &url, GARBAGE.len()).await;
        let mut messages = receive_all(sqs, &url).await;
        if dead_letters == names.ingest_dead_letters() {
            for message in &messages {
                assert_eq!(attribute(message, "tenant"), "acme", "{message:?}");
                assert!(!attribute(message, "reason").is_empty());
            }
            continue;
        }
        // Two workers may send the same dead letter, so there may be duplicates, but no others.
        let has = |messages: &[Message], garbage| {
            messages
                .iter()
                .any(|message| message.body() == Some(garbage))
        };
        let all = async {
            while !GARBAGE.iter().all(|garbage| has(&messages, garbage)) {
                messages.extend(receive_all(sqs, &url).await);
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let all = tokio::time::timeout(Duration::from_secs(30), all).await;
        all.unwrap_or_else(|_| panic!("not every message is in {dead_letters}"));
        for message in &messages {
            assert!(GARBAGE.contains(&message.body().unwrap()), "{message:?}");
        }
    }
}

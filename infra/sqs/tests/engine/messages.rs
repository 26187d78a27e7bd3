//! A message is received as it was sent, with the digests that a receiver checks.

use aws_sdk_sqs::{
    error::ProvideErrorMetadata,
    primitives::Blob,
    types::{MessageAttributeValue, MessageSystemAttributeName, QueueAttributeName},
};

use crate::harness::{Engine, bodies, system};

fn attribute(data_type: &str, value: &str) -> MessageAttributeValue {
    MessageAttributeValue::builder()
        .data_type(data_type)
        .string_value(value)
        .build()
        .unwrap()
}

fn binary(value: &str) -> MessageAttributeValue {
    MessageAttributeValue::builder()
        .data_type("Binary")
        .binary_value(Blob::new(value))
        .build()
        .unwrap()
}

#[tokio::test]
async fn a_message_is_received_as_sent_and_gone_when_deleted() {
    let engine = Engine::start().await;
    let queue = engine.queue("jobs", &[]).await;
    let sent = engine
        .sqs
        .send_message()
        .queue_url(&queue)
        .message_body("hello world")
        .send();
    let sent = sent.await.unwrap();
    // RFC 1321's algorithm; the value is that of `printf 'hello world' | md5sum`.
    assert_eq!(
        sent.md5_of_message_body(),
        Some("5eb63bbbe01eeed093cb22bb8f5acdc3")
    );
    let received = engine.receive(&queue).await;
    assert_eq!(bodies(&received), ["hello world"]);
    assert_eq!(received[0].message_id(), sent.message_id());
    assert_eq!(received[0].md5_of_body(), sent.md5_of_message_body());
    assert_eq!(received[0].md5_of_message_attributes(), None);
    assert_eq!(engine.counts(&queue).await, ["0", "1", "0"]);
    engine.delete(&queue, &received[0]).await;
    engine.delete(&queue, &received[0]).await;
    assert_eq!(engine.counts(&queue).await, ["0", "0", "0"]);
}

#[tokio::test]
async fn a_receiver_gets_the_system_attributes_it_asks_for() {
    let engine = Engine::start().await;
    let queue = engine.queue("jobs", &[]).await;
    engine.send(&queue, "x").await;
    let all = engine.receive(&queue).await.remove(0);
    let time = |name| system(&all, &name).unwrap().parse::<u64>().unwrap();
    let sent = time(MessageSystemAttributeName::SentTimestamp);
    assert!(sent > 1_700_000_000_000);
    assert!(time(MessageSystemAttributeName::ApproximateFirstReceiveTimestamp) >= sent);
    assert_eq!(
        system(&all, &MessageSystemAttributeName::SenderId).unwrap(),
        "000000000000"
    );
    assert_eq!(
        system(&all, &MessageSystemAttributeName::DeadLetterQueueSourceArn),
        None
    );
    engine.hide(&queue, &all, 0).await;
    #[expect(deprecated, reason = "older callers still use it")]
    let request = engine
        .sqs
        .receive_message()
        .attribute_names(QueueAttributeName::from("SenderId"));
    let some = request
        .queue_url(&queue)
        .send()
        .await
        .unwrap()
        .messages
        .unwrap();
    assert_eq!(some[0].attributes().unwrap().len(), 1);
    engine.hide(&queue, &some[0], 0).await;
    let none = engine
        .sqs
        .receive_message()
        .queue_url(&queue)
        .send()
        .await
        .unwrap();
    assert_eq!(none.messages()[0].attributes(), None);
}

/// The expected digests are those of other implementations: the first two are examples in SQS's own
/// documentation, the third is in several test suites.
#[tokio::test]
async fn digests_of_attributes_are_those_of_other_implementations() {
    let engine = Engine::start().await;
    let queue = engine.queue("jobs", &[]).await;
    let cases = [
        (
            vec![
                (
                    "test_attribute_name_2",
                    attribute("String", "test_attribute_value_2"),
                ),
                (
                    "test_attribute_name_1",
                    attribute("String", "test_attribute_value_1"),
                ),
            ],
            "d53f3b558fe951154770f25cb63dbba9",
        ),
        (
            vec![("test_attribute_name", binary("test_attribute_value"))],
            "23f6bd27ea87aab7dfeadcc9aebee495",
        ),
        (
            vec![("timestamp", attribute("Number", "1493147359900"))],
            "235c5c510d26fb653d073faed50ae77c",
        ),
    ];
    for (attributes, digest) in cases {
        let mut request = engine
            .sqs
            .send_message()
            .queue_url(&queue)
            .message_body("x");
        for (name, value) in attributes {
            request = request.message_attributes(name, value);
        }
        assert_eq!(
            request.send().await.unwrap().md5_of_message_attributes(),
            Some(digest)
        );
        let request = engine.sqs.receive_message().queue_url(&queue);
        let received = request.message_attribute_names("All").send().await.unwrap();
        assert_eq!(
            received.messages()[0].md5_of_message_attributes(),
            Some(digest)
        );
    }
}

#[tokio::test]
async fn a_receiver_selects_attributes_by_name_or_prefix() {
    let engine = Engine::start().await;
    let queue = engine.queue("jobs", &[]).await;
    engine
        .sqs
        .send_message()
        .queue_url(&queue)
        .message_body("x")
        .message_attributes("trace.id", attribute("String.uuid", "1"))
        .message_attributes("trace.span", binary("2"))
        .message_attributes("other", attribute("Number", "3.5"))
        .send()
        .await
        .unwrap();
    let cases: [(&[&str], &[&str]); 4] = [
        (&["trace.*"], &["trace.id", "trace.span"]),
        (&["other"], &["other"]),
        (&[".*"], &["other", "trace.id", "trace.span"]),
        (&[], &[]),
    ];
    for (wanted, expected) in cases {
        let mut request = engine
            .sqs
            .receive_message()
            .queue_url(&queue)
            .visibility_timeout(0);
        for name in wanted {
            request = request.message_attribute_names(*name);
        }
        let message = request.send().await.unwrap().messages.unwrap().remove(0);
        let attributes = message.message_attributes.unwrap_or_default();
        let mut names: Vec<_> = attributes.keys().collect();
        names.sort();
        assert_eq!(names, expected);
        assert_eq!(
            message.md5_of_message_attributes.is_some(),
            !expected.is_empty()
        );
        if let Some(span) = attributes.get("trace.span") {
            assert_eq!(span.binary_value(), Some(&Blob::new("2")));
        }
    }
}

#[tokio::test]
async fn body_above_the_queue_limit_is_rejected() {
    let engine = Engine::start().await;
    let queue = engine.queue("jobs", &[]).await;
    let fits = "x".repeat(1_048_576 - "nString1".len());
    let send = |body: String| {
        engine
            .sqs
            .send_message()
            .queue_url(&queue)
            .message_body(body)
            .message_attributes("n", attribute("String", "1"))
            .send()
    };
    send(fits.clone()).await.unwrap();
    assert_eq!(engine.receive(&queue).await[0].body(), Some(fits.as_str()));
    let error = send(format!("{fits}x")).await.unwrap_err();
    assert_eq!(error.code(), Some("InvalidParameterValue"));
}

#[tokio::test]
async fn body_with_a_forbidden_character_is_rejected() {
    let engine = Engine::start().await;
    let queue = engine.queue("jobs", &[]).await;
    engine.send(&queue, "tab\tnew line\n \u{1F600}").await;
    for body in ["nul \0", "bell \u{7}", "\u{FFFF}"] {
        let error = engine
            .sqs
            .send_message()
            .queue_url(&queue)
            .message_body(body)
            .send()
            .await;
        assert!(
            error
                .unwrap_err()
                .into_service_error()
                .is_invalid_message_contents()
        );
    }
    let empty = engine
        .sqs
        .send_message()
        .queue_url(&queue)
        .message_body("")
        .send()
        .await;
    assert_eq!(empty.unwrap_err().code(), Some("MissingParameter"));
}

#[tokio::test]
async fn unsupported_parameters_are_rejected() {
    let engine = Engine::start().await;
    let queue = engine.queue("jobs", &[]).await;
    let send = engine
        .sqs
        .send_message()
        .queue_url(&queue)
        .message_body("x")
        .message_deduplication_id("d");
    assert!(
        send.send()
            .await
            .unwrap_err()
            .into_service_error()
            .is_unsupported_operation()
    );
    let tags = engine
        .sqs
        .list_queue_tags()
        .queue_url(&queue)
        .send()
        .await
        .unwrap_err();
    assert!(tags.into_service_error().is_unsupported_operation());
}

#[tokio::test]
async fn a_garbage_receipt_handle_is_invalid() {
    let engine = Engine::start().await;
    let queue = engine.queue("jobs", &[]).await;
    let delete = engine
        .sqs
        .delete_message()
        .queue_url(&queue)
        .receipt_handle("garbage");
    let error = delete.send().await.unwrap_err().into_service_error();
    assert!(error.is_receipt_handle_is_invalid());
}

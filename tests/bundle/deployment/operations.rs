//! The function `operations`, with the beginning of the queues' URLs as the template gives it.

use hearback_operations::QUEUES_URL;
use hearback_tests::queue::count;

use super::*;

#[tokio::test]
async fn operations_lists_the_queues_and_moves_dead_letters_back() {
    let engine = Engine::start().await;
    let (sqs, queues) = (&engine.clients.sqs, &engine.queues);
    let send = sqs.send_message().queue_url(&queues.nats_dead_letters);
    send.message_body("{}").send().await.unwrap();
    let beginning = queues.signals.strip_suffix("signals").unwrap();
    let operations = start(&engine, "operations", &[(QUEUES_URL, beginning)]).await;
    let as_operator = |method, path| {
        let mut request = request(method, path, &Value::Null);
        let claims = &mut request["requestContext"]["authorizer"]["jwt"]["claims"];
        claims["scope"] = json!("feedback:operate");
        request
    };
    let list = as_operator("GET", "/v1/operations/queues");
    let (status, body) = call(&operations, &list).await;
    assert_eq!(status, 200, "{body}");
    let nats = json!({
        "queue": "nats",
        "holds": "Published messages that NATS did not accept",
        "count": 1,
        "redrivable": true,
        "reasons": [{"reason": "the topic could not send it, or the function crashed", "count": 1}],
    });
    assert!(body["deadLetters"].as_array().unwrap().contains(&nats));
    let redrive = as_operator("POST", "/v1/operations/dead-letters/nats/redrive");
    let (status, body) = call(&operations, &redrive).await;
    assert_eq!((status, &body["moved"]), (200, &json!(1)), "{body}");
    assert_eq!(count(sqs, &queues.nats).await, 1);
}

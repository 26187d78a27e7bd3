//! The functions `stream` and `fanout`, with a socket that a test reads.

use hearback_stream::sockets::CONNECTIONS_URL;
use hearback_stream::{FANOUT_DEAD_LETTERS_URL, FANOUT_URL, STREAM_URL};
use hearback_tests::live::{TestSockets, sent};
use hearback_tests::queue;
use hearback_tests::turns::event_message;

use super::*;

/// The event of a WebSocket API.
fn websocket(kind: &str, query: &Value, body: &str) -> Value {
    json!({
        "headers": {"Host": "abc.execute-api.us-east-1.amazonaws.com", "Upgrade": "websocket"},
        "multiValueHeaders": {"Host": ["abc.execute-api.us-east-1.amazonaws.com"]},
        "queryStringParameters": query,
        "requestContext": {
            "routeKey": if kind == "MESSAGE" { "$default" } else { "$connect" },
            "eventType": kind, "extendedRequestId": "e", "messageDirection": "IN", "stage": "live",
            "requestTime": "25/Nov/2026:04:30:00 +0000", "requestTimeEpoch": 1_795_580_000_000_i64,
            "connectedAt": 1_795_580_000_000_i64, "requestId": "r", "connectionId": "L0SM9cOFvHcCIhw=",
            "identity": {"sourceIp": "192.0.2.1"}, "apiId": "abc",
            "domainName": "abc.execute-api.us-east-1.amazonaws.com",
        },
        "body": body,
        "isBase64Encoded": false,
    })
}

#[tokio::test]
async fn stream_and_fanout_serve_a_websocket() {
    let engine = Engine::start().await;
    let sockets = TestSockets::start().await;
    let mut frames = sockets.sockets.open("L0SM9cOFvHcCIhw=").unwrap();
    let queues = &engine.queues;
    let settings = [
        (PSEUDONYM_KEY, "key"),
        (STREAM_URL, "wss://abc.example.com/live"),
        (CONNECTIONS_URL, &sockets.url),
        (FANOUT_URL, &queues.fanout),
        (FANOUT_DEAD_LETTERS_URL, &queues.fanout_dead_letters),
    ];
    let stream = start(&engine, "stream", &settings).await;
    let path = "/v1/feedback/events/ticket";
    let mut take = request("POST", path, &Value::Null);
    take["requestContext"]["authorizer"]["jwt"]["claims"]["exp"] = json!("4000000000");
    let (status, body) = call(&stream, &take).await;
    assert_eq!(
        (status, &body["url"]),
        (201, &json!("wss://abc.example.com/live"))
    );
    let ticket = json!({"ticket": body["ticket"]});
    for expected in [200, 401] {
        let connected = stream.invoke(&websocket("CONNECT", &ticket, "")).await;
        assert_eq!(connected.unwrap()["statusCode"], expected);
    }
    let subscribe = websocket("MESSAGE", &Value::Null, r#"{"action":"subscribe"}"#);
    assert_eq!(stream.invoke(&subscribe).await.unwrap()["statusCode"], 200);
    assert_eq!(sent(&mut frames)[0]["type"], "subscribed");
    let submit = start_http(&engine, "submit").await;
    call(&submit, &event(SUBMIT)).await;
    let signals = start_signals(&engine).await;
    // The message of the sample is old, and its outcome has expired.
    let stored = stored(&engine).await.core.feedback_id;
    let message = event_message(&engine, &json!(stored)).await;
    let batch = json!(queue::batch([message]));
    signals.invoke(&batch).await.unwrap();
    let fanout = start(&engine, "fanout", &settings).await;
    let mut published = event(QUEUED);
    published["Records"].as_array_mut().unwrap().truncate(1);
    published["Records"][0]["body"] = json!(r#"{"tenant":"acme","userId":"ada"}"#);
    let response = fanout.invoke(&published).await.unwrap();
    assert_eq!(response["batchItemFailures"], json!([]));
    let frames = sent(&mut frames);
    assert_eq!(frames[0]["events"][0]["eventType"], "feedback.processed");
    let left = stream
        .invoke(&websocket("DISCONNECT", &Value::Null, ""))
        .await;
    assert_eq!(left.unwrap()["statusCode"], 200);
    assert_eq!(
        engine.store.connection("L0SM9cOFvHcCIhw=").await.unwrap(),
        None
    );
}

//! The functions `erasure` and `eraser`, with a message that is too early.

use hearback_erasure::{ERASURES_DEAD_LETTERS_URL, ERASURES_URL};

use super::*;

#[tokio::test]
async fn erasure_responds_and_eraser_waits_for_requests_in_progress() {
    let engine = Engine::start().await;
    let submit = start_http(&engine, "submit").await;
    assert_eq!(call(&submit, &event(SUBMIT)).await.0, 202);
    let signals = start_signals(&engine).await;
    let mut queued = event(QUEUED);
    queued["Records"].as_array_mut().unwrap().truncate(1);
    signals.invoke(&queued).await.unwrap();
    assert!(stored(&engine).await.outcome.is_some());
    let queue = (ERASURES_URL, engine.queues.erasures.as_str());
    let erasure = start(&engine, "erasure", &[queue, (PSEUDONYM_KEY, "key")]).await;
    let path = "/v1/users/ada/data";
    let (status, requested) = call(&erasure, &request("DELETE", path, &Value::Null)).await;
    assert_eq!((status, &requested["status"]), (202, &json!("pending")));
    // The queue delays the message for 15 minutes. Delivered immediately, it is too early.
    let dead_letters = engine.queues.erasures_dead_letters.as_str();
    let dead_letters = (ERASURES_DEAD_LETTERS_URL, dead_letters);
    let eraser = start(&engine, "eraser", &[queue, dead_letters]).await;
    let task = json!({
        "tenant": "acme", "user": "ada", "id": requested["erasureId"],
        "step": {"traces": [0, null]}, "found": false,
    });
    let mut message = event(QUEUED);
    message["Records"].as_array_mut().unwrap().truncate(1);
    message["Records"][0]["body"] = json!(task.to_string());
    let response = eraser.invoke(&message).await.unwrap();
    assert_eq!(response["batchItemFailures"], json!([]));
    let (_, body) = call(
        &erasure,
        &request("GET", &format!("{path}/erasure"), &Value::Null),
    )
    .await;
    assert_eq!(
        (&body["status"], &body["removed"]["events"]),
        (&json!("pending"), &json!(0))
    );
    // An invalid message fails alone.
    message["Records"][0]["body"] = json!("{}");
    let response = eraser.invoke(&message).await.unwrap();
    assert_eq!(response["batchItemFailures"].as_array().unwrap().len(), 1);
}

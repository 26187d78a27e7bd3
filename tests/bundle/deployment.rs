//! The built functions as processes, with Lambda's event formats and Runtime API.

mod console;
mod erasure;
mod live;
mod nats;
mod operations;
mod webhooks;

use std::collections::HashMap;

use hearback_domain::learning::publication::Outcome;
use hearback_lambda::aws::Service;
use hearback_lambda::settings::{BUCKET, DEAD_LETTERS_URL, PSEUDONYM_KEY, TABLE};
use hearback_local::engines::Access;
use hearback_storage::events::StoredEvent;
use hearback_storage::stream::{self, Submitted};
use hearback_tests::engine::Engine;
use hearback_tests::process::{FUNCTION, bootstrap};
use hearback_tests::runtime_api::Function;
use hearback_tests::turns::{SIGNALS, message};
use serde_json::{Value, json};

/// The event of an HTTP API for `POST /v1/feedback/submit`.
const SUBMIT: &str = include_str!("events/http_submit.json");
/// The same with a base64 body.
const SUBMIT_BASE64: &str = include_str!("events/http_submit_base64.json");
/// The event of an HTTP API for `GET /v1/feedback/{feedbackId}`.
const FEEDBACK: &str = include_str!("events/http_feedback.json");
/// The event of an HTTP API for `GET /v1/preferences/{userId}/resolved`.
const PREFERENCES: &str = include_str!("events/http_preferences.json");
/// The event of an SQS event source: the event of [`SUBMIT`], and a poison message.
const QUEUED: &str = include_str!("events/sqs_signals.json");
/// The input of a pipe's enrichment: the outcome of that event, and one of a duplicate.
const RESULTS: &str = include_str!("events/pipe_results.json");

fn event(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Starts a function on the engine, with the settings that the template gives it.
async fn start(engine: &Engine, name: &str, settings: &[(&str, &str)]) -> Function {
    let Access { endpoints, keys } = &engine.access;
    let mut variables: HashMap<String, String> = HashMap::from([
        (FUNCTION.to_owned(), name.to_owned()),
        (TABLE.to_owned(), engine.names.table()),
        (BUCKET.to_owned(), engine.names.bucket()),
        (endpoint(Service::DynamoDb), endpoints.dynamodb.clone()),
        (endpoint(Service::Sqs), endpoints.sqs.clone()),
        (endpoint(Service::S3), endpoints.s3.clone()),
        ("AWS_ACCESS_KEY_ID".to_owned(), keys.access_key_id.clone()),
        (
            "AWS_SECRET_ACCESS_KEY".to_owned(),
            keys.secret_access_key.clone(),
        ),
    ]);
    for (name, value) in settings {
        variables.insert((*name).to_owned(), (*value).to_owned());
    }
    Function::start(&bootstrap(name), &variables).await
}

fn endpoint(service: Service) -> String {
    service.endpoint_variable().to_owned()
}

async fn start_http(engine: &Engine, name: &str) -> Function {
    start(engine, name, &[(PSEUDONYM_KEY, "key")]).await
}

async fn start_signals(engine: &Engine) -> Function {
    let dead_letters = [(DEAD_LETTERS_URL, engine.queues.dead_letters.as_str())];
    start(engine, "signals", &dead_letters).await
}

/// Invokes a function with an HTTP event; returns the status and the JSON body.
async fn call(function: &Function, event: &Value) -> (u64, Value) {
    let response = function.invoke(event).await.unwrap();
    let body = response["body"].as_str().unwrap();
    assert_eq!(response["isBase64Encoded"], false);
    (
        response["statusCode"].as_u64().unwrap(),
        serde_json::from_str(body).unwrap(),
    )
}

/// The stored event of [`SUBMIT`].
async fn stored(engine: &Engine) -> StoredEvent {
    let body: Value = serde_json::from_str(event(SUBMIT)["body"].as_str().unwrap()).unwrap();
    let feedback_id = body["feedbackId"].as_str().unwrap().parse().unwrap();
    let tenant = "acme".try_into().unwrap();
    let found = engine
        .store
        .event(&tenant, feedback_id, chrono::Utc::now())
        .await
        .unwrap();
    found.expect("the event is stored")
}

#[tokio::test]
async fn submit_accepts_an_event_once() {
    let engine = Engine::start().await;
    let submit = start_http(&engine, "submit").await;
    let (status, body) = call(&submit, &event(SUBMIT)).await;
    assert_eq!(status, 202);
    assert_eq!(body["status"], "queued");
    assert_eq!(
        body["dedupeKey"],
        "ada:artifact-456:artifact-acceptance:2026-01-04T09"
    );
    let (status, body) = call(&submit, &event(SUBMIT)).await;
    assert_eq!(status, 409);
    assert_eq!(body["error"], "duplicate_feedback_id");
    // The sample message of the pipe equals the stored event.
    let message = event(QUEUED)["Records"][0]["body"].clone();
    let mut core = stored(&engine).await.core;
    let Submitted::Event(sent) = stream::submitted(message.as_str().unwrap()).unwrap() else {
        panic!("no event")
    };
    core.received_at = sent.received_at;
    assert_eq!(core, *sent);
}

/// The event of an HTTP API, with the path decoded.
fn request(method: &str, path: &str, body: &Value) -> Value {
    let mut request = event(SUBMIT);
    request["rawPath"] = json!(path);
    request["requestContext"]["http"]["method"] = json!(method);
    request["requestContext"]["http"]["path"] = json!(path);
    request["body"] = json!(body.to_string());
    request
}

#[tokio::test]
async fn a_turn_id_may_contain_any_characters() {
    let engine = Engine::start().await;
    let turns = start_http(&engine, "turns").await;
    let submit = start_http(&engine, "submit").await;
    let retrieval = start_http(&engine, "retrieval").await;
    let path = "/conversations/acme/order-service/conv 1/turns/a#b%41 é🙂";
    let turn = json!({"user": {"text": "a"}, "assistant": {"text": "b"}});
    let (status, body) = call(&turns, &request("PUT", path, &turn)).await;
    assert_eq!((status, &body["turn_id"]), (201, &json!("a#b%41 é🙂")));
    assert_eq!(body["conversation_id"], "conv 1");
    let reaction = json!({"reaction": "ok"});
    let feedback = request("POST", &format!("{path}/feedback"), &reaction);
    assert_eq!(call(&submit, &feedback).await.0, 200);
    let (status, body) = call(&retrieval, &request("GET", path, &Value::Null)).await;
    assert_eq!(status, 200);
    assert_eq!(body["assistant"]["text"], "b");
    assert_eq!(body["reactions"][0]["reaction"]["reaction"], "ok");
    // Another spelling names another turn.
    let other = path.replace("%41", "A");
    assert_eq!(
        call(&retrieval, &request("GET", &other, &Value::Null))
            .await
            .0,
        404
    );
}

#[tokio::test]
async fn a_response_carries_the_request_id_of_the_http_api() {
    let engine = Engine::start().await;
    let submit = start_http(&engine, "submit").await;
    let mut request = event(SUBMIT);
    request["body"] = json!("{}");
    let response = submit.invoke(&request).await.unwrap();
    assert_eq!(response["statusCode"], 400);
    assert_eq!(
        response["headers"]["content-type"],
        "application/problem+json"
    );
    let request_id = &request["requestContext"]["requestId"];
    assert_eq!(&response["headers"]["x-request-id"], request_id);
    let problem: Value = serde_json::from_str(response["body"].as_str().unwrap()).unwrap();
    assert_eq!(&problem["request_id"], request_id);
}

#[tokio::test]
async fn a_request_without_verified_claims_is_unauthorized() {
    let engine = Engine::start().await;
    for (name, request) in [
        ("submit", SUBMIT),
        ("retrieval", FEEDBACK),
        ("preferences", PREFERENCES),
    ] {
        let function = start_http(&engine, name).await;
        let mut request = event(request);
        let context = request["requestContext"].as_object_mut().unwrap();
        context.remove("authorizer").unwrap();
        let (status, body) = call(&function, &request).await;
        assert_eq!(status, 401, "{name}");
        assert_eq!(body["error"], "unauthorized", "{name}");
    }
}

#[tokio::test]
async fn a_base64_body_is_decoded() {
    let engine = Engine::start().await;
    let submit = start_http(&engine, "submit").await;
    let (status, body) = call(&submit, &event(SUBMIT_BASE64)).await;
    assert_eq!(status, 202, "{body}");
    let feedback_id = body["feedbackId"].as_str().unwrap().parse().unwrap();
    let tenant = "acme".try_into().unwrap();
    let found = engine
        .store
        .event(&tenant, feedback_id, chrono::Utc::now())
        .await
        .unwrap();
    let comment = found.unwrap().text.comment;
    assert_eq!(comment.as_deref(), Some("Grüße 👍"));
}

#[tokio::test]
async fn an_unsupported_method_gets_the_problem_document_of_the_function() {
    let engine = Engine::start().await;
    let submit = start_http(&engine, "submit").await;
    let mut request = event(SUBMIT);
    request["routeKey"] = json!("ANY /v1/feedback/submit");
    request["requestContext"]["routeKey"] = json!("ANY /v1/feedback/submit");
    request["requestContext"]["http"]["method"] = json!("DELETE");
    let (status, body) = call(&submit, &request).await;
    assert_eq!(status, 405);
    assert_eq!(body["error"], "method_not_allowed");
}

#[tokio::test]
async fn retrieval_and_preferences_return_what_submit_and_signals_wrote() {
    let engine = Engine::start().await;
    let retrieval = start_http(&engine, "retrieval").await;
    let preferences = start_http(&engine, "preferences").await;
    let (status, _) = call(&retrieval, &event(FEEDBACK)).await;
    assert_eq!(status, 404);
    let (status, body) = call(&preferences, &event(PREFERENCES)).await;
    assert_eq!((status, &body["preferenceVersion"]), (200, &json!(0)));

    let submit = start_http(&engine, "submit").await;
    call(&submit, &event(SUBMIT)).await;
    let (status, body) = call(&retrieval, &event(FEEDBACK)).await;
    assert_eq!((status, &body["status"]), (200, &json!("queued")));

    let signals = start_signals(&engine).await;
    signals.invoke(&event(QUEUED)).await.unwrap();
    let (status, body) = call(&retrieval, &event(FEEDBACK)).await;
    assert_eq!((status, &body["status"]), (200, &json!("processed")));
    assert_eq!(body["signals"][0]["reward"]["value"], 0.85);
    let (status, body) = call(&preferences, &event(PREFERENCES)).await;
    assert_eq!((status, &body["preferenceVersion"]), (200, &json!(1)));
}

#[tokio::test]
async fn signals_reports_poison_messages_and_processes_the_rest() {
    let engine = Engine::start().await;
    let submit = start_http(&engine, "submit").await;
    call(&submit, &event(SUBMIT)).await;
    let signals = start_signals(&engine).await;
    let batch = event(QUEUED);
    let poison = &batch["Records"][1]["messageId"];
    let response = signals.invoke(&batch).await.unwrap();
    assert_eq!(
        response["batchItemFailures"],
        json!([{"itemIdentifier": poison}])
    );
    let outcome = stored(&engine).await.outcome;
    assert!(
        matches!(outcome, Some(Outcome::Processed(_))),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn signals_sends_a_message_to_the_dlq_at_its_last_receive() {
    let engine = Engine::start().await;
    let signals = start_signals(&engine).await;
    let mut batch = event(QUEUED);
    batch["Records"].as_array_mut().unwrap().remove(0);
    batch["Records"][0]["attributes"]["ApproximateReceiveCount"] = json!("5");
    let response = signals.invoke(&batch).await.unwrap();
    assert_eq!(response["batchItemFailures"], json!([]));

    let dead_letters = engine
        .clients
        .sqs
        .receive_message()
        .queue_url(&engine.queues.dead_letters)
        .message_attribute_names("All");
    let dead_letters = dead_letters.send().await.unwrap().messages.unwrap();
    assert_eq!(dead_letters.len(), 1);
    assert_eq!(
        dead_letters[0].body.as_deref(),
        Some("this is no stream record")
    );
    let reason = &dead_letters[0].message_attributes.as_ref().unwrap()["reason"];
    assert_eq!(
        reason.string_value.as_deref(),
        Some("stored stream record cannot be read: it is not JSON")
    );
}

#[tokio::test]
async fn export_responds_by_trace_and_writes_a_day_and_training_data_to_the_bucket() {
    let engine = Engine::start().await;
    let turns = start_http(&engine, "turns").await;
    let submit = start_http(&engine, "submit").await;
    let turn = message("m", "question", "answer");
    let path = "/conversations/acme/order-service/c/turns/t";
    assert_eq!(call(&turns, &request("PUT", path, &turn)).await.0, 201);
    let edit = json!({"message_id": "m", "signal": "edit", "reason": "better", "trace_id": "x"});
    assert_eq!(call(&submit, &request("POST", SIGNALS, &edit)).await.0, 201);

    // The event has the query in a member of its own.
    let listed = |method: &str, query: &str| {
        let mut request = request(method, SIGNALS, &Value::Null);
        request["rawQueryString"] = json!(query);
        request
    };
    let retrieval = start_http(&engine, "retrieval").await;
    let (_, page) = call(&retrieval, &listed("GET", "message_id=m&limit=5")).await;
    assert_eq!(page["feedback"][0]["reason"], "better");
    let (_, page) = call(&retrieval, &listed("GET", "message_id=other")).await;
    assert_eq!(page["feedback"], json!([]));
    let helpful = json!({"message_id": "m", "signal": "helpful"});
    call(&submit, &request("POST", SIGNALS, &helpful)).await;
    let withdrawn = submit
        .invoke(&listed("DELETE", "message_id=m&signal=helpful"))
        .await
        .unwrap();
    assert_eq!(withdrawn["statusCode"], 204);
    let (_, page) = call(&retrieval, &listed("GET", "")).await;
    assert_eq!(page["feedback"].as_array().unwrap().len(), 1);

    let export = start(&engine, "export", &[]).await;
    let by_trace = json!({"tenant": "acme", "trace_id": "x"});
    let response = export.invoke(&by_trace).await.unwrap();
    assert_eq!(response["rows"][0]["prompt"], "question");
    assert_eq!(response["rows"][0]["preferred_answer"], "better");
    let today = chrono::Utc::now().date_naive().to_string();
    let by_day = json!({"tenant": "acme", "day": today});
    let response = export.invoke(&by_day).await.unwrap();
    assert_eq!(response["rows"], 1);
    assert_eq!(response["files"].as_array().unwrap().len(), 1);
    assert_eq!(response["resume"], Value::Null);
    let project = json!({"project": "order-service", "from": today});
    let training = json!({"tenant": "acme", "training": project});
    let response = export.invoke(&training).await.unwrap();
    assert_eq!(response["pairs"]["rows"], 1);
    assert_eq!(response["resume"], Value::Null);
    // An invalid request is rejected with its error.
    let rejected = export.invoke(&json!({"tenant": "acme"})).await.unwrap_err();
    assert!(
        rejected.to_string().contains("one of trace_id"),
        "{rejected}"
    );
}

#[tokio::test]
async fn publish_converts_records_of_the_results_pipe_to_messages() {
    let publish = bootstrap("publish");
    // It needs no settings.
    let named = HashMap::from([(FUNCTION.to_owned(), "publish".to_owned())]);
    let publish = Function::start(&publish, &named).await;
    let messages = publish.invoke(&event(RESULTS)).await.unwrap();
    let messages = messages.as_array().unwrap();
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert_eq!(messages[0]["eventType"], "feedback.processed");
    assert_eq!(messages[0]["outcome"], "accepted");
    assert_eq!(messages[1]["eventType"], "learning.signal.generated");
    assert_eq!(messages[1]["reward"]["value"], 0.85);

    let broken = publish.invoke(&json!([{"eventName": "INSERT"}])).await;
    assert!(
        broken.is_err(),
        "an error, so that the pipe retries: {broken:?}"
    );
}

#[tokio::test]
async fn a_function_with_missing_settings_exits_and_names_them() {
    let submit = bootstrap("submit");
    let ended = tokio::process::Command::new(submit)
        .env_clear()
        .env("AWS_LAMBDA_RUNTIME_API", "127.0.0.1:1")
        .env(FUNCTION, "submit")
        .output()
        .await
        .unwrap();
    assert!(!ended.status.success());
    let stderr = String::from_utf8(ended.stderr).unwrap();
    assert!(stderr.contains(TABLE), "{stderr}");
}

//! The worst bodies of each route: responses stay short, and memory is a small multiple of the body.

use std::collections::BTreeSet;

use hearback_local::description::openapi;
use hearback_tests::process::Process;
use hearback_tests::served::Served;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

/// The maximum size of a rejection, in bytes.
const MAX_RESPONSE: usize = 64 * 1024;
/// Memory for each byte of a body, in bytes. The worst has as many objects as are allowed, and numbers between them.
const MULTIPLE: u64 = 40;
/// 32 bytes with one object, of which a body may have one for each 32 bytes. The first body has them: a later one would
/// take memory that was in use before.
const DENSE: &str = r#"{"":0},1,1,1,1,1,1,1,1,1,1,1,10"#;
/// Additional memory of a request, for threads and buffers, in bytes.
const OVERHEAD: u64 = 24 * 1_000_000;
/// Memory that is kept after all requests, in bytes: the allocator keeps some of what a thread freed. The requests
/// together take many times as much.
const MAX_KEPT: u64 = 600 * 1_000_000;

const CONVERSATION: &str = "/conversations/acme/order-service/c";

/// Each route with its largest body, and members to fill.
fn routes() -> Vec<(Method, String, usize, &'static [&'static str])> {
    let (post, put) = (Method::POST, Method::PUT);
    let mib = 1024 * 1024;
    vec![
        (
            post.clone(),
            "/v1/feedback/submit".to_owned(),
            mib / 4,
            &["data", "context", "feedbackId"],
        ),
        (
            post.clone(),
            "/v1/feedback/batch".to_owned(),
            4 * mib,
            &["events"],
        ),
        (
            put.clone(),
            "/v1/preferences/ada".to_owned(),
            mib / 4,
            &["artifactPreferences", "contextPreferences"],
        ),
        (
            put.clone(),
            "/v1/webhooks/crm".to_owned(),
            64 * 1024,
            &["url", "subjects", "projects"],
        ),
        (
            put.clone(),
            format!("{CONVERSATION}/turns/t/inference"),
            16 * 1024,
            &["feedback_type"],
        ),
        (
            put,
            format!("{CONVERSATION}/turns/t"),
            4 * mib,
            &["labels", "user", "embedding", "turn_log"],
        ),
        (
            post.clone(),
            format!("{CONVERSATION}/timeline/refresh"),
            4 * mib,
            &["blocks", "turn_ids"],
        ),
        (
            post.clone(),
            format!("{CONVERSATION}/turns-with-feedbacks"),
            mib,
            &["turn_ids"],
        ),
        (
            post.clone(),
            "/conversations/acme/order-service/feedback/conversations-in-period".to_owned(),
            mib,
            &["start"],
        ),
        (
            post.clone(),
            format!("{CONVERSATION}/turns/t/feedback"),
            16 * 1024,
            &["text"],
        ),
        (
            post.clone(),
            "/api/v1/feedback".to_owned(),
            16 * 1024,
            &["reason"],
        ),
        (
            post.clone(),
            "/v1/feedback/detect".to_owned(),
            mib / 4,
            &["message"],
        ),
        (
            post.clone(),
            "/conversations/acme/order-service/feedback/infer".to_owned(),
            mib / 4,
            &["embedding"],
        ),
        (
            post,
            "/conversations/acme/order-service/strategies/search".to_owned(),
            mib / 4,
            &["embedding"],
        ),
    ]
}

/// Bodies of almost this size: with many invalid entries, deeply nested, with lone surrogates, with many unknown
/// members, and with very long names.
fn bodies(size: usize, members: &[&str]) -> Vec<String> {
    let room = size - 1024;
    let mut bodies: Vec<String> = Vec::new();
    for member in members {
        for entry in [DENSE, "1", "{}", "\"\"", "[]", r#"{"":0}"#] {
            let count = room / (entry.len() + 1);
            bodies.push(format!(
                "{{\"{member}\":[{}]}}",
                vec![entry; count].join(",")
            ));
        }
        for value in [
            nested(room / 2),
            nested_entries(room, &nested(100)),
            nested_entries(room, &nested_objects(100)),
            surrogates(room),
        ] {
            bodies.push(format!("{{\"{member}\":{value}}}"));
        }
        let entries = (0..room / 12).map(|number| format!("\"{number:x}\":1"));
        bodies.push(format!(
            "{{\"{member}\":{{{}}}}}",
            entries.collect::<Vec<_>>().join(",")
        ));
    }
    let unknown = (0..room / 12).map(|number| format!("\"{number:x}\":1"));
    bodies.push(format!("{{{}}}", unknown.collect::<Vec<_>>().join(",")));
    let long = (0..8).map(|number| format!("\"{number}{}\":1", "\\u0001".repeat(room / 60)));
    bodies.push(format!("{{{}}}", long.collect::<Vec<_>>().join(",")));
    bodies
}

/// An array in an array, to this depth.
fn nested(depth: usize) -> String {
    format!("{}{}", "[".repeat(depth), "]".repeat(depth))
}

/// An object in an object, to this depth.
fn nested_objects(depth: usize) -> String {
    format!(r#"{}1{}"#, r#"{"":"#.repeat(depth), "}".repeat(depth))
}

/// Entries that are nested almost as deeply as the parser allows.
fn nested_entries(room: usize, entry: &str) -> String {
    format!("[{}]", vec![entry; room / (entry.len() + 1)].join(","))
}

/// A string that is not Unicode.
fn surrogates(room: usize) -> String {
    format!("\"{}\"", "\\ud800".repeat(room / 6))
}

/// Method and path of each operation with a body in the OpenAPI document.
fn operations() -> BTreeSet<(String, String)> {
    let document = serde_json::to_value(openapi()).unwrap();
    let paths = document["paths"].as_object().unwrap();
    let operations = paths.iter().flat_map(|(path, item)| {
        let methods = item.as_object().unwrap().iter();
        let with_body = methods.filter(|(_, operation)| operation.get("requestBody").is_some());
        with_body.map(|(method, _)| (method.to_uppercase(), path.clone()))
    });
    operations.collect()
}

/// Whether a path has the form of a path of the OpenAPI document.
fn has_form(path: &str, form: &str) -> bool {
    let (path, form) = (path.split('/'), form.split('/'));
    path.clone().count() == form.clone().count()
        && path
            .zip(form)
            .all(|(part, of)| part == of || of.starts_with('{'))
}

#[test]
fn every_operation_with_a_body_has_a_worst_body() {
    let routes = routes();
    let operations = operations();
    assert_eq!(operations.len(), routes.len());
    for (method, form) in operations {
        let has_body = routes
            .iter()
            .any(|(of, path, ..)| of.as_str() == method && has_form(path, &form));
        assert!(has_body, "{method} {form} has no worst body");
    }
}

#[tokio::test]
async fn conversation_bodies_use_bounded_memory() {
    visit(|path| path.starts_with(CONVERSATION)).await;
}

#[tokio::test]
async fn other_bodies_use_bounded_memory() {
    visit(|path| !path.starts_with(CONVERSATION)).await;
}

async fn visit(these: impl Fn(&str) -> bool) {
    let folder = tempfile::tempdir().unwrap();
    let process = Process::serve_with(folder.path(), &["--webhooks"]).await;
    let served = Served::by(&process, folder.path());
    let mut worst = (0, String::new());
    let routes = routes().into_iter().filter(|(_, path, ..)| these(path));
    for (method, path, size, members) in routes {
        for body in bodies(size, members) {
            let bytes = u64::try_from(body.len()).unwrap();
            let shape: String = body.chars().take(40).collect();
            let request = served.request_with("feedback:admin", "ada", method.clone(), &path);
            let (response, used) = measured(&process, request, body).await;
            let (status, text) = (response.status(), response.text().await.unwrap());
            let about = format!(
                "{method} {path} {shape}: {status}, {} bytes, {used} of memory",
                text.len()
            );
            assert!(status.is_client_error(), "{about}");
            assert!(text.len() <= MAX_RESPONSE, "{about}");
            let errors: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(errors["status"], status.as_u16(), "{about}");
            assert!(used <= MULTIPLE * bytes + OVERHEAD, "{about}");
            worst = worst.max((used / (bytes / 1024), about));
        }
    }
    println!("most memory for each KiB: {worst:?}");
    assert!(process.resident() < MAX_KEPT, "{}", process.resident());
}

/// Sends a body; returns the response, and the memory that the process took for it, in bytes.
async fn measured(
    process: &Process,
    request: RequestBuilder,
    body: String,
) -> (reqwest::Response, u64) {
    process.reset_peak();
    let before = process.resident();
    let request = request
        .header("content-type", "application/json")
        .body(body);
    let response = request.send().await.unwrap();
    (response, process.peak().saturating_sub(before))
}

#[tokio::test]
async fn an_accepted_body_takes_no_memory_beyond_a_multiple_of_its_size() {
    let folder = tempfile::tempdir().unwrap();
    let process = Process::serve(folder.path(), 0).await;
    let served = Served::by(&process, folder.path());
    let ones = vec!["1"; 1_900_000].join(",");
    let turn = format!(
        r#"{{"user":{{"text":"q"}},"assistant":{{"text":"a"}},"turn_log":{{"l":[{ones}]}}}}"#
    );
    let blocks = (0..20_000).map(|number| {
        let digest = format!("{number:016x}");
        json!({"path": format!("ar:turn-{number}.feedback.user"), "meta": {"digest": digest}})
    });
    let timeline = json!({
        "turn_ids": [],
        "cache": {"ttl_seconds": 0},
        "blocks": blocks.collect::<Vec<_>>(),
    });
    for (method, path, body) in [
        (Method::PUT, format!("{CONVERSATION}/turns/t"), turn),
        (
            Method::POST,
            format!("{CONVERSATION}/timeline/refresh"),
            timeline.to_string(),
        ),
    ] {
        let bytes = u64::try_from(body.len()).unwrap();
        let request = served.request("ada", method, &path);
        let (response, used) = measured(&process, request, body).await;
        let status = response.status();
        assert!(status.is_success(), "{path}: {status}");
        assert!(
            used <= MULTIPLE * bytes + OVERHEAD,
            "{path}: {used} bytes of memory for a body of {bytes}"
        );
    }
}

#[tokio::test]
async fn a_batch_with_only_invalid_events_gets_a_short_response() {
    let folder = tempfile::tempdir().unwrap();
    let process = Process::serve(folder.path(), 0).await;
    let served = Served::by(&process, folder.path());
    let unknown: Vec<String> = (0..300).map(|member| format!("\"{member:x}\":1")).collect();
    let event = format!(
        "{{\"feedbackId\":\"{}\",{}}}",
        "f".repeat(600),
        unknown.join(",")
    );
    let body = format!("{{\"events\":[{}]}}", vec![event; 1000].join(","));
    let request = served.request("ada", Method::POST, "/v1/feedback/batch");
    let request = request
        .header("content-type", "application/json")
        .body(body);
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 202);
    let text = response.text().await.unwrap();
    assert!(text.len() < 500_000, "{} bytes", text.len());
    let response: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(response["rejected"], 1000);
    let listed = response["results"][999]["error"]["errors"]
        .as_array()
        .unwrap();
    assert_eq!(listed.len(), 2);
    assert!(
        listed[1]["detail"]
            .as_str()
            .unwrap()
            .contains("more errors"),
        "{listed:?}"
    );
}

//! The worst bodies of each route: responses stay short, and memory is a small multiple of the body.

use hearback_tests::process::Process;
use hearback_tests::served::Served;
use reqwest::Method;
use serde_json::Value;

/// The maximum size of a rejection, in bytes.
const MAX_RESPONSE: usize = 64 * 1024;
/// Memory for each byte of a body: a JSON value of two bytes takes 32 bytes, and is copied once.
const MULTIPLE: u64 = 64;
/// Additional memory of a request, for threads and buffers, in bytes.
const OVERHEAD: u64 = 24 * 1_000_000;

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

/// Bodies of almost this size: with many invalid entries, with many unknown members, and with very long names.
fn bodies(size: usize, members: &[&str]) -> Vec<String> {
    let room = size - 1024;
    let mut bodies: Vec<String> = Vec::new();
    for member in members {
        for entry in ["1", "{}", "\"\"", "[]"] {
            let count = room / (entry.len() + 1);
            bodies.push(format!(
                "{{\"{member}\":[{}]}}",
                vec![entry; count].join(",")
            ));
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
    let process = Process::serve(folder.path(), 0).await;
    let served = Served::by(&process, folder.path());
    let mut worst = (0, String::new());
    let routes = routes().into_iter().filter(|(_, path, ..)| these(path));
    for (method, path, size, members) in routes {
        for body in bodies(size, members) {
            let bytes = u64::try_from(body.len()).unwrap();
            let shape: String = body.chars().take(40).collect();
            process.reset_peak();
            let before = process.resident();
            let request = served.request("ada", method.clone(), &path);
            let request = request
                .header("content-type", "application/json")
                .body(body);
            let response = request.send().await.unwrap();
            let (status, text) = (response.status(), response.text().await.unwrap());
            let used = process.peak().saturating_sub(before);
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
    // Freed memory is returned to the system.
    assert!(process.resident() < 300_000_000, "{}", process.resident());
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

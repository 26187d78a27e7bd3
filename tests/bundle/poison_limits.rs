//! Every entry point rejects what can never be sent or stored.

use std::fs::File;

use hearback_domain::events::event::FreeText;
use hearback_storage::{Error, LARGEST, WriteToken, Written};
use hearback_tests::app::TestApp;
use hearback_tests::engine::Engine;
use hearback_tests::events::{acceptance, id, ingested};
use hearback_tests::functions::{functions_of, stored_event};
use hearback_tests::process::Process;
use hearback_tests::turns::{SIGNALS, path, turn_body};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::imports::Import;

const SUBMIT: &str = "/v1/feedback/submit";

#[tokio::test]
async fn a_name_with_characters_that_sqs_rejects_is_rejected_by_every_entry_point() {
    let app = TestApp::start().await;
    let (ada, back_end) = (
        app.token("ada"),
        app.token_of("back", "acme", "feedback:on-behalf"),
    );
    let with = |mut body: Value, pointer: &str, value: &str| {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        body.pointer_mut(parent).unwrap()[name] = json!(value);
        body
    };
    for name in ["\u{FFFF}", "a\u{FFFE}"] {
        let mut requests = Vec::new();
        let event = acceptance("ada");
        let labels = [
            "/sessionId",
            "/artifactId",
            "/userId",
            "/context/projectId",
            "/context/taskType",
        ];
        for pointer in labels {
            requests.push((
                Method::POST,
                SUBMIT.to_owned(),
                pointer,
                with(event.clone(), pointer, name),
            ));
        }
        let turn = turn_body("a question", "an answer");
        for pointer in [
            "/trace_id",
            "/user_id",
            "/assistant/message_id",
            "/agent_id",
        ] {
            requests.push((
                Method::PUT,
                path("c", "t"),
                pointer,
                with(turn.clone(), pointer, name),
            ));
        }
        let reaction = json!({"reaction": "ok", "user_id": name});
        requests.push((
            Method::POST,
            format!("{}/feedback", path("c", "t")),
            "/user_id",
            reaction,
        ));
        let signal = json!({"message_id": name, "signal": "helpful"});
        requests.push((Method::POST, SIGNALS.to_owned(), "/message_id", signal));
        let encoded: String = name.bytes().map(|byte| format!("%{byte:02X}")).collect();
        requests.push((Method::PUT, path("c", &encoded), "/turn_id", turn));
        let query = format!("{SIGNALS}?message_id={encoded}&signal=helpful");
        requests.push((Method::DELETE, query, "/message_id", Value::Null));
        let preferences = format!("/v1/preferences/{encoded}");
        requests.push((
            Method::PUT,
            preferences,
            "/userId",
            json!({"preferenceVersion": 0}),
        ));
        for (method, path, pointer, body) in requests {
            let request = app
                .request(method, &path)
                .bearer_auth(&back_end)
                .json(&body);
            let response = app.send(request).await;
            assert_eq!(response.status, StatusCode::BAD_REQUEST, "{path} {pointer}");
            assert_eq!(response.body["errors"][0]["pointer"], pointer, "{path}");
            assert_eq!(
                response.body["errors"][0]["detail"],
                "must not contain U+FFFE or U+FFFF"
            );
        }
        let batch = json!({"events": [event, with(acceptance("ada"), "/sessionId", name)]});
        let response = app.post(&ada, "/v1/feedback/batch", &batch).await;
        assert_eq!(
            (&response.body["queued"], &response.body["rejected"]),
            (&json!(1), &json!(1))
        );
        let pointer = &response.body["results"][1]["error"]["errors"][0]["pointer"];
        assert_eq!(pointer, "/events/1/sessionId");
        // Such a name is invalid in tokens, too.
        for token in [
            app.token(name),
            app.token_of("ada", name, ""),
            app.token_in("ada", &[name]),
        ] {
            let response = app.submit(&token, &acceptance("ada")).await;
            assert_eq!(response.status, StatusCode::UNAUTHORIZED);
        }
    }
    // Free text is not sent, so it may contain any character.
    let free = with(acceptance("ada"), "/data/comment", "\u{FFFF}\u{0}");
    assert_eq!(app.submit(&ada, &free).await.status, StatusCode::ACCEPTED);
    assert_eq!(app.outcome(&ada, &id(&free)).await["status"], "processed");
}

#[tokio::test]
async fn a_lone_surrogate_is_invalid_json_and_reported_by_position() {
    let app = TestApp::start().await;
    let event = acceptance("ada").to_string();
    for half in ["\\ud800", "\\udfff", "\\ud800\\ud800"] {
        let body = event.replace("session-abc", half);
        let request = app
            .request(Method::POST, SUBMIT)
            .bearer_auth(app.token("ada"));
        let response = app.send(request.body(body)).await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST);
        assert_eq!(response.body["error"], "not_json");
        assert_eq!(response.body["errors"][0]["pointer"], "");
        let detail = response.body["errors"][0]["detail"].as_str().unwrap();
        assert!(
            detail.starts_with("must be JSON: line 1, column "),
            "{detail}"
        );
    }
}

#[tokio::test]
async fn a_message_with_an_invalid_name_goes_to_the_dlq_with_its_tenant() {
    let engine = Engine::start().await;
    let mut bad = acceptance("ada");
    bad["sessionId"] = json!("\u{FFFF}");
    let good = acceptance("ada");
    let batch = ingested(&json!({"events": [bad, good]}));
    let response = engine.ingest(engine.store.clone()).handle(batch).await;
    assert!(response.batch_item_failures.is_empty());
    assert!(
        stored_event(&engine.store, &good["feedbackId"])
            .await
            .is_some()
    );
    let received = engine.clients.sqs.receive_message();
    let received = received.queue_url(&engine.queues.ingest_dead_letters);
    let received = received.message_attribute_names("All").send().await;
    let dead_letter = received.unwrap().messages.unwrap().remove(0);
    let attributes = dead_letter.message_attributes.as_ref().unwrap();
    assert_eq!(attributes["tenant"].string_value(), Some("acme"));
    let reason = attributes["reason"].string_value().unwrap();
    assert!(reason.contains("/sessionId must not contain"), "{reason}");
    assert_eq!(
        serde_json::from_str::<Value>(dead_letter.body().unwrap()).unwrap(),
        bad
    );
}

#[tokio::test]
async fn an_event_larger_than_an_item_is_rejected_with_its_measured_size() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    let mut large = acceptance("ada");
    // Each of these characters is stored in two bytes.
    large["correctionData"] = json!({"originalValue": "\"".repeat(250_000)});
    let good = acceptance("ada");
    let batch = json!({"events": [large, good]});
    let response = app.post(&ada, "/v1/feedback/batch", &batch).await;
    let [first, second] = [&response.body["results"][0], &response.body["results"][1]];
    assert_eq!(
        (&first["status"], &second["status"]),
        (&json!("rejected"), &json!("queued"))
    );
    assert_eq!(first["error"]["status"], 413);
    assert_eq!(first["error"]["error"], "too_large_to_store");
    let detail = first["error"]["errors"][0]["detail"].as_str().unwrap();
    assert!(
        detail.contains("409600") && detail.contains("has 500"),
        "{detail}"
    );

    // From the ingest queue it goes to the DLQ immediately, without retries.
    let engine = Engine::start().await;
    let ingest = engine.ingest(engine.store.clone());
    assert!(
        ingest
            .handle(ingested(&large))
            .await
            .batch_item_failures
            .is_empty()
    );
    let received = engine.clients.sqs.receive_message();
    let received = received.queue_url(&engine.queues.ingest_dead_letters);
    let received = received
        .message_attribute_names("All")
        .send()
        .await
        .unwrap();
    let dead_letter = &received.messages()[0];
    let reason = dead_letter.message_attributes().unwrap()["reason"].string_value();
    assert!(
        reason.unwrap().starts_with("too_large_to_store"),
        "{reason:?}"
    );
}

#[tokio::test]
async fn an_item_is_measured_as_the_table_measures_it() {
    let engine = Engine::start().await;
    let template = acceptance("ada");
    let submit = (Method::POST, SUBMIT);
    hearback_tests::functions::call(
        &functions_of(&engine),
        ("order-service", ""),
        submit,
        &template,
    )
    .await;
    let stored = stored_event(&engine.store, &template["feedbackId"])
        .await
        .unwrap();
    let event = |length: usize| {
        let mut core = stored.core.clone();
        core.feedback_id = Uuid::new_v4();
        let text = FreeText {
            original_value: Some("x".repeat(length)),
            ..FreeText::default()
        };
        hearback_domain::events::event::FeedbackEvent { core, text }
    };
    let by = WriteToken::named(["a test"]);
    let Err(Error::TooLarge { measured }) = engine.store.put_event_by(by, &event(LARGEST)).await
    else {
        panic!("the event is not too large");
    };
    let fits = LARGEST - (measured - LARGEST);
    let stored_event = engine.store.put_event_by(by, &event(fits)).await;
    assert_eq!(stored_event.unwrap(), Written::New);
    let rejected = engine.store.put_event_by(by, &event(fits + 1)).await;
    assert!(matches!(rejected, Err(Error::TooLarge { measured }) if measured == LARGEST + 1));
}

#[tokio::test]
async fn preferences_that_are_too_large_are_rejected_with_413_and_their_measured_size() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    let agents: Vec<_> = (0..20).map(|_| "x".repeat(6_000)).collect();
    let context = json!({"review": {"preferredAgents": agents}});
    let patch = json!({"preferenceVersion": 0, "contextPreferences": context});
    let response = app.put(&ada, "/v1/preferences/ada", &patch).await;
    assert_eq!(response.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(response.body["error"], "too_large_to_store");
    assert_eq!(response.body["limit_bytes"], 100_000);
    assert!(response.body["measured_bytes"].as_u64().unwrap() > 120_000);
}

/// A file of anonymous events with an overlong line between them.
#[tokio::test]
async fn a_line_that_is_too_long_is_one_reject_and_the_file_is_kept() {
    let anonymous = || {
        let mut event = acceptance("ada");
        event["privacyFlags"] = json!({"anonymize": true});
        event.to_string()
    };
    let long = format!(r#"{{"comment": "{}"}}"#, "x".repeat(300 * 1024));
    let file = [
        anonymous(),
        long,
        anonymous(),
        acceptance("ada").to_string(),
    ]
    .join("\n");
    for file in [
        file.clone().into_bytes(),
        crate::imports::gzip(file.as_bytes()),
    ] {
        let import = Import::of(file.clone()).await;
        let report = import.work().await;
        assert_eq!((report.counts.queued, report.counts.rejected), (3, 1));
        assert_eq!(report.counts.lines, 4);
        assert_eq!(report.first_errors[0].line_number, 2);
        assert_eq!(report.first_errors[0].rejection.error, "line_too_long");
        assert_eq!(report.damage, None);
        assert!(!report.file_deleted);
        assert_eq!(import.read(&import.key).await, Some(file));
    }
    // A truncated file is kept, too.
    let lines: Vec<_> = (0..200).map(|_| anonymous()).collect();
    let mut packed = crate::imports::gzip(lines.join("\n").as_bytes());
    packed.truncate(packed.len() / 2);
    let import = Import::of(packed.clone()).await;
    let report = import.work().await;
    assert!(report.damage.is_some() && report.counts.queued > 0 && !report.file_deleted);
    assert_eq!(import.read(&import.key).await, Some(packed));
}

#[tokio::test]
async fn a_successful_erasure_logs_no_error() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let data = folder.path().join("data");
    let process = Process::serve_logging(&data, File::create(&log).unwrap()).await;
    let (client, token) = (reqwest::Client::new(), process.token.clone());
    let request = |method: Method, path: &str| {
        let request = client.request(method, format!("http://{}{path}", process.address));
        request.bearer_auth(&token)
    };
    let event = acceptance("user-123");
    let submitted = request(Method::POST, SUBMIT).json(&event).send().await;
    assert_eq!(submitted.unwrap().status(), 202);
    let turn = request(Method::PUT, &path("c", "t")).json(&turn_body("q", "a"));
    assert_eq!(turn.send().await.unwrap().status(), 201);
    let requested = request(Method::DELETE, "/v1/users/user-123/data")
        .send()
        .await;
    assert_eq!(requested.unwrap().status(), 202);
    // The eraser waits ten seconds before each pass.
    loop {
        let response = request(Method::GET, "/v1/users/user-123/data/erasure")
            .send()
            .await;
        let response: Value = response.unwrap().json().await.unwrap();
        if response["status"] == "done" {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    assert!(process.terminate().await);
    let log = std::fs::read_to_string(log).unwrap();
    assert!(log.contains("answered"), "{log}");
    let errors: Vec<_> = log.lines().filter(|line| line.contains("ERROR")).collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

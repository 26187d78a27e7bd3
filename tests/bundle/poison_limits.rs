//! What can never be carried or stored is rejected where it comes in, by each of the ways in.

use std::fs::File;

use hearback_domain::event::FreeText;
use hearback_storage::{Attempt, Error, LARGEST, Written};
use hearback_tests::app::TestApp;
use hearback_tests::engine::Engine;
use hearback_tests::events::{acceptance, id, ingested};
use hearback_tests::functions::{functions_of, stored_event};
use hearback_tests::process::Process;
use hearback_tests::turns::{SIGNALS, path, said};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::imports::Import;

const SUBMIT: &str = "/v1/feedback/submit";

#[tokio::test]
async fn a_name_that_no_queue_carries_is_rejected_at_every_door() {
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
        let mut doors = Vec::new();
        let event = acceptance("ada");
        let labels = [
            "/sessionId",
            "/artifactId",
            "/userId",
            "/context/projectId",
            "/context/taskType",
        ];
        for pointer in labels {
            doors.push((
                Method::POST,
                SUBMIT.to_owned(),
                pointer,
                with(event.clone(), pointer, name),
            ));
        }
        let turn = said("a question", "an answer");
        for pointer in [
            "/trace_id",
            "/user_id",
            "/assistant/message_id",
            "/agent_id",
        ] {
            doors.push((
                Method::PUT,
                path("c", "t"),
                pointer,
                with(turn.clone(), pointer, name),
            ));
        }
        let reaction = json!({"reaction": "ok", "user_id": name});
        doors.push((
            Method::POST,
            format!("{}/feedback", path("c", "t")),
            "/user_id",
            reaction,
        ));
        let signal = json!({"message_id": name, "signal": "helpful"});
        doors.push((Method::POST, SIGNALS.to_owned(), "/message_id", signal));
        let encoded: String = name.bytes().map(|byte| format!("%{byte:02X}")).collect();
        doors.push((Method::PUT, path("c", &encoded), "/turn_id", turn));
        let query = format!("{SIGNALS}?message_id={encoded}&signal=helpful");
        doors.push((Method::DELETE, query, "/message_id", Value::Null));
        let preferences = format!("/v1/preferences/{encoded}");
        doors.push((
            Method::PUT,
            preferences,
            "/userId",
            json!({"preferenceVersion": 0}),
        ));
        for (method, path, pointer, body) in doors {
            let request = app
                .request(method, &path)
                .bearer_auth(&back_end)
                .json(&body);
            let answer = app.send(request).await;
            assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{path} {pointer}");
            assert_eq!(answer.body["errors"][0]["pointer"], pointer, "{path}");
            assert_eq!(
                answer.body["errors"][0]["detail"],
                "must not contain U+FFFE or U+FFFF"
            );
        }
        let batch = json!({"events": [event, with(acceptance("ada"), "/sessionId", name)]});
        let answer = app.post(&ada, "/v1/feedback/batch", &batch).await;
        assert_eq!(
            (&answer.body["queued"], &answer.body["rejected"]),
            (&json!(1), &json!(1))
        );
        let pointer = &answer.body["results"][1]["error"]["errors"][0]["pointer"];
        assert_eq!(pointer, "/events/1/sessionId");
        // Nor is it anybody's name.
        for token in [
            app.token(name),
            app.token_of("ada", name, ""),
            app.token_in("ada", &[name]),
        ] {
            let answer = app.submit(&token, &acceptance("ada")).await;
            assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
        }
    }
    // Free text does not travel, and may have any character.
    let free = with(acceptance("ada"), "/data/comment", "\u{FFFF}\u{0}");
    assert_eq!(app.submit(&ada, &free).await.status, StatusCode::ACCEPTED);
    assert_eq!(app.outcome(&ada, &id(&free)).await["status"], "processed");
}

#[tokio::test]
async fn half_a_surrogate_pair_is_no_json_and_is_told_by_its_place() {
    let app = TestApp::start().await;
    let event = acceptance("ada").to_string();
    for half in ["\\ud800", "\\udfff", "\\ud800\\ud800"] {
        let body = event.replace("session-abc", half);
        let request = app
            .request(Method::POST, SUBMIT)
            .bearer_auth(app.token("ada"));
        let answer = app.send(request.body(body)).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST);
        assert_eq!(answer.body["error"], "not_json");
        assert_eq!(answer.body["errors"][0]["pointer"], "");
        let detail = answer.body["errors"][0]["detail"].as_str().unwrap();
        assert!(
            detail.starts_with("must be JSON: line 1, column "),
            "{detail}"
        );
    }
}

#[tokio::test]
async fn a_message_with_such_a_name_is_a_dead_letter_of_its_tenant() {
    let engine = Engine::start().await;
    let mut bad = acceptance("ada");
    bad["sessionId"] = json!("\u{FFFF}");
    let good = acceptance("ada");
    let batch = ingested(&json!({"events": [bad, good]}));
    let answer = engine.ingest(engine.store.clone()).handle(batch).await;
    assert!(answer.batch_item_failures.is_empty());
    assert!(
        stored_event(&engine.store, &good["feedbackId"])
            .await
            .is_some()
    );
    let received = engine.clients.sqs.receive_message();
    let received = received.queue_url(&engine.queues.ingest_dead_letters);
    let received = received.message_attribute_names("All").send().await;
    let letter = received.unwrap().messages.unwrap().remove(0);
    let attributes = letter.message_attributes.as_ref().unwrap();
    assert_eq!(attributes["tenant"].string_value(), Some("acme"));
    let reason = attributes["reason"].string_value().unwrap();
    assert!(reason.contains("/sessionId must not contain"), "{reason}");
    assert_eq!(
        serde_json::from_str::<Value>(letter.body().unwrap()).unwrap(),
        bad
    );
}

#[tokio::test]
async fn what_is_larger_than_the_table_keeps_is_rejected_with_what_was_measured() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    let mut large = acceptance("ada");
    // As it is stored each of them takes two bytes.
    large["correctionData"] = json!({"originalValue": "\"".repeat(250_000)});
    let good = acceptance("ada");
    let batch = json!({"events": [large, good]});
    let answer = app.post(&ada, "/v1/feedback/batch", &batch).await;
    let [first, second] = [&answer.body["results"][0], &answer.body["results"][1]];
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

    // By the ingest queue it is a dead letter at once, and does not come again.
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
    let letter = &received.messages()[0];
    let reason = letter.message_attributes().unwrap()["reason"].string_value();
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
        hearback_domain::event::FeedbackEvent { core, text }
    };
    let by = Attempt::named(["a test"]);
    let Err(Error::TooLarge { measured }) = engine.store.put_event_by(by, &event(LARGEST)).await
    else {
        panic!("it fits");
    };
    let fits = LARGEST - (measured - LARGEST);
    let taken = engine.store.put_event_by(by, &event(fits)).await;
    assert_eq!(taken.unwrap(), Written::New);
    let refused = engine.store.put_event_by(by, &event(fits + 1)).await;
    assert!(matches!(refused, Err(Error::TooLarge { measured }) if measured == LARGEST + 1));
}

#[tokio::test]
async fn preferences_that_cannot_be_kept_are_413_with_what_was_measured() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    let agents: Vec<_> = (0..20).map(|_| "x".repeat(6_000)).collect();
    let context = json!({"review": {"preferredAgents": agents}});
    let patch = json!({"preferenceVersion": 0, "contextPreferences": context});
    let answer = app.put(&ada, "/v1/preferences/ada", &patch).await;
    assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(answer.body["error"], "too_large_to_store");
    assert_eq!(answer.body["limit_bytes"], 100_000);
    assert!(answer.body["measured_bytes"].as_u64().unwrap() > 120_000);
}

/// A file whose events ask for anonymity, with a line between them that is too long.
#[tokio::test]
async fn a_line_that_is_too_long_is_one_reject_and_the_file_stays() {
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
    // Nor is a file deleted that breaks off.
    let lines: Vec<_> = (0..200).map(|_| anonymous()).collect();
    let mut packed = crate::imports::gzip(lines.join("\n").as_bytes());
    packed.truncate(packed.len() / 2);
    let import = Import::of(packed.clone()).await;
    let report = import.work().await;
    assert!(report.damage.is_some() && report.counts.queued > 0 && !report.file_deleted);
    assert_eq!(import.read(&import.key).await, Some(packed));
}

#[tokio::test]
async fn an_erasure_that_goes_well_logs_no_error() {
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
    let turn = request(Method::PUT, &path("c", "t")).json(&said("q", "a"));
    assert_eq!(turn.send().await.unwrap().status(), 201);
    let erased = request(Method::DELETE, "/v1/users/user-123/data")
        .send()
        .await;
    assert_eq!(erased.unwrap().status(), 202);
    // It waits for ten seconds before each pass.
    loop {
        let answer = request(Method::GET, "/v1/users/user-123/data/erasure")
            .send()
            .await;
        let answer: Value = answer.unwrap().json().await.unwrap();
        if answer["status"] == "done" {
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

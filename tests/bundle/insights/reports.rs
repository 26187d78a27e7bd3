//! The routes of insights, and what commands show of them.

use std::collections::BTreeSet;

use chrono::NaiveDate;
use hearback_local::api::Api;
use hearback_local::demo::month::Month;
use hearback_local::demo::{self, DemoTarget};
use hearback_tests::app::{TestApp, eventually};
use hearback_tests::events::acceptance;
use hearback_tests::turns::{message, path};
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::{PROJECT, counted};

fn rating(user: &str, stars: u8, model: &str, at: &str) -> Value {
    let mut event = acceptance(user);
    event["feedbackType"] = json!("rating");
    event["data"] = json!({"rating": stars});
    event["artifactId"] = json!(format!("{model} {at}"));
    event["timestamp"] = json!(at);
    event["context"] = json!({"projectId": PROJECT, "labels": {"model": model}});
    event
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn insights_answer_by_interval_and_value() {
    let app = TestApp::start().await;
    let events = [
        rating("ada", 5, "m-1", "2026-11-02T23:59:59Z"),
        rating("eve", 2, "m-1", "2026-11-03T00:00:00Z"),
        rating("ada", 1, "m-2", "2026-11-03T10:00:00Z"),
        rating("ada", 1, "m-2", "2026-11-10T10:00:00Z"),
    ];
    for event in &events {
        let user = app.token(event["userId"].as_str().unwrap());
        let submitted = app.submit(&user, event).await;
        assert_eq!(
            submitted.status,
            StatusCode::ACCEPTED,
            "{:?}",
            submitted.body
        );
    }
    counted(&app, 4).await;
    let analyst = app.token_of("analyst", "acme", "feedback:report");
    let read = async |query: &str| {
        let path = format!("/v1/projects/{PROJECT}/insights?from=2026-11-01T00:00:00Z&{query}");
        let response = app.get(&analyst, &path).await;
        assert_eq!(response.status, StatusCode::OK, "{:?}", response.body);
        response.body
    };
    let november = "to=2026-12-01T00:00:00Z";
    let days = read(november).await;
    let starts = |report: &Value| {
        let intervals = report["intervals"].as_array().unwrap().clone();
        let parts = intervals.into_iter();
        parts
            .map(|part| json!([part["start"], part["events"]]))
            .collect::<Value>()
    };
    assert_eq!(
        starts(&days),
        json!([
            ["2026-11-02T00:00:00Z", 1],
            ["2026-11-03T00:00:00Z", 2],
            ["2026-11-10T00:00:00Z", 1]
        ])
    );
    assert_eq!(days["total"]["meanRating"], json!(2.25));
    assert_eq!(days["total"]["satisfactionRate"], json!(0.25));
    assert_eq!(days["total"]["byUser"]["users"], 2);
    assert_eq!(days["groups"], Value::Null);
    assert_eq!(days["dimensions"], json!(["label.model"]));
    let hours = read(&format!("{november}&interval=hour")).await;
    assert_eq!(starts(&hours)[0], json!(["2026-11-02T23:00:00Z", 1]));
    assert_eq!(hours["total"], days["total"]);
    let weeks = read(&format!("{november}&interval=week&groupBy=label.model")).await;
    assert_eq!(
        starts(&weeks),
        json!([["2026-11-02T00:00:00Z", 3], ["2026-11-09T00:00:00Z", 1]])
    );
    assert_eq!(weeks["total"], days["total"]);
    let groups = weeks["groups"].as_array().unwrap();
    let values: Vec<_> = groups.iter().map(|group| &group["value"]).collect();
    assert_eq!(values, ["m-1", "m-2"]);
    assert_eq!(groups[1]["total"]["satisfactionHigh"].as_f64().unwrap(), {
        hearback_domain::views::insights::wilson(0.0, 2.0)
            .unwrap()
            .1
    });
    let origins = read(&format!("{november}&groupBy=origin")).await;
    assert_eq!(origins["groups"][0]["value"], "user");
    assert_eq!(origins["groups"][0]["total"]["byUser"], Value::Null);
    let nothing = read("to=2026-11-02T00:00:00Z&groupBy=agentId").await;
    assert_eq!(nothing["total"]["events"], 0);
    assert_eq!(nothing["total"]["satisfactionRate"], Value::Null);
    assert_eq!(
        (&nothing["intervals"], &nothing["groups"]),
        (&json!([]), &json!([]))
    );
}

/// The turns of a group, and how many of them have feedback: explicit, inferred, any.
fn turns_of(group: &Value) -> Value {
    let turns = &group["turns"];
    let names = ["registered", "explicit", "inferred", "any"];
    names.iter().map(|name| turns[*name].clone()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rates_come_with_the_share_of_turns_that_have_feedback() {
    let app = TestApp::start().await;
    let (ada, eve) = (app.token("ada"), app.token("eve"));
    let register = async |user: &str, conversation: &str, turn: &str, said: &str, minute: u32| {
        let name = format!("{conversation}-{turn}");
        let mut body = message(&name, said, "Within 30 days.");
        body["ts"] = json!(format!("2026-11-02T10:{minute:02}:00Z"));
        body["labels"] = json!({"model": if minute < 10 { "m-1" } else { "m-2" }});
        let registered = app.put(user, &path(conversation, turn), &body).await;
        assert_eq!(registered.status, StatusCode::CREATED);
    };
    register(&ada, "c", "1", "How do I return an item?", 0).await;
    // This is a rejection of the turn before, and a reaction follows to both.
    register(&ada, "c", "2", "No, I meant online orders", 1).await;
    register(&eve, "d", "1", "Is it open today?", 20).await;
    register(&eve, "e", "1", "Where is my parcel?", 40).await;
    let react = async |turn: &str, reaction: Value| {
        let feedback = format!("{}/feedback", path("c", turn));
        let body = json!({"reaction": reaction, "ts": "2026-11-02T11:00:00Z"});
        let reacted = app.post(&ada, &feedback, &body).await;
        assert_eq!(reacted.status, StatusCode::OK, "{:?}", reacted.body);
    };
    react("1", json!("not_ok")).await;
    react("2", json!("ok")).await;
    // A cleared reaction does not count, and neither does the reaction of somebody else.
    react("2", Value::Null).await;
    let others = format!("{}/feedback", path("d", "1"));
    let ok = json!({"reaction": "ok", "ts": "2026-11-02T11:00:00Z"});
    let reacted = app.post(&ada, &others, &ok).await;
    assert_eq!(reacted.status, StatusCode::OK);
    counted(&app, 3).await;
    let analyst = app.token_of("analyst", "acme", "feedback:report");
    let read = async |by: &str| {
        let period = "from=2026-11-02T00:00:00Z&to=2026-11-03T00:00:00Z&interval=hour";
        let path = format!("/v1/projects/{PROJECT}/insights?{period}&groupBy={by}");
        app.get(&analyst, &path).await.body
    };
    let models = read("label.model").await;
    assert_eq!(turns_of(&models["total"]), json!([4, 1, 1, 1]));
    assert_eq!(models["total"]["turns"]["anyShare"], json!(0.25));
    let groups: Vec<_> = models["groups"].as_array().unwrap().iter().collect();
    let of_models: Vec<_> = groups
        .iter()
        .map(|group| turns_of(&group["total"]))
        .collect();
    assert_eq!(of_models, [json!([2, 1, 1, 1]), json!([2, 0, 0, 0])]);
    // Events are counted by the time of the feedback, and turns by their `ts`.
    let first = &models["intervals"][0];
    assert_eq!(first["start"], "2026-11-02T10:00:00Z");
    assert_eq!(turns_of(first), json!([4, 1, 1, 1]));
    let reasons = read("reason").await;
    let reasons = reasons["groups"].as_array().unwrap().iter();
    let reasons: Vec<_> = reasons
        .map(|group| (group["value"].clone(), group["total"]["events"].clone()))
        .collect();
    let said_so = (json!("explicit_correction"), json!(1));
    assert_eq!(reasons, [said_so, (Value::Null, json!(2))]);
    let channels = read("channel").await;
    assert_eq!(channels["groups"][0]["total"]["turns"], Value::Null);
    let values = channels["groups"].as_array().unwrap().iter();
    let values: Vec<_> = values.map(|group| group["value"].clone()).collect();
    assert_eq!(values, ["explicit", "implicit"], "turns have no channel");
    let erased = app.delete(&eve, "/v1/users/eve/data").await;
    assert_eq!(erased.status, StatusCode::ACCEPTED);
    eventually(|| async {
        let total = turns_of(&read("label.model").await["total"]);
        (total == json!([2, 1, 1, 1])).then_some(())
    })
    .await;
}

#[tokio::test]
async fn insights_need_the_scope_and_a_project_of_the_token() {
    let app = TestApp::start().await;
    let path = format!("/v1/projects/{PROJECT}/insights");
    let refused = app.get(&app.token("ada"), &path).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{:?}", refused.body);
    let analyst = app.token_of("analyst", "acme", "feedback:report");
    let other = app.get(&analyst, "/v1/projects/elsewhere/insights").await;
    assert_eq!(other.status, StatusCode::FORBIDDEN);
    let invalid = format!("{path}?groupBy=userId&interval=month&values=101&from=2026");
    let invalid = app.get(&analyst, &invalid).await;
    assert_eq!(invalid.status, StatusCode::BAD_REQUEST);
    let errors = invalid.body["errors"].as_array().unwrap();
    assert_eq!(errors.len(), 4, "{errors:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worse_prompt_version_is_found_by_comparing() {
    let app = TestApp::start().await;
    let back_end = app.token_of("back-end", "acme", "feedback:on-behalf");
    // Of 150 users of each, nine of ten are content with v6, and four of ten with v7.
    let events: Vec<_> = (0..300)
        .map(|at| {
            let (version, content) = if at % 2 == 0 { ("v6", 9) } else { ("v7", 4) };
            let stars = if at / 2 % 10 < content { 5 } else { 1 };
            let mut event = rating(&format!("user-{at}"), stars, "m-1", "2026-11-03T10:00:00Z");
            event["context"]["labels"]["prompt_version"] = json!(version);
            event
        })
        .collect();
    let submitted = app
        .post(&back_end, "/v1/feedback/batch", &json!({"events": events}))
        .await;
    assert_eq!(submitted.status, StatusCode::ACCEPTED);
    counted(&app, 300).await;
    let analyst = app.token_of("analyst", "acme", "feedback:report");
    let compare = async |query: &str| {
        let path = format!(
            "/v1/projects/{PROJECT}/insights/compare?by=label.prompt_version&to=2026-11-04T00:00:00Z&{query}"
        );
        app.get(&analyst, &path).await
    };
    let worse = compare("a=v6&b=v7").await.body;
    assert_eq!(worse["verdict"], "worse", "{worse}");
    assert!((worse["difference"].as_f64().unwrap() + 0.5).abs() < 1e-9);
    assert!(worse["differenceHigh"].as_f64().unwrap() < 0.0);
    assert_eq!(worse["a"]["byUser"]["users"], 150);
    assert_eq!(worse["moreUsers"], Value::Null);
    assert_eq!(compare("a=v7&b=v6").await.body["verdict"], "better");
    let command = async |a: &str, b: &str| {
        let url = format!("http://{}", app.bundle.address);
        let asked = [
            "compare",
            "--project",
            PROJECT,
            "--by",
            "label.prompt_version",
            "--a",
            a,
            "--b",
            b,
            "--to",
            "2026-11-04T00:00:00Z",
            "--url",
            &url,
        ];
        let command = tokio::process::Command::new(hearback_tests::process::hearback())
            .args(asked)
            .env("HEARBACK_TOKEN", &analyst)
            .output()
            .await
            .unwrap();
        let output = [command.stdout, command.stderr].concat();
        let printed = String::from_utf8(output).unwrap();
        let last = printed.lines().last().unwrap().to_owned();
        (command.status.code(), last)
    };
    let last = |line: &str| format!("label.prompt_version: {line}");
    assert_eq!(command("v6", "v7").await, (Some(1), last("worse")));
    assert_eq!(command("v7", "v6").await, (Some(0), last("better")));
    let (code, reason) = command("v6", "").await;
    assert_eq!(code, Some(2));
    assert!(reason.contains("400 Bad Request: b must"), "{reason}");
    let unknown = compare("a=v6&b=v8").await.body;
    assert_eq!(unknown["verdict"], "cannot_tell_yet");
    assert_eq!(unknown["difference"], Value::Null);
    assert_eq!(unknown["b"]["events"], 0);
    let invalid = compare("a=v6&points=0").await;
    assert_eq!(invalid.status, StatusCode::BAD_REQUEST);
    assert_eq!(invalid.body["errors"].as_array().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_demo_is_counted_as_a_whole_and_may_be_repeated() {
    let app = TestApp::start().await;
    let last = NaiveDate::from_ymd_opt(2026, 11, 2).unwrap();
    let token = app.token_of("demo", "acme", "feedback:on-behalf feedback:report");
    let url = format!("http://{}", app.bundle.address).parse().unwrap();
    let target = DemoTarget {
        api: Api::new(url, token.clone()).unwrap(),
        tenant: "acme".to_owned(),
        project: PROJECT.to_owned(),
    };
    let fill = async || {
        let mut month = Month::until(last, PROJECT);
        // Its last day is enough here.
        let today = format!("demo-{last}-{last}-");
        let conversations = &mut month.conversations;
        conversations.retain(|conversation| conversation.id.starts_with(&today));
        demo::fill(month, &target).await.unwrap()
    };
    let first = fill().await;
    assert!(first.inferred > 0 && first.given > 0, "{first:?}");
    let query = "from=2026-11-02T00:00:00Z&to=2026-11-03T00:00:00Z&groupBy=label.prompt_version";
    let path = format!("/v1/projects/{PROJECT}/insights?{query}");
    let insights = app.get(&token, &path).await.body;
    let groups = insights["groups"].as_array().unwrap();
    let values: BTreeSet<_> = groups.iter().map(|group| group["value"].as_str()).collect();
    assert_eq!(values, BTreeSet::from([Some("v6"), Some("v7")]));
    assert_eq!(fill().await, first, "the same is sent again");
    let repeated = app.get(&token, &path).await.body;
    assert_eq!(
        repeated["total"], insights["total"],
        "and nothing counts twice"
    );
}

//! Reports list every conversation once, whatever the page size and whatever arrives meanwhile. The benchmark
//! `period_report` does the same at full size.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::Method;
use hearback_domain::text::payload::{MAX_PAGE, escaped_json_size};
use hearback_tests::app::TestApp;
use hearback_tests::period::{Extent, Project, Report};
use hearback_tests::turns::{PERIOD, conversation_path, path, turn_body};
use reqwest::StatusCode;
use serde_json::{Value, json};

fn extent(conversations: u32, start: &str, days: u32) -> Extent {
    Extent {
        conversations,
        reactions: conversations * 3,
        start: start.parse().unwrap(),
        days,
    }
}

fn names(report: &Report) -> Vec<&str> {
    let items = report.items.iter();
    items
        .map(|item| item["conversation_id"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn a_report_equals_a_brute_force_count_and_is_in_order() {
    for mut project in [Project::start().await, Project::of_one_user().await] {
        project
            .add("c", extent(120, "2025-09-01T00:00:00Z", 40))
            .await;
        let request = json!({
            "start": "2025-09-01T00:00:00Z", "end": "2025-10-31T00:00:00Z", "limit": 7
        });
        let report = project.report(&request, async |_| {}).await;
        let counted: BTreeMap<_, _> = report
            .items
            .iter()
            .map(|item| {
                let count = |name: &str| {
                    u32::try_from(item["feedback_counts"][name].as_u64().unwrap()).unwrap()
                };
                let name = item["conversation_id"].as_str().unwrap().to_owned();
                (name, [count("ok"), count("not_ok"), count("neutral")])
            })
            .collect();
        assert_eq!(counted, project.expected);
        assert_eq!(report.items.len(), 120, "each once");
        assert_eq!(report.pages, 120_usize.div_ceil(7));
        let latest: Vec<_> = report
            .items
            .iter()
            .map(|item| item["last_activity_at"].as_str())
            .collect();
        assert!(latest.is_sorted_by(|a, b| a >= b), "the latest first");

        // Another page size gives the same items.
        let mut all = request.clone();
        all["limit"] = json!(500);
        let all = project.report(&all, async |_| {}).await;
        assert_eq!(all.items, report.items);
    }
}

#[tokio::test]
async fn a_report_lists_each_conversation_once_while_reactions_arrive() {
    for mut project in [Project::start().await, Project::of_one_user().await] {
        project
            .add("c", extent(60, "2025-09-01T00:00:00Z", 40))
            .await;
        // Conversations whose only reaction is replaced during the report, so that their position changes.
        for n in 0..10 {
            let (conversation, day) = (format!("moved-{n}"), n + 2);
            project.register(&conversation, "t").await;
            let body = json!({"reaction": "ok", "ts": format!("2025-09-{day:02}T12:00:00Z")});
            project.react(&conversation, "t", &body).await;
            project.expected.insert(conversation, [1, 0, 0]);
        }
        for n in 0..60 {
            project.register(&format!("c-{n}"), "new").await;
        }
        let request = json!({
            "start": "2025-09-01T00:00:00Z", "end": "2999-01-01T00:00:00Z", "limit": 5
        });
        let shared = &project;
        let report = project
            .report(&request, async |page| {
                for n in 0..10 {
                    let body =
                        json!({"reaction": (["ok", "not_ok"][page % 2]), "text": page.to_string()});
                    if n % 3 == page % 3 {
                        shared.react(&format!("moved-{n}"), "t", &body).await;
                    }
                    let conversation = format!("c-{}", (page * 10 + n) % 60);
                    shared
                        .react(&conversation, "new", &json!({"reaction": "ok"}))
                        .await;
                }
            })
            .await;
        let listed: BTreeSet<_> = names(&report).into_iter().collect();
        assert_eq!(listed.len(), report.items.len(), "no duplicates");
        let expected: BTreeSet<_> = project.expected.keys().map(String::as_str).collect();
        assert_eq!(listed, expected, "none missing");
    }
}

#[tokio::test]
async fn a_late_write_neither_drops_nor_repeats_a_conversation_of_the_report() {
    let one = |minute: &str| Extent {
        conversations: 1,
        reactions: 1,
        start: format!("2025-09-03T{minute}:00Z").parse().unwrap(),
        days: 1,
    };
    let request = json!({
        "start": "2025-09-01T00:00:00Z", "end": "2025-09-30T00:00:00Z", "limit": 1
    });
    let expected = ["a-0", "b-0", "new-0", "old-0"];
    for late in expected {
        for after in 1..4 {
            let mut project = Project::start().await;
            // Two reactions in one minute, so that a page ends within a minute.
            for (name, minute) in [
                ("new", "12:00"),
                ("a", "11:00"),
                ("b", "11:00"),
                ("old", "10:00"),
            ] {
                project.add(name, one(minute)).await;
            }
            let shared = &project;
            let received_at = chrono::Utc::now();
            let report = project
                .report(&request, async |page| {
                    if page == after {
                        let ts = format!("2025-09-04T00:00:{after:02}Z");
                        shared.put_late(late, &ts, received_at).await;
                    }
                })
                .await;
            let mut listed = names(&report);
            listed.sort_unstable();
            assert_eq!(listed, expected, "{late} moved after page {after}");
        }
    }
}

#[tokio::test]
async fn conversations_outside_the_period_cost_nothing() {
    for mut project in [Project::start().await, Project::of_one_user().await] {
        project
            .add("in", extent(40, "2025-09-01T00:00:00Z", 10))
            .await;
        let request = json!({
            "start": "2025-09-01T00:00:00Z", "end": "2025-09-10T23:59:59Z", "limit": 20
        });
        let alone = project.report(&request, async |_| {}).await;
        project
            .add("before", extent(100, "2025-07-01T00:00:00Z", 30))
            .await;
        project
            .add("after", extent(100, "2025-11-01T00:00:00Z", 10))
            .await;
        let among = project.report(&request, async |_| {}).await;
        assert_eq!(names(&alone), names(&among));
        assert_eq!(alone.cost, among.cost);
        // Three markers and three reads of each conversation, and the shards of each day.
        let each = alone.cost.reads / 40.0;
        assert!(each < 6.0, "{each} read units a conversation");
    }
}

#[tokio::test]
async fn a_cursor_is_valid_for_its_own_query_only() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    for conversation in ["c1", "c2"] {
        app.put(&ada, &path(conversation, "t"), &turn_body("a", "b"))
            .await;
        let feedback = format!("{}/feedback", path(conversation, "t"));
        app.post(&ada, &feedback, &json!({"reaction": "ok"})).await;
    }
    let request = json!({
        "start": "2025-01-01T00:00:00Z", "end": "2999-01-01T00:00:00Z", "limit": 1
    });
    let first = app.post(&ada, PERIOD, &request).await.body;
    let cursor = first["next_cursor"].as_str().unwrap().to_owned();
    let with = |member: &str, value: Value| {
        let mut request = request.clone();
        request["cursor"] = json!(cursor);
        request[member] = value;
        request
    };
    let second = app.post(&ada, PERIOD, &with("limit", json!(5))).await;
    assert_eq!(second.status, StatusCode::OK);
    assert_eq!(second.body["items"].as_array().unwrap().len(), 1);
    assert_ne!(second.body["items"][0], first["items"][0]);
    assert_eq!(second.body["next_cursor"], Value::Null);

    let damaged = format!("{}A", &cursor[..cursor.len() - 1]);
    for request in [
        with("start", json!("2025-01-02T00:00:00Z")),
        with("include_turns", json!(true)),
        with("cursor", json!(damaged)),
        with("cursor", json!("nonsense")),
    ] {
        let rejected = app.post(&ada, PERIOD, &request).await;
        assert_eq!(rejected.status, StatusCode::BAD_REQUEST, "{request}");
        assert_eq!(rejected.body["errors"][0]["pointer"], "/cursor");
    }
    let request = with("limit", json!(1));
    let others = app.post(&app.token("eve"), PERIOD, &request).await;
    assert_eq!(others.status, StatusCode::BAD_REQUEST, "another caller's");
    let turns = format!("{}/turns-with-feedbacks", conversation_path("c1"));
    let other_report = app.post(&ada, &turns, &json!({"cursor": cursor})).await;
    assert_eq!(other_report.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn without_the_scope_a_report_covers_the_callers_own_feedback() {
    let app = TestApp::start().await;
    let (ada, eve) = (app.token("ada"), app.token("eve"));
    app.put(&ada, &path("c", "t"), &turn_body("a", "b")).await;
    let feedback = format!("{}/feedback", path("c", "t"));
    app.post(&ada, &feedback, &json!({"reaction": "ok"})).await;
    app.post(&eve, &feedback, &json!({"reaction": "not_ok"}))
        .await;
    let request = json!({"start": "2025-01-01T00:00:00Z", "end": "2999-01-01T00:00:00Z"});
    for (token, ok, not_ok) in [
        (&ada, 1, 0),
        (&eve, 0, 1),
        (&app.token_of("boss", "acme", "feedback:report"), 1, 1),
    ] {
        let report = app.post(token, PERIOD, &request).await.body;
        let counts = &report["items"][0]["feedback_counts"];
        assert_eq!(
            (counts["ok"].as_u64(), counts["not_ok"].as_u64()),
            (Some(ok), Some(not_ok))
        );
    }
    let without_feedback = app.post(&app.token("nobody"), PERIOD, &request).await.body;
    assert_eq!(without_feedback["items"], json!([]));
}

#[tokio::test]
async fn the_pages_of_a_conversation_list_every_turn() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    for n in 0..23 {
        let turn = path("c", &format!("t{n:02}"));
        // A day apart, so that no turn says anything about the one before it.
        let mut registered = turn_body(&format!("q{n}"), "a");
        registered["ts"] = json!(format!("2026-01-{:02}T10:00:00Z", n + 1));
        app.put(&ada, &turn, &registered).await;
        // Every third turn has only cleared feedback.
        let body = json!({"reaction": "ok"});
        let feedback = format!("{turn}/feedback");
        app.post(&ada, &feedback, &body).await;
        if n % 3 == 0 {
            app.post(&ada, &feedback, &json!({"reaction": null})).await;
        }
    }
    let expected: Vec<_> = (0..23)
        .filter(|n| n % 3 != 0)
        .map(|n| format!("t{n:02}"))
        .collect();
    let report = format!("{}/turns-with-feedbacks", conversation_path("c"));
    let mut request = json!({"limit": 4, "include_turn_logs": true});
    let mut listed = Vec::new();
    loop {
        let page = app.post(&ada, &report, &request).await;
        assert_eq!(page.status, StatusCode::OK, "{:?}", page.body);
        assert_eq!(page.body["user_id"], "ada");
        for turn in page.body["turns"].as_array().unwrap() {
            let id = turn["turn_id"].as_str().unwrap().to_owned();
            let question = format!("q{}", id[1..].parse::<u32>().unwrap());
            assert_eq!(turn["user"]["text"], json!(question));
            listed.push(id);
        }
        if page.body["next_cursor"].is_null() {
            break;
        }
        request["cursor"] = page.body["next_cursor"].clone();
    }
    assert_eq!(listed, expected);

    let named = json!({"turn_ids": ["t22", "t01", "t00", "unknown"]});
    let page = app.post(&ada, &report, &named).await.body;
    let turns = page["turns"].as_array().unwrap();
    let ids: Vec<_> = turns
        .iter()
        .map(|turn| turn["turn_id"].as_str().unwrap())
        .collect();
    assert_eq!(
        ids,
        ["t22", "t01"],
        "the turns with feedback, in the requested order"
    );
    assert!(turns[0].get("turn_log").is_none());
    assert_eq!(turns[0]["reactions"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_page_ends_before_it_exceeds_the_response_limit_of_lambda() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    for n in 0..3 {
        let turn = path("c", &format!("t{n}"));
        app.put(&ada, &turn, &turn_body("q", &"x".repeat(2_000_000)))
            .await;
        app.post(
            &ada,
            &format!("{turn}/feedback"),
            &json!({"reaction": "ok"}),
        )
        .await;
    }
    let report = format!("{}/turns-with-feedbacks", conversation_path("c"));
    let mut request = json!({"include_turn_logs": true});
    let first = app.post(&ada, &report, &request).await.body;
    assert_eq!(first["turns"].as_array().unwrap().len(), 2);
    request["cursor"] = first["next_cursor"].clone();
    let second = app.post(&ada, &report, &request).await.body;
    assert_eq!(second["turns"].as_array().unwrap().len(), 1);
    assert_eq!(second["next_cursor"], Value::Null);
}

/// The users of the reactions on a page.
fn reactions_on(turns: &Value) -> Vec<String> {
    let turns = turns.as_array().unwrap().iter();
    let listed = turns.flat_map(|turn| turn["reactions"].as_array().unwrap());
    listed
        .map(|artifact| artifact["user_id"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn a_conversation_with_more_feedback_than_a_page_holds_continues_on_the_next() {
    let mut project = Project::start().await;
    project.add_large("large", 1_700, false).await;
    project
        .add("small", extent(2, "2025-09-01T00:00:00Z", 3))
        .await;
    let request = json!({
        "start": "2025-09-01T00:00:00Z", "end": "2025-09-30T00:00:00Z", "include_turns": true
    });
    let mut sizes = Vec::new();
    let mut listed = Vec::new();
    let mut next = request.clone();
    loop {
        let page = project.page(&next).await;
        sizes.push(escaped_json_size(&page));
        for item in page["items"].as_array().unwrap() {
            let name = item["conversation_id"].as_str().unwrap();
            if name == "large" {
                assert_eq!(item["feedback_counts"]["total"], 1_700, "on every page");
            }
            let turns = item["turns"].as_array().unwrap();
            listed.extend(
                turns
                    .iter()
                    .map(|turn| (name.to_owned(), turn["turn_id"].to_string())),
            );
        }
        if page["next_cursor"].is_null() {
            break;
        }
        next["cursor"] = page["next_cursor"].clone();
    }
    assert!(
        sizes.iter().all(|size| *size < MAX_PAGE + 50_000),
        "{sizes:?}"
    );
    assert_eq!(sizes.len(), 2, "{sizes:?}");
    let each: BTreeSet<_> = listed.iter().collect();
    assert_eq!((each.len(), listed.len()), (1_706, 1_706), "each turn once");
}

#[tokio::test]
async fn a_turn_with_more_feedback_than_a_page_holds_continues_on_the_next() {
    let project = Project::start().await;
    project.register("c", "t").await;
    project.add_large("c", 1_500, true).await;
    let turn = "/conversations/acme/support/c/turns/t";
    let report = "/conversations/acme/support/c/turns-with-feedbacks";

    let mut path = turn.to_owned();
    let mut listed = Vec::new();
    let mut logs = 0;
    loop {
        let (status, page) = project.call(Method::GET, &path, &Value::Null).await;
        assert_eq!(status, StatusCode::OK);
        assert!(escaped_json_size(&page) < MAX_PAGE + 50_000);
        logs += usize::from(page.get("turn_log").is_some());
        listed.extend(reactions_on(&json!([page])));
        let Some(cursor) = page["next_cursor"].as_str() else {
            break;
        };
        path = format!("{turn}?cursor={cursor}");
    }
    let each: BTreeSet<_> = listed.iter().collect();
    assert_eq!((each.len(), listed.len()), (1_500, 1_500), "each once");
    assert_eq!(logs, 1, "on the first page");

    for named in [Value::Null, json!(["t"])] {
        let mut request = json!({"days": 3650, "turn_ids": named, "include_turn_logs": true});
        let mut listed = Vec::new();
        loop {
            let (status, page) = project.call(Method::POST, report, &request).await;
            assert_eq!(status, StatusCode::OK);
            assert!(escaped_json_size(&page) < MAX_PAGE + 50_000);
            listed.extend(reactions_on(&page["turns"]));
            if page["next_cursor"].is_null() {
                break;
            }
            request["cursor"] = page["next_cursor"].clone();
        }
        let each: BTreeSet<_> = listed.iter().collect();
        assert_eq!((each.len(), listed.len()), (1_500, 1_500), "each once");
    }
}

#[tokio::test]
async fn a_report_of_all_time_skips_empty_months_and_fits_one_page() {
    for mut project in [Project::start().await, Project::of_one_user().await] {
        project
            .add("new", extent(3, "2025-09-01T00:00:00Z", 20))
            .await;
        project
            .add("old", extent(3, "1999-03-01T00:00:00Z", 20))
            .await;
        let request = json!({"start": "1970-01-01T00:00:00Z", "end": "2999-01-01T00:00:00Z"});
        let report = project.report(&request, async |_| {}).await;
        assert_eq!(report.items.len(), 6);
        assert_eq!(report.pages, 1);
        // Without the markers of months the report would read four shards for each day since 1970: more than 80,000
        // calls.
        assert!(report.cost.calls < 1_500, "{:?}", report.cost);
    }
}

//! Reports: every conversation once, however many pages and whatever arrives meanwhile. The same
//! at full size is the benchmark `period_report`.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::Method;
use hearback_domain::payload::{MAX_PAGE, carried};
use hearback_tests::app::TestApp;
use hearback_tests::period::{Extent, Project, Report};
use hearback_tests::turns::{PERIOD, conversation_path, path, said};
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
    let mut project = Project::start().await;
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

    // Another size of page tells the same.
    let mut whole = request.clone();
    whole["limit"] = json!(500);
    let whole = project.report(&whole, async |_| {}).await;
    assert_eq!(whole.items, report.items);
}

#[tokio::test]
async fn while_reactions_arrive_each_conversation_is_listed_once() {
    let mut project = Project::start().await;
    project
        .add("c", extent(60, "2025-09-01T00:00:00Z", 40))
        .await;
    // Their only reaction is replaced while the report is read: where they stood is gone then.
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
    assert_eq!(listed.len(), report.items.len(), "none twice");
    let expected: BTreeSet<_> = project.expected.keys().map(String::as_str).collect();
    assert_eq!(listed, expected, "none missing");
}

#[tokio::test]
async fn a_write_that_lands_late_moves_no_conversation_off_the_report_or_onto_it_twice() {
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
            // Two in one minute, so that a page ends within it.
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
                        shared.land(late, &ts, received_at).await;
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
async fn what_lies_outside_of_the_window_costs_nothing() {
    let mut project = Project::start().await;
    project
        .add("in", extent(80, "2025-09-01T00:00:00Z", 10))
        .await;
    let request = json!({
        "start": "2025-09-01T00:00:00Z", "end": "2025-09-10T23:59:59Z", "limit": 20
    });
    let alone = project.report(&request, async |_| {}).await;
    project
        .add("before", extent(300, "2025-07-01T00:00:00Z", 30))
        .await;
    project
        .add("after", extent(300, "2025-11-01T00:00:00Z", 10))
        .await;
    let among = project.report(&request, async |_| {}).await;
    assert_eq!(names(&alone), names(&among));
    assert_eq!(alone.cost, among.cost);
    // Three markers and three looks at each conversation, and each day's shards.
    let each = alone.cost.reads / 80.0;
    assert!(each < 6.0, "{each} read units a conversation");
}

#[tokio::test]
async fn a_cursor_is_good_for_its_own_query_alone() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    for conversation in ["c1", "c2"] {
        app.put(&ada, &path(conversation, "t"), &said("a", "b"))
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
        let refused = app.post(&ada, PERIOD, &request).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{request}");
        assert_eq!(refused.body["errors"][0]["pointer"], "/cursor");
    }
    let request = with("limit", json!(1));
    let others = app.post(&app.token("eve"), PERIOD, &request).await;
    assert_eq!(others.status, StatusCode::BAD_REQUEST, "another caller's");
    let turns = format!("{}/turns-with-feedbacks", conversation_path("c1"));
    let elsewhere = app.post(&ada, &turns, &json!({"cursor": cursor})).await;
    assert_eq!(elsewhere.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn without_the_scope_a_report_is_over_ones_own_feedback() {
    let app = TestApp::start().await;
    let (ada, eve) = (app.token("ada"), app.token("eve"));
    app.put(&ada, &path("c", "t"), &said("a", "b")).await;
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
    let nobody = app.post(&app.token("nobody"), PERIOD, &request).await.body;
    assert_eq!(nobody["items"], json!([]));
}

#[tokio::test]
async fn the_turns_of_a_conversation_page_completely() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    for n in 0..23 {
        let turn = path("c", &format!("t{n:02}"));
        app.put(&ada, &turn, &said(&format!("q{n}"), "a")).await;
        // Every third turn has no feedback, or had some.
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
            let said = format!("q{}", id[1..].parse::<u32>().unwrap());
            assert_eq!(turn["user"]["text"], json!(said));
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
        "those with feedback, as they were named"
    );
    assert!(turns[0].get("turn_log").is_none());
    assert_eq!(turns[0]["reactions"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_page_ends_before_it_is_too_large_for_lambda() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    for n in 0..3 {
        let turn = path("c", &format!("t{n}"));
        app.put(&ada, &turn, &said("q", &"x".repeat(2_000_000)))
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

/// The names of the reactions on a page, from wherever they are listed.
fn reactions_on(turns: &Value) -> Vec<String> {
    let turns = turns.as_array().unwrap().iter();
    let listed = turns.flat_map(|turn| turn["reactions"].as_array().unwrap());
    listed
        .map(|artifact| artifact["user_id"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn a_conversation_with_more_feedback_than_an_answer_holds_is_continued() {
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
        sizes.push(carried(&page));
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
async fn a_turn_with_more_feedback_than_an_answer_holds_is_continued() {
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
        assert!(carried(&page) < MAX_PAGE + 50_000);
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
            assert!(carried(&page) < MAX_PAGE + 50_000);
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
async fn all_of_time_is_one_page_when_most_of_it_is_empty() {
    let mut project = Project::start().await;
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
    // Without the markers of months it would be four for each day since 1970: more than 80,000.
    assert!(report.cost.calls < 1_500, "{:?}", report.cost);
}

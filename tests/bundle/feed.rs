//! `GET /v1/feedback/events`: what is listed, to whom, in which order, page by page, and from where to read on.

mod positions;

use std::collections::BTreeSet;

use hearback_tests::app::{TestApp, eventually};
use hearback_tests::events::acceptance;
use hearback_tests::turns::{FEED, SIGNALS, message, path};
use reqwest::StatusCode;
use serde_json::{Value, json};

const REPORT: &str = "feedback:report";

async fn list(app: &TestApp, token: &str, query: &str) -> Value {
    let response = app.get(token, &format!("{FEED}?{query}")).await;
    assert_eq!(
        response.status,
        StatusCode::OK,
        "{query}: {}",
        response.body
    );
    response.body
}

fn events(page: &Value) -> &Vec<Value> {
    page["events"].as_array().unwrap()
}

fn event_ids(page: &Value) -> Vec<String> {
    let events = events(page).iter();
    events
        .map(|event| event["eventId"].as_str().unwrap().to_owned())
        .collect()
}

/// The feedback of each event in the list, with its type of message.
fn listed(page: &Value) -> BTreeSet<(String, String)> {
    let events = events(page).iter();
    let name = |event: &Value, member: &str| event[member].as_str().unwrap_or_default().to_owned();
    events
        .map(|event| {
            let source = &event["sourceEvent"]["feedbackId"];
            let feedback = source.as_str().map(str::to_owned);
            let feedback = feedback.unwrap_or_else(|| name(event, "feedbackId"));
            (feedback, name(event, "eventType"))
        })
        .collect()
}

fn feedback(page: &Value) -> BTreeSet<String> {
    listed(page)
        .into_iter()
        .map(|(feedback, _)| feedback)
        .collect()
}

/// Submits an event, and waits until it is processed.
async fn submit(app: &TestApp, token: &str, event: &Value) -> String {
    let response = app.submit(token, event).await;
    assert_eq!(response.status, StatusCode::ACCEPTED, "{}", response.body);
    let id = response.body["feedbackId"].as_str().unwrap().to_owned();
    app.outcome(token, &id).await;
    id
}

#[tokio::test]
async fn everything_published_is_listed_in_order_and_page_by_page() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    let empty = list(&app, &ada, "").await;
    assert_eq!(empty["events"], json!([]));
    assert_eq!(empty["next_cursor"], Value::Null);
    let mut expected = BTreeSet::new();
    for _ in 0..3 {
        let id = submit(&app, &ada, &acceptance("ada")).await;
        expected.insert((id.clone(), "feedback.processed".to_owned()));
        expected.insert((id, "learning.signal.generated".to_owned()));
    }
    let all = list(&app, &ada, "").await;
    assert_eq!(listed(&all), expected);
    let times = events(&all).iter().map(|event| &event["publishedAt"]);
    assert!(times.map(|time| time.as_str().unwrap()).is_sorted());
    let ids = event_ids(&all);
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
    // An event has the same id for every reader.
    let report = app.token_of("analyst", "acme", REPORT);
    assert_eq!(event_ids(&list(&app, &report, "").await), ids);

    for token in [&ada, &report] {
        for limit in [1, 2, 4] {
            let mut pages = Vec::new();
            let mut page = list(&app, token, &format!("limit={limit}")).await;
            loop {
                assert!(events(&page).len() <= limit);
                pages.extend(event_ids(&page));
                let Some(cursor) = page["next_cursor"].as_str() else {
                    break;
                };
                page = list(&app, token, &format!("limit={limit}&cursor={cursor}")).await;
            }
            assert_eq!(pages, ids);
        }
        for (at, event) in ids.iter().enumerate() {
            let later = list(&app, token, &format!("after={event}")).await;
            assert_eq!(event_ids(&later), ids[at + 1..]);
        }
        let first = &events(&all)[0]["publishedAt"].as_str().unwrap();
        let until = list(&app, token, &format!("until={first}")).await;
        assert_eq!(event_ids(&until)[..], ids[..event_ids(&until).len()]);
        assert!(events(&until).len() < ids.len());
    }

    let cursor = list(&app, &ada, "limit=1").await["next_cursor"].clone();
    let cursor = cursor.as_str().unwrap();
    for (token, query) in [
        (&report, format!("cursor={cursor}")),
        (&ada, format!("cursor={cursor}&channel=explicit")),
        (&ada, format!("cursor=x{cursor}")),
        (&ada, "after=x".to_owned()),
        (&ada, format!("after=x{}", ids[0])),
        (&ada, "channel=loud".to_owned()),
        (&ada, "type=applause".to_owned()),
        (&ada, "outcome=great".to_owned()),
        (&ada, "limit=0".to_owned()),
        (&ada, "since=yesterday".to_owned()),
        (&ada, "label.a%20b=x".to_owned()),
        (&ada, "label.model=".to_owned()),
    ] {
        let response = app.get(token, &format!("{FEED}?{query}")).await;
        assert_eq!(
            response.status,
            StatusCode::BAD_REQUEST,
            "{query}: {}",
            response.body
        );
    }
}

#[tokio::test]
async fn filters_select_by_channel_type_outcome_project_and_label() {
    let app = TestApp::start().await;
    let ada = app.token("ada");
    let mut rated = acceptance("ada");
    rated["feedbackType"] = json!("rating");
    rated["data"] = json!({"rating": 1});
    rated["context"]["labels"] = json!({"model": "one", "prompt_version": "v7"});
    let mut edited = acceptance("ada");
    edited["feedbackChannel"] = json!("correction");
    edited["feedbackType"] = json!("modification");
    edited["data"] = json!({});
    edited["correctionData"] = json!({"originalValue": "a", "correctedValue": "b"});
    edited["context"] = json!({"labels": {"model": "two"}});
    let accepted = submit(&app, &ada, &acceptance("ada")).await;
    let rated = submit(&app, &ada, &rated).await;
    let edited = submit(&app, &ada, &edited).await;
    for (query, expected) in [
        ("channel=correction", vec![&edited]),
        ("channel=implicit", vec![]),
        ("type=rating", vec![&rated]),
        ("outcome=accepted", vec![&accepted]),
        ("outcome=modified", vec![&edited]),
        ("label.model=one", vec![&rated]),
        ("label.model=one&label.prompt_version=v7", vec![&rated]),
        ("label.model=one&label.prompt_version=v8", vec![]),
        ("projectId=order-service", vec![&accepted, &rated]),
        ("projectId=other", vec![]),
        ("channel=explicit&type=artifact-acceptance", vec![&accepted]),
    ] {
        let page = list(&app, &ada, query).await;
        let expected = expected.into_iter().cloned().collect();
        assert_eq!(feedback(&page), expected, "{query}");
    }
}

#[tokio::test]
async fn users_see_their_own_feedback_and_reporters_that_of_the_tenant_without_private_feedback() {
    let app = TestApp::start().await;
    let (ada, eve) = (app.token("ada"), app.token("eve"));
    let report = app.token_of("analyst", "acme", REPORT);
    let service = app.token_of("service", "acme", "feedback:on-behalf");
    let body = message("m", "laptops under $1000", "Here are three.");
    app.put(&ada, &path("c", "t"), &body).await;
    let of_ada = submit(&app, &ada, &acceptance("ada")).await;
    let of_eve = submit(&app, &eve, &acceptance("eve")).await;
    let mut anonymous = acceptance("ada");
    anonymous["privacyFlags"]["anonymize"] = json!(true);
    let anonymous = submit(&app, &ada, &anonymous).await;
    let mut elsewhere = acceptance("ada");
    elsewhere["context"]["projectId"] = json!("payroll");
    let elsewhere = submit(&app, &ada, &elsewhere).await;
    let signal = json!({"message_id": "m", "signal": "not_helpful"});
    app.post(&ada, SIGNALS, &signal).await;
    let own = eventually(|| async {
        let page = list(&app, &ada, "").await;
        (feedback(&page).len() == 4).then_some(page)
    })
    .await;
    let signal = feedback(&own)
        .into_iter()
        .find(|id| ![&of_ada, &anonymous, &elsewhere].contains(&id));
    let signal = signal.unwrap();

    let set = |ids: &[&String]| -> BTreeSet<String> { ids.iter().copied().cloned().collect() };
    let everything_of_ada = set(&[&of_ada, &anonymous, &elsewhere, &signal]);
    for (token, query, expected) in [
        (&ada, "", everything_of_ada.clone()),
        (&ada, "userId=ada", everything_of_ada.clone()),
        (&eve, "", set(&[&of_eve])),
        (&report, "", set(&[&of_ada, &of_eve, &anonymous])),
        (&report, "userId=ada", set(&[&of_ada])),
        (&service, "", set(&[])),
        // A back end does not learn whose an anonymous event is.
        (&service, "userId=ada", set(&[&of_ada, &elsewhere, &signal])),
        (&app.token_of("ada", "umbrella", REPORT), "", set(&[])),
    ] {
        let page = list(&app, token, query).await;
        assert_eq!(feedback(&page), expected, "{query}");
    }
    assert!(!list(&app, &report, "").await.to_string().contains(&signal));
    for (token, query, detail) in [
        (
            &eve,
            "userId=ada",
            "the feedback of another user needs the scope feedback:on-behalf or feedback:report",
        ),
        (
            &report,
            "projectId=payroll",
            "the token does not have this tenant and project",
        ),
    ] {
        let response = app.get(token, &format!("{FEED}?{query}")).await;
        assert_eq!(response.status, StatusCode::FORBIDDEN, "{query}");
        assert_eq!(response.body["detail"], detail, "{query}");
    }

    // A withdrawal is an entry of its own, also if the event does not fit the filter of its type.
    let withdrawn = app.delete(&ada, &format!("/v1/feedback/{of_ada}")).await;
    assert_eq!(withdrawn.status, StatusCode::NO_CONTENT);
    let withdrawn = app
        .delete(&ada, &format!("{SIGNALS}?message_id=m&signal=not_helpful"))
        .await;
    assert_eq!(withdrawn.status, StatusCode::NO_CONTENT);
    let retraction = |id: &String| (id.clone(), "feedback.retracted".to_owned());
    eventually(|| async {
        let page = list(&app, &ada, "type=rating").await;
        (listed(&page) == [&of_ada, &signal].map(retraction).into()).then_some(())
    })
    .await;
    let page = list(&app, &report, "type=rating").await;
    assert_eq!(listed(&page), [retraction(&of_ada)].into());
    assert_eq!(events(&page)[0]["feedbackChannel"], "explicit");

    // An erasure removes a person's entries.
    let erased = app.delete(&ada, "/v1/users/ada/data").await;
    assert_eq!(erased.status, StatusCode::ACCEPTED, "{}", erased.body);
    eventually(|| async {
        let page = list(&app, &report, "").await;
        (feedback(&page) == set(&[&of_eve])).then_some(())
    })
    .await;
}

//! The counts of insights: the messages that change them, what is stored of them, and what they should be.

use std::collections::{BTreeMap, BTreeSet};

use aws_lambda_events::sqs::SqsMessage;
use aws_sdk_dynamodb::types::AttributeValue;
use hearback_domain::identity::identifier::{ProjectId, TenantId};
use hearback_domain::learning::publication::{Outcome, Subject};
use hearback_domain::turns::turn::TurnCore;
use hearback_domain::views::insights::{AnswerFacts, Facts, Interval, Rollup, TurnFeedback};
use hearback_signals::publish;
use hearback_storage::insights::ProjectRef;
use hearback_storage::{Store, keys};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::engine::Engine;
use crate::rows::{Row, attribute, rows};

/// What is published of a record of the stream and counted.
#[must_use]
pub fn messages(record: &Value) -> Vec<SqsMessage> {
    let published = publish::addressed(record).unwrap();
    let counted = published.messages.into_iter();
    let counted = counted.filter(|(subject, _)| *subject == Subject::FeedbackProcessed);
    let bodies = counted
        .map(|(_, message)| message)
        .chain(published.for_insights);
    bodies.map(|body| message(&body)).collect()
}

/// A message with this body.
#[must_use]
pub fn message(body: &Value) -> SqsMessage {
    let mut message = SqsMessage::default();
    message.message_id = Some(Uuid::new_v4().to_string());
    message.body = Some(body.to_string());
    message
}

/// The messages of all outcomes and retractions that are stored.
pub async fn all_messages(engine: &Engine) -> Vec<SqsMessage> {
    let rows = rows(&engine.clients.dynamodb, &engine.names.table()).await;
    let is_counted = |key: &str| ["RESULT", "RETRACTION"].contains(&key) || is_turn(key);
    let results = rows.iter().filter(|row| is_counted(attribute(row, "SK")));
    let mut messages: Vec<_> = results
        .flat_map(|row| messages(&record("INSERT", row)))
        .collect();
    messages.sort_by(|one, other| one.body.cmp(&other.body));
    messages
}

/// The record of the stream for a row.
#[must_use]
pub fn record(event: &str, row: &Row) -> Value {
    let read = row.iter().filter_map(|(name, value)| {
        let value = match value {
            AttributeValue::S(text) => json!({"S": text}),
            AttributeValue::Bool(flag) => json!({"BOOL": flag}),
            _ => return None,
        };
        Some((name.clone(), value))
    });
    let image = Value::Object(read.collect());
    let name = if event == "REMOVE" {
        "OldImage"
    } else {
        "NewImage"
    };
    json!({
        "eventName": event,
        "dynamodb": {"Keys": {"PK": image["PK"], "SK": image["SK"]}, name: image}
    })
}

/// Whether a sort key is that of a turn.
fn is_turn(key: &str) -> bool {
    key.starts_with("TURN#")
}

/// Which feedback a turn has, from the row's `said` and `user_feedback`.
fn feedback_of(row: &Row) -> TurnFeedback {
    let part = |name: &str| serde_json::from_str(attribute(row, name)).unwrap_or(Value::Null);
    let inferred = part("user_feedback");
    // The feedback that counts, by kind, each with the earlier of its kind.
    let given: BTreeMap<String, Value> = serde_json::from_value(part("said")).unwrap_or_default();
    let verdicts = given.values().flat_map(|latest| {
        let earlier = latest["earlier"].as_array().into_iter().flatten();
        std::iter::once(latest).chain(earlier)
    });
    TurnFeedback {
        is_explicit: verdicts.into_iter().any(|act| !act["verdict"].is_null()),
        is_inferred: ["accepted", "rejected"].contains(&inferred["status"].as_str().unwrap_or(""))
            && inferred["confidence"].as_f64() >= Some(0.7),
    }
}

/// The counts of each hour and day of a project, as they should be: counted from the stored outcomes and turns, without
/// the index, the marks and the counts of others.
#[must_use]
pub fn expected(rows: &[Row], tenant: &str, project: &str) -> BTreeMap<Interval, Rollup> {
    let partition = format!("EVENT#{tenant}#");
    let of_tenant = rows
        .iter()
        .filter(|row| attribute(row, "PK").starts_with(&partition));
    let retracted: BTreeSet<_> = of_tenant
        .clone()
        .filter(|row| attribute(row, "SK") == "RETRACTION")
        .map(|row| attribute(row, "PK"))
        .collect();
    let mut counts: BTreeMap<Interval, Rollup> = BTreeMap::new();
    for row in of_tenant.filter(|row| attribute(row, "SK") == "RESULT") {
        let Outcome::Processed(event) = serde_json::from_str(attribute(row, "outcome")).unwrap()
        else {
            continue;
        };
        let of_project = event.context().project_id.as_ref();
        if of_project.is_none_or(|name| name.as_str() != project) {
            continue;
        }
        let hour = Interval::hour_of(event.occurred_at());
        let is_retracted = retracted.contains(attribute(row, "PK"));
        for interval in [hour, Interval::Day(hour.day())] {
            let counts = counts.entry(interval).or_default();
            counts.add(&Facts::of(&event), is_retracted);
        }
    }
    let partition = format!("CONV#{tenant}#{project}#");
    let of_project = rows
        .iter()
        .filter(|row| attribute(row, "PK").starts_with(&partition));
    for row in of_project.filter(|row| is_turn(attribute(row, "SK"))) {
        let turn: TurnCore = serde_json::from_str(attribute(row, "core")).unwrap();
        let hour = Interval::hour_of(turn.ts);
        for interval in [hour, Interval::Day(hour.day())] {
            let counts = counts.entry(interval).or_default();
            counts.add_turn(&AnswerFacts::of_turn(&turn), feedback_of(row));
        }
    }
    counts
}

/// The stored counts of each hour and day of a project. Those without an event are left out.
pub async fn counts(store: &Store, tenant: &str, project: &str) -> BTreeMap<Interval, Rollup> {
    let tenant: TenantId = tenant.try_into().unwrap();
    let project: ProjectId = project.try_into().unwrap();
    let place = ProjectRef {
        tenant: &tenant,
        project: &project,
    };
    // Days sort before hours.
    let [first, last] = ["D#0001-01-01", "H#9999-12-31T23"].map(keys::interval_of);
    let span = (first.unwrap(), last.unwrap());
    let now = chrono::Utc::now();
    let mut counts: BTreeMap<Interval, Rollup> = BTreeMap::new();
    let mut others = BTreeSet::new();
    for (interval, head) in store.overviews(place, span, now).await.unwrap() {
        others.extend(
            head.others
                .into_iter()
                .map(|dimension| (interval, dimension)),
        );
        let rollup = counts.entry(interval).or_default();
        rollup.breakdowns = head.by;
        rollup.label_keys_left_out = head.label_keys_left_out;
    }
    for (interval, dimension) in others {
        let span = (interval, interval);
        let rows = store
            .breakdowns(place, &dimension, span, now)
            .await
            .unwrap();
        // While the counts are written, the head may already list a dimension whose row follows.
        if let Some((_, row)) = rows.into_iter().next() {
            let rollup = counts.entry(interval).or_default();
            rollup.breakdowns.insert(dimension, row);
        }
    }
    counts.retain(|_, rollup| !rollup.breakdowns.is_empty());
    counts
}

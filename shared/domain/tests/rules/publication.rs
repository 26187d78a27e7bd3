//! Tests of published messages.

use std::collections::{BTreeMap, BTreeSet};

use hearback_domain::events::event::EventCore;
use hearback_domain::feedback::reaction::{NewReaction, ReactionUpdate, StoredReaction};
use hearback_domain::identity::caller::Caller;
use hearback_domain::learning::ledger::{event_of, retraction_of};
use hearback_domain::learning::publication::{Processed, Subject, retracted};
use hearback_domain::turns::turn::{Turn, TurnRef};
use serde_json::{Value, json};

use super::{at, example, submitted};

#[test]
fn the_example_gives_exactly_these_messages() {
    let processed = Processed::of(&submitted(&example()), None, at("2026-01-04T10:00:00Z"));
    let messages: BTreeMap<_, _> = processed
        .messages()
        .into_iter()
        .map(|(subject, message)| (subject.as_str(), message))
        .collect();
    let signal = &messages["learning.signals.reward"];
    assert_eq!(
        *signal,
        json!({
            "eventType": "learning.signal.generated",
            "signalId": signal["signalId"],
            "signalType": "reward",
            "sourceEvent": {
                "feedbackId": "f47ac10b-58cc-4372-a567-0e02b2c3d479",
                "feedbackChannel": "explicit",
                "feedbackType": "artifact-acceptance"
            },
            "reward": {"value": 0.85, "confidence": 0.92, "decay": 0.99},
            "context": {
                "userId": "user-123",
                "artifactType": "checklist",
                "taskType": "code-review"
            },
            "timestamp": "2026-01-04T10:00:00Z",
            "features": {"artifactType": "checklist", "taskType": "code-review"},
            "id": signal["signalId"],
            "tenant": "acme",
            "projectId": "order-service",
            "occurredAt": "2026-01-04T09:30:00Z",
            "publishedAt": "2026-01-04T10:00:00Z"
        })
    );
    assert_eq!(
        messages["feedback.processed"],
        json!({
            "eventType": "feedback.processed",
            "feedbackId": "f47ac10b-58cc-4372-a567-0e02b2c3d479",
            "dedupeKey": "user-123:artifact-456:artifact-acceptance:2026-01-04T09",
            "userId": "user-123",
            "artifactType": "checklist",
            "feedbackChannel": "explicit",
            "outcome": "accepted",
            "score": 4,
            "features": {
                "taskType": "code-review",
                "artifactComplexity": "medium",
                "userExperience": "intermediate"
            },
            "privacyFlags": {"anonymize": false, "excludeFromTraining": false},
            "id": messages["feedback.processed"]["id"],
            "tenant": "acme",
            "projectId": "order-service",
            "occurredAt": "2026-01-04T09:30:00Z",
            "publishedAt": "2026-01-04T10:00:00Z"
        })
    );
    let policy = &messages["learning.signals.policy"];
    assert_eq!(
        policy["policyUpdate"],
        json!({
            "targetModel": "recommendation",
            "adjustmentType": "weight_boost",
            "featureVector": {"artifactType=checklist": 0.85, "taskType=code-review": 0.85}
        })
    );
    assert_eq!(messages.len(), 3);
}

#[test]
fn messages_of_two_tenants_never_share_an_id() {
    let ids = |tenant: &str| -> BTreeSet<String> {
        let event = EventCore {
            tenant: tenant.try_into().expect("a tenant"),
            ..submitted(&example())
        };
        let messages = Processed::of(&event, None, at("2026-01-04T10:00:00Z")).messages();
        let ids = messages
            .iter()
            .map(|(_, message)| message["id"].to_string());
        ids.collect()
    };
    let (acme, umbrella) = (ids("acme"), ids("umbrella"));
    assert_eq!(acme.len(), 3, "one for each message");
    assert!(acme.is_disjoint(&umbrella));
    assert_eq!(acme, ids("acme"), "stable");
}

#[test]
fn a_modification_adds_or_removes_features() {
    let update = |correction: Value| {
        let mut body = example();
        body["feedbackType"] = json!("modification");
        body["correctionData"] = correction;
        body["context"]["agentId"] = json!("writer");
        body["context"]["labels"] = json!({"model": "m1"});
        let processed = Processed::of(&submitted(&body), None, at("2026-01-04T10:00:00Z"));
        let messages = processed.messages();
        let policy = messages
            .iter()
            .find(|(subject, _)| *subject == Subject::Policy);
        policy.expect("a policy update").1["policyUpdate"].clone()
    };
    let added = update(json!({"correctionType": "completeness"}));
    assert_eq!(added["adjustmentType"], "feature_add");
    let names = |update: &Value| -> Vec<String> {
        let vector = update["featureVector"].as_object().expect("an object");
        vector.keys().cloned().collect()
    };
    assert_eq!(
        names(&added),
        [
            "agentId=writer",
            "artifactType=checklist",
            "correctionType=completeness",
            "label.model=m1",
            "taskType=code-review"
        ]
    );
    let removed = update(json!({"correctionType": "accuracy"}));
    assert_eq!(removed["adjustmentType"], "feature_remove");
    assert_eq!(
        names(&removed),
        [
            "agentId=writer",
            "correctionType=accuracy",
            "label.model=m1"
        ]
    );
    assert_eq!(update(json!({}))["adjustmentType"], "feature_add");
}

#[test]
fn a_message_carries_the_references_and_labels_of_its_turn() {
    let back_end = Caller {
        user: "user-123".try_into().expect("a user"),
        tenant: "acme".try_into().expect("a tenant"),
        projects: vec!["support".try_into().expect("a project")],
        scopes: Vec::new(),
    };
    let at_turn: TurnRef = serde_json::from_value(json!({
        "tenant": "acme", "project": "support", "conversation_id": "c", "turn_id": "t"
    }))
    .expect("a turn");
    let turn = json!({
        "user": {"text": "How?"}, "assistant": {"text": "So."}, "trace_id": "4bf9", "span_id": "00f0",
        "labels": {"model": "m1", "prompt_version": "v7"}
    });
    let now = at("2026-01-04T10:00:00Z");
    let turn = Turn::parse(at_turn, &turn, &back_end, now)
        .expect("a turn")
        .core;
    let react = |body: Value, current: Option<&StoredReaction>| {
        let new = NewReaction::parse(&body, &back_end, now).expect("a reaction");
        match new.on(&turn, &back_end, false, now).resolve(current) {
            ReactionUpdate::Write(reaction) => *reaction,
            other => panic!("{other:?}"),
        }
    };
    let first = react(
        json!({"reaction": "ok", "ts": "2026-01-04T09:00:00Z"}),
        None,
    );
    let event = event_of(&first.core, "").expect("an event").core;
    let processed = Processed::of(&event, None, at("2026-01-04T10:00:05Z"));
    let cleared = react(
        json!({"reaction": null, "ts": "2026-01-04T09:30:00Z"}),
        Some(&first),
    );
    let retraction = retraction_of(&cleared.core, at("2026-01-04T10:00:07Z"));
    let retraction = retracted(&retraction.expect("a retraction"));
    let mut messages = processed.messages();
    assert_eq!(messages[0].1["dedupeKey"], messages[0].1["feedbackId"]);
    messages.push(retraction);
    for (_, message) in &messages {
        let head = [
            "tenant",
            "projectId",
            "conversationId",
            "turnId",
            "traceId",
            "spanId",
        ];
        let head = head.map(|name| message[name].as_str().unwrap_or("missing"));
        assert_eq!(head, ["acme", "support", "c", "t", "4bf9", "00f0"]);
        let labels = json!({"model": "m1", "prompt_version": "v7"});
        assert_eq!(message["labels"], labels);
    }
    let times = |message: &Value| {
        [
            message["occurredAt"].clone(),
            message["publishedAt"].clone(),
        ]
    };
    assert_eq!(
        times(&messages[0].1),
        ["2026-01-04T09:00:00Z", "2026-01-04T10:00:05Z"]
    );
    let (_, retraction) = messages.last().expect("the retraction");
    assert_eq!(
        times(retraction),
        ["2026-01-04T09:30:00Z", "2026-01-04T10:00:07Z"]
    );
    assert_ne!(retraction["id"], messages[0].1["id"]);
}

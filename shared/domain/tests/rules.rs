//! The rules over all events: ranges, the source's examples, and what must never happen.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use hearback_domain::caller::Caller;
use hearback_domain::event::{
    Channel, CorrectionType, EventContext, EventCore, FeedbackType, PrivacyFlags, Rating,
};
use hearback_domain::ledger::{event_of, retraction_of};
use hearback_domain::preferences::{
    Cause, Lesson, Patch, Profile, Question, Version, learn, resolve,
};
use hearback_domain::privacy::Pseudonyms;
use hearback_domain::publication::{Processed, Subject, retracted};
use hearback_domain::reaction::{Posted, Step, StoredReaction};
use hearback_domain::signal::{AdjustmentType, SignalType, reward, signals_for};
use hearback_domain::submission::Submission;
use hearback_domain::turn::{Turn, TurnRef};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use uuid::Uuid;

fn at(time: &str) -> DateTime<Utc> {
    time.parse().expect("a time")
}

/// The event of the source's submit example.
fn example() -> Value {
    json!({
        "feedbackId": "f47ac10b-58cc-4372-a567-0e02b2c3d479",
        "userId": "user-123",
        "sessionId": "session-abc",
        "artifactId": "artifact-456",
        "feedbackChannel": "explicit",
        "feedbackType": "artifact-acceptance",
        "data": {
            "accepted": true,
            "modifiedElements": ["checkbox-1", "text-field-2"],
            "timeSpent": 45,
            "rating": 4,
            "comment": "Very helpful checklist"
        },
        "privacyFlags": {"anonymize": false, "retentionDays": 90},
        "context": {
            "taskType": "code-review",
            "projectId": "order-service",
            "artifactType": "checklist",
            "artifactComplexity": "medium",
            "userExperience": "intermediate"
        },
        "timestamp": "2026-01-04T09:30:00Z"
    })
}

fn submitted(body: &Value) -> EventCore {
    let caller = Caller {
        user: "user-123".try_into().expect("a user"),
        tenant: "acme".try_into().expect("a tenant"),
        projects: Vec::new(),
        scopes: Vec::new(),
    };
    Submission::parse(
        body,
        &caller,
        &Pseudonyms::new("key"),
        at("2026-01-04T10:00:00Z"),
    )
    .expect("a good event")
    .event
    .core
}

fn any_event() -> impl Strategy<Value = EventCore> {
    let channels: Vec<_> = Channel::NAMES.iter().map(|(_, channel)| *channel).collect();
    let types: Vec<_> = FeedbackType::NAMES.iter().map(|(_, kind)| *kind).collect();
    let corrections: Vec<_> = CorrectionType::NAMES
        .iter()
        .map(|(_, kind)| *kind)
        .collect();
    (
        (any::<u128>(), select(channels), option::of(select(types))),
        (option::of(any::<bool>()), option::of(1..=5_u8), 0..40_usize),
        (
            any::<bool>(),
            option::of(any::<i64>()),
            option::of(select(corrections)),
        ),
        (any::<bool>(), select(vec!["checklist", "prose"])),
    )
        .prop_map(
            |(
                (id, channel, kind),
                (accepted, rating, modified),
                (commented, time, correction),
                (excluded, artifact),
            )| {
                EventCore {
                    feedback_id: Uuid::from_u128(id),
                    channel,
                    feedback_type: kind,
                    accepted,
                    rating: rating.map(|rating| Rating::try_from(rating).expect("in range")),
                    modified_elements: modified,
                    commented,
                    time_spent: time,
                    correction_type: correction,
                    privacy: PrivacyFlags {
                        exclude_from_training: excluded,
                        ..PrivacyFlags::default()
                    },
                    context: EventContext {
                        artifact_type: Some(artifact.try_into().expect("a label")),
                        ..EventContext::default()
                    },
                    ..submitted(&example())
                }
            },
        )
}

#[test]
fn the_published_example_is_reproduced_to_the_digit() {
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
fn every_row_of_the_rule_table_gives_what_it_says() {
    let event = |kind: &str, data: Value| {
        let mut body = example();
        body["feedbackType"] = json!(kind);
        body["data"] = data;
        signals_for(&submitted(&body), None)
    };
    let value = |kind, data| event(kind, data).reward.map(|reward| reward.value);
    assert_eq!(
        value(
            "artifact-acceptance",
            json!({"accepted": true, "rating": 5})
        ),
        Some(1.0)
    );
    assert_eq!(
        value("artifact-acceptance", json!({"accepted": true})),
        Some(0.75)
    );
    assert_eq!(
        value(
            "artifact-acceptance",
            json!({"accepted": true, "rating": 1})
        ),
        Some(0.5)
    );
    assert_eq!(
        value(
            "artifact-acceptance",
            json!({"accepted": false, "rating": 1})
        ),
        Some(-1.0)
    );
    assert_eq!(
        value("artifact-acceptance", json!({"accepted": false})),
        Some(-0.75)
    );
    assert_eq!(
        value(
            "artifact-acceptance",
            json!({"accepted": false, "rating": 5})
        ),
        Some(-0.5)
    );
    assert_eq!(value("artifact-acceptance", json!({})), None);
    assert_eq!(value("rejection", json!({})), Some(-0.75));
    let ratings = [
        (5, Some(0.8)),
        (4, Some(0.3)),
        (3, None),
        (2, Some(-0.3)),
        (1, Some(-0.8)),
    ];
    for (rating, expected) in ratings {
        let signals = event("rating", json!({"rating": rating}));
        assert_eq!(signals.reward.map(|reward| reward.value), expected);
        let adjusts = signals.policy_update.map(|update| update.adjustment_type);
        let expected = match rating {
            4.. => Some(AdjustmentType::WeightBoost),
            3 => None,
            _ => Some(AdjustmentType::WeightDecay),
        };
        assert_eq!(adjusts, expected, "rating {rating}");
    }
    let adjusts = |kind, data| event(kind, data).policy_update.map(|u| u.adjustment_type);
    let decays = Some(AdjustmentType::WeightDecay);
    assert_eq!(adjusts("rejection", json!({})), decays);
    let acceptance = |data| adjusts("artifact-acceptance", data);
    assert_eq!(acceptance(json!({"accepted": false})), decays);
    assert_eq!(acceptance(json!({"accepted": false, "rating": 5})), decays);
    assert_eq!(acceptance(json!({"accepted": true, "rating": 2})), decays);
    let boosts = Some(AdjustmentType::WeightBoost);
    assert_eq!(acceptance(json!({"accepted": true, "rating": 4})), boosts);
    assert_eq!(acceptance(json!({"accepted": true})), None);
    assert_eq!(acceptance(json!({"rating": 5})), None, "no verdict");
    let modification = event("modification", json!({}));
    assert!(modification.reward.is_none());
    assert!(modification.policy_update.is_some());
    for silent in ["comment", "dwell-time", "scroll-depth"] {
        assert_eq!(
            event(silent, json!({"timeSpent": 9})),
            signals_for_nothing(),
            "{silent}"
        );
    }
}

fn signals_for_nothing() -> hearback_domain::signal::Signals {
    hearback_domain::signal::Signals::default()
}

#[test]
fn a_hint_to_explore_less_comes_once_for_each_crossing() {
    let mut user = User::default();
    user.feel(25, &json!({"accepted": true}));
    user.feel(5, &json!({"accepted": false}));
    user.feel(60, &json!({"accepted": true}));
    let hints = user.hints;
    assert_eq!(hints.len(), 2, "{hints:?}");
    assert_eq!(hints[0], 20, "twenty samples are needed");
    assert!(hints[1] > 30, "the second is after the rate had fallen");
}

/// A user who gives feedback on checklists, one event after the other, from number 1 on.
#[derive(Default)]
struct User {
    profile: Profile,
    events: u128,
    /// The numbers of the events that gave a hint to explore less.
    hints: Vec<u128>,
    excluded: bool,
    context: Value,
}

impl User {
    /// So many times the same feedback; a rating alone is no verdict.
    fn feel(&mut self, count: usize, data: &Value) {
        for _ in 0..count {
            self.events += 1;
            let mut body = example();
            body["feedbackId"] = json!(Uuid::from_u128(self.events));
            body["privacyFlags"] = json!({"excludeFromTraining": self.excluded});
            if data.get("accepted").is_none() {
                body["feedbackType"] = json!("rating");
            }
            body["data"] = data.clone();
            if let Value::Object(context) = &self.context {
                let members = body["context"].as_object_mut().expect("an object");
                members.extend(context.clone());
            }
            let event = submitted(&body);
            let lesson = Lesson::of(&event).expect("a lesson");
            // As it is stored and read back.
            let learned = learn(&self.profile, &[lesson]).expect("learns");
            self.hints.extend(
                learned
                    .crossings
                    .keys()
                    .filter(|id| {
                        let crossing = learned.crossings.get(id);
                        signals_for(&event, crossing).exploration_hint.is_some()
                    })
                    .map(Uuid::as_u128),
            );
            let cause = Cause::Update;
            let version = Version::after(None, learned.profile, cause, at("2026-01-04T10:00:00Z"));
            let stored = serde_json::to_string(&version).expect("JSON");
            let version: Version = serde_json::from_str(&stored).expect("a version");
            self.profile = version.profile();
        }
    }

    fn resolved(&self) -> Value {
        let label = |name: &str| Some(name.try_into().expect("a label"));
        let question = Question {
            artifact_type: label("checklist"),
            task_type: label("code-review"),
            project_id: label("order-service"),
        };
        json!(resolve(&self.profile, &question))
    }
}

#[test]
fn ratings_are_no_acceptance_samples() {
    let mut user = User::default();
    user.feel(19, &json!({"rating": 1}));
    user.feel(1, &json!({"accepted": true}));
    assert_eq!(user.hints, [0_u128; 0], "one acceptance is one sample");
    user.feel(19, &json!({"accepted": true}));
    assert_eq!(user.hints, [39], "the twentieth acceptance");
    let checklist = &user.profile.preferences.artifact_preferences["checklist"];
    assert_eq!(checklist.sample_count, Some(39), "all samples, as ever");
    user.feel(1, &json!({"accepted": false}));
    let checklist = &user.profile.preferences.artifact_preferences["checklist"];
    assert_eq!(checklist.acceptance_rate, Some(20.0 / 21.0));
    assert_eq!(checklist.average_rating, Some(1.0));
}

#[test]
fn a_crossing_by_an_excluded_event_is_told_by_the_next_that_is_not() {
    let mut user = User::default();
    user.feel(19, &json!({"accepted": true}));
    user.excluded = true;
    user.feel(3, &json!({"accepted": true}));
    assert_eq!(user.hints, [0_u128; 0]);
    user.excluded = false;
    user.feel(5, &json!({"rating": 4}));
    assert_eq!(user.hints, [23], "once, by the first that may tell it");
}

#[test]
fn a_crossing_that_no_longer_holds_is_not_told() {
    let mut user = User {
        excluded: true,
        ..User::default()
    };
    user.feel(20, &json!({"accepted": true}));
    user.feel(3, &json!({"accepted": false}));
    user.excluded = false;
    user.feel(1, &json!({"rating": 4}));
    assert_eq!(user.hints, [0_u128; 0], "20 of 23 are less than 0.90");
}

#[test]
fn a_version_without_counts_goes_on_with_its_sample_count() {
    let stored = json!({
        "number": 7, "cause": {"kind": "update"},
        "createdAt": "2026-01-04T10:00:00Z", "updatedAt": "2026-01-04T10:00:00Z",
        "preferences": {
            "artifactPreferences": {"checklist": {"acceptanceRate": 0.95, "sampleCount": 60}},
            "globalPreferences": {
                "communicationStyle": "technical", "detailLevel": "standard", "learningMode": true
            }
        }
    });
    let version: Version = serde_json::from_value(stored).expect("a version");
    let mut user = User {
        profile: version.profile(),
        ..User::default()
    };
    user.feel(1, &json!({"accepted": true}));
    assert_eq!(user.hints, [0_u128; 0], "it was told when it crossed");
    let checklist = &user.profile.preferences.artifact_preferences["checklist"];
    assert_eq!(checklist.acceptance_rate, Some((0.95 * 60.0 + 1.0) / 61.0));
}

#[test]
fn what_a_user_accepts_becomes_the_preference() {
    let mut user = User::default();
    let context = |format: &str, length: &str, agent: &str| {
        json!({"artifactFormat": format, "artifactComplexity": "detailed", "responseLength": length,
               "codeStyle": "spaghetti", "agentId": agent})
    };
    user.context = context("table", "concise", "writer");
    user.feel(9, &json!({"accepted": true}));
    assert_eq!(user.resolved()["preferredFormat"], "mixed", "9 samples");
    user.feel(3, &json!({"accepted": true}));
    user.context = context("prose", "verbose", "critic");
    user.feel(12, &json!({"accepted": false}));
    let resolved = user.resolved();
    let values = [
        "preferredFormat",
        "preferredResponseLength",
        "preferredAgents",
    ];
    let told = values.map(|name| resolved[name].clone());
    assert_eq!(told, [json!("table"), json!("concise"), json!(["writer"])]);
    for name in values {
        assert_eq!(resolved["source"][name], "learned", "{name}");
    }
    // Accepted as often as not, and a value that is none.
    for name in ["preferredComplexity", "preferredCodeStyle"] {
        assert_eq!(resolved["source"][name], "default", "{name}");
    }
    let shown = json!(user.profile.shown());
    assert_eq!(
        shown["artifactPreferences"]["checklist"]["preferredFormat"],
        "table"
    );
    assert_eq!(
        shown["contextPreferences"]["code-review"],
        json!({"preferredAgents": ["writer"], "preferredResponseLength": "concise"})
    );

    let patch = json!({
        "artifactPreferences": {"checklist": {"preferredFormat": "code"}},
        "contextPreferences": {"code-review": {"preferredAgents": ["critic"]}},
    });
    let patch = Patch::parse(&patch, "ada").expect("a patch");
    user.profile = patch.apply(&user.profile).expect("small");
    let resolved = user.resolved();
    assert_eq!(
        resolved["preferredFormat"], "code",
        "what the user set wins"
    );
    assert_eq!(
        resolved["preferredAgents"],
        json!(["critic"]),
        "from the wider place, too"
    );
    assert_eq!(resolved["source"]["preferredFormat"], "user");
    assert_eq!(resolved["source"]["preferredResponseLength"], "learned");
}

#[test]
fn what_is_taken_back_whole_is_forgotten() {
    let mut user = User {
        context: json!({"artifactFormat": "table", "agentId": "writer"}),
        ..User::default()
    };
    user.feel(12, &json!({"accepted": true}));
    let patch = json!({"artifactPreferences": {"checklist": null}, "contextPreferences": null});
    let patch = Patch::parse(&patch, "ada").expect("a patch");
    user.profile = patch.apply(&user.profile).expect("small");
    assert_eq!(user.profile, Profile::default());
}

#[test]
fn names_without_end_are_told_and_fit_into_a_version() {
    let mut profile = Profile::default();
    let mut merged = Vec::new();
    for length in [16, 256] {
        for n in 0..400 {
            let name = |kind: &str| {
                format!("{kind}-{n:04}")
                    .repeat(64)
                    .chars()
                    .take(length)
                    .collect::<String>()
            };
            let mut body = example();
            body["feedbackId"] = json!(Uuid::new_v4());
            body["context"] = json!({
                "artifactType": name("artifact"), "taskType": name("task"), "projectId": name("project"),
                "agentId": name("agent"), "artifactFormat": "table", "artifactComplexity": "simple",
                "responseLength": "concise", "codeStyle": "minimal"
            });
            let lesson = Lesson::of(&submitted(&body)).expect("a lesson");
            let learned = learn(&profile, &[lesson]).expect("learns");
            merged.extend(learned.overflow.artifact_types.clone());
            if n == 399 {
                assert!(!learned.overflow.contexts.is_empty());
            }
            profile = learned.profile;
        }
    }
    let kinds = &profile.preferences.artifact_preferences;
    assert!(kinds.len() <= 201, "{}", kinds.len());
    assert_eq!(merged.len() + kinds.len() - 1, 800, "each is known or told");
    let merged = u64::try_from(merged.len()).expect("few");
    assert_eq!(kinds["unknown"].sample_count, Some(merged));
    let version = Version::after(None, profile, Cause::Update, at("2026-01-04T10:00:00Z"));
    let size = serde_json::to_vec(&version).expect("JSON").len();
    assert!(size < 200_000, "{size}");
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
fn a_modification_says_what_to_consider_and_what_no_longer() {
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
fn an_act_on_a_turn_is_published_with_all_that_its_turn_says() {
    let back_end = Caller {
        user: "user-123".try_into().expect("a user"),
        tenant: "acme".try_into().expect("a tenant"),
        projects: vec!["support".try_into().expect("a project")],
        scopes: Vec::new(),
    };
    let place: TurnRef = serde_json::from_value(json!({
        "tenant": "acme", "project": "support", "conversation_id": "c", "turn_id": "t"
    }))
    .expect("a turn");
    let turn = json!({
        "user": {"text": "How?"}, "assistant": {"text": "So."}, "trace_id": "4bf9", "span_id": "00f0",
        "labels": {"model": "m1", "prompt_version": "v7"}
    });
    let now = at("2026-01-04T10:00:00Z");
    let turn = Turn::parse(place, &turn, &back_end, now)
        .expect("a turn")
        .core;
    let react = |body: Value, standing: Option<&StoredReaction>| {
        let posted = Posted::parse(&body, &back_end, now).expect("a reaction");
        match posted.about(&turn, &back_end, false, now).over(standing) {
            Step::Write(reaction) => *reaction,
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

#[test]
fn an_average_follows_the_formula_of_the_source() {
    let mut user = User::default();
    for rating in [4, 2, 5] {
        user.feel(1, &json!({"rating": rating}));
    }
    let checklist = &user.profile.preferences.artifact_preferences["checklist"];
    // 4, then (4·1 + 2)/2 = 3, then (3·2 + 5)/3.
    assert_eq!(checklist.average_rating, Some(11.0 / 3.0));
    assert_eq!(checklist.sample_count, Some(3));
    assert_eq!(checklist.acceptance_rate, None);
}

#[test]
fn preferences_that_do_not_want_to_learn_do_not() {
    let mut profile = Profile::default();
    profile.preferences.global_preferences.learning_mode = false;
    let lesson = Lesson::of(&submitted(&example())).expect("a lesson");
    assert_eq!(learn(&profile, &[lesson]), None);
}

proptest! {
    #[test]
    fn rewards_and_confidences_stay_in_their_ranges(event in any_event()) {
        if let Some(reward) = reward(&event) {
            prop_assert!((-1.0..=1.0).contains(&reward.value));
            prop_assert!((0.0..=1.0).contains(&reward.confidence));
            match event.verdict() {
                Some(true) => prop_assert!(reward.value >= 0.5),
                Some(false) => prop_assert!(reward.value <= -0.5),
                None => prop_assert!((0.3..=0.8).contains(&reward.value.abs())),
            }
        }
    }

    #[test]
    fn features_are_magnitudes(event in any_event()) {
        if let Some(update) = signals_for(&event, None).policy_update {
            let update = update.published(&event.context);
            prop_assert!(!update.feature_vector.is_empty());
            prop_assert!(update.feature_vector.values().all(|weight| (0.0..=1.0).contains(weight)));
        }
    }

    #[test]
    fn nothing_is_learned_from_what_is_excluded(event in any_event()) {
        let processed = Processed::of(&event, None, Utc::now());
        if event.privacy.exclude_from_training {
            prop_assert!(processed.signals().is_empty());
        }
        prop_assert_eq!(processed.messages()[0].0, Subject::FeedbackProcessed);
        prop_assert!(processed.messages().len() <= 4);
    }

    #[test]
    fn signal_ids_are_stable_and_differ_by_kind(event in any_event()) {
        let ids = |at| -> Vec<_> {
            Processed::of(&event, None, at).signals().iter().map(|s| s.signal_id).collect()
        };
        let first = ids(Utc::now());
        prop_assert_eq!(&first, &ids(at("2030-01-01T00:00:00Z")));
        let kinds = [SignalType::Reward, SignalType::PolicyUpdate];
        prop_assert!(first.len() <= kinds.len());
        prop_assert!(first.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn learning_keeps_averages_in_their_ranges(events in prop::collection::vec(any_event(), 1..60)) {
        let lessons: Vec<_> = events.iter().filter_map(Lesson::of).collect();
        if let Some(learned) = learn(&Profile::default(), &lessons) {
            for artifact in learned.profile.preferences.artifact_preferences.values() {
                prop_assert!(artifact.average_rating.is_none_or(|r| (1.0..=5.0).contains(&r)));
                prop_assert!(artifact.acceptance_rate.is_none_or(|r| (0.0..=1.0).contains(&r)));
            }
        }
    }

    #[test]
    fn folding_at_once_is_folding_one_by_one(events in prop::collection::vec(any_event(), 1..30)) {
        let lessons: Vec<_> = events.iter().filter_map(Lesson::of).collect();
        let at_once = learn(&Profile::default(), &lessons).map(|learned| learned.profile);
        let mut one_by_one = None;
        for lesson in &lessons {
            let base: Profile = one_by_one.clone().unwrap_or_default();
            one_by_one = learn(&base, std::slice::from_ref(lesson)).map(|learned| learned.profile);
        }
        prop_assert_eq!(at_once, one_by_one);
    }

    #[test]
    fn keys_of_different_acts_have_different_fingerprints(
        a in ("[ab:]{1,4}", "[ab:]{1,4}"), b in ("[ab:]{1,4}", "[ab:]{1,4}")
    ) {
        let key = |(user, artifact): &(String, String)| EventCore {
            user_id: user.as_str().try_into().expect("a user"),
            artifact_id: Some(artifact.as_str().try_into().expect("an artifact")),
            ..submitted(&example())
        }.dedupe_key();
        prop_assert_eq!(a == b, key(&a).fingerprint() == key(&b).fingerprint());
    }

    #[test]
    fn a_stored_event_is_read_back_as_it_was(event in any_event()) {
        let stored = serde_json::to_string(&event).expect("JSON");
        prop_assert_eq!(serde_json::from_str::<EventCore>(&stored).expect("an event"), event);
    }
}

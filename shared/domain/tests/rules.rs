//! The rules over all events: ranges, the source's examples, and what must never happen.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use hearback_domain::caller::Caller;
use hearback_domain::event::{
    Channel, CorrectionType, EventContext, EventCore, FeedbackType, PrivacyFlags, Rating,
};
use hearback_domain::preferences::{Lesson, Preferences, learn};
use hearback_domain::privacy::Pseudonyms;
use hearback_domain::publication::{Processed, Subject};
use hearback_domain::signal::{AdjustmentType, SignalType, reward, signals_for};
use hearback_domain::submission::Submission;
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
            "timestamp": "2026-01-04T10:00:00Z"
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
            "privacyFlags": {"anonymize": false, "excludeFromTraining": false}
        })
    );
    assert_eq!(messages.len(), 2);
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
        let decays = signals
            .policy_update
            .is_some_and(|update| update.adjustment_type == AdjustmentType::WeightDecay);
        assert_eq!(decays, rating <= 2, "rating {rating}");
    }
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
    let mut preferences = Preferences::default();
    let mut hints = Vec::new();
    let mut feel = |accepted: bool, from: u128, count: u128| {
        for n in from..from + count {
            let mut body = example();
            body["feedbackId"] = json!(Uuid::from_u128(n));
            body["data"] = json!({"accepted": accepted});
            let event = submitted(&body);
            let learned =
                learn(&preferences, &[Lesson::of(&event).expect("a lesson")]).expect("learns");
            hints.extend(learned.crossings.keys().map(Uuid::as_u128));
            preferences = learned.preferences;
        }
    };
    feel(true, 1, 25);
    feel(false, 100, 5);
    feel(true, 200, 60);
    assert_eq!(hints.len(), 2, "{hints:?}");
    assert_eq!(hints[0], 20, "twenty samples are needed");
    assert!(hints[1] >= 200, "the second is after the rate had fallen");
}

#[test]
fn an_average_follows_the_formula_of_the_source() {
    let mut preferences = Preferences::default();
    for (n, rating) in [(1, 4), (2, 2), (3, 5)] {
        let mut body = example();
        body["feedbackId"] = json!(Uuid::from_u128(n));
        body["feedbackType"] = json!("rating");
        body["data"] = json!({"rating": rating});
        let lesson = Lesson::of(&submitted(&body)).expect("a lesson");
        preferences = learn(&preferences, &[lesson]).expect("learns").preferences;
    }
    let checklist = &preferences.artifact_preferences["checklist"];
    // 4, then (4·1 + 2)/2 = 3, then (3·2 + 5)/3.
    assert_eq!(checklist.average_rating, Some(11.0 / 3.0));
    assert_eq!(checklist.sample_count, Some(3));
    assert_eq!(checklist.acceptance_rate, None);
}

#[test]
fn preferences_that_do_not_want_to_learn_do_not() {
    let mut preferences = Preferences::default();
    preferences.global_preferences.learning_mode = false;
    let lesson = Lesson::of(&submitted(&example())).expect("a lesson");
    assert_eq!(learn(&preferences, &[lesson]), None);
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
        if let Some(learned) = learn(&Preferences::default(), &lessons) {
            for artifact in learned.preferences.artifact_preferences.values() {
                prop_assert!(artifact.average_rating.is_none_or(|r| (1.0..=5.0).contains(&r)));
                prop_assert!(artifact.acceptance_rate.is_none_or(|r| (0.0..=1.0).contains(&r)));
            }
        }
    }

    #[test]
    fn folding_at_once_is_folding_one_by_one(events in prop::collection::vec(any_event(), 1..30)) {
        let lessons: Vec<_> = events.iter().filter_map(Lesson::of).collect();
        let at_once = learn(&Preferences::default(), &lessons).map(|learned| learned.preferences);
        let mut one_by_one = None;
        for lesson in &lessons {
            let base: Preferences = one_by_one.clone().unwrap_or_default();
            one_by_one = learn(&base, std::slice::from_ref(lesson)).map(|learned| learned.preferences);
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

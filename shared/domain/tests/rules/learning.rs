//! Tests of preference learning.

use hearback_domain::events::event::Channel;
use hearback_domain::learning::preferences::{
    Cause, Lesson, NewestVersion, PreferenceContext, PreferencesPatch, Profile, Version, learn,
    resolve,
};
use hearback_domain::learning::signal::signals_for;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{at, example, submitted};

#[test]
fn a_hint_is_published_once_for_each_crossing() {
    let mut user = User::default();
    user.submit(25, &json!({"accepted": true}));
    user.submit(5, &json!({"accepted": false}));
    user.submit(60, &json!({"accepted": true}));
    let hints = user.hints;
    assert_eq!(hints.len(), 2, "{hints:?}");
    assert_eq!(hints[0], 20, "twenty samples are needed");
    assert!(
        hints[1] > 30,
        "the rate must fall before the second crossing"
    );
}

/// A user who submits events about checklists, numbered from 1.
#[derive(Default)]
struct User {
    profile: Profile,
    events: u128,
    /// The numbers of the events that gave a hint.
    hints: Vec<u128>,
    excluded: bool,
    context: Value,
    /// The confidence of inferred events.
    inferred: Option<f64>,
    /// Whether the events are an application's implicit ones, which have no confidence.
    implicit: bool,
}

impl User {
    /// Submits `count` events with the same data.
    fn submit(&mut self, count: usize, data: &Value) {
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
            let mut event = submitted(&body);
            if self.implicit || self.inferred.is_some() {
                event.channel = Channel::Implicit;
                event.confidence = self.inferred;
            }
            let lesson = Lesson::of(&event).expect("a lesson");
            // The profile of the version as it is stored and read back.
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
            let version =
                NewestVersion::default().next(learned.profile, cause, at("2026-01-04T10:00:00Z"));
            let stored = serde_json::to_string(&version).expect("JSON");
            let version: Version = serde_json::from_str(&stored).expect("a version");
            self.profile = version.profile();
        }
    }

    fn resolved(&self) -> Value {
        let label = |name: &str| Some(name.try_into().expect("a label"));
        let context = PreferenceContext {
            artifact_type: label("checklist"),
            task_type: label("code-review"),
            project_id: label("order-service"),
        };
        json!(resolve(&self.profile, &context))
    }
}

#[test]
fn ratings_do_not_count_as_acceptance_samples() {
    let mut user = User::default();
    user.submit(19, &json!({"rating": 1}));
    user.submit(1, &json!({"accepted": true}));
    assert_eq!(user.hints, [0_u128; 0], "one acceptance is one sample");
    user.submit(19, &json!({"accepted": true}));
    assert_eq!(user.hints, [39], "the twentieth acceptance");
    let checklist = &user.profile.preferences.artifact_preferences["checklist"];
    assert_eq!(checklist.sample_count, Some(39), "ratings and acceptances");
    user.submit(1, &json!({"accepted": false}));
    let checklist = &user.profile.preferences.artifact_preferences["checklist"];
    assert_eq!(checklist.acceptance_rate, Some(20.0 / 21.0));
    assert_eq!(checklist.average_rating, Some(1.0));
}

#[test]
fn inferred_feedback_counts_as_much_as_its_confidence() {
    let mut user = User {
        inferred: Some(0.75),
        ..User::default()
    };
    user.submit(26, &json!({"accepted": true}));
    assert_eq!(user.hints, [0_u128; 0], "26 · 0.75 < 20");
    user.submit(1, &json!({"accepted": true}));
    assert_eq!(user.hints, [27], "27 · 0.75 ≥ 20");
    let rate = |user: &User| {
        let known = &user.profile.preferences.artifact_preferences["checklist"];
        known.acceptance_rate
    };
    assert_eq!(rate(&user), Some(1.0));
    user.inferred = Some(0.25);
    user.submit(1, &json!({"accepted": false}));
    assert_eq!(rate(&user), Some(20.25 / 20.5));
    user.inferred = None;
    user.submit(1, &json!({"accepted": false}));
    assert_eq!(rate(&user), Some(20.25 / 20.5 * 20.5 / 21.5));
}

#[test]
fn implicit_events_without_a_confidence_count_half() {
    let mut user = User {
        implicit: true,
        ..User::default()
    };
    user.submit(39, &json!({"accepted": true}));
    assert_eq!(user.hints, [0_u128; 0], "39 · 0.5 < 20");
    user.submit(1, &json!({"accepted": true}));
    assert_eq!(user.hints, [40], "40 · 0.5 ≥ 20");
    user.implicit = false;
    user.submit(1, &json!({"accepted": false}));
    let checklist = &user.profile.preferences.artifact_preferences["checklist"];
    assert_eq!(checklist.acceptance_rate, Some(20.0 / 21.0));
    assert_eq!(checklist.sample_count, Some(41));
}

#[test]
fn ratings_count_as_much_as_their_confidence() {
    let mut user = User::default();
    user.submit(1, &json!({"rating": 5}));
    user.implicit = true;
    user.submit(1, &json!({"rating": 2}));
    let average = |user: &User| {
        let known = &user.profile.preferences.artifact_preferences["checklist"];
        known.average_rating
    };
    assert_eq!(average(&user), Some(6.0 / 1.5));
    user.implicit = false;
    user.submit(1, &json!({"rating": 1}));
    assert_eq!(average(&user), Some(7.0 / 2.5));
}

#[test]
fn a_request_for_another_answer_is_a_weak_rejection() {
    let mut user = User::default();
    user.submit(1, &json!({"accepted": true}));
    user.inferred = Some(hearback_domain::learning::ledger::REGENERATE);
    user.submit(1, &json!({"accepted": false}));
    let checklist = &user.profile.preferences.artifact_preferences["checklist"];
    assert_eq!(checklist.acceptance_rate, Some(1.0 / 1.3));
}

#[test]
fn an_inferred_acceptance_counts_as_a_sample_weighted_by_its_confidence() {
    let mut user = User {
        inferred: Some(0.75),
        context: json!({"artifactFormat": "table"}),
        ..User::default()
    };
    user.submit(13, &json!({"accepted": true}));
    assert_eq!(user.resolved()["source"]["preferredFormat"], "default");
    user.submit(1, &json!({"accepted": true}));
    assert_eq!(user.resolved()["preferredFormat"], "table", "10.5 samples");
}

#[test]
fn a_crossing_by_an_excluded_event_is_published_with_the_next_included_event() {
    let mut user = User::default();
    user.submit(19, &json!({"accepted": true}));
    user.excluded = true;
    user.submit(3, &json!({"accepted": true}));
    assert_eq!(user.hints, [0_u128; 0]);
    user.excluded = false;
    user.submit(5, &json!({"rating": 4}));
    assert_eq!(user.hints, [23], "once, with the first included event");
}

#[test]
fn a_crossing_that_no_longer_holds_is_not_published() {
    let mut user = User {
        excluded: true,
        ..User::default()
    };
    user.submit(20, &json!({"accepted": true}));
    user.submit(3, &json!({"accepted": false}));
    user.excluded = false;
    user.submit(1, &json!({"rating": 4}));
    assert_eq!(user.hints, [0_u128; 0], "20 of 23 are less than 0.90");
}

#[test]
fn a_version_without_counts_continues_from_its_sample_count() {
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
    user.submit(1, &json!({"accepted": true}));
    assert_eq!(user.hints, [0_u128; 0], "published when it crossed");
    let checklist = &user.profile.preferences.artifact_preferences["checklist"];
    assert_eq!(checklist.acceptance_rate, Some((0.95 * 60.0 + 1.0) / 61.0));
}

#[test]
fn accepted_choices_become_preferences() {
    let mut user = User::default();
    let context = |format: &str, length: &str, agent: &str| {
        json!({"artifactFormat": format, "artifactComplexity": "detailed", "responseLength": length,
               "codeStyle": "spaghetti", "agentId": agent})
    };
    user.context = context("table", "concise", "writer");
    user.submit(9, &json!({"accepted": true}));
    assert_eq!(user.resolved()["preferredFormat"], "mixed", "9 samples");
    user.submit(3, &json!({"accepted": true}));
    user.context = context("prose", "verbose", "critic");
    user.submit(12, &json!({"accepted": false}));
    let resolved = user.resolved();
    let values = [
        "preferredFormat",
        "preferredResponseLength",
        "preferredAgents",
    ];
    let learned = values.map(|name| resolved[name].clone());
    assert_eq!(
        learned,
        [json!("table"), json!("concise"), json!(["writer"])]
    );
    for name in values {
        assert_eq!(resolved["source"][name], "learned", "{name}");
    }
    // Accepted as often as rejected, and an unknown value.
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

    // What was read and is put back is still learned.
    let mut read = shown;
    read["contextPreferences"]["code-review"]["preferredCodeStyle"] = json!("minimal");
    let patch = PreferencesPatch::parse(&read, "ada").expect("a patch");
    user.profile = patch.apply(&user.profile).expect("small");
    let source = user.resolved()["source"].clone();
    for name in values {
        assert_eq!(source[name], "learned", "{name}");
    }
    assert_eq!(source["preferredCodeStyle"], "user");

    let patch = json!({
        "artifactPreferences": {"checklist": {"preferredFormat": "code"}},
        "contextPreferences": {"code-review": {"preferredAgents": ["critic"]}},
    });
    let patch = PreferencesPatch::parse(&patch, "ada").expect("a patch");
    user.profile = patch.apply(&user.profile).expect("small");
    let resolved = user.resolved();
    assert_eq!(
        resolved["preferredFormat"], "code",
        "what the user set wins"
    );
    assert_eq!(
        resolved["preferredAgents"],
        json!(["critic"]),
        "also from a less specific source"
    );
    assert_eq!(resolved["source"]["preferredFormat"], "user");
    assert_eq!(resolved["source"]["preferredResponseLength"], "learned");
}

#[test]
fn removing_a_preference_removes_what_was_learned() {
    let mut user = User {
        context: json!({"artifactFormat": "table", "agentId": "writer"}),
        ..User::default()
    };
    user.submit(12, &json!({"accepted": true}));
    let patch = json!({"artifactPreferences": {"checklist": null}, "contextPreferences": null});
    let patch = PreferencesPatch::parse(&patch, "ada").expect("a patch");
    user.profile = patch.apply(&user.profile).expect("small");
    assert_eq!(user.profile, Profile::default());
}

#[test]
fn names_beyond_the_limits_are_reported_and_the_version_stays_small() {
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
    assert_eq!(
        merged.len() + kinds.len() - 1,
        800,
        "each name is kept or reported"
    );
    let merged = u64::try_from(merged.len()).expect("few");
    assert_eq!(kinds["unknown"].sample_count, Some(merged));
    let version = NewestVersion::default().next(profile, Cause::Update, at("2026-01-04T10:00:00Z"));
    let size = serde_json::to_vec(&version).expect("JSON").len();
    assert!(size < 200_000, "{size}");
}

#[test]
fn the_average_rating_is_a_running_mean() {
    let mut user = User::default();
    for rating in [4, 2, 5] {
        user.submit(1, &json!({"rating": rating}));
    }
    let checklist = &user.profile.preferences.artifact_preferences["checklist"];
    // 4, then (4·1 + 2)/2 = 3, then (3·2 + 5)/3.
    assert_eq!(checklist.average_rating, Some(11.0 / 3.0));
    assert_eq!(checklist.sample_count, Some(3));
    assert_eq!(checklist.acceptance_rate, None);
}

#[test]
fn nothing_is_learned_without_learning_mode() {
    let mut profile = Profile::default();
    profile.preferences.global_preferences.learning_mode = false;
    let lesson = Lesson::of(&submitted(&example())).expect("a lesson");
    assert_eq!(learn(&profile, &[lesson]), None);
}

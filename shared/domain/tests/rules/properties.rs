//! Properties of all events.

use chrono::Utc;
use hearback_domain::events::event::{
    Channel, CorrectionType, EventContext, EventCore, FeedbackType, PrivacyFlags, Rating,
};
use hearback_domain::learning::preferences::{Lesson, Profile, learn};
use hearback_domain::learning::publication::{Processed, Subject};
use hearback_domain::learning::signal::{SignalType, reward, signals_for};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use uuid::Uuid;

use super::{at, example, submitted};

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
    fn feature_weights_stay_in_their_range(event in any_event()) {
        if let Some(update) = signals_for(&event, None).policy_update {
            let update = update.published(&event.context);
            prop_assert!(!update.feature_vector.is_empty());
            prop_assert!(update.feature_vector.values().all(|weight| (0.0..=1.0).contains(weight)));
        }
    }

    #[test]
    fn excluded_events_give_no_signals(event in any_event()) {
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
    fn learning_in_one_batch_equals_learning_one_by_one(events in prop::collection::vec(any_event(), 1..30)) {
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
    fn different_dedupe_keys_have_different_fingerprints(
        a in ("[ab:]{1,4}", "[ab:]{1,4}", "[ab:]{1,4}"), b in ("[ab:]{1,4}", "[ab:]{1,4}", "[ab:]{1,4}")
    ) {
        let key = |(user, artifact, turn): &(String, String, String)| EventCore {
            user_id: user.as_str().try_into().expect("a user"),
            artifact_id: Some(artifact.as_str().try_into().expect("an artifact")),
            context: EventContext {
                turn_id: turn.as_str().try_into().ok(),
                ..EventContext::default()
            },
            ..submitted(&example())
        }.dedupe_key();
        prop_assert_eq!(a == b, key(&a).fingerprint() == key(&b).fingerprint());
    }

    #[test]
    fn a_stored_event_is_read_back_unchanged(event in any_event()) {
        let stored = serde_json::to_string(&event).expect("JSON");
        prop_assert_eq!(serde_json::from_str::<EventCore>(&stored).expect("an event"), event);
    }
}

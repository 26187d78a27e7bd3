//! Tests of the learning signals of events.

use hearback_domain::learning::signal::{AdjustmentType, Signals, signals_for};
use serde_json::{Value, json};

use super::{example, submitted};

#[test]
fn each_row_of_the_signal_table_gives_its_signals() {
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
    for kind in ["comment", "dwell-time", "scroll-depth"] {
        assert_eq!(
            event(kind, json!({"timeSpent": 9})),
            Signals::default(),
            "{kind}"
        );
    }
}

#[test]
fn the_magnitude_of_an_implicit_event_is_its_reward_times_its_confidence() {
    let magnitude = |channel: &str| {
        let mut body = example();
        body["feedbackChannel"] = json!(channel);
        body["feedbackType"] = json!("rejection");
        body["data"] = json!({});
        let update = signals_for(&submitted(&body), None).policy_update;
        update.map(|update| update.magnitude)
    };
    assert_eq!(magnitude("explicit"), Some(0.75));
    assert_eq!(magnitude("implicit"), Some(0.375));
}

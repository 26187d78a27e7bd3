//! How signals replace each other.

use chrono::TimeDelta;
use proptest::prelude::*;
use serde_json::json;

use hearback_wire::from_json;
use serde_json::Value;

use super::*;
use crate::identity::caller::Caller;
use crate::learning::ledger::{event_of_signal, retraction_of_signal};
use crate::turns::turn::ConversationRef;
use crate::turns::turn::TurnCore;

fn caller() -> Caller {
    Caller {
        user: "ada".try_into().unwrap(),
        tenant: "acme".try_into().unwrap(),
        projects: vec!["support".try_into().unwrap()],
        scopes: Vec::new(),
    }
}

fn turn() -> TurnCore {
    let at = TurnRef {
        within: ConversationRef {
            tenant: "acme".try_into().unwrap(),
            project: "support".try_into().unwrap(),
            conversation: "c".try_into().unwrap(),
        },
        turn: "t".try_into().unwrap(),
    };
    serde_json::from_value(json!({
        "tenant": at.within.tenant, "project": at.within.project,
        "conversation_id": at.within.conversation, "turn_id": at.turn, "user_id": "ada",
        "ts": "2026-01-04T09:30:00Z", "message_id": "m", "fingerprint": ""
    }))
    .unwrap()
}

fn now(second: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::seconds(second)
}

fn resolved(current: Option<&StoredSignal>, body: &Value, second: i64) -> SignalUpdate {
    let request = from_json::<MessageSignalRequest>(body).unwrap();
    request.resolve(&turn(), &caller(), None, current, now(second))
}

fn stored(update: SignalUpdate) -> StoredSignal {
    match update {
        SignalUpdate::Create(signal)
        | SignalUpdate::Replace(signal)
        | SignalUpdate::Repeat(signal) => *signal,
    }
}

#[test]
fn a_new_reason_for_a_helpful_signal_is_not_a_new_act() {
    let body = |reason: &str| json!({"message_id": "m", "signal": "helpful", "reason": reason});
    let first = stored(resolved(None, &body("one"), 1));
    let next = resolved(Some(&first), &body("two"), 2);
    assert!(matches!(next, SignalUpdate::Replace(_)));
    let next = stored(next);
    assert_eq!(next.reason.as_deref(), Some("two"));
    assert_eq!(
        (next.core.act, next.core.ts),
        (first.core.act, first.core.ts)
    );
    assert_eq!(
        event_of_signal(&next, now(9)),
        event_of_signal(&first, now(9))
    );
}

#[test]
fn row_only_change_keeps_the_act_time() {
    let body = json!({"message_id": "m", "signal": "helpful"});
    let first = stored(resolved(None, &body, 1));
    let much_later = 91 * 24 * 3600;
    let traced = json!({"message_id": "m", "signal": "helpful", "trace_id": "t"});
    let next = stored(resolved(Some(&first), &traced, much_later));
    assert_eq!(next.core.ts, first.core.ts);
    assert_eq!(next.core.updated_at, now(much_later));
    assert!(event_of_signal(&first, now(2)).is_some());
    assert_eq!(event_of_signal(&next, now(much_later)), None);
}

#[test]
fn a_repeated_verdict_is_the_latest_feedback_again_and_no_new_act() {
    let body = json!({"message_id": "m", "signal": "helpful"});
    let first = stored(resolved(None, &body, 1));
    let again = resolved(Some(&first), &body, 9);
    assert!(matches!(again, SignalUpdate::Replace(_)));
    let again = stored(again);
    assert_eq!(again.core.act, first.core.act);
    assert_eq!(
        event_of_signal(&again, now(9)),
        event_of_signal(&first, now(9))
    );
    let recency = |signal: &StoredSignal, second| {
        let counted = crate::feedback::counted::of_signal(signal, now(second)).unwrap();
        counted.core.recency()
    };
    let between = json!({"message_id": "m", "signal": "not_helpful"});
    let between = stored(resolved(None, &between, 5));
    assert!(recency(&first, 1) < recency(&between, 5));
    assert!(recency(&between, 5) < recency(&again, 9));
}

#[test]
fn a_verdict_repeated_in_the_same_instant_is_a_retry() {
    let body = json!({"message_id": "m", "signal": "helpful"});
    let first = stored(resolved(None, &body, 1));
    let again = resolved(Some(&first), &body, 1);
    assert_eq!(again, SignalUpdate::Repeat(Box::new(first)));
}

#[test]
fn act_ids_depend_on_a_key_and_are_kept_by_a_repeat() {
    let body = json!({"message_id": "m", "signal": "not_helpful"});
    let keyed = |key: &str| {
        let first = stored(resolved(None, &body, 1));
        first.with_keyed_act(None, &Pseudonyms::new(key))
    };
    let first = keyed("k");
    assert_eq!(first, keyed("k"));
    assert_ne!(first.core.act, keyed("other").core.act);
    let again = stored(resolved(Some(&first), &body, 9));
    let again = again.with_keyed_act(Some(&first), &Pseudonyms::new("k"));
    assert_eq!(again.core.act, first.core.act);
    let excluded =
        json!({"message_id": "m", "signal": "not_helpful", "exclude_from_training": true});
    let next = stored(resolved(Some(&first), &excluded, 9));
    let unkeyed = next.core.act;
    let next = next.with_keyed_act(Some(&first), &Pseudonyms::new("k"));
    assert_ne!(next.core.act, unkeyed);
    assert_eq!(next.core.replaces, Some(first.core.act));
}

#[test]
fn a_repeated_edit_changes_nothing() {
    let body = json!({"message_id": "m", "signal": "edit", "reason": "mine"});
    let first = stored(resolved(None, &body, 1));
    let again = resolved(Some(&first), &body, 9);
    assert_eq!(again, SignalUpdate::Repeat(Box::new(first)));
}

#[test]
fn an_edit_with_another_text_retracts_the_previous_edit() {
    let body = |text: &str| json!({"message_id": "m", "signal": "edit", "reason": text});
    let first = stored(resolved(None, &body("one"), 1));
    let next = stored(resolved(Some(&first), &body("two"), 2));
    let retraction = retraction_of_signal(&next.core, now(9)).unwrap();
    assert_eq!(retraction.feedback_id, first.core.act);
    assert_eq!(retraction.replaced_by, Some(next.core.act));
    assert_eq!(next.core.id(), first.core.id());
}

#[test]
fn a_tombstone_has_no_reason_and_cannot_be_retracted_again() {
    let body = json!({"message_id": "m", "signal": "unsafe", "reason": "it says my name"});
    let first = stored(resolved(None, &body, 1));
    let tombstone = first.retract(now(2)).unwrap();
    assert_eq!(tombstone.reason, None);
    assert_eq!(event_of_signal(&tombstone, now(9)), None);
    assert_eq!(tombstone.retract(now(3)), None);
    let again = resolved(Some(&tombstone), &body, 2);
    assert!(matches!(again, SignalUpdate::Create(_)));
    assert_ne!(stored(again).core.act, first.core.act);
}

proptest! {
    #[test]
    fn every_act_except_the_current_one_is_retracted_exactly_once(
        steps in prop::collection::vec((0..3_u8, 0..2_u8), 1..20)
    ) {
        let mut current: Option<StoredSignal> = None;
        let (mut acts, mut retracted) = (Vec::new(), Vec::new());
        for (second, (kind, text)) in (0..).zip(steps) {
            let next = if kind == 0 {
                current.as_ref().and_then(|current| current.retract(now(second)))
            } else {
                let body = json!({
                    "message_id": "m", "signal": "edit", "reason": format!("text {text}")
                });
                match resolved(current.as_ref(), &body, second) {
                    SignalUpdate::Create(signal) | SignalUpdate::Replace(signal) => Some(*signal),
                    SignalUpdate::Repeat(_) => None,
                }
            };
            let Some(next) = next else { continue };
            acts.extend(event_of_signal(&next, now(9)).map(|event| event.core.feedback_id));
            retracted.extend(
                retraction_of_signal(&next.core, now(9)).map(|retraction| retraction.feedback_id)
            );
            current = Some(next);
        }
        let current_act = current.filter(|signal| !signal.core.retracted).map(|signal| signal.core.act);
        acts.retain(|act| Some(*act) != current_act);
        prop_assert_eq!(acts, retracted);
    }
}

//! What becomes of signals over signals.

use chrono::TimeDelta;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::ledger::{event_of_signal, retraction_of_signal};
use crate::turn::ConversationRef;

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

fn over(standing: Option<&StoredSignal>, body: &Value, second: i64) -> Step {
    let posted = Posted::parse(body).unwrap();
    posted.over(&turn(), &caller(), None, (standing, now(second)))
}

fn stored(step: Step) -> StoredSignal {
    match step {
        Step::Create(said) | Step::Replace(said) | Step::Repeat(said) => *said,
    }
}

#[test]
fn a_thumb_whose_reason_changes_is_the_same_act() {
    let body = |reason: &str| json!({"message_id": "m", "signal": "helpful", "reason": reason});
    let first = stored(over(None, &body("one"), 1));
    let next = over(Some(&first), &body("two"), 2);
    assert!(matches!(next, Step::Replace(_)));
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
fn what_is_no_act_keeps_the_acts_time_and_teaches_nothing_once_its_event_expired() {
    let body = json!({"message_id": "m", "signal": "helpful"});
    let first = stored(over(None, &body, 1));
    let much_later = 91 * 24 * 3600;
    let traced = json!({"message_id": "m", "signal": "helpful", "trace_id": "t"});
    let next = stored(over(Some(&first), &traced, much_later));
    assert_eq!(next.core.ts, first.core.ts);
    assert_eq!(next.core.updated_at, now(much_later));
    assert!(event_of_signal(&first, now(2)).is_some());
    assert_eq!(event_of_signal(&next, now(much_later)), None);
    // Nothing changed is nothing written.
    let again = over(Some(&next), &traced, much_later + 1);
    assert_eq!(again, Step::Repeat(Box::new(next)));
}

#[test]
fn an_edit_whose_text_changes_withdraws_the_one_before() {
    let body = |text: &str| json!({"message_id": "m", "signal": "edit", "reason": text});
    let first = stored(over(None, &body("one"), 1));
    let next = stored(over(Some(&first), &body("two"), 2));
    let withdrawn = retraction_of_signal(&next.core, now(9)).unwrap();
    assert_eq!(withdrawn.feedback_id, first.core.act);
    assert_eq!(withdrawn.replaced_by, Some(next.core.act));
    assert_eq!(next.core.id(), first.core.id());
}

#[test]
fn a_tombstone_keeps_nothing_that_was_written_and_is_taken_back_once() {
    let body = json!({"message_id": "m", "signal": "unsafe", "reason": "it says my name"});
    let first = stored(over(None, &body, 1));
    let gone = first.retract(now(2)).unwrap();
    assert_eq!(gone.reason, None);
    assert_eq!(event_of_signal(&gone, now(9)), None);
    assert_eq!(gone.retract(now(3)), None);
    let anew = over(Some(&gone), &body, 2);
    assert!(matches!(anew, Step::Create(_)));
    assert_ne!(stored(anew).core.act, first.core.act);
}

proptest! {
    /// Whatever is said and taken back, each act is withdrawn once by the next, and the acts
    /// that are withdrawn are those that no longer stand.
    #[test]
    fn every_act_but_the_one_that_stands_is_withdrawn(
        steps in prop::collection::vec((0..3_u8, 0..2_u8), 1..20)
    ) {
        let mut standing: Option<StoredSignal> = None;
        let (mut acts, mut withdrawn) = (Vec::new(), Vec::new());
        for (second, (kind, text)) in (0..).zip(steps) {
            let next = if kind == 0 {
                standing.as_ref().and_then(|standing| standing.retract(now(second)))
            } else {
                let body = json!({
                    "message_id": "m", "signal": "edit", "reason": format!("text {text}")
                });
                match over(standing.as_ref(), &body, second) {
                    Step::Create(said) | Step::Replace(said) => Some(*said),
                    Step::Repeat(_) => None,
                }
            };
            let Some(next) = next else { continue };
            acts.extend(event_of_signal(&next, now(9)).map(|event| event.core.feedback_id));
            withdrawn.extend(retraction_of_signal(&next.core, now(9)).map(|gone| gone.feedback_id));
            standing = Some(next);
        }
        let stands = standing.filter(|said| !said.core.retracted).map(|said| said.core.act);
        acts.retain(|act| Some(*act) != stands);
        prop_assert_eq!(acts, withdrawn);
    }
}

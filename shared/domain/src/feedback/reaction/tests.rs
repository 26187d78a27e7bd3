use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;

use super::*;
use crate::identity::caller::Caller;
use crate::turns::turn::{Turn, TurnRef};

fn noon() -> DateTime<Utc> {
    "2026-01-04T12:00:00Z".parse().unwrap()
}

/// A reaction of ada to her turn, `second` seconds after noon. `ahead` is how far her clock is ahead, in seconds.
fn reaction(origin: Origin, verdict: &str, second: i64, ahead: i64) -> StoredReaction {
    let caller = Caller {
        user: "ada".try_into().unwrap(),
        tenant: "acme".try_into().unwrap(),
        projects: Vec::new(),
        scopes: vec!["feedback:on-behalf".to_owned()],
    };
    let at: TurnRef = serde_json::from_value(json!({
        "tenant": "acme", "project": "p", "conversation_id": "c", "turn_id": "t"
    }))
    .unwrap();
    let turn = json!({"user": {"text": "a"}, "assistant": {"text": "b"}});
    let turn = Turn::parse(at, &turn, &caller, noon()).unwrap().core;
    let received_at = noon() + TimeDelta::seconds(second);
    let ts = received_at + TimeDelta::seconds(ahead);
    let mut body = json!({"reaction": verdict, "ts": ts, "origin": origin});
    if origin == Origin::Machine {
        body["confidence"] = json!(0.9);
    }
    let new = NewReaction::parse(&body, &caller, received_at).unwrap();
    new.on(&turn, &caller, false, received_at)
}

fn written(update: ReactionUpdate) -> StoredReaction {
    match update {
        ReactionUpdate::Write(next) => *next,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_clock_that_is_ahead_does_not_outrank_a_later_reaction() {
    let ahead = reaction(Origin::User, "ok", 0, 240);
    let later = reaction(Origin::User, "not_ok", 5, 0);
    let current = written(later.clone().resolve(Some(&ahead)));
    assert_eq!(current.core.reaction, Some(Reaction::NotOk));
    assert_eq!(current.core.ts, later.core.ts);
    assert_eq!(current.core.replaces, Some(ahead.core.id));
    // What is older by its time is not current, whatever its receipt.
    let older = reaction(Origin::User, "ok", 9, -7);
    assert_eq!(older.resolve(Some(&current)), ReactionUpdate::Superseded);
}

#[test]
fn a_repeated_machine_reaction_has_the_time_of_the_latest() {
    let first = reaction(Origin::Machine, "not_ok", 0, 0);
    let again = reaction(Origin::Machine, "not_ok", 9, 0);
    let current = written(again.clone().resolve(Some(&first)));
    assert_eq!(
        (current.core.id, current.core.ts),
        (first.core.id, again.core.ts)
    );
    assert_eq!(current.core.replaces, None, "it is the same act");
    let repeated = again.resolve(Some(&current));
    assert_eq!(repeated, ReactionUpdate::Repeat(Box::new(current.clone())));
    assert_eq!(
        first.resolve(Some(&current)),
        ReactionUpdate::Repeat(Box::new(current))
    );
}

#[test]
fn an_inference_that_names_the_turn_outranks_an_equal_one_of_a_following_turn() {
    let named = reaction(Origin::Machine, "ok", 0, 0);
    let mut follow_up = reaction(Origin::Machine, "ok", 60, 0);
    follow_up.core.follow_up = true;
    let kept = follow_up.clone().resolve(Some(&named));
    assert_eq!(kept, ReactionUpdate::Repeat(Box::new(named.clone())));
    let current = written(named.clone().resolve(Some(&follow_up)));
    assert_eq!(
        (current.core.follow_up, current.core.ts),
        (false, named.core.ts)
    );
}

//! Tests of the rules by tables.

mod rows;

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use serde_json::{Value, json};
use uuid::Uuid;

use super::*;
use crate::feedback::message_signal::SignalCore;
use crate::feedback::reaction::{FeedbackKind, NewReaction, ReactionCore, TrainingUse};
use crate::identity::caller::Caller;
use crate::turns::turn::Turn;

fn now() -> DateTime<Utc> {
    "2026-11-21T12:00:00Z".parse().unwrap()
}

fn days() -> Days {
    let today = now().date_naive();
    Days {
        from: today,
        to: today,
    }
}

fn caller(user: &str) -> Caller {
    Caller {
        user: user.try_into().unwrap(),
        tenant: "acme".try_into().unwrap(),
        projects: Vec::new(),
        scopes: vec!["feedback:on-behalf".to_owned()],
    }
}

/// A turn of ada, `minute` minutes after noon.
fn turn(name: &str, minute: i64) -> TurnCore {
    let at = serde_json::from_value(json!({
        "tenant": "acme", "project": "p", "conversation_id": "c", "turn_id": name
    }));
    let body = json!({
        "user": {"text": "question"}, "assistant": {"text": "answer", "message_id": format!("m-{name}")}
    });
    let ts = now() + TimeDelta::minutes(minute);
    Turn::parse(at.unwrap(), &body, &caller("ada"), ts)
        .unwrap()
        .core
}

/// Feedback on an answer, one item per second. Each item is `user feedback` or `machine:user feedback`; the feedback
/// `event excluded` is an event that rejects.
fn feedback(items: &[&str]) -> Feedback {
    let turn = turn("t", 0);
    let (mut reactions, mut signals) = (Vec::new(), Vec::new());
    for (second, item) in (0..).zip(items) {
        let (user, kind) = item.split_once(' ').unwrap();
        let ts = now() + TimeDelta::seconds(second);
        match kind {
            "ok" | "not_ok" | "neutral" | "cleared" => {
                reactions.push(reaction(&turn, user, kind, ts));
            }
            "event excluded" => reactions.push(ReactionCore {
                kind: FeedbackKind::Event,
                training_use: TrainingUse::Nothing,
                ..reaction(&turn, user, "not_ok", ts)
            }),
            _ => signals.push(signal(&turn, user, kind, ts)),
        }
    }
    Feedback::new(&reactions, signals, &days())
}

fn reaction(turn: &TurnCore, user: &str, verdict: &str, ts: DateTime<Utc>) -> ReactionCore {
    let (origin, user) = match user.strip_prefix("machine:") {
        Some(user) => ("machine", user),
        None => ("user", user),
    };
    let mut body = json!({"reaction": verdict, "origin": origin, "user_id": user});
    if origin == "machine" {
        body["confidence"] = json!(0.8);
    }
    if verdict == "cleared" {
        body["reaction"] = Value::Null;
    }
    let caller = caller("back end");
    let new = NewReaction::parse(&body, &caller, ts).unwrap();
    new.on(turn, &caller, false, ts).core
}

fn signal(turn: &TurnCore, user: &str, kind: &str, ts: DateTime<Utc>) -> StoredSignal {
    let (signal, flag) = kind.split_once(' ').unwrap_or((kind, ""));
    let core: SignalCore = serde_json::from_value(json!({
        "tenant": "acme", "project": "p", "conversation_id": "c", "turn_id": turn.at.turn,
        "message_id": turn.message_id, "user_id": user, "signal": signal, "workspace": "p",
        "exclude_from_training": flag == "excluded", "retracted": flag == "retracted",
        "act": Uuid::new_v5(&NAMESPACE, ts.to_rfc3339().as_bytes()),
        "created_at": ts, "ts": ts, "updated_at": ts,
    }))
    .unwrap();
    let reason = (signal == "edit").then(|| "what I wanted".to_owned());
    StoredSignal { core, reason }
}

#[test]
fn all_feedback_on_an_answer_becomes_one_verdict_or_none() {
    let table: &[(&[&str], &str)] = &[
        (&[], "nothing"),
        (&["ada ok"], "good by user"),
        (&["ada not_ok"], "bad by user"),
        (&["ada neutral"], "nothing"),
        (&["ada cleared"], "nothing"),
        (&["ada helpful"], "good by user"),
        (&["ada not_helpful"], "bad by user"),
        (&["ada inaccurate"], "bad by user"),
        (&["ada unsafe"], "bad by user"),
        (&["ada edit"], "nothing"),
        (&["ada regenerate"], "nothing"),
        (&["machine:ada ok"], "good by machine"),
        (&["machine:ada not_ok"], "bad by machine"),
        // Explicit feedback overrides inferred feedback, also of other users, …
        (&["ada ok", "machine:ada not_ok"], "good by user"),
        (&["machine:ada ok", "eve not_helpful"], "bad by user"),
        (&["ada neutral", "machine:ada ok"], "nothing"),
        (&["eve neutral", "machine:ada ok"], "good by machine"),
        // … until it is withdrawn.
        (&["ada cleared", "machine:ada ok"], "good by machine"),
        (
            &["ada not_helpful retracted", "machine:ada ok"],
            "good by machine",
        ),
        // The last rating of a user counts, but does not replace a fault.
        (&["ada helpful", "ada not_helpful"], "bad by user"),
        (&["ada not_helpful", "ada ok"], "good by user"),
        (&["ada ok", "ada neutral"], "nothing"),
        (&["ada unsafe", "ada helpful"], "bad by user"),
        (&["ada inaccurate retracted", "ada helpful"], "good by user"),
        // If users disagree there is no verdict, not even that of the majority.
        (&["ada ok", "eve not_ok"], "contested"),
        (&["ada ok", "eve ok", "bob unsafe"], "contested"),
        (&["ada ok", "eve neutral"], "good by user"),
        (&["ada ok", "eve helpful"], "good by user"),
        (&["machine:ada ok", "machine:ada not_ok"], "contested"),
        // An excluded signal also excludes the user's reactions and the machine reactions in their name.
        (&["ada helpful excluded"], "nothing"),
        (&["ada event excluded", "ada ok"], "nothing"),
        (
            &["ada regenerate excluded", "ada ok", "machine:ada ok"],
            "nothing",
        ),
        (&["ada helpful excluded", "ada inaccurate"], "bad by user"),
        (&["ada helpful excluded", "eve ok"], "good by user"),
        // Excluded feedback is not evidence, but what it contradicts gets no label.
        (&["machine:ada ok", "ada event excluded"], "nothing"),
        (&["eve ok", "ada event excluded"], "contested"),
        (&["eve ok", "ada unsafe excluded"], "contested"),
        (&["ada helpful", "ada unsafe excluded"], "contested"),
        (
            &["ada helpful", "ada event excluded", "ada helpful"],
            "good by user",
        ),
        (&["machine:eve ok", "ada event excluded"], "contested"),
    ];
    for (items, expected) in table {
        let consensus = match feedback(items).consensus() {
            Consensus::NoVerdict => "nothing".to_owned(),
            Consensus::Contested => "contested".to_owned(),
            Consensus::Agreed(verdict) => {
                let good = if verdict.good { "good" } else { "bad" };
                format!("{good} by {}", verdict.origin.as_str())
            }
        };
        assert_eq!(consensus, *expected, "{items:?}");
    }
}

#[test]
fn a_verdict_lists_exactly_the_events_it_is_based_on() {
    let count = |items: &[&str]| match feedback(items).consensus() {
        Consensus::Agreed(verdict) => verdict.feedback_ids.len(),
        Consensus::NoVerdict | Consensus::Contested => 0,
    };
    assert_eq!(count(&["ada ok", "eve helpful", "machine:ada ok"]), 2);
    assert_eq!(count(&["ada helpful", "ada not_ok"]), 1);
    assert_eq!(count(&["ada unsafe", "ada helpful", "ada not_ok"]), 2);
    let Consensus::Agreed(inferred) = feedback(&["machine:ada ok"]).consensus() else {
        panic!("no verdict")
    };
    assert!((inferred.confidence - 0.8).abs() < 1e-12);
}

#[test]
fn feedback_on_another_day_is_no_evidence_for_a_row() {
    let turn = turn("t", 0);
    let earlier = now() - TimeDelta::days(1);
    let mut excluded = reaction(&turn, "eve", "not_ok", earlier);
    excluded.kind = FeedbackKind::Event;
    excluded.training_use = TrainingUse::Nothing;
    let reactions = [reaction(&turn, "ada", "ok", earlier), excluded];
    let signals = vec![signal(&turn, "ada", "edit", earlier)];
    let feedback = Feedback::new(&reactions, signals, &days());
    assert_eq!(feedback.consensus(), Consensus::NoVerdict);
    assert_eq!(feedback.of_user(&"ada".try_into().unwrap()), None);
    assert!(!feedback.has_corrections());
    assert_eq!(feedback.excluded, 0);
}

#[test]
fn feedback_on_another_day_contradicts_a_row() {
    let turn = turn("t", 0);
    let tomorrow = now() + TimeDelta::days(1);
    let helpful = || vec![signal(&turn, "ada", "helpful", now())];
    // As what a signal counts as: the signal itself is read on its own day only.
    let counted = |user: &str, kind: &str| {
        let signal = signal(&turn, user, kind, tomorrow);
        crate::feedback::counted::of_signal(&signal, tomorrow)
            .unwrap()
            .core
    };
    let consensus = |later: &[ReactionCore]| match Feedback::new(later, helpful(), &days())
        .consensus()
    {
        Consensus::Agreed(verdict) => format!("{} by {}", verdict.good, verdict.feedback_ids.len()),
        Consensus::NoVerdict => "nothing".to_owned(),
        Consensus::Contested => "contested".to_owned(),
    };
    let later = |user: &str, verdict: &str| reaction(&turn, user, verdict, tomorrow);
    assert_eq!(consensus(&[]), "true by 1");
    assert_eq!(consensus(&[counted("ada", "unsafe")]), "contested");
    assert_eq!(consensus(&[counted("ada", "not_helpful")]), "contested");
    assert_eq!(consensus(&[counted("eve", "inaccurate")]), "contested");
    assert_eq!(consensus(&[later("ada", "not_ok")]), "contested");
    assert_eq!(consensus(&[later("eve", "not_ok")]), "contested");
    assert_eq!(consensus(&[later("ada", "neutral")]), "nothing");
    // What agrees, or was withdrawn, changes nothing. It is no evidence either.
    assert_eq!(consensus(&[later("eve", "ok")]), "true by 1");
    assert_eq!(consensus(&[counted("eve", "helpful")]), "true by 1");
    assert_eq!(
        consensus(&[counted("ada", "unsafe retracted")]),
        "true by 1"
    );
    // The user's own signal of the same kind is the one that is read.
    assert_eq!(consensus(&[counted("ada", "helpful")]), "true by 1");
}

#[test]
fn an_exclusion_on_another_day_covers_the_users_reaction() {
    let turn = turn("t", 0);
    let earlier = now() - TimeDelta::days(1);
    let excluded = signal(&turn, "ada", "helpful excluded", earlier);
    let excluded = crate::feedback::counted::of_signal(&excluded, earlier)
        .unwrap()
        .core;
    let reactions = [reaction(&turn, "ada", "ok", now()), excluded];
    let feedback = Feedback::new(&reactions, Vec::new(), &days());
    assert_eq!(feedback.consensus(), Consensus::NoVerdict);
    assert_eq!(feedback.excluded, 0);
}

#[test]
fn the_latest_rating_counts_and_a_clock_that_is_ahead_does_not_make_it_later() {
    let turn = turn("t", 0);
    // A clock that is four minutes ahead does not outrank what the user says afterwards.
    let mut ahead = reaction(&turn, "ada", "ok", now());
    ahead.ts = now() + TimeDelta::minutes(4);
    let later = || signal(&turn, "ada", "not_helpful", now() + TimeDelta::seconds(5));
    let feedback = Feedback::new(&[ahead], vec![later()], &days());
    let Consensus::Agreed(verdict) = feedback.consensus() else {
        panic!("no verdict")
    };
    assert!(!verdict.good);
    // Of two events of one time, the one that was received last counts, whatever the ids are.
    let event = |verdict: &str, received: i64, id: u128| ReactionCore {
        id: Uuid::from_u128(id),
        kind: FeedbackKind::Event,
        submitted_at: Some(now() + TimeDelta::seconds(received)),
        ..reaction(&turn, "ada", verdict, now())
    };
    for mut events in [
        [event("not_ok", 1, 9), event("ok", 2, 1)],
        [event("not_ok", 2, 1), event("ok", 2, 9)],
    ] {
        for _ in 0..2 {
            events.reverse();
            let Consensus::Agreed(verdict) =
                Feedback::new(&events, Vec::new(), &days()).consensus()
            else {
                panic!("no verdict")
            };
            assert!(verdict.good, "{events:?}");
        }
    }
}

#[test]
fn a_turn_is_exported_on_the_last_day_with_a_reaction() {
    let turn = turn("t", 0);
    let hour = TimeDelta::hours(1);
    let period = Days {
        from: now().date_naive() - TimeDelta::days(9),
        to: now().date_naive(),
    };
    let day = |reactions: &[ReactionCore], as_of| last_day(reactions, &period, as_of);
    let days_ago = |days| now() - TimeDelta::days(days);
    let old = reaction(&turn, "ada", "ok", days_ago(3));
    let new = reaction(&turn, "eve", "not_ok", days_ago(1));
    let both = [old.clone(), new];
    assert_eq!(day(&both, now()), Some(days_ago(1).date_naive()));
    // As of a time before the second reaction.
    assert_eq!(day(&both, days_ago(2)), Some(days_ago(3).date_naive()));
    assert_eq!(
        day(&[reaction(&turn, "ada", "ok", days_ago(20))], now()),
        None
    );
    // A reaction that was replaced or withdrawn since then still counts.
    for later in ["not_ok", "cleared"] {
        let mut replaced = reaction(&turn, "ada", later, now() + hour);
        replaced.trail = vec![crate::feedback::reaction::Trace {
            ts: old.ts,
            received_at: old.received_at,
            counts: true,
        }];
        assert_eq!(day(&[replaced], now()), Some(days_ago(3).date_naive()));
    }
}

#[test]
fn the_default_period_is_a_year_that_ends_today() {
    let today = now().date_naive();
    let date = |text: &str| text.parse::<NaiveDate>().unwrap();
    let period = |from: Option<&str>, to: Option<&str>| {
        let request = TrainingRequest {
            project: "p".try_into().unwrap(),
            from: from.map(date),
            to: to.map(date),
        };
        request.days(today).ok().map(|days| (days.from, days.to))
    };
    assert_eq!(period(None, None), Some((date("2025-11-22"), today)));
    let with_end = period(None, Some("2026-01-31"));
    assert_eq!(with_end, Some((date("2025-02-01"), date("2026-01-31"))));
    let with_start = period(Some("2026-11-01"), None);
    assert_eq!(with_start, Some((date("2026-11-01"), today)));
    assert_eq!(period(Some("2026-11-02"), Some("2026-11-01")), None);
    assert_eq!(period(Some("1999-01-01"), None), None);
}

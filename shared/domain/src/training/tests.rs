//! Tables of the rules.

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use serde_json::{Value, json};
use uuid::Uuid;

use super::*;
use crate::caller::Caller;
use crate::detection::{Detection, FeedbackType};
use crate::message_signal::SignalCore;
use crate::reaction::{Posted, ReactionCore};
use crate::turn::{Turn, TurnLog};

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

/// A turn of ada, so many minutes after noon.
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

fn exchange(prompt: &str, answer: &str) -> Exchange {
    Exchange::from(TurnLog {
        user: json!({"text": prompt}),
        assistant: Some(json!({"text": answer})),
        turn_log: serde_json::Map::new(),
        given: std::collections::BTreeMap::default(),
    })
}

/// What was said of an answer: `user what` with `user` or `machine:user`, one a second.
fn feedback(said: &[&str]) -> Feedback {
    let turn = turn("t", 0);
    let (mut reactions, mut signals) = (Vec::new(), Vec::new());
    for (second, said) in (0..).zip(said) {
        let (who, what) = said.split_once(' ').unwrap();
        let ts = now() + TimeDelta::seconds(second);
        match what {
            "ok" | "not_ok" | "neutral" | "cleared" => {
                reactions.push(reaction(&turn, who, what, ts));
            }
            _ => signals.push(signal(&turn, who, what, ts)),
        }
    }
    Feedback::new(&reactions, signals, &days())
}

fn reaction(turn: &TurnCore, who: &str, what: &str, ts: DateTime<Utc>) -> ReactionCore {
    let (origin, user) = match who.strip_prefix("machine:") {
        Some(user) => ("machine", user),
        None => ("user", who),
    };
    let mut body = json!({"reaction": what, "origin": origin, "user_id": user});
    if origin == "machine" {
        body["confidence"] = json!(0.8);
    }
    if what == "cleared" {
        body["reaction"] = Value::Null;
    }
    let caller = caller("back end");
    let posted = Posted::parse(&body, &caller, ts).unwrap();
    posted.about(turn, &caller, false, ts).core
}

fn signal(turn: &TurnCore, who: &str, what: &str, ts: DateTime<Utc>) -> StoredSignal {
    let (what, manner) = what.split_once(' ').unwrap_or((what, ""));
    let core: SignalCore = serde_json::from_value(json!({
        "tenant": "acme", "project": "p", "conversation_id": "c", "turn_id": turn.at.turn,
        "message_id": turn.message_id, "user_id": who, "signal": what, "workspace": "p",
        "exclude_from_training": manner == "excluded", "retracted": manner == "retracted",
        "act": Uuid::new_v5(&NAMESPACE, ts.to_rfc3339().as_bytes()),
        "created_at": ts, "ts": ts, "updated_at": ts,
    }))
    .unwrap();
    let reason = (what == "edit").then(|| "what I wanted".to_owned());
    StoredSignal { core, reason }
}

#[test]
fn everything_that_was_said_becomes_one_verdict_or_none() {
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
        // What was said on purpose outranks what was inferred, also of other people, …
        (&["ada ok", "machine:ada not_ok"], "good by user"),
        (&["machine:ada ok", "eve not_helpful"], "bad by user"),
        (&["ada neutral", "machine:ada ok"], "nothing"),
        (&["eve neutral", "machine:ada ok"], "good by machine"),
        // … until it is taken back.
        (&["ada cleared", "machine:ada ok"], "good by machine"),
        (
            &["ada not_helpful retracted", "machine:ada ok"],
            "good by machine",
        ),
        // Of a user's thumbs the last counts; a fault is no thumb.
        (&["ada helpful", "ada not_helpful"], "bad by user"),
        (&["ada not_helpful", "ada ok"], "good by user"),
        (&["ada ok", "ada neutral"], "nothing"),
        (&["ada unsafe", "ada helpful"], "bad by user"),
        (&["ada inaccurate retracted", "ada helpful"], "good by user"),
        // People who contradict each other leave no label, not even a majority's.
        (&["ada ok", "eve not_ok"], "contested"),
        (&["ada ok", "eve ok", "bob unsafe"], "contested"),
        (&["ada ok", "eve neutral"], "good by user"),
        (&["ada ok", "eve helpful"], "good by user"),
        (&["machine:ada ok", "machine:ada not_ok"], "contested"),
        // Who excludes one thing is not heard by their reaction, or by what was inferred, either.
        (&["ada helpful excluded"], "nothing"),
        (
            &["ada regenerate excluded", "ada ok", "machine:ada ok"],
            "nothing",
        ),
        (&["ada helpful excluded", "ada inaccurate"], "bad by user"),
        (&["ada helpful excluded", "eve ok"], "good by user"),
    ];
    for (said, expected) in table {
        let heard = match feedback(said).heard() {
            Heard::Nothing => "nothing".to_owned(),
            Heard::Contested => "contested".to_owned(),
            Heard::Agreed(verdict) => {
                let good = if verdict.good { "good" } else { "bad" };
                format!("{good} by {}", verdict.origin.as_str())
            }
        };
        assert_eq!(heard, *expected, "{said:?}");
    }
}

#[test]
fn a_verdict_names_what_it_rests_on_and_nothing_else() {
    let ids = |said: &[&str]| match feedback(said).heard() {
        Heard::Agreed(verdict) => verdict.feedback_ids.len(),
        Heard::Nothing | Heard::Contested => 0,
    };
    assert_eq!(ids(&["ada ok", "eve helpful", "machine:ada ok"]), 2);
    assert_eq!(ids(&["ada helpful", "ada not_ok"]), 1);
    assert_eq!(ids(&["ada unsafe", "ada helpful", "ada not_ok"]), 2);
    let Heard::Agreed(sure) = feedback(&["machine:ada ok"]).heard() else {
        panic!("nothing was heard")
    };
    assert!((sure.confidence - 0.8).abs() < 1e-12);
}

#[test]
fn what_was_said_on_another_day_does_not_count() {
    let turn = turn("t", 0);
    let earlier = now() - TimeDelta::days(1);
    let reactions = [reaction(&turn, "ada", "ok", earlier)];
    let signals = vec![signal(&turn, "ada", "edit", earlier)];
    let heard = Feedback::new(&reactions, signals, &days());
    assert_eq!(heard, Feedback::default());
}

#[test]
fn a_row_has_the_members_that_trainers_read_and_no_user() {
    let turn = turn("t", 0);
    let said = exchange("question", "answer");
    let Heard::Agreed(verdict) = feedback(&["ada ok"]).heard() else {
        panic!("nothing was heard")
    };
    let ids = verdict.feedback_ids.clone();
    let label = Label::of(&turn, &said, verdict).unwrap();
    let label = serde_json::to_value(label).unwrap();
    assert_eq!(
        label,
        json!({
            "type": "label", "id": label["id"], "prompt": "question", "completion": "answer", "label": true,
            "origin": "user", "confidence": 1.0, "ts": "2026-11-21T12:00:00.000000Z",
            "provenance": {
                "tenant": "acme", "project": "p", "conversation_id": "c", "turn_ids": ["t"],
                "message_ids": ["m-t"], "feedback_ids": ids,
            }
        })
    );
    let feedback = feedback(&["ada edit"]);
    let pair = Pair::of_edit(&turn, &said, &feedback.edits()[0]).unwrap();
    let pair = serde_json::to_value(pair).unwrap();
    assert_eq!(
        pair,
        json!({
            "type": "pair", "id": pair["id"], "prompt": "question", "chosen": "what I wanted",
            "rejected": "answer", "source": "edit", "correction": "edit",
            "origin": "user", "confidence": 1.0, "ts": "2026-11-21T12:00:00.000000Z",
            "provenance": {
                "tenant": "acme", "project": "p", "conversation_id": "c", "turn_ids": ["t"],
                "message_ids": ["m-t"], "feedback_ids": [feedback.edits()[0].core.act],
            }
        })
    );
    // A text that says the same teaches nothing, and neither does an empty one.
    let mut same = feedback.edits()[0].clone();
    for reason in [None, Some(" answer\n"), Some(" ")] {
        same.reason = reason.map(str::to_owned);
        assert_eq!(Pair::of_edit(&turn, &said, &same), None, "{reason:?}");
    }
}

/// A follow-up of the turn `t` that was detected so.
fn follow_up(feedback_type: FeedbackType, correction_type: Option<CorrectionType>) -> FollowUp {
    let detection = Detection {
        feedback_type,
        confidence: 0.9,
        correction_type,
        user_said: None,
        evidence: Vec::new(),
    };
    FollowUp::of("t".try_into().unwrap(), detection, 0)
}

#[test]
fn a_rejected_answer_and_the_accepted_one_after_it_make_a_pair() {
    use CorrectionType::{Abandonment, Explicit, Rephrased};
    let rejection = |of| follow_up(FeedbackType::Rejected, Some(of));
    let bad: &[&str] = &["machine:ada not_ok"];
    let good: &[&str] = &["machine:ada ok"];
    let made = |follow_up: &FollowUp, of: [&[&str]; 2], minute| {
        let [first, second] = of.map(feedback);
        let (turn, next) = (turn("t", 0), turn("u", minute));
        let rejected = Taken {
            turn: &turn,
            follow_up: None,
            feedback: &first,
        };
        let next = Taken {
            turn: &next,
            follow_up: Some(follow_up),
            feedback: &second,
        };
        corrected(rejected, next)
    };
    let pair = made(&rejection(Rephrased), [bad, good], 1).unwrap();
    assert_eq!(pair.correction, Correction::Rephrased);
    assert_eq!(pair.verdict.origin, Origin::Machine);
    assert_eq!(pair.verdict.feedback_ids.len(), 2);
    assert!((pair.verdict.confidence - 0.8).abs() < 1e-12);
    let pair = made(&rejection(Explicit), [&["ada not_ok"], &["ada helpful"]], 1).unwrap();
    assert_eq!(pair.correction, Correction::ExplicitCorrection);
    // Thumbs on purpose; that both answer one question is inferred.
    assert_eq!(pair.verdict.origin, Origin::Machine);
    assert!((pair.verdict.confidence - 0.9).abs() < 1e-12);

    let explicit = rejection(Explicit);
    let none: [(&str, FollowUp, [&[&str]; 2], i64); 9] = [
        (
            "who gives up asks for something else",
            rejection(Abandonment),
            [bad, good],
            1,
        ),
        (
            "it rejects nothing",
            follow_up(FeedbackType::Accepted, None),
            [bad, good],
            1,
        ),
        ("the session had ended", explicit.clone(), [bad, good], 31),
        (
            "the second was not accepted",
            explicit.clone(),
            [bad, &[]],
            1,
        ),
        (
            "nor is it what others hold to be unsafe",
            explicit.clone(),
            [bad, &["ada ok", "eve unsafe"]],
            1,
        ),
        (
            "the first was good after all",
            explicit.clone(),
            [&["machine:ada not_ok", "ada ok"], good],
            1,
        ),
        (
            "another rejected it",
            explicit.clone(),
            [&["eve not_ok"], good],
            1,
        ),
        (
            "another accepted it",
            explicit.clone(),
            [bad, &["eve ok"]],
            1,
        ),
        (
            "its user lets no model learn",
            explicit,
            [&["machine:ada not_ok", "ada unsafe excluded"], good],
            1,
        ),
    ];
    for (why, follow_up, of, minute) in none {
        assert_eq!(made(&follow_up, of, minute), None, "{why}");
    }
}

#[test]
fn the_prompt_of_a_pair_is_all_that_was_needed_to_answer_it() {
    let pair = |correction| {
        let Heard::Agreed(verdict) = feedback(&["ada ok"]).heard() else {
            panic!("nothing was heard")
        };
        let corrected = Corrected {
            correction,
            verdict,
        };
        let before = exchange("laptops", "business laptops");
        let after = exchange("No, I meant gaming laptops", "gaming laptops");
        let turns = (&turn("t", 0), &turn("u", 1));
        Pair::of_correction(turns, (&before, &after), corrected).unwrap()
    };
    let explicit = pair(Correction::ExplicitCorrection);
    assert_eq!(explicit.prompt, "laptops\n\nNo, I meant gaming laptops");
    assert_eq!(explicit.chosen, "gaming laptops");
    assert_eq!(explicit.rejected, "business laptops");
    assert_eq!(explicit.rests_on.provenance.turn_ids, ["t", "u"]);
    assert_eq!(pair(Correction::Rephrased).prompt, "laptops");
}

#[test]
fn a_turn_is_listed_on_the_last_day_on_which_anybody_reacted_to_it() {
    let turn = turn("t", 0);
    let hour = TimeDelta::hours(1);
    let period = Days {
        from: now().date_naive() - TimeDelta::days(9),
        to: now().date_naive(),
    };
    let day = |reactions: &[ReactionCore], as_of| last_day(reactions, &period, as_of);
    let back = |days| now() - TimeDelta::days(days);
    let old = reaction(&turn, "ada", "ok", back(3));
    let new = reaction(&turn, "eve", "not_ok", back(1));
    let both = [old.clone(), new];
    assert_eq!(day(&both, now()), Some(back(1).date_naive()));
    // As it stood then.
    assert_eq!(day(&both, back(2)), Some(back(3).date_naive()));
    assert_eq!(day(&[reaction(&turn, "ada", "ok", back(20))], now()), None);
    // One that took the place of another meanwhile, or cleared it, does not move it.
    for later in ["not_ok", "cleared"] {
        let mut replaced = reaction(&turn, "ada", later, now() + hour);
        replaced.trail = vec![crate::reaction::Trace {
            ts: old.ts,
            received_at: old.received_at,
            counts: true,
        }];
        assert_eq!(day(&[replaced], now()), Some(back(3).date_naive()));
    }
}

#[test]
fn a_period_is_a_year_to_today_unless_something_else_is_said() {
    let today = now().date_naive();
    let date = |text: &str| text.parse::<NaiveDate>().unwrap();
    let asked = |from: Option<&str>, to: Option<&str>| {
        let asked = Asked {
            project: "p".try_into().unwrap(),
            from: from.map(date),
            to: to.map(date),
        };
        asked.days(today).ok().map(|days| (days.from, days.to))
    };
    assert_eq!(asked(None, None), Some((date("2025-11-22"), today)));
    let ends = asked(None, Some("2026-01-31"));
    assert_eq!(ends, Some((date("2025-02-01"), date("2026-01-31"))));
    let begins = asked(Some("2026-11-01"), None);
    assert_eq!(begins, Some((date("2026-11-01"), today)));
    assert_eq!(asked(Some("2026-11-02"), Some("2026-11-01")), None);
    assert_eq!(asked(Some("1999-01-01"), None), None);
}

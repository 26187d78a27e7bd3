use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::feedback::reaction::NewReaction;
use crate::identity::caller::Caller;
use crate::text::member_digests::MemberDigests;
use crate::turns::turn::{ConversationRef, Turn, TurnRef};

/// A log that contains a mirrored reaction of ada.
fn mirrored(expires: &str) -> Map<String, Value> {
    let log = json!({
        "text": "Looked up the policy.\n[feedback user 2026-01-04T09:30:00Z ok] Fine",
        "feedbacks": [
            {"ts": "2026-01-04T09:30:00Z", "origin": "user", "user_id": "ada"},
            {"ts": "2026-01-04T09:31:00Z", "origin": "user", "user_id": "eve"},
        ],
        "entries": [
            {"type": "search"},
            {"type": "feedback", "feedback_id": "1", "ts": "2026-01-04T09:30:00Z", "user_id": "ada",
             "feedback": {"ts": "2026-01-04T09:30:00Z", "origin": "user"}, "expires_at": expires,
             "line": "[feedback user 2026-01-04T09:30:00Z ok] Fine"},
        ],
    });
    log.as_object().cloned().unwrap()
}

#[test]
fn mirrored_feedback_expires_and_the_applications_own_log_does_not() {
    let now = "2026-04-04T09:30:00Z".parse().unwrap();
    let mut log = mirrored("2026-04-04T09:30:00Z");
    hide(&mut log, now, |_| true);
    assert_eq!(log["text"], "Looked up the policy.");
    assert_eq!(log["entries"], json!([{"type": "search"}]));
    assert_eq!(log["feedbacks"][0]["user_id"], "eve");
    assert_eq!(log["feedbacks"].as_array().unwrap().len(), 1);

    let mut log = mirrored("2026-04-04T09:30:01Z");
    hide(&mut log, now, |_| true);
    assert_eq!(log, mirrored("2026-04-04T09:30:01Z"));
}

#[test]
fn mirrored_feedback_of_users_that_the_reader_may_not_see_is_hidden() {
    let mut log = mirrored("2030-01-01T00:00:00Z");
    let now = "2026-01-05T00:00:00Z".parse().unwrap();
    hide(&mut log, now, |user| user.as_str() == "eve");
    assert!(!Value::Object(log.clone()).to_string().contains("ada"));
    assert_eq!(log["feedbacks"].as_array().unwrap().len(), 1);
}

/// A user's reaction at noon of this day in January.
fn reaction(user: &str, day: u32, text: &str) -> StoredReaction {
    let ts = format!("2026-01-{day:02}T12:00:00Z").parse().unwrap();
    let caller = Caller {
        user: user.try_into().unwrap(),
        tenant: "acme".try_into().unwrap(),
        projects: Vec::new(),
        scopes: Vec::new(),
    };
    let at = TurnRef {
        within: ConversationRef {
            tenant: caller.tenant.clone(),
            project: "support".try_into().unwrap(),
            conversation: "c".try_into().unwrap(),
        },
        turn: "t".try_into().unwrap(),
    };
    let turn = json!({"user": {"text": "a"}, "assistant": {"text": "b"}});
    let turn = Turn::parse(at, &turn, &caller, ts).unwrap().core;
    let body = json!({"reaction": "ok", "text": text, "ts": ts});
    let new = NewReaction::parse(&body, &caller, ts).unwrap();
    new.on(&turn, &caller, true, ts)
}

fn log_of(text: &str) -> TurnLog {
    TurnLog {
        user: json!({}),
        assistant: Some(json!({})),
        turn_log: Map::from_iter([("text".to_owned(), json!(text))]),
        given: MemberDigests::default(),
    }
}

fn text_for(log: &TurnLog, sees: impl Fn(&UserId) -> bool) -> String {
    let mut log = log.turn_log.clone();
    let now = "2026-02-01T00:00:00Z".parse().unwrap();
    hide(&mut log, now, sees);
    log["text"].as_str().unwrap().to_owned()
}

const ADA: &str = "[feedback user 2026-01-02T12:00:00Z ok] fine";

#[test]
fn the_later_received_of_two_reactions_at_the_same_time_is_listed() {
    let received = |second, id, text: &str| {
        let mut reaction = reaction("ada", 4, text);
        reaction.core.received_at += TimeDelta::seconds(second);
        reaction.core.id = Uuid::from_u128(id);
        reaction
    };
    for pair in [
        [received(1, 9, "first"), received(2, 1, "last")],
        [received(1, 1, "first"), received(1, 9, "last")],
    ] {
        for order in [[0, 1], [1, 0]] {
            let mut log = log_of("");
            for at in order {
                assert!(write(&mut log, &pair[at]));
            }
            let feedbacks = log.turn_log[FEEDBACKS].as_array().unwrap();
            assert_eq!(feedbacks.len(), 1, "{order:?}");
            assert_eq!(feedbacks[0]["text"], "last", "{order:?}");
        }
    }
}

#[test]
fn hiding_a_line_does_not_change_a_line_that_quotes_it() {
    let mut log = log_of("Looked up the policy.");
    assert!(write(&mut log, &reaction("ada", 2, "fine")));
    assert!(write(
        &mut log,
        &reaction("eve", 3, &format!("as in {ADA} indeed"))
    ));
    let visible = text_for(&log, |user| user.as_str() != "ada");
    assert_eq!(
        visible,
        format!(
            "Looked up the policy.\n[feedback user 2026-01-03T12:00:00Z ok] as in {ADA} indeed"
        )
    );
}

#[test]
fn only_the_hidden_one_of_two_equal_lines_is_removed() {
    let mut log = log_of(ADA);
    for user in ["ada", "eve"] {
        assert!(write(&mut log, &reaction(user, 2, "fine")));
    }
    assert!(write(&mut log, &reaction("bob", 3, "other")));
    let bob = "[feedback user 2026-01-03T12:00:00Z ok] other";
    let without = |hidden: &str| text_for(&log, |user| user.as_str() != hidden);
    // The first line is the application's own, which is never hidden.
    assert_eq!(without("ada"), format!("{ADA}\n{ADA}\n{bob}"));
    assert_eq!(without("eve"), format!("{ADA}\n{ADA}\n{bob}"));
    assert_eq!(without("bob"), format!("{ADA}\n{ADA}\n{ADA}"));
    assert_eq!(text_for(&log, |_| false), ADA);
}

#[test]
fn a_line_break_in_a_text_cannot_forge_a_line() {
    for end in [
        "\n", "\r\n", "\u{2028}", "\u{2029}", "\u{85}", "\u{b}", "\u{c}",
    ] {
        let mut log = log_of("");
        let forged = format!("bad{end}{ADA}");
        assert!(write(&mut log, &reaction("eve", 3, &forged)));
        let text = text_for(&log, |_| true);
        assert_eq!(
            text,
            format!("[feedback user 2026-01-03T12:00:00Z ok] bad {ADA}")
        );
        assert_eq!(text_for(&log, |_| false), "");
    }
}

#[test]
fn a_line_of_an_earlier_version_is_removed_with_its_line_breaks() {
    let mut log = log_of("own\n[feedback user x ok] a\n\nb\n[feedback user x ok] a");
    log.turn_log["text"] = json!("own\n[feedback user x ok] a\n\nb\n[feedback user x ok] a");
    let entry =
        |user: &str, line: &str| json!({"feedback_id": user, "user_id": user, "line": line});
    let entries = [
        entry("ada", "[feedback user x ok] a\n\nb"),
        entry("eve", "[feedback user x ok] a"),
    ];
    log.turn_log.insert("entries".to_owned(), json!(entries));
    let without = |hidden: &str| text_for(&log, |user| user.as_str() != hidden);
    assert_eq!(without("ada"), "own\n[feedback user x ok] a");
    assert_eq!(without("eve"), "own\n[feedback user x ok] a\n\nb");
}

#[test]
fn an_expired_line_is_removed_and_a_line_that_quotes_it_stays() {
    let mut log = log_of("own");
    assert!(write(&mut log, &reaction("ada", 2, "fine")));
    assert!(write(&mut log, &reaction("eve", 3, ADA)));
    let mut later = reaction("bob", 3, "later");
    later.core.received_at = "2026-04-02T13:00:00Z".parse().unwrap();
    assert!(write(&mut log, &later));
    let text = log.turn_log["text"].as_str().unwrap();
    assert_eq!(
        text,
        format!(
            "own\n[feedback user 2026-01-03T12:00:00Z ok] {ADA}\n\
             [feedback user 2026-01-03T12:00:00Z ok] later"
        )
    );
}

#[test]
fn a_full_log_is_not_extended_but_a_replaced_reaction_is_removed() {
    let mut log = log_of("own");
    assert!(write(&mut log, &reaction("ada", 2, "fine")));
    log.turn_log
        .insert("trace".to_owned(), json!("x".repeat(TurnLog::MAX - 50_000)));
    let mut before = 0;
    let mut day = 3;
    while write(
        &mut log,
        &reaction(&format!("user-{day}"), day % 28 + 1, &"y".repeat(900)),
    ) {
        before = log.turn_log["entries"].as_array().unwrap().len();
        day += 1;
    }
    assert!(log.fits() && before > 1, "{before}");
    let mut cleared = reaction("ada", 20, "");
    cleared.core.reaction = None;
    cleared.core.id = Uuid::from_u128(1);
    log.turn_log
        .insert("more".to_owned(), json!("z".repeat(600)));
    write(&mut log, &cleared);
    let listed = log.turn_log["feedbacks"].as_array().unwrap();
    assert!(listed.iter().all(|feedback| feedback["user_id"] != "ada"));
}

proptest! {
    #[test]
    fn hiding_a_user_gives_the_text_without_their_reactions(
        reactions in proptest::collection::vec(
            (select(vec!["ada", "bob", "eve"]), 1..4_u32, select(vec!["", "fine", "[feedback", ADA, "a\nb"])),
            0..8,
        ),
        own in select(vec!["", "own", ADA, "own\n"]),
    ) {
        let write_all = |included: &dyn Fn(&str) -> bool| {
            let mut log = log_of(own);
            for (user, day, text) in reactions.iter().filter(|(user, ..)| included(user)) {
                write(&mut log, &reaction(user, *day, text));
            }
            log
        };
        for hidden in ["ada", "bob", "eve"] {
            let all = write_all(&|_| true);
            let without_hidden = write_all(&|user| user != hidden);
            prop_assert_eq!(
                text_for(&all, |user| user.as_str() != hidden),
                text_for(&without_hidden, |_| true)
            );
        }
    }
}

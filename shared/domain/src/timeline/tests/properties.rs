//! What holds for all timelines.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;

/// A second of the minute before [`NOW`], some of them with a fraction.
fn any_time() -> impl Strategy<Value = DateTime<Utc>> {
    (0..20_i64, select(vec![0, 1, 500_000])).prop_map(|(seconds, micros)| {
        at("2025-11-06T17:59:00Z")
            + chrono::TimeDelta::seconds(seconds)
            + chrono::TimeDelta::microseconds(micros)
    })
}

fn any_reaction() -> impl Strategy<Value = TurnReaction> {
    let verdict = option::of(select(vec![
        Reaction::Ok,
        Reaction::NotOk,
        Reaction::Neutral,
    ]));
    let origin = select(vec![Origin::User, Origin::Machine]);
    let user = select(vec!["ada", "bob", "eve"]);
    let text = select(vec!["", "fine", "not\nfine", "x | text=y"]);
    let turn_id = select(vec!["a", "b", "c|d"]);
    (turn_id, origin, user, verdict, any_time(), text).prop_map(
        |(turn_id, origin, user, reaction, ts, text)| TurnReaction {
            ts,
            text: text.to_owned(),
            // All turns are Ada's.
            by: if user == "ada" { By::Owner } else { By::Other },
            user_id: Some(user.try_into().unwrap()),
            ..said(turn_id, origin, reaction, NOW)
        },
    )
}

/// A timeline of three turns that knows nothing.
fn empty() -> Request {
    Request {
        turn_ids: vec![turn("a"), turn("b"), turn("c|d")],
        ..cold()
    }
}

/// A timeline of three turns, which incorporated what there was at several times before.
fn any_request() -> impl Strategy<Value = Request> {
    vec(vec(any_reaction(), 0..6), 0..4).prop_map(|before| {
        before.iter().fold(empty(), |request, reactions| {
            keeping(&request, &refresh(&request, reactions, at(NOW)))
        })
    })
}

/// What an agent sees: the path and digest of each block that is not hidden.
fn seen(request: &Request) -> Vec<(String, Option<String>)> {
    let visible = request.blocks.iter().filter(|block| !block.hidden);
    let mut seen: Vec<_> = visible
        .map(|block| (block.path.clone(), block.digest.clone()))
        .collect();
    seen.sort();
    seen
}

proptest! {
    #[test]
    fn what_was_incorporated_is_not_announced_again(
        request in any_request(),
        reactions in vec(any_reaction(), 0..12),
    ) {
        let first = refresh(&request, &reactions, at(NOW));
        let mut shuffled = reactions;
        shuffled.reverse();
        prop_assert_eq!(&refresh(&request, &shuffled, at(NOW)), &first);
        let second = refresh(&keeping(&request, &first), &shuffled, at(NOW));
        prop_assert_eq!(second.announce, None);
        prop_assert_eq!(second.blocks, Vec::new());
        prop_assert_eq!(second.last_known_feedback_ts, first.last_known_feedback_ts);
    }

    #[test]
    fn whatever_happened_the_blocks_are_those_of_a_fresh_agent(
        request in any_request(),
        reactions in vec(any_reaction(), 0..12),
    ) {
        let fresh = keeping(&empty(), &refresh(&empty(), &reactions, at(NOW)));
        let kept = keeping(&request, &refresh(&request, &reactions, at(NOW)));
        prop_assert_eq!(seen(&kept), seen(&fresh));
    }

    #[test]
    fn a_hot_timeline_is_told_the_same_and_never_changed(
        request in any_request(),
        reactions in vec(any_reaction(), 0..12),
    ) {
        let cold = refresh(&request, &reactions, at(NOW));
        let hot = Request { cache: hot().cache, ..request };
        let known = hot.last_known_feedback_ts;
        let hot = refresh(&hot, &reactions, at(NOW));
        prop_assert_eq!(hot.cache, CacheState::Hot);
        prop_assert_eq!(hot.blocks, Vec::new());
        prop_assert_eq!(hot.last_known_feedback_ts, known);
        let told = hot.announce.map(|text| text + "\n  (incorporated into turn timeline)");
        prop_assert_eq!(cold.announce, told);
    }

    #[test]
    fn the_owners_newest_feedback_is_what_its_block_says(
        others in vec(any_reaction(), 0..12),
        origin in select(vec![Origin::User, Origin::Machine]),
    ) {
        let latest = TurnReaction {
            text: "the latest".to_owned(),
            ..said("a", origin, Some(Reaction::NotOk), NOW)
        };
        let mut reactions = others;
        reactions.push(latest);
        let answer = refresh(&empty(), &reactions, at(NOW));
        let path = format!("ar:a.feedback.{}", origin.as_str());
        let block = answer.blocks.iter().find(|block| block.path == path).unwrap();
        prop_assert!(block.text.ends_with("\nreaction: not_ok\nthe latest"));
        prop_assert!(!block.hidden && block.meta.by == By::Owner);
        let first = answer.blocks.iter().position(|block| block.meta.by == By::Other);
        let owners = answer.blocks.iter().rposition(|block| block.meta.by == By::Owner);
        prop_assert!(first.is_none() || owners < first, "the owner's come first");
    }

    #[test]
    fn the_text_of_another_user_stays_on_its_line(text in "[\\n\\r\\x0b\\x0c\u{85}\u{2028}\u{2029}a\\[\\]]{0,12}") {
        let answer = refresh(&cold(), &[of_eve(&text, NOW)], at(NOW));
        let lines = answer.blocks[0].text.split(|c: char| c.is_control() || "\u{2028}\u{2029}".contains(c));
        prop_assert_eq!(lines.count(), if text.is_empty() { 3 } else { 4 });
        let announced = answer.announce.unwrap();
        prop_assert_eq!(announced.lines().count(), 3);
    }
}

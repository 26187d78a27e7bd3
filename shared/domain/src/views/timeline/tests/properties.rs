//! Properties of all timelines.

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
    // Equal receipts and equal ids: both only decide between acts with equal times.
    let received = (any_time(), 0..3_u128);
    let what = (turn_id, origin, user, verdict, any::<bool>());
    (what, any_time(), text, received).prop_map(
        |((turn_id, origin, user, verdict, follow_up), ts, text, (received_at, id))| TurnReaction {
            ts,
            received_at,
            id: Uuid::from_u128(id),
            follow_up: follow_up && origin == Origin::Machine,
            text: text.to_owned(),
            // Ada owns all turns.
            by: if user == "ada" {
                FeedbackBy::Owner
            } else {
                FeedbackBy::Other
            },
            user_id: Some(user.try_into().unwrap()),
            ..reaction(turn_id, origin, verdict, NOW)
        },
    )
}

/// A timeline of three turns without known feedback.
fn empty() -> Timeline {
    Timeline {
        turn_ids: vec![turn("a"), turn("b"), turn("c|d")],
        ..cold()
    }
}

/// A timeline of three turns that incorporated feedback several times.
fn any_request() -> impl Strategy<Value = Timeline> {
    vec(vec(any_reaction(), 0..6), 0..4).prop_map(|before| {
        before.iter().fold(empty(), |request, reactions| {
            keeping(&request, &refresh(&request, reactions, at(NOW)))
        })
    })
}

/// The path and digest of each block that is not hidden.
fn seen(request: &Timeline) -> Vec<(String, Option<String>)> {
    let visible = request.blocks.iter().filter(|block| !block.hidden);
    let mut seen: Vec<_> = visible
        .map(|block| (block.path.clone(), block.digest.clone()))
        .collect();
    seen.sort();
    seen
}

proptest! {
    #[test]
    fn incorporated_feedback_is_not_announced_again(
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
    fn the_blocks_do_not_depend_on_earlier_refreshes(
        request in any_request(),
        reactions in vec(any_reaction(), 0..12),
    ) {
        let fresh = keeping(&empty(), &refresh(&empty(), &reactions, at(NOW)));
        let kept = keeping(&request, &refresh(&request, &reactions, at(NOW)));
        prop_assert_eq!(seen(&kept), seen(&fresh));
    }

    #[test]
    fn a_hot_timeline_receives_the_same_announcement_and_does_not_change(
        request in any_request(),
        reactions in vec(any_reaction(), 0..12),
    ) {
        let cold = refresh(&request, &reactions, at(NOW));
        let hot = Timeline { cache: hot().cache, ..request };
        let known = hot.last_known_feedback_ts;
        let hot = refresh(&hot, &reactions, at(NOW));
        prop_assert_eq!(hot.cache, CacheState::Hot);
        prop_assert_eq!(hot.blocks, Vec::new());
        prop_assert_eq!(hot.last_known_feedback_ts, known);
        let incorporated = hot.announce.map(|text| text + "\n  (incorporated into turn timeline)");
        prop_assert_eq!(cold.announce, incorporated);
    }

    #[test]
    fn the_owners_block_contains_their_newest_feedback(
        others in vec(any_reaction(), 0..12),
        origin in select(vec![Origin::User, Origin::Machine]),
    ) {
        let latest = TurnReaction {
            text: "the latest".to_owned(),
            ..reaction("a", origin, Some(Reaction::NotOk), NOW)
        };
        let mut reactions = others;
        reactions.push(latest);
        let response = refresh(&empty(), &reactions, at(NOW));
        let path = format!("ar:a.feedback.{}", origin.as_str());
        let block = response.blocks.iter().find(|block| block.path == path).unwrap();
        prop_assert!(block.text.ends_with("\nreaction: not_ok\nthe latest"));
        prop_assert!(!block.hidden && block.meta.by == FeedbackBy::Owner);
        let first = response.blocks.iter().position(|block| block.meta.by == FeedbackBy::Other);
        let owners = response.blocks.iter().rposition(|block| block.meta.by == FeedbackBy::Owner);
        prop_assert!(first.is_none() || owners < first, "the owner's blocks come first");
    }

    #[test]
    fn a_turn_id_adds_no_line(id in "[\u{2028}\u{2029}a\\[\\]|\"=: ]{1,12}") {
        let lines = |id: &str| {
            let request = Timeline { turn_ids: vec![turn(id)], ..cold() };
            let reaction = reaction(id, Origin::User, Some(Reaction::NotOk), NOW);
            let response = refresh(&request, &[reaction], at(NOW));
            let breaks = |c: char| c.is_control() || "\u{2028}\u{2029}".contains(c);
            let texts = [response.announce.unwrap(), response.blocks[0].text.clone()];
            texts.map(|text| text.split(breaks).count())
        };
        prop_assert_eq!(lines(&id), lines("a"));
    }

    #[test]
    fn the_text_of_another_user_stays_on_its_line(text in "[\\n\\r\\x0b\\x0c\u{85}\u{2028}\u{2029}a\\[\\]]{0,12}") {
        let response = refresh(&cold(), &[reaction_of_eve(&text, NOW)], at(NOW));
        let lines = response.blocks[0].text.split(|c: char| c.is_control() || "\u{2028}\u{2029}".contains(c));
        prop_assert_eq!(lines.count(), if text.is_empty() { 3 } else { 4 });
        let announced = response.announce.unwrap();
        prop_assert_eq!(announced.lines().count(), 3);
    }
}

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
    let text = select(vec!["", "fine", "not\nfine", "x | text=y"]);
    (
        select(vec!["a", "b", "c|d"]),
        origin,
        verdict,
        any_time(),
        text,
    )
        .prop_map(|(turn_id, origin, reaction, ts, text)| TurnReaction {
            ts,
            text: text.to_owned(),
            ..said(turn_id, origin, reaction, NOW)
        })
}

/// A timeline of three turns, which may have incorporated other reactions before.
fn any_request() -> impl Strategy<Value = Request> {
    (vec(any_reaction(), 0..6), option::of(any_time())).prop_map(|(before, watermark)| {
        let empty = Request {
            turn_ids: vec![turn("a"), turn("b"), turn("c|d")],
            ..cold()
        };
        let mut request = following(&empty, &refresh(&empty, &before, at(NOW)));
        request.last_known_feedback_ts = watermark.or(request.last_known_feedback_ts);
        request
    })
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
        let mut following = following(&request, &first);
        following.blocks.extend(request.blocks);
        let second = refresh(&following, &shuffled, at(NOW));
        prop_assert_eq!(second.announce, None);
        prop_assert_eq!(second.blocks, Vec::new());
        prop_assert_eq!(second.last_known_feedback_ts, first.last_known_feedback_ts);
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
    fn the_newest_user_reaction_is_listed_whenever_it_is_new(
        request in any_request(),
        reactions in vec(any_reaction(), 1..12),
        which in any::<prop::sample::Index>(),
    ) {
        let turn_id = &which.get(&reactions).turn_id;
        let of_user = reactions
            .iter()
            .filter(|r| r.turn_id == *turn_id && r.origin == Origin::User)
            .map(News::of);
        // One that stands comes before any that was taken back.
        let newest = of_user.max_by_key(|news| {
            let stands = news.reaction.reaction.is_some();
            (stands, news.reaction.ts, news.digest.clone())
        });
        let Some(newest) = newest else { return Ok(()) };
        let new = Some(newest.reaction.ts) >= request.last_known_feedback_ts
            && !request.blocks.contains(&newest.known_as());
        let answer = refresh(&request, &reactions, at(NOW));
        let listed = answer.blocks.iter().find(|block| block.path == newest.path);
        prop_assert_eq!(listed.cloned(), new.then(|| newest.block()));
        if new {
            prop_assert!(answer.announce.is_some_and(|text| text.contains(&newest.line())));
        }
    }
}

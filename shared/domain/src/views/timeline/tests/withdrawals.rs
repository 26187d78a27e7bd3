//! Feedback that is withdrawn: what is shown instead, whatever the order and the times of the withdrawals.

use super::*;

#[test]
fn withdrawn_feedback_is_replaced_by_older_feedback_before_the_watermark() {
    // Eve's reaction is current until she withdraws it; then Bob's is, which is older than the watermark.
    let bob = TurnReaction {
        user_id: Some("bob".try_into().unwrap()),
        ..reaction_of_eve("the first", "2025-11-06T17:40:00Z")
    };
    let eve = reaction_of_eve("the second", "2025-11-06T17:50:00Z");
    let before = refresh(&cold(), &[bob.clone(), eve.clone()], at(NOW));
    assert!(before.blocks[0].text.ends_with("text: the second"));

    let cleared = TurnReaction {
        reaction: None,
        text: String::new(),
        ts: at("2025-11-06T17:55:00Z"),
        ..eve
    };
    let request = keeping(&cold(), &before);
    let after = refresh(&request, &[bob, cleared], at(NOW));
    assert_eq!(after.blocks.len(), 1, "its block is updated");
    assert!(after.blocks[0].text.ends_with("text: the first"));
    assert!(!after.blocks[0].hidden);
}

#[test]
fn the_order_of_two_withdrawals_at_the_same_time_does_not_matter() {
    let given = reaction_of_eve("the first", "2025-11-06T17:47:03Z");
    let request = keeping(
        &cold(),
        &refresh(&cold(), std::slice::from_ref(&given), at(NOW)),
    );
    let withdrawn_by = |user: &str| TurnReaction {
        reaction: None,
        text: String::new(),
        user_id: Some(user.try_into().unwrap()),
        ..given.clone()
    };
    let (bob, eve) = (withdrawn_by("bob"), withdrawn_by("eve"));
    assert_eq!(
        refresh(&request, &[bob.clone(), eve.clone()], at(NOW)),
        refresh(&request, &[eve, bob], at(NOW)),
    );
}

#[test]
fn a_backdated_withdrawal_hides_the_block() {
    let other = reaction(
        OTHER,
        Origin::User,
        Some(Reaction::Ok),
        "2025-11-06T17:59:00Z",
    );
    let before = refresh(&cold(), &[example(), other.clone()], at(NOW));
    let cleared = reaction(TURN, Origin::User, None, "2025-11-06T17:47:03Z");
    let request = keeping(&cold(), &before);
    assert!(request.last_known_feedback_ts > Some(cleared.ts));
    let after = refresh(&request, &[cleared, other], at(NOW));
    assert!(after.blocks[0].hidden);
    assert_eq!(after.blocks.len(), 1);
}

#[test]
fn reactions_of_the_same_time_have_one_order() {
    // All withdrawn reactions of other users have the same digest.
    let withdrawn = |user: &str, text: &str| TurnReaction {
        user_id: Some(user.try_into().unwrap()),
        reaction: None,
        ..reaction_of_eve(text, "2025-11-06T17:50:00Z")
    };
    // By a clock that is ahead: only the times of receipt are compared.
    let ahead = |ts: &str| TurnReaction {
        ts: at(ts),
        received_at: at("2025-11-06T17:50:00Z"),
        ..withdrawn("eve", "")
    };
    let first = reaction_of_eve("first", "2025-11-06T17:40:00Z");
    let request = keeping(&cold(), &refresh(&cold(), &[first], at(NOW)));
    for (one, other) in [
        (withdrawn("eve", ""), withdrawn("bob", "fine")),
        (withdrawn("eve", ""), withdrawn("eve", "fine")),
        (ahead("2025-11-06T17:51:00Z"), ahead("2025-11-06T17:52:00Z")),
    ] {
        let response = refresh(&request, &[one.clone(), other.clone()], at(NOW));
        assert_eq!(refresh(&request, &[other, one], at(NOW)), response);
        assert!(response.blocks[0].hidden);
    }
}

#[test]
fn feedback_that_was_given_and_withdrawn_between_two_requests_is_not_announced() {
    let cleared = reaction(TURN, Origin::User, None, "2025-11-06T17:47:03Z");
    let fresh = refresh(&cold(), std::slice::from_ref(&cleared), at(NOW));
    assert_eq!((fresh.announce, fresh.blocks), (None, Vec::new()));

    // The same holds for an agent that already received a withdrawal.
    let request = keeping(&cold(), &refresh(&cold(), &[example()], at(NOW)));
    let hidden = refresh(&request, &[cleared], at(NOW));
    let later = reaction(TURN, Origin::User, None, "2025-11-06T17:58:00Z");
    let after = refresh(&keeping(&request, &hidden), &[later], at(NOW));
    assert_eq!((after.announce, after.blocks), (None, Vec::new()));
}

//! Rows: their members, and which answers are a pair.

use hearback_detection::Detection;

use super::*;
use crate::turns::turn::TurnLog;

fn exchange(prompt: &str, answer: &str) -> PromptAndAnswer {
    PromptAndAnswer::from(TurnLog {
        user: json!({"text": prompt}),
        assistant: Some(json!({"text": answer})),
        turn_log: serde_json::Map::new(),
        given: std::collections::BTreeMap::default(),
    })
}

#[test]
fn a_row_has_the_members_of_its_format_and_no_user_id() {
    let turn = turn("t", 0);
    let exchange = exchange("question", "answer");
    let Consensus::Agreed(verdict) = feedback(&["ada ok"]).consensus() else {
        panic!("no verdict")
    };
    let ids = verdict.feedback_ids.clone();
    let label = TrainingLabel::of(&turn, &exchange, verdict).unwrap();
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
    let pair = Pair::of_edit(&turn, &exchange, &feedback.edits()[0]).unwrap();
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
    // An edit with the same text, or without a text, gives no pair.
    let mut edit = feedback.edits()[0].clone();
    for reason in [None, Some(" answer\n"), Some(" ")] {
        edit.reason = reason.map(str::to_owned);
        assert_eq!(Pair::of_edit(&turn, &exchange, &edit), None, "{reason:?}");
    }
}

/// A follow-up of the turn `t` with this detection.
fn follow_up(feedback_type: FeedbackStatus, correction_type: Option<RejectionKind>) -> FollowUp {
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
fn a_rejected_answer_and_the_accepted_next_answer_are_a_pair() {
    use RejectionKind::{Abandonment, Explicit, Rephrased};
    let rejection = |kind| follow_up(FeedbackStatus::Rejected, Some(kind));
    let bad: &[&str] = &["machine:ada not_ok"];
    let good: &[&str] = &["machine:ada ok"];
    let pair = |follow_up: &FollowUp, items: [&[&str]; 2], minute| {
        let [first, second] = items.map(feedback);
        let (turn, next) = (turn("t", 0), turn("u", minute));
        let rejected = RatedTurn {
            turn: &turn,
            follow_up: None,
            feedback: &first,
        };
        let next = RatedTurn {
            turn: &next,
            follow_up: Some(follow_up),
            feedback: &second,
        };
        corrected(rejected, next)
    };
    let corrected = pair(&rejection(Rephrased), [bad, good], 1).unwrap();
    assert_eq!(corrected.correction, PairCorrection::Rephrased);
    assert_eq!(corrected.verdict.origin, Origin::Machine);
    assert_eq!(corrected.verdict.feedback_ids.len(), 2);
    assert!((corrected.verdict.confidence - 0.8).abs() < 1e-12);
    let corrected = pair(&rejection(Explicit), [&["ada not_ok"], &["ada helpful"]], 1).unwrap();
    assert_eq!(corrected.correction, PairCorrection::ExplicitCorrection);
    // The verdicts are explicit, but it is inferred that both turns ask the same question.
    assert_eq!(corrected.verdict.origin, Origin::Machine);
    assert!((corrected.verdict.confidence - 0.9).abs() < 1e-12);

    let explicit = rejection(Explicit);
    let no_pair: [(&str, FollowUp, [&[&str]; 2], i64); 11] = [
        ("the user gave up", rejection(Abandonment), [bad, good], 1),
        (
            "the message rejects nothing",
            follow_up(FeedbackStatus::Accepted, None),
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
            "another user marked the second as unsafe",
            explicit.clone(),
            [bad, &["ada ok", "eve unsafe"]],
            1,
        ),
        (
            "the user accepted the first explicitly",
            explicit.clone(),
            [&["machine:ada not_ok", "ada ok"], good],
            1,
        ),
        (
            "only another user rejected the first",
            explicit.clone(),
            [&["eve not_ok"], good],
            1,
        ),
        (
            "only another user accepted the second",
            explicit.clone(),
            [bad, &["eve ok"]],
            1,
        ),
        (
            "the user excluded their feedback from training",
            explicit.clone(),
            [&["machine:ada not_ok", "ada unsafe excluded"], good],
            1,
        ),
        (
            "the user rejected the second, and excluded that from training",
            explicit.clone(),
            [bad, &["ada event excluded", "machine:ada ok"]],
            1,
        ),
        (
            "another user rejected the second, and excluded that from training",
            explicit,
            [bad, &["machine:ada ok", "eve event excluded"]],
            1,
        ),
    ];
    for (reason, follow_up, items, minute) in no_pair {
        assert_eq!(pair(&follow_up, items, minute), None, "{reason}");
    }
}

#[test]
fn the_prompt_of_a_pair_contains_an_explicit_correction() {
    let pair = |correction| {
        let Consensus::Agreed(verdict) = feedback(&["ada ok"]).consensus() else {
            panic!("no verdict")
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
    let explicit = pair(PairCorrection::ExplicitCorrection);
    assert_eq!(explicit.prompt, "laptops\n\nNo, I meant gaming laptops");
    assert_eq!(explicit.chosen, "gaming laptops");
    assert_eq!(explicit.rejected, "business laptops");
    assert_eq!(explicit.evidence.provenance.turn_ids, ["t", "u"]);
    assert_eq!(pair(PairCorrection::Rephrased).prompt, "laptops");
}

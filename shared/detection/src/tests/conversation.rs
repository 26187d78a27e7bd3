//! Earlier turns of a conversation: what they add to the last exchange.

use super::*;
use crate::Earlier;

const CLINIC: Exchange<'static> = Exchange {
    prev_query: Some("i dont drive"),
    prev_response: Some("By car it's 18 minutes via Ring Road, or 15 via the toll tunnel."),
    message: "i cannot drive. the quickest way to the clinic",
    language: None,
    embedding_similarity: None,
    repeats_query: None,
    earlier: &[Earlier {
        query: "what's the quickest way to the clinic",
        answer: Some("The quickest way is the A4 to exit 12, about 20 minutes."),
    }],
};

const ROUTER: Exchange<'static> = Exchange {
    prev_query: Some("did that three times already. the light stays red"),
    prev_response: Some(
        "A red light means no signal. Please unplug your router, wait 30 seconds, and plug it back \
         in. The connection should return within five minutes.",
    ),
    message: "and the light is red after that",
    language: None,
    embedding_similarity: None,
    repeats_query: None,
    earlier: &[Earlier {
        query: "my broadband has been down since yesterday evening",
        answer: Some(
            "Please unplug your router, wait 30 seconds, and plug it back in. The connection \
             should return within five minutes.",
        ),
    }],
};

fn detect(exchange: &Exchange<'_>) -> Detection {
    Detector::embedded().detect(exchange)
}

/// The same, without the earlier turns.
fn detect_alone(exchange: &Exchange<'_>) -> Detection {
    detect(&Exchange {
        earlier: &[],
        ..*exchange
    })
}

/// Asserts that an exchange is a rejection with this cue, and none or a less certain one without its earlier turns.
fn assert_rejected(exchange: &Exchange<'_>, cue: Cue, kind: RejectionKind) {
    let detection = detect(exchange);
    assert_eq!(detection.feedback_type, FeedbackStatus::Rejected);
    let alone = detect_alone(exchange);
    let is_rejected = alone.feedback_type == FeedbackStatus::Rejected;
    assert!(
        !is_rejected || alone.confidence < detection.confidence,
        "{alone:?}"
    );
    assert_eq!(detection.correction_type, Some(kind));
    let evidence = &detection.evidence[0];
    assert_eq!(evidence.cue, cue, "{detection:?}");
    assert_eq!(evidence.end, exchange.message.chars().count());
}

#[test]
fn asking_again_for_what_an_earlier_turn_asked_rejects_the_answer() {
    assert_rejected(&CLINIC, Cue::AskedBefore, RejectionKind::Rephrased);
}

#[test]
fn an_answer_that_is_given_again_is_evidence_against_it() {
    assert_rejected(&ROUTER, Cue::AnswerRepeated, RejectionKind::Explicit);
}

#[test]
fn an_answer_of_which_only_parts_are_known_is_not_compared() {
    let earlier = ROUTER.earlier.iter().map(|turn| Earlier {
        answer: None,
        ..*turn
    });
    let exchange = Exchange {
        earlier: &earlier.collect::<Vec<_>>(),
        ..ROUTER
    };
    assert_eq!(detect(&exchange), detect_alone(&ROUTER));
}

#[test]
fn contentment_and_the_same_of_something_else_are_no_rejections() {
    for message in [
        "thanks!",
        "ok that did it, green now",
        "Good, \"wait 30 seconds, and plug it back in\" was the trick",
    ] {
        let exchange = Exchange { message, ..ROUTER };
        assert_eq!(detect(&exchange), detect_alone(&exchange), "{message}");
    }
    let exchange = Exchange {
        message: "and what's the quickest way to the airport",
        ..CLINIC
    };
    let detection = detect(&exchange);
    assert_ne!(detection.feedback_type, FeedbackStatus::Rejected);
    assert_eq!(detection, detect_alone(&exchange));
}

#[test]
fn the_same_request_for_something_else_is_no_rejection() {
    for (earlier, query, message) in [
        (
            "Where is order 17?",
            "Where is order 18?",
            "Where is order 19?",
        ),
        (
            "What about item number 2?",
            "What about item number 3?",
            "What about item number 4?",
        ),
        (
            "Translate 'cat' into French",
            "Translate 'cow' into French",
            "Translate 'dog' into French",
        ),
        (
            "Show me hotels in Berlin please",
            "Show me hotels in Paris please",
            "Which hotels can you show me in Rome",
        ),
        (
            "how long do i cook rice",
            "how long do i cook pasta",
            "how long do i cook beans",
        ),
    ] {
        let exchange = Exchange {
            prev_query: Some(query),
            prev_response: Some("It is on its way and arrives on Tuesday."),
            message,
            earlier: &[Earlier {
                query: earlier,
                answer: Some("It was delivered yesterday."),
            }],
            ..CLINIC
        };
        let detection = detect(&exchange);
        assert_eq!(detection, detect_alone(&exchange), "{message}");
        assert_ne!(
            detection.feedback_type,
            FeedbackStatus::Rejected,
            "{message}"
        );
    }
}

#[test]
fn a_certain_verdict_does_not_depend_on_earlier_turns() {
    for message in ["No, that's wrong", "Perfect, thank you so much!"] {
        let exchange = Exchange { message, ..ROUTER };
        let detection = detect(&exchange);
        assert!(detection.confidence >= 0.7, "{detection:?}");
        assert_eq!(detection, detect_alone(&exchange));
    }
}

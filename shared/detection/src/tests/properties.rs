//! Properties of any text.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

static DETECTOR: LazyLock<Detector> = LazyLock::new(Detector::embedded);

fn detect(message: &str) -> Detection {
    DETECTOR.detect(&Exchange {
        message,
        ..Exchange::default()
    })
}

/// Texts of words of the phrases, punctuation, other scripts and emoji.
fn any_message() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "no",
        "nope",
        "that's",
        "wrong",
        "not",
        "helpful",
        "thanks",
        "but",
        ",",
        ".",
        "?",
        "!",
        "\n",
        "never",
        "mind",
        "i",
        "meant",
        "it",
        "still",
        "works",
        "actually",
        "\"",
        "'",
        "`",
        "```",
        "\n> ",
        "“",
        "”",
        "falsch",
        "nein",
        "ça",
        "não",
        "不对",
        "違います",
        "👎",
        "👍🏽",
        "e\u{301}",
        "\u{200f}",
        "שלום",
        "مرحبا",
        "don’t",
        "a\u{300}\u{301}",
        "ＮＯ",
        "ﬀ",
        "İ",
    ]);
    let sentence = prop::collection::vec(words, 0..30).prop_map(|words| words.join(" "));
    prop_oneof![sentence, ".*", "\\PC{0,60}"]
}

proptest! {
    #[test]
    fn confidence_and_evidence_are_in_range(message in any_message(), query in any_message(), answer in any_message()) {
        let exchange = Exchange {
            prev_query: Some(&query),
            prev_response: Some(&answer),
            message: &message,
            language: None,
            embedding_similarity: None,
            repeats_query: None,
            earlier: &[],
        };
        let detection = DETECTOR.detect(&exchange);
        prop_assert_eq!(&detection, &DETECTOR.detect(&exchange));
        prop_assert!((0.5..=1.0).contains(&detection.confidence));
        let rejected = detection.feedback_type == FeedbackStatus::Rejected;
        prop_assert_eq!(rejected, detection.correction_type.is_some());
        prop_assert_eq!(rejected, detection.user_said.is_some());
        let length = message.chars().count();
        for evidence in &detection.evidence {
            prop_assert!(evidence.start < evidence.end && evidence.end <= length);
            let cue: Vec<char> = message.chars().skip(evidence.start).take(evidence.end - evidence.start).collect();
            prop_assert!(cue.first().is_some_and(|c| !c.is_whitespace()));
            prop_assert!(cue.last().is_some_and(|c| !c.is_whitespace()));
        }
    }

    #[test]
    fn evidence_span_is_the_cue(before in "[qxz]{0,8}", after in "[qxz]{0,8}") {
        let message = format!("{before}. that's wrong. {after}");
        let evidence = &detect(&message).evidence[0];
        let cue: String = message.chars().skip(evidence.start).take(evidence.end - evidence.start).collect();
        prop_assert_eq!(cue, "that's wrong");
    }

    #[test]
    fn appended_quotation_changes_nothing(message in "[a-zA-Z ,.']{0,60}[a-z.]", quoted in "[a-zA-Z ]{0,30}") {
        let outcome = |message: &str| {
            let detection = detect(message);
            (detection.feedback_type, detection.correction_type, detection.evidence)
        };
        let alone = outcome(&message);
        for with in [
            format!("{message}\n> {quoted}"),
            format!("{message}\n```\n{quoted}\n```"),
            format!("{message}\n~~~\n{quoted}"),
            format!("{message} \"{quoted}\""),
            format!("{message} `{quoted}`"),
            format!("{message} „{quoted}“"),
        ] {
            prop_assert_eq!(&outcome(&with), &alone, "{}", with);
        }
    }
}

#[test]
fn message_without_words_is_neutral() {
    for message in [
        "",
        " ",
        "\n\t\u{3000}",
        "...",
        "?!",
        "\u{301}",
        "\u{200f}",
        "\u{0}",
        "“”",
    ] {
        let detection = detect(message);
        assert_eq!(
            detection.feedback_type,
            FeedbackStatus::Neutral,
            "{message:?}"
        );
        assert!(detection.evidence.is_empty(), "{message:?}");
    }
}

#[test]
fn composed_and_decomposed_letters_are_equal() {
    for message in [
        "c’était faux, ce n’est pas ça",
        "Ce n\u{2019}e\u{73}t pas ce que j'ai demande\u{301}",
        "ＷＲＯＮＧ",
        "WRONG!!!",
        "👎🏿",
    ] {
        assert_eq!(
            detect(message).feedback_type,
            FeedbackStatus::Rejected,
            "{message}"
        );
    }
    let mirrored = "\u{202b}that's wrong\u{202c}";
    assert_eq!(detect(mirrored).feedback_type, FeedbackStatus::Rejected);
}

/// The bound is far above the time of an unoptimized linear implementation, and far below that of a quadratic one.
#[test]
fn one_megabyte_message_takes_linear_time() {
    for unit in [
        "that is wrong really ",
        "“'\"`„",
        "> no\n",
        "```\n",
        "really ",
        "不",
        "a'b'c'",
        "\"a ",
    ] {
        let long = unit.repeat(1_000_000 / unit.len());
        let start = Instant::now();
        let detection = DETECTOR.detect(&Exchange {
            prev_query: Some(&long),
            prev_response: Some(&long),
            message: &long,
            language: None,
            embedding_similarity: None,
            repeats_query: None,
            earlier: &[],
        });
        let took = start.elapsed();
        assert!(took < Duration::from_secs(20), "{unit:?} took {took:?}");
        assert!(
            detection
                .user_said
                .is_none_or(|said| said.chars().count() <= 1000)
        );
    }
}

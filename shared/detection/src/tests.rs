//! Tests the detector on sentences of users, on the examples in the rules, and on arbitrary texts.

use super::*;

mod about;
mod after;
mod conversation;
mod languages;
mod learned;
mod polite;
mod properties;
mod questions;
mod sentences;

/// A message in a conversation about laptops.
fn laptops(message: &str) -> Exchange<'_> {
    Exchange {
        prev_query: Some("laptops under $1000"),
        prev_response: Some(
            "Here are three laptops: the Lenovo ThinkPad for $899, the Dell Latitude for $949 and \
             the HP EliteBook for $979.",
        ),
        message,
        ..Exchange::default()
    }
}

fn about_laptops(message: &str) -> Detection {
    Detector::embedded().detect(&laptops(message))
}

/// What the phrases alone detect.
fn by_phrases(message: &str) -> Detection {
    Detector::embedded().by_phrases(&laptops(message))
}

#[test]
fn built_in_phrase_files_are_valid() {
    for (name, text) in crate::languages::embedded_files() {
        let errors = Detector::with_additions([(name, text)])
            .err()
            .unwrap_or_default();
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert!(errors.is_empty(), "{}", errors.join("\n"));
    }
}

#[test]
fn examples_of_the_rules_are_classified() {
    use RejectionKind::{Abandonment, Explicit, Rephrased};
    let rejected = [
        (
            Explicit,
            0.9,
            "No, I meant gaming laptops not business laptops",
        ),
        (Explicit, 0.9, "No, I meant..."),
        (Explicit, 0.9, "Wrong"),
        (Explicit, 0.9, "Try again"),
        (Explicit, 0.9, "That's wrong"),
        (Explicit, 0.9, "Not what I asked"),
        (Explicit, 0.9, "No, gaming laptops"),
        (Explicit, 0.9, "Not what I wanted"),
        (Explicit, 0.9, "I meant gaming laptops"),
        (Explicit, 0.7, "I want gaming laptops"),
        (Explicit, 0.7, "I need gaming laptops"),
        (Explicit, 0.7, "I want..."),
        (Explicit, 0.7, "I need..."),
        (Explicit, 0.9, "You misunderstood"),
        (Explicit, 0.9, "That doesn't help"),
        (Explicit, 0.9, "Not helpful"),
        (Explicit, 0.9, "Not useful"),
        (Explicit, 0.9, "Not what I need"),
        (Explicit, 0.9, "No"),
        (Explicit, 0.9, "That's not what I meant"),
        (Explicit, 0.7, "actually"),
        (Rephrased, 0.8, "Show me laptops under $1000, please"),
        (Abandonment, 0.85, "Never mind"),
        (Abandonment, 0.85, "Forget that"),
        (Abandonment, 0.85, "Let me rephrase"),
        (Abandonment, 0.85, "Start over"),
    ];
    for (correction, least, message) in rejected {
        let detection = about_laptops(message);
        assert_eq!(
            detection.feedback_type,
            FeedbackStatus::Rejected,
            "{message}"
        );
        assert_eq!(detection.correction_type, Some(correction), "{message}");
        assert!(detection.confidence >= least, "{message}: {detection:?}");
        assert_eq!(detection.user_said.as_deref(), Some(message));
    }
    let accepted = [
        (0.7, "Tell me more about the first one"),
        (0.7, "Tell me more about the Lenovo"),
        (0.65, "Can you explain the difference?"),
        (0.7, "What about the Dell?"),
        (0.7, "Which one is the lightest?"),
        (0.7, "Compare the first two"),
        (0.7, "Between the Lenovo and the Dell, which is better?"),
        (0.7, "And the battery?"),
        (0.7, "Also show me a bag for it"),
        (0.7, "What if I had $100 more?"),
        (0.7, "so the ThinkPad then"),
        (0.7, "I'll go with the Lenovo"),
        (0.7, "I'll go with that one"),
        (0.7, "Thanks, ordering now"),
        (0.7, "Thanks"),
        (0.6, "Find me some hamster food"),
    ];
    for (confidence, message) in accepted {
        let detection = about_laptops(message);
        assert_eq!(
            detection.feedback_type,
            FeedbackStatus::Accepted,
            "{message}"
        );
        // The learned model may doubt it, which lowers the confidence.
        let is_certain = (detection.confidence - confidence).abs() < 1e-9;
        assert!(
            is_certain || detection.confidence <= crate::learned::UNCERTAIN,
            "{message}: {detection:?}"
        );
        assert_eq!(
            (detection.correction_type, detection.user_said),
            (None, None)
        );
    }
}

/// It may express anything, so the words decide.
#[test]
fn emoji_may_precede_a_complaint() {
    for message in ["No, I meant gaming laptops", "That's wrong", "no"] {
        for emoji in ["🙄", "😅😅", "🙂 "] {
            let message = format!("{emoji} {message}");
            for detection in [by_phrases(&message), about_laptops(&message)] {
                let said = detection.feedback_type;
                assert_eq!(said, FeedbackStatus::Rejected, "{message}");
            }
        }
    }
}

#[test]
fn detection_names_its_cue_and_position() {
    let (ellipsis, emoji) = (
        "Hm… but that's really wrong!",
        "Hm… sorry, das is 💻, but that's really wrong!",
    );
    for (message, detection) in [
        (ellipsis, about_laptops(ellipsis)),
        (emoji, by_phrases(emoji)),
    ] {
        let evidence = &detection.evidence[0];
        assert_eq!(evidence.cue, Cue::Wrong);
        assert_eq!(evidence.language, "en");
        let cue: String = message
            .chars()
            .skip(evidence.start)
            .take(evidence.end - evidence.start)
            .collect();
        assert_eq!(cue, "that's really wrong");
    }
}

#[test]
fn detection_is_serialized_with_the_documented_names() {
    let detection = about_laptops("never mind");
    assert_eq!(
        serde_json::to_value(detection).unwrap(),
        serde_json::json!({
            "feedback_type": "rejected",
            "confidence": 0.85,
            "correction_type": "abandonment",
            "user_said": "never mind",
            "evidence": [{"cue": "abandonment", "start": 0, "end": 10, "language": "en"}]
        })
    );
}

#[test]
fn question_about_something_else_is_not_a_rephrase() {
    for (query, message) in [
        ("What is their address?", "What is their phone number?"),
        (
            "Show me flights from Rome to Oslo",
            "Show me flights from Rome to Paris",
        ),
        (
            "Book a table for two at six",
            "Book a table for two at seven",
        ),
        (
            "Fix this:\n```\na\n```\nand explain what you did",
            "Fix this:\n```\nb\n```\nand explain what you did",
        ),
        (
            "Translate \"yes\" into French please",
            "Translate \"no\" into French please",
        ),
        (
            "Laptops with a touch screen",
            "Laptops without a touch screen",
        ),
        ("continue", "continue"),
        ("thanks a lot", "thanks a lot"),
    ] {
        let detection = Detector::embedded().by_phrases(&Exchange {
            prev_query: Some(query),
            prev_response: Some("Here you are."),
            message,
            language: None,
            embedding_similarity: None,
            repeats_query: None,
            earlier: &[],
        });
        let correction = detection.correction_type;
        assert_ne!(correction, Some(RejectionKind::Rephrased), "{message}");
    }
}

#[test]
fn question_with_synonyms_is_a_rephrase() {
    for (query, message, rephrased) in [
        ("laptops under $1000", "laptops below 1000 dollars", true),
        ("laptops under 1000", "laptops for less than 1000", true),
        (
            "a cheap hotel near the beach",
            "an affordable hotel near the beach",
            true,
        ),
        ("laptops under $1000", "laptops over 1000 dollars", false),
        ("laptops under $1000", "laptops below 2000 dollars", false),
        (
            "laptops under 1000 euros",
            "laptops below 1000 dollars",
            false,
        ),
    ] {
        let detection = Detector::embedded().detect(&Exchange {
            prev_query: Some(query),
            prev_response: Some("Here is one."),
            message,
            language: None,
            embedding_similarity: None,
            repeats_query: None,
            earlier: &[],
        });
        let is = detection.correction_type == Some(RejectionKind::Rephrased);
        assert_eq!(is, rephrased, "{query}, {message}: {detection:?}");
    }
}

#[test]
fn phrase_file_errors_name_the_line() {
    let text = "language = \"en\"\n\n[classes]\nplace = [\"here\", \"over there\"]\n\n[phrases]\n\
        wrong = [\n  \"{this} is bonkers\",\n  \"{thing} is off\",\n  \"(a|b\",\n  \"!\",\n]\n\
        wronk = [\"x\"]\n";
    let errors = Detector::with_additions([("acme.toml", text)]).unwrap_err();
    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    let sections = "wrong, retry, quality, failure, symptom, unasked, confusion";
    assert_eq!(
        errors[0],
        "acme.toml:4: `over there` must be one word, and no contraction"
    );
    let mut of_phrases = errors[1..].to_vec();
    of_phrases.sort();
    assert_eq!(of_phrases.len(), 4, "{of_phrases:?}");
    assert_eq!(of_phrases[0], "acme.toml:10: `(a|b` has `(` without `)`");
    assert_eq!(
        of_phrases[1],
        "acme.toml:11: `!` has `!`, which has no letter"
    );
    assert!(
        of_phrases[2]
            .starts_with("acme.toml:13: `wronk` is not a section; the sections are negation")
    );
    assert!(of_phrases[2].contains(sections));
    assert_eq!(
        of_phrases[3],
        "acme.toml:9: `{thing} is off` names the class `thing`, which is not under [classes]"
    );
}

#[test]
fn file_of_another_format_is_rejected() {
    for (text, expected) in [
        (
            "language = \"en\"\n[phrase]\n",
            "acme.toml:2: `phrase` is not a member; the members are language, function_words, spelling",
        ),
        ("language = \"en\"\nx = [", "acme.toml:2: "),
        (
            "[phrases]\nwrong = []\n",
            "acme.toml:1: `language` must be the language's code",
        ),
        (
            "language = \"English\"\n",
            "acme.toml:1: `English` must be the language's code",
        ),
        (
            "language = \"en\"\n[phrases]\nwrong = [1]\n",
            "acme.toml:3: `1` must be a string",
        ),
    ] {
        let errors = Detector::with_additions([("acme.toml", text)]).unwrap_err();
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(errors[0].to_string().starts_with(expected), "{}", errors[0]);
    }
}

#[test]
fn files_add_phrases_and_languages() {
    let detector = Detector::with_additions([
        (
            "acme.toml",
            "language = \"en\"\n[phrases]\nwrong = [\"{this} is bonkers\"]\n",
        ),
        (
            "nl.toml",
            "language = \"nl\"\nfunction_words = [\"dat\", \"niet\", \"het\"]\n\
             [phrases]\nwrong = [\"dat klopt niet\"]\n",
        ),
    ])
    .unwrap();
    for (message, language) in [
        ("that is totally bonkers", "en"),
        ("that is wrong", "en"),
        ("Dat klopt niet!", "nl"),
        ("das ist falsch", "de"),
    ] {
        let detection = detector.detect(&Exchange {
            message,
            ..Exchange::default()
        });
        assert_eq!(
            detection.feedback_type,
            FeedbackStatus::Rejected,
            "{message}"
        );
        assert_eq!(detection.evidence[0].language, language, "{message}");
    }
}

#[test]
fn only_the_ends_of_a_long_message_count() {
    let story = "The old man walked along the river and told his dog about the war. ".repeat(20);
    let detect = |message: &str| by_phrases(message).feedback_type;
    assert_eq!(
        detect(&format!("That's wrong. {story}")),
        FeedbackStatus::Rejected
    );
    assert_eq!(
        detect(&format!("{story} That's wrong.")),
        FeedbackStatus::Rejected
    );
    let within = format!("Continue this story: {story} That's wrong, he said. {story}");
    assert_ne!(detect(&within), FeedbackStatus::Rejected);
    let said = by_phrases(&format!("{story}\nThat's wrong. {}", story.trim_end()));
    assert!(
        said.user_said
            .is_none_or(|said| said.chars().count() <= 1000)
    );
}

#[test]
fn praise_with_a_complaint_is_below_the_confidence_of_a_machine_reaction() {
    let unsure = [
        "Thanks, actually make it red instead",
        "Great, never mind then",
        "Perfect, but I get an error",
        "Thanks, gaming, not business",
        "No. Thanks though",
    ];
    for message in unsure {
        let detection = by_phrases(message);
        assert_eq!(
            (detection.feedback_type, detection.confidence),
            (FeedbackStatus::Accepted, 0.6),
            "{message}"
        );
    }
    for message in ["No worries, thanks!", "Actually, that works", "Thanks!"] {
        let detection = by_phrases(message);
        assert_eq!(
            (detection.feedback_type, detection.confidence),
            (FeedbackStatus::Accepted, 0.7),
            "{message}"
        );
    }
}

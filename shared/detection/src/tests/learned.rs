//! The learned model: what it adds to the phrases, and what it may not do.

use super::*;

fn after<'a>(prev_query: &'a str, prev_response: &'a str, message: &'a str) -> Exchange<'a> {
    Exchange {
        prev_query: Some(prev_query),
        prev_response: Some(prev_response),
        message,
        ..Exchange::default()
    }
}

/// What phrases cannot detect: no word of these messages judges the answer.
fn silent_rejections() -> [Exchange<'static>; 3] {
    [
        after(
            "export the list as csv please",
            "Here is the list as a table:\n| name | city |",
            "csv. not a table",
        ),
        after(
            "why does the page load twice",
            "React's StrictMode renders components twice in development. Remove it and the double \
             load is gone.",
            "removed it, loads twice",
        ),
        after(
            "recette de crêpes sans lait",
            "Mélangez 250 g de farine, 3 oeufs et 50 cl de lait.",
            "sans lait j'ai dit",
        ),
    ]
}

/// Few queries and answers of the corpus have such marks.
#[test]
fn rare_marks_of_the_turn_do_not_decide() {
    let detector = Detector::embedded();
    for exchange in silent_rejections() {
        let [.., plain] = detector.probabilities(&exchange);
        let (query, answer) = (
            exchange.prev_query.unwrap(),
            exchange.prev_response.unwrap(),
        );
        for mark in [" 😊", " 🙏🙏", "…", "\n\n\n"] {
            let (query, answer) = (format!("{query}{mark}"), format!("{answer}{mark}"));
            for exchange in [
                Exchange {
                    prev_query: Some(&query),
                    ..exchange
                },
                Exchange {
                    prev_response: Some(&answer),
                    ..exchange
                },
            ] {
                let [.., marked] = detector.probabilities(&exchange);
                assert!((marked - plain).abs() < 0.3, "{mark:?}: {plain} {marked}");
            }
        }
    }
}

/// A conversation has excerpts of a long answer.
#[test]
fn the_gap_between_excerpts_does_not_decide() {
    let detector = Detector::embedded();
    let (start, end) = (
        "Prune it in March, above a bud. ".repeat(9),
        "Water it once a week in summer. ".repeat(6),
    );
    let whole = format!("{start}{end}");
    let excerpts = format!("{start}{}{end}", hearback_text::GAP);
    for message in ["ok, will do it on Saturday", "it is a cactus"] {
        let [whole, excerpts] = [&whole, &excerpts]
            .map(|answer| detector.probabilities(&after("how do I care for it", answer, message)));
        for (whole, excerpts) in whole.into_iter().zip(excerpts) {
            assert!((whole - excerpts).abs() < 0.1, "{whole} {excerpts}");
        }
    }
}

#[test]
fn rejections_without_a_phrase_are_detected() {
    let detector = Detector::embedded();
    for exchange in silent_rejections() {
        let phrases = detector.by_phrases(&exchange);
        assert_ne!(
            phrases.feedback_type,
            FeedbackStatus::Rejected,
            "{phrases:?}"
        );
        let detection = detector.detect(&exchange);
        assert_eq!(
            detection.feedback_type,
            FeedbackStatus::Rejected,
            "{detection:?}"
        );
        assert_eq!(detection.user_said.as_deref(), Some(exchange.message));
    }
}

#[test]
fn the_evidence_of_the_model_is_a_part_of_the_message() {
    let detector = Detector::embedded();
    for exchange in silent_rejections() {
        let detection = detector.detect(&exchange);
        let [evidence] = &detection.evidence[..] else {
            panic!("{detection:?}");
        };
        assert_eq!(evidence.cue, Cue::Learned);
        let length = exchange.message.chars().count();
        assert!(
            evidence.start < evidence.end && evidence.end <= length,
            "{detection:?}"
        );
    }
}

#[test]
fn without_an_answer_the_phrases_decide() {
    let detector = Detector::embedded();
    for exchange in silent_rejections() {
        let alone = Exchange {
            prev_response: None,
            ..exchange
        };
        assert_eq!(detector.detect(&alone), detector.by_phrases(&alone));
    }
}

#[test]
fn a_question_about_another_subject_writes_no_reaction() {
    for message in [
        "What is the weather in Oslo?",
        "How do I renew a library card?",
        "What about pasta recipes?",
    ] {
        let detection = about_laptops(message);
        assert_eq!(
            (detection.feedback_type, detection.confidence),
            (FeedbackStatus::Accepted, 0.6),
            "{message}"
        );
    }
}

/// Whether a query with added words is another search or a complaint, the words alone do not tell. So the model decides,
/// and no reaction is written.
#[test]
fn a_query_with_added_words_is_rejected_only_if_the_model_agrees() {
    let detector = Detector::embedded();
    for (query, answer, message, is_rejected) in [
        (
            "laptops under $1000",
            "The Lenovo ThinkPad costs $899, the Dell Latitude $949, the HP EliteBook $979.",
            "gaming laptops under $1000",
            false,
        ),
        (
            "flights Lisbon to Oslo in May",
            "There are 14 flights, from 129 euros on.",
            "flights Lisbon to Oslo in May with a suitcase",
            false,
        ),
        (
            "emails from Dana last week",
            "I found six emails from Dana between Monday and Friday.",
            "emails from Dana last week with attachments",
            false,
        ),
        (
            "date of Thanksgiving Canada 2027",
            "Thanksgiving is on Thursday, November 25, 2027.",
            "that is the US. date of Thanksgiving Canada 2027",
            true,
        ),
    ] {
        let exchange = after(query, answer, message);
        let phrases = detector.by_phrases(&exchange);
        assert_eq!(phrases.correction_type, Some(RejectionKind::Rephrased));
        let detection = detector.detect(&exchange);
        let rejects = detection.feedback_type == FeedbackStatus::Rejected;
        assert_eq!(rejects, is_rejected, "{message}: {detection:?}");
        assert!(detection.confidence <= crate::learned::UNCERTAIN);
    }
}

#[test]
fn a_query_that_insists_on_its_own_words_is_a_certain_rephrase() {
    let detector = Detector::embedded();
    let insists = after(
        "a blue bike for children",
        "I found a red bike for children.",
        "blue. a blue bike for children",
    );
    let detection = detector.detect(&insists);
    assert_eq!(detection, detector.by_phrases(&insists));
    assert_eq!(detection.correction_type, Some(RejectionKind::Rephrased));
}

/// Of a long query only the beginning is known: the rest is not added.
#[test]
fn a_long_query_with_a_word_more_is_a_certain_rephrase() {
    let beginning = "what is the best way to store apples in a cellar over the winter so that they";
    let exchange = Exchange {
        repeats_query: Some(false),
        ..after(
            beginning,
            "Wrap each apple in paper.",
            "what is the best way to store apples in a cellar over the winter so that they keep",
        )
    };
    let detector = Detector::embedded();
    let detection = detector.detect(&exchange);
    assert_eq!(detection, detector.by_phrases(&exchange));
    assert_eq!(detection.correction_type, Some(RejectionKind::Rephrased));
}

/// Whether it asks the same again is decided by the rules of rephrases, which find none here.
#[test]
fn a_similar_question_is_no_rejection() {
    for (query, answer, message) in [
        (
            "Where is the budget meeting?",
            "In room 4 on the second floor.",
            "When is the budget meeting?",
        ),
        (
            "How many people live in Tampere?",
            "About 250,000 people live in Tampere.",
            "How many people live in Turku?",
        ),
        (
            "tell me more",
            "They are made in Japan by hand.",
            "tell me more please",
        ),
        ("Thanks a lot", "You're welcome!", "Thanks a lot for that!"),
    ] {
        let detection = Detector::embedded().detect(&after(query, answer, message));
        assert_ne!(
            detection.feedback_type,
            FeedbackStatus::Rejected,
            "{message}: {detection:?}"
        );
    }
}

#[test]
fn a_complaint_that_opens_the_message_is_kept_against_the_model() {
    let detector = Detector::embedded();
    for (message, is_certain) in [
        ("No, I know her. What else did she write?", true),
        ("No, I liked it. Who translated it?", false),
    ] {
        let exchange = after("who wrote it", "It was written by Anna Berg.", message);
        let [.., rejected] = detector.probabilities(&exchange);
        assert!(rejected < 0.5, "{rejected}");
        let detection = detector.detect(&exchange);
        assert_eq!(
            (detection.feedback_type, detection.evidence[0].cue),
            (FeedbackStatus::Rejected, Cue::Negation)
        );
        assert_eq!(detection.confidence >= 0.7, is_certain, "{detection:?}");
    }
}

#[test]
fn what_the_user_did_not_know_is_no_rejection() {
    for message in [
        "I did not know that. That is a strange word for a street",
        "did not know that. it is a pretty name for the two",
        "I never knew that. That is a clever word for it",
    ] {
        let detection = Detector::embedded().detect(&after(
            "I like the name of this street for the same reason.",
            "Don't forget that they made up the name from two words, lane and meadow!",
            message,
        ));
        let accepts = detection.feedback_type == FeedbackStatus::Accepted;
        assert!(accepts, "{message}: {detection:?}");
    }
}

/// The model takes the words of the query for a complaint that is made again, and is as sure as a rejection after a
/// statement needs.
#[test]
fn a_reply_to_a_question_is_no_rejection() {
    let exchange = after(
        "my printer prints blank pages",
        "Is there ink in it?",
        "all the pages are blank",
    );
    let detector = Detector::embedded();
    let [.., rejected] = detector.probabilities(&exchange);
    assert!(rejected > 0.8, "{rejected}");
    assert_eq!(
        detector.detect(&exchange).feedback_type,
        FeedbackStatus::Neutral
    );
}

#[test]
fn the_confidence_of_a_cue_is_an_upper_bound() {
    for (message, cue) in [
        ("Tell me more about the first one", Cue::FollowUp),
        ("Thanks!", Cue::Thanks),
        ("That's wrong", Cue::Wrong),
    ] {
        let detection = about_laptops(message);
        assert_eq!(detection.evidence[0].cue, cue, "{detection:?}");
        assert!(detection.confidence <= cue.confidence(), "{detection:?}");
    }
}

/// Of a long message only the ends are read as n-grams.
#[test]
fn hostile_messages_have_a_bounded_number_of_features() {
    let detector = Detector::embedded();
    let marks = "e\u{301}\u{302}".repeat(200_000);
    let mixed = "aЖ字ا".repeat(100_000);
    for text in ["a".repeat(1_000_000), marks, mixed, "no, ".repeat(250_000)] {
        let features = detector.features(&after(&text, &text, &text));
        assert!(features.len() < 16_000, "{}", features.len());
        let probabilities: f64 = detector
            .probabilities(&after(&text, &text, &text))
            .iter()
            .sum();
        assert!((probabilities - 1.0).abs() < 1e-4, "{probabilities}");
    }
}

#[test]
fn without_words_the_phrases_decide() {
    let detector = Detector::embedded();
    for message in [
        "",
        "...",
        "?!",
        "\u{3000}",
        "`only code`",
        "```\nx = 1\n```",
    ] {
        let exchange = laptops(message);
        assert_eq!(
            detector.detect(&exchange),
            detector.by_phrases(&exchange),
            "{message}"
        );
    }
}

#[test]
fn in_an_added_language_the_phrases_decide() {
    let file = "language = \"nl\"\nfunction_words = [\"dat\", \"het\"]\n[phrases]\nwrong = [\"klopt niet\"]\n";
    let detector = Detector::with_additions([("nl.toml", file)]).unwrap();
    let exchange = Exchange {
        language: Some("nl"),
        ..after(
            "wie schreef het",
            "Dat was Anna Berg.",
            "dat was al in 1911, zegt mijn boek",
        )
    };
    assert_eq!(detector.detect(&exchange), detector.by_phrases(&exchange));
}

/// The middle of a long message is not read, so it is no evidence.
#[test]
fn the_evidence_of_a_long_message_is_near_an_end() {
    let middle = "the old man walked along the river and told his dog about the war ".repeat(20);
    let message = format!("csv. not a table {middle} csv please, not a table");
    let exchange = after(
        "export the list as csv please",
        "Here is the list as a table:",
        &message,
    );
    let detection = Detector::embedded().detect(&exchange);
    for evidence in detection
        .evidence
        .iter()
        .filter(|found| found.cue == Cue::Learned)
    {
        assert!(evidence.end - evidence.start < 60, "{detection:?}");
    }
}

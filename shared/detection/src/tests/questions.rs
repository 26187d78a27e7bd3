//! Questions: a repeated one rejects the answer, one that refers to the answer accepts it, and one about another
//! subject is weak evidence.

mod repeated;

use super::*;

use FeedbackStatus::{Accepted, Neutral, Rejected};

/// A query, its answer, and the next message.
struct Case {
    query: &'static str,
    answer: &'static str,
    next: &'static str,
}

const fn case(query: &'static str, answer: &'static str, next: &'static str) -> Case {
    Case {
        query,
        answer,
        next,
    }
}

impl Case {
    fn exchange(&self) -> Exchange<'_> {
        Exchange {
            prev_query: Some(self.query),
            prev_response: Some(self.answer),
            message: self.next,
            ..Exchange::default()
        }
    }

    fn detect(&self) -> Detection {
        Detector::embedded().by_phrases(&self.exchange())
    }
}

const LAMPS: &str =
    "There are three: the Arco for 35, the Luna for 38 and the Stella for 29 euros.";

/// Fails if `is` does not hold for every case, and lists the cases for which it does not.
fn all(cases: &[Case], is: impl Fn(&Detection) -> bool) {
    let detected = cases.iter().map(|case| (case.next, case.detect()));
    let wrong: Vec<_> = detected
        .filter(|(_, detection)| !is(detection))
        .map(|(next, detection)| {
            let cue = detection.evidence.first().map(|evidence| evidence.cue);
            let said = detection.feedback_type.as_str();
            format!("{next:?} is {said} {} ({cue:?})", detection.confidence)
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn is_rephrase(detection: &Detection) -> bool {
    detection.correction_type == Some(RejectionKind::Rephrased) && detection.confidence > 0.8
}

fn is_follow_up(detection: &Detection) -> bool {
    detection.feedback_type == Accepted && (detection.confidence - 0.7).abs() < 1e-9
}

fn is_topic_change(detection: &Detection) -> bool {
    let cue = detection.evidence.first().map(|evidence| evidence.cue);
    cue == Some(Cue::TopicChange) && (detection.confidence - 0.6).abs() < 1e-9
}

#[test]
fn question_about_another_subject_is_a_topic_change() {
    all(
        &[
            case("lamps under 40 euros", LAMPS, "what do owls hunt?"),
            case(
                "lamps under 40 euros",
                LAMPS,
                "What is the weather in Oslo?",
            ),
            case(
                "lamps under 40 euros",
                LAMPS,
                "who won the cycling race in Siena",
            ),
            case(
                "lamps under 40 euros",
                LAMPS,
                "How do I renew a library card?",
            ),
            case("lamps under 40 euros", LAMPS, "what time is it in Lima?"),
            case("lamps under 40 euros", LAMPS, "What about pasta recipes?"),
            case("lamps under 40 euros", LAMPS, "How about pasta recipes?"),
            case(
                "Lampen unter 40 Euro",
                "Die Arco kostet 35 Euro.",
                "Was ist mit Nudelrezepten?",
            ),
            case(
                "lamps under 40 euros",
                LAMPS,
                "Is it going to rain in Bergen tomorrow?",
            ),
            case("lamps under 40 euros", LAMPS, "Can you explain recursion?"),
            case(
                "lamps under 40 euros",
                LAMPS,
                "What is the difference between a fugue and a canon?",
            ),
            case(
                "Lampen unter 40 Euro",
                "Die Arco kostet 35 Euro.",
                "Was fressen Eulen?",
            ),
            case(
                "Lampen unter 40 Euro",
                "Die Arco kostet 35 Euro.",
                "Wann fährt der Zug nach Kiel?",
            ),
            case(
                "des lampes à moins de 40 euros",
                "L'Arco coûte 35 euros.",
                "Que mangent les hiboux ?",
            ),
            case(
                "lámparas por menos de 40 euros",
                "La Arco cuesta 35 euros.",
                "¿Qué comen los búhos?",
            ),
            case(
                "lâmpadas por menos de 40 euros",
                "A Arco custa 35 euros.",
                "O que comem as corujas?",
            ),
            case(
                "四十欧元以下的台灯",
                "雅科台灯三十五欧元。",
                "猫头鹰吃什么？",
            ),
            case(
                "40ユーロ以下のランプ",
                "アルコは35ユーロです。",
                "フクロウは何を食べますか？",
            ),
        ],
        is_topic_change,
    );
}

#[test]
fn question_that_refers_to_the_answer_is_a_follow_up() {
    all(
        &[
            // A word refers to the answer: "they", "that", "one".
            case("lamps under 40 euros", LAMPS, "Are they dimmable?"),
            case(
                "lamps under 40 euros",
                LAMPS,
                "Where can I see that in a shop?",
            ),
            case("lamps under 40 euros", LAMPS, "How tall is the second one?"),
            case("lamps under 40 euros", LAMPS, "which one is the brightest?"),
            case("lamps under 40 euros", LAMPS, "is there a cheaper one?"),
            // The question repeats a word of the answer.
            case(
                "lamps under 40 euros",
                LAMPS,
                "does the luna come in black?",
            ),
            case(
                "How do plants eat?",
                "By photosynthesis, in their leaves.",
                "what is photosynthesis?",
            ),
            // The question compares things that the answer names.
            case(
                "lamps under 40 euros",
                LAMPS,
                "What is the difference between the Arco and the Luna?",
            ),
            // The question has no subject of its own.
            case(
                "How do plants eat?",
                "By photosynthesis, in their leaves.",
                "why?",
            ),
            case(
                "How do plants eat?",
                "By photosynthesis, in their leaves.",
                "how so?",
            ),
            case(
                "Can I return a lamp?",
                "Yes, within 30 days.",
                "and for online orders?",
            ),
            case(
                "Can I return a lamp?",
                "Yes, within 30 days.",
                "without the receipt?",
            ),
            case(
                "Lampen unter 40 Euro",
                "Die Arco kostet 35 Euro.",
                "Welche davon ist die hellste?",
            ),
            case(
                "Lampen unter 40 Euro",
                "Die Arco kostet 35 Euro.",
                "Gibt es die Arco in Schwarz?",
            ),
            case(
                "des lampes à moins de 40 euros",
                "L'Arco coûte 35 euros.",
                "Est-ce que celle-là existe en noir ?",
            ),
            case(
                "lámparas por menos de 40 euros",
                "La Arco cuesta 35 euros.",
                "¿Cuánto pesa esa?",
            ),
            case(
                "lâmpadas por menos de 40 euros",
                "A Arco custa 35 euros.",
                "Quanto pesa essa?",
            ),
            case(
                "四十欧元以下的台灯",
                "雅科台灯三十五欧元。",
                "这个有黑色的吗？",
            ),
            case(
                "40ユーロ以下のランプ",
                "アルコは35ユーロです。",
                "それは黒もありますか？",
            ),
        ],
        is_follow_up,
    );
}

/// A user may repeat the words of a question because it was not answered.
#[test]
fn question_that_shares_words_only_with_the_query_writes_no_reaction() {
    let asked = case(
        "How do I stop my dog from barking?",
        "Patience is everything.",
        "Which collar for a barking dog do trainers recommend?",
    );
    let detection = asked.detect();
    assert_eq!(detection.feedback_type, Accepted);
    assert!(detection.confidence < 0.7, "{detection:?}");
}

#[test]
fn question_without_a_known_answer_uses_its_own_words_only() {
    for (message, expected) in [
        ("what do owls hunt?", Neutral),
        ("why is that so?", Accepted),
        ("tell me more", Accepted),
    ] {
        let detection = Detector::embedded().detect(&Exchange {
            message,
            ..Exchange::default()
        });
        assert_eq!(
            detection.feedback_type, expected,
            "{message}: {detection:?}"
        );
    }
}

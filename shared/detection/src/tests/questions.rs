//! Questions: a repeated one rejects the answer, one that refers to the answer accepts it, and one about another
//! subject is weak evidence.

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
        Detector::embedded().detect(&self.exchange())
    }
}

const LAMPS: &str =
    "There are three: the Arco for 35, the Luna for 38 and the Stella for 29 euros.";

/// Fails with all cases for which `is` does not hold.
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
fn repeated_question_is_a_rephrase_in_every_language() {
    for (query, answer) in [
        ("What do owls hunt at night?", "Owls are birds of prey."),
        ("Which river flows through Vienna?", "Vienna is in Austria."),
        (
            "How do I renew a library card?",
            "A library card has a number.",
        ),
        (
            "How many moons does Mars have?",
            "Mars is the fourth planet.",
        ),
        ("Why is the sky blue?", "The sky is above us."),
        (
            "Is the museum open on Monday?",
            "The museum shows paintings.",
        ),
        (
            "Can you explain recursion in Haskell?",
            "Haskell is a language.",
        ),
        (
            "Wie erneuere ich meinen Ausweis?",
            "Ein Ausweis hat ein Foto.",
        ),
        (
            "Warum startet der Drucker nicht?",
            "Drucker drucken auf Papier.",
        ),
        (
            "Comment enlever une tache de café ?",
            "Le café vient du Brésil.",
        ),
        (
            "¿Cómo renuevo el carné de biblioteca?",
            "La biblioteca está abierta.",
        ),
        (
            "Como faço para renovar o passaporte?",
            "O passaporte tem uma foto.",
        ),
        ("怎么更换打印机的墨盒？", "打印机有很多种。"),
        (
            "プリンターのインクはどうやって交換しますか？",
            "プリンターは便利です。",
        ),
    ] {
        let again = case(query, answer, query);
        all(&[again], is_rephrase);
    }
}

#[test]
fn question_with_another_question_word_is_a_rephrase() {
    let about = "That depends on many things.";
    all(
        &[
            case(
                "Why does my router restart every night?",
                about,
                "how come my router restarts every night?",
            ),
            case(
                "What is the maximum length of a tweet?",
                about,
                "what's the max length of a tweet",
            ),
            case(
                "how to sort a python list in place",
                about,
                "How do I sort a python list in place?",
            ),
            case(
                "Tell me the height of Mount Fuji",
                about,
                "What is the height of Mount Fuji?",
            ),
            case(
                "the oldest bridge in Prague",
                about,
                "Which is the oldest bridge in Prague?",
            ),
            case(
                "Warum startet der Drucker nicht?",
                about,
                "Wieso startet der Drucker denn nicht?",
            ),
            case(
                "Wie viele Monde hat der Mars?",
                about,
                "Wieviele Monde hat der Mars?",
            ),
            case(
                "Pourquoi mon imprimante clignote ?",
                about,
                "Pour quelle raison mon imprimante clignote ?",
            ),
            case(
                "¿Por qué parpadea la impresora roja?",
                about,
                "¿Por qué motivo parpadea la impresora roja?",
            ),
            case(
                "Por que a impressora pisca em vermelho?",
                about,
                "Por qual motivo a impressora pisca em vermelho?",
            ),
            case(
                "怎么更换打印机的墨盒？",
                "打印机有很多种。",
                "如何更换打印机的墨盒？",
            ),
            case(
                "なぜプリンターの赤いランプが点滅しますか？",
                about,
                "どうしてプリンターの赤いランプが点滅しますか？",
            ),
        ],
        is_rephrase,
    );
}

#[test]
fn question_of_another_kind_is_not_a_rephrase() {
    let answer = "It is at the town hall.";
    all(
        &[
            case(
                "Where is the budget meeting?",
                answer,
                "When is the budget meeting?",
            ),
            case(
                "Wo findet das Treffen statt?",
                "Im Rathaus.",
                "Wann findet das Treffen statt?",
            ),
            case(
                "Who wrote the city anthem?",
                answer,
                "Why was the city anthem written?",
            ),
            case(
                "How many people live in Bergen?",
                answer,
                "How many people live in Turku?",
            ),
            case("Is the pool heated?", answer, "Isn't the pool heated?"),
        ],
        |detection| detection.correction_type != Some(RejectionKind::Rephrased),
    );
}

/// A continuation may be repeated, and so may an addition to the previous question.
#[test]
fn continuation_is_not_a_rephrase() {
    all(
        &[
            case(
                "tell me more please",
                "Owls hunt mice.",
                "tell me more please",
            ),
            case(
                "give me another example",
                "Take 7.",
                "give me another example",
            ),
            case(
                "lamps under 40 euros",
                LAMPS,
                "and what about lamps under 40 euros?",
            ),
            case("go on with it", "Done.", "go on with it"),
        ],
        |detection| detection.feedback_type != Rejected,
    );
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
            // It has a reference.
            case("lamps under 40 euros", LAMPS, "Are they dimmable?"),
            case(
                "lamps under 40 euros",
                LAMPS,
                "Where can I see that in a shop?",
            ),
            case("lamps under 40 euros", LAMPS, "How tall is the second one?"),
            case("lamps under 40 euros", LAMPS, "which one is the brightest?"),
            case("lamps under 40 euros", LAMPS, "is there a cheaper one?"),
            // It has a word of the answer.
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
            // It compares things that the answer names.
            case(
                "lamps under 40 euros",
                LAMPS,
                "What is the difference between the Arco and the Luna?",
            ),
            // It has no subject of its own.
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

/// Of a long text only both ends are read, but equality is recognised whatever the length.
#[test]
fn a_long_question_that_is_repeated_word_for_word_is_a_rephrase() {
    let long = format!("{} What works best?", "I try to grow basil. ".repeat(400));
    let other = format!(
        "{} And how do I water it?",
        "I try to grow basil. ".repeat(400)
    );
    let detect = |query: &str, next: &str, repeats_query| {
        Detector::embedded().detect(&Exchange {
            prev_query: Some(query),
            prev_response: Some("Water it daily."),
            message: next,
            repeats_query,
            ..Exchange::default()
        })
    };
    let again = detect(&long, &long, None);
    assert!(is_rephrase(&again), "{again:?}");
    assert!(!is_rephrase(&detect(&long, &other, None)));
    // The caller knows it of a question of which it has only the beginning.
    let beginning = &long[..1000];
    assert!(is_rephrase(&detect(beginning, &long, Some(true))));
    assert!(!is_rephrase(&detect(beginning, &other, Some(false))));
}

/// The caller's own embeddings show a rephrase that the words do not show, if the intent is the same.
#[test]
fn caller_embeddings_count_for_a_rephrase() {
    let detect = |query, next, similarity| {
        let asked = case(query, "Here is one.", next);
        Detector::embedded().detect(&Exchange {
            embedding_similarity: Some(similarity),
            ..asked.exchange()
        })
    };
    let query = "How can I make the washing machine quieter?";
    let same = "How do I stop the washer from rattling so loudly?";
    assert!(!is_rephrase(&detect(query, same, 0.5)));
    let rephrased = detect(query, same, 0.93);
    assert!(is_rephrase(&rephrased), "{rephrased:?}");
    assert!((rephrased.confidence - 0.93).abs() < 1e-9);
    let german = "Wie bekomme ich die Waschmaschine leiser?";
    assert!(is_rephrase(&detect(query, german, 0.9)));
    for (query, next) in [
        (
            "Show me flights from Rome to Oslo",
            "Show me flights from Rome to Malta",
        ),
        (
            "a table for 4 people tonight",
            "a table for 6 people tonight",
        ),
        (
            "Where is the budget meeting?",
            "When is the budget meeting?",
        ),
        (
            "laptops with a touch screen",
            "laptops without a touch screen",
        ),
        ("lamps under 40 euros", "Thanks, that is a nice lamp"),
        ("lamps under 40 euros", "tell me more about lamps"),
    ] {
        let detection = detect(query, next, 0.97);
        assert!(!is_rephrase(&detection), "{next}: {detection:?}");
    }
}

#[test]
fn literally_repeated_question_is_a_rephrase_with_any_words() {
    let questions = [
        "What's wrong with my code?",
        "what works best against mosquitoes?",
        "What is a great gift for a ten year old?",
        "Is there a better route to the airport?",
        "How do I say thanks in Japanese?",
        "What is the correct dosage of ibuprofen?",
        "How do I cancel my order?",
        "How do I fix a broken zipper?",
        "What else should I pack for Iceland?",
        "Which one is cheaper, the train or the bus?",
        "And how much is the large pizza?",
        "What about parking at the station?",
        "Compare the iPhone and the Pixel",
        "Tell me how to stop a nosebleed",
        "Can you explain why my build fails?",
        "Why does my code not work?",
        "Perfect pancakes: how long do I whisk?",
        "Is it good to drink milk before bed?",
        "Are the results correct for 2002?",
        "どうすればいいですか",
        "パスワードを変更するにはどうすればいいですか",
        "一番いいカメラはどれですか",
        "这个错误怎么解决？",
        "最好的办法是什么？",
        "谢谢用日语怎么说？",
        "Wie sage ich danke auf Spanisch?",
        "Was hilft am besten gegen Mücken?",
        "Was ist falsch an meinem Code?",
        "Wie kann ich die Bestellung abbrechen?",
        "Welches ist das perfekte Geschenk?",
        "Comment dit-on merci en allemand ?",
        "Quel est le meilleur restaurant de Lyon ?",
        "Qu'est-ce qui ne va pas dans mon code ?",
        "¿Cómo se dice gracias en alemán?",
        "¿Cuál es la mejor playa de Cádiz?",
        "¿Qué está mal en mi código?",
        "Como se diz obrigado em alemão?",
        "Qual é o melhor hotel de Lisboa?",
        "O que está errado no meu código?",
    ];
    let answers = [
        "There are several things to consider here.",
        "Shall I look for more?",
        "Here is a list:\n\n1. `one`\n2. `two`",
    ];
    let cases = questions.map(|question| answers.map(|answer| case(question, answer, question)));
    all(cases.as_flattened(), is_rephrase);
}

#[test]
fn repeated_statement_is_not_a_rephrase() {
    let said = [
        ("Thanks a lot for that!", "You are welcome."),
        ("That is perfect, thank you", "My pleasure."),
        (
            "Yes, please do that",
            "Done. Shall I book the next one, too?",
        ),
        ("Business class", "From where? And in which class?"),
        ("Why is that?", "Because owls see well at night."),
        ("Tell me more", "Owls hunt mice."),
        ("And then what happened?", "The owl flew away."),
    ];
    let cases = said.map(|(message, answer)| case(message, answer, message));
    all(&cases, |detection| {
        detection.correction_type != Some(RejectionKind::Rephrased)
    });
}

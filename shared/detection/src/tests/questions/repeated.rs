//! A question that is asked again rejects the answer, in other words too.

use super::*;

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

/// What begins like thanks or a follow-up may be a task, and asking it again is no praise.
#[test]
fn a_repeat_of_the_query_gives_no_confident_acceptance() {
    let repeats = [
        "Please summarise this text. Thanks to the perfect weather we went on.",
        "I need a reply to this review. Great service, thank you!",
        "Bitte korrigiere das. Vielen Dank für Ihre Bestellung.",
        "请翻译。谢谢你的帮助",
        "thanks in french",
        "Danke auf Spanisch",
        "ok google what time is it",
    ];
    for query in repeats {
        let detection = case(query, "Here is an answer.", query).detect();
        let accepted = detection.feedback_type == Accepted;
        assert!(
            !accepted || detection.confidence < 0.7,
            "{query}: {detection:?}"
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
        "What does `print` do?",
        "What does this do?\n\n```\nprint(1)\n```",
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
fn repeated_task_is_a_rephrase_although_it_has_words_of_praise() {
    let tasks = [
        "Write a letter to thank my boss",
        "Draft an email: Thanks for your order, it ships tomorrow.",
        "Translate to German: perfect, that works",
        "Übersetze: Danke, das passt perfekt",
        "Traduis en anglais : merci, c'est parfait",
    ];
    let answer = "There are several things to consider here.";
    all(&tasks.map(|task| case(task, answer, task)), is_rephrase);
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
        ("It works great now, thanks!", "Glad to hear it."),
        ("My laptop works again, thank you", "You are welcome."),
        ("Works perfectly now, thank you", "You are welcome."),
        ("And then what happened?", "The owl flew away."),
    ];
    let cases = said.map(|(message, answer)| case(message, answer, message));
    all(&cases, |detection| {
        detection.correction_type != Some(RejectionKind::Rephrased)
    });
}

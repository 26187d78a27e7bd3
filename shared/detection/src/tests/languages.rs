//! Other languages than English: rejections, acceptances, and sentences that only look like one.

use super::*;

use FeedbackStatus::{Accepted, Neutral, Rejected};

/// Language, verdict, messages. The language is guessed.
const SENTENCES: &[(&str, FeedbackStatus, &[&str])] = &[
    (
        "de",
        Rejected,
        &[
            "Nein, ich meinte Laptops zum Spielen",
            "Das ist falsch.",
            "das stimmt nicht",
            "Das ist nicht das, was ich wollte",
            "Du hast mich falsch verstanden",
            "Das hilft mir nicht weiter",
            "es funktioniert immer noch nicht",
            "Versuch es noch einmal",
            "Vergiss es",
            "abbrechen",
            "Warum hast du die Tests gelöscht?",
            "Mach das rückgängig",
            "Das funktioniert nicht",
            "Lass mich das anders formulieren",
            "falsche Datei",
            "Danke, aber das ist nicht richtig",
        ],
    ),
    (
        "de",
        Accepted,
        &[
            "Danke!",
            "Perfekt, vielen Dank",
            "Kein Problem, danke!",
            "Das ist gar nicht schlecht",
            "Eigentlich ist das perfekt",
            "Kannst du mir das genauer erklären?",
            "Was ist der Unterschied zwischen den beiden?",
            "Und was ist mit Windows?",
            "Das funktioniert jetzt",
            "Du hast recht",
            "nein, das war alles, danke",
        ],
    ),
    (
        "de",
        Neutral,
        &["nein danke", "Ich weiß nicht", "das ist mir egal"],
    ),
    (
        "fr",
        Rejected,
        &[
            "Non, je voulais dire un ordinateur pour jouer",
            "C'est faux.",
            "Ce n'est pas ce que j'ai demandé",
            "Tu as mal compris",
            "ça ne marche toujours pas",
            "Ça n'aide pas du tout",
            "Essaie encore",
            "Laisse tomber",
            "oublie ça",
            "Pourquoi as-tu supprimé les tests ?",
            "Ce n'est pas correct",
            "Laissez-moi reformuler",
            "annule ça",
        ],
    ),
    (
        "fr",
        Accepted,
        &[
            "Merci beaucoup",
            "C'est parfait, merci",
            "Pas de problème, merci !",
            "En fait, c'est parfait",
            "pas mal du tout",
            "Peux-tu m'expliquer la deuxième ligne ?",
            "Quelle est la différence entre les deux ?",
            "ça marche maintenant",
            "Non, c'est tout, merci",
        ],
    ),
    (
        "fr",
        Neutral,
        &["non merci", "Je ne sais pas", "pas maintenant"],
    ),
    (
        "es",
        Rejected,
        &[
            "No, me refería a portátiles para jugar",
            "Eso está mal.",
            "No es lo que pedí",
            "Me entendiste mal",
            "todavía no funciona",
            "Eso no ayuda en nada",
            "Inténtalo de nuevo",
            "Olvídalo",
            "cancela eso",
            "¿Por qué borraste las pruebas?",
            "Te equivocaste",
            "Gracias, pero no es lo que buscaba",
            "eso es incorrecto",
        ],
    ),
    (
        "es",
        Accepted,
        &[
            "¡Muchas gracias!",
            "gracias",
            "Perfecto, gracias",
            "No hay problema, gracias",
            "En realidad está muy bien",
            "¿Puedes explicarme la segunda línea?",
            "¿Cuál es la diferencia entre los dos?",
            "ahora funciona",
            "Tienes razón",
            "no, eso es todo",
        ],
    ),
    ("es", Neutral, &["no gracias", "no lo sé", "me da igual"]),
    (
        "pt",
        Rejected,
        &[
            "Não, eu quis dizer notebooks para jogos",
            "Isso está errado.",
            "Não foi isso que eu pedi",
            "Você entendeu errado",
            "ainda não funciona",
            "Isso não ajuda",
            "Tente novamente",
            "Esquece",
            "cancela isso",
            "Por que você apagou os testes?",
            "Você se enganou",
            "resposta errada",
        ],
    ),
    (
        "pt",
        Accepted,
        &[
            "Muito obrigado!",
            "Perfeito, obrigada",
            "Sem problema, obrigado",
            "Na verdade isso é perfeito",
            "Você pode me explicar a segunda linha?",
            "Qual é a diferença entre os dois?",
            "agora funciona",
            "Você tem razão",
            "não, é só isso",
        ],
    ),
    ("pt", Neutral, &["não, obrigado", "não sei", "agora não"]),
    (
        "zh",
        Rejected,
        &[
            "不对",
            "不是,我说的是游戏本",
            "你理解错了",
            "这不是我要的",
            "还是不行",
            "没有用",
            "再试一次",
            "算了",
            "取消",
            "你为什么删了测试?",
            "错了",
            "我放弃",
        ],
    ),
    (
        "zh",
        Accepted,
        &[
            "谢谢!",
            "很好,谢谢",
            "没问题,谢谢",
            "不错",
            "能详细解释一下吗?",
            "两者有什么区别?",
            "现在可以用了",
            "你说得对",
        ],
    ),
    ("zh", Neutral, &["不知道", "无所谓", "暂时不用"]),
    (
        "ja",
        Rejected,
        &[
            "違います",
            "いいえ、ゲーム用のノートパソコンのことです",
            "それは間違っています",
            "まだ動きません",
            "役に立たない",
            "もう一度やってください",
            "もういいです",
            "キャンセル",
            "そうではなくて、青い方です",
            "なぜテストを消したのですか?",
            "意味が分かりません",
        ],
    ),
    (
        "ja",
        Accepted,
        &[
            "ありがとうございます",
            "完璧です、ありがとう",
            "問題ないです、ありがとう",
            "悪くないですね",
            "もっと詳しく教えてください",
            "この二つの違いは何ですか?",
            "動きました",
        ],
    ),
    (
        "ja",
        Neutral,
        &["知りません", "どちらでもいいです", "今は結構です"],
    ),
];

#[test]
fn sentences_of_other_languages_are_classified_as_labelled() {
    let detector = Detector::embedded();
    let mut wrong = Vec::new();
    for (language, expected, messages) in SENTENCES {
        for message in *messages {
            for given in [None, Some(*language)] {
                let detection = detector.detect(&Exchange {
                    message,
                    language: given,
                    ..Exchange::default()
                });
                if detection.feedback_type != *expected {
                    let cue = detection
                        .evidence
                        .first()
                        .map(|evidence| (evidence.cue, &evidence.language));
                    wrong.push(format!(
                        "{given:?} {message} is {}: {cue:?}",
                        expected.as_str()
                    ));
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn language_code_ignores_case_and_region() {
    for (tag, message) in [
        ("EN", "That is wrong"),
        ("De-DE", "falsch"),
        ("de_AT", "falsch"),
        ("pt_BR", "resposta errada"),
        ("PT-br", "resposta errada"),
        ("zh-Hans", "不对"),
        ("ZH-Hant-TW", "错了"),
    ] {
        let detection = Detector::embedded().detect(&Exchange {
            message,
            language: Some(tag),
            ..Exchange::default()
        });
        let language = detection.evidence.first().map(|found| &*found.language);
        let code = tag[..2].to_lowercase();
        assert_eq!(language, Some(code.as_str()), "{tag}: {detection:?}");
        assert_eq!(detection.feedback_type, Rejected, "{tag}");
    }
}

/// "No, thanks" declines something; together with "that's all" it closes the conversation.
#[test]
fn no_with_thanks_rejects_nothing() {
    for (message, expected) in [
        ("No, gracias, eso es todo", Accepted),
        ("Nein, alles gut, danke!", Accepted),
        ("Non merci, c'est parfait", Accepted),
        ("不用了，谢谢", Neutral),
        ("Nein danke, das war alles", Accepted),
        ("No, gracias", Neutral),
        ("Nein, das ist falsch, danke", Rejected),
        ("No, eso está mal, gracias", Rejected),
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

/// As in English: something past, something future and the user's own mistake are no complaints.
#[test]
fn complaint_about_something_else_rejects_nothing() {
    for (language, message, rejected) in [
        (
            "de",
            "Das hat vorher nicht funktioniert, aber jetzt geht es",
            false,
        ),
        ("de", "Das funktioniert immer noch nicht", true),
        ("de", "Mein Drucker funktioniert nicht", false),
        ("de", "Dein Code funktioniert nicht", true),
        (
            "de",
            "Nimm ab jetzt lieber das andere Format, nicht XML",
            false,
        ),
        ("fr", "Mon imprimante ne marche pas", false),
        ("fr", "Ça ne marche toujours pas", true),
        (
            "fr",
            "Avant ça ne marchait pas, maintenant ça marche",
            false,
        ),
        ("es", "Mi impresora no funciona", false),
        ("es", "todavía no funciona", true),
        ("es", "Al principio no funcionaba, ahora funciona", false),
        ("pt", "Minha impressora não funciona", false),
        ("pt", "ainda não funciona", true),
        ("pt", "No começo não funcionava, agora funciona", false),
    ] {
        let detection = Detector::embedded().detect(&Exchange {
            message,
            language: Some(language),
            ..Exchange::default()
        });
        let is = detection.feedback_type == Rejected;
        assert_eq!(is, rejected, "{message}: {detection:?}");
    }
}

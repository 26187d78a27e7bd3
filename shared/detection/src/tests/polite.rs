//! Complaints with polite or praising words make no machine reaction `ok`, and questions and thanks with words of a
//! complaint stay what they are.

use super::after::{After, verdict};
use super::*;

const COMPLAINTS: &[&str] = &[
    "Thanks a lot, now my account is locked",
    "Why is this so useless?",
    "Thanks for nothing",
    "Great, now it's even worse",
    "Perfect, now nothing works",
    "Nice, you deleted my file",
    "Oh great, another wrong answer",
    "Wow, thanks, that was no help at all",
    "Awesome, you broke it",
    "Well done, you ignored my question",
    "Thank you so much for wasting my time",
    "Great job ignoring what I said",
    "Yes, that's exactly what I didn't want",
    "Thanks, but my order is still missing",
    "Perfect, except that it crashes",
    "Nice try",
    "Why are you so slow?",
    "Great, my data is gone",
    "Thanks, I lost all my work",
    "Thanks to you I missed my flight",
    "Cool, and where is the answer?",
    "Is that supposed to be funny?",
    "What is this garbage?",
    "How is this an answer?",
    "Danke für nichts",
    "Toll, jetzt geht gar nichts mehr",
    "Super, jetzt ist mein Konto gesperrt",
    "Vielen Dank, das war völlig nutzlos",
    "Warum ist das so nutzlos?",
    "merci pour rien",
    "Bravo, maintenant plus rien ne marche",
    "Super, maintenant mon compte est bloqué",
    "Pourquoi est-ce si inutile ?",
    "Gracias por nada",
    "Genial, ahora no funciona nada",
    "Genial, ahora nada funciona",
    "¿Por qué eres tan inútil?",
    "Obrigado por nada",
    "Ótimo, agora nada funciona",
    "谢谢，但是没用",
    "太好了，现在什么都不能用了",
    "ありがとう、でも全然役に立たない",
    "すごい、もう何も動かない",
];

const NO_COMPLAINTS: &[&str] = &[
    "Why is it useless to change it every month?",
    "Thanks, now my account is safe",
    "Thank you so much for explaining",
    "Thanks, my headache is gone",
    "Great, I lost all fear of it",
    "Thanks to you I found it",
    "Great, where is the next train?",
    "Great job!",
    "Danke, jetzt ist mein Konto sicher",
    "Warum ist das so?",
    "Merci pour tout",
    "Gracias por todo",
    "Obrigado por tudo",
];

#[test]
fn questions_and_thanks_are_no_complaints() {
    for message in NO_COMPLAINTS {
        let detection = verdict(&After::Steps, message);
        assert_ne!(
            detection.feedback_type,
            FeedbackStatus::Rejected,
            "{message}: {detection:?}"
        );
    }
}

#[test]
fn polite_complaints_give_no_machine_reaction_ok() {
    for message in COMPLAINTS {
        let detection = verdict(&After::Steps, message);
        let is_praise =
            detection.feedback_type == FeedbackStatus::Accepted && detection.confidence >= 0.7;
        assert!(!is_praise, "{message}: {detection:?}");
    }
}

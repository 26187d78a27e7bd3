//! Sentences as people write them to an assistant, each labelled with what it says about the answer before it.

mod developers;

use super::after::{After, verdict};
use super::*;

use After::{Answer, Code, Confirmation, More, Offer, Question, Unknown};
use FeedbackStatus::{Accepted, Neutral, Rejected};

const SENTENCES: &[(FeedbackStatus, After, &[&str])] = &[
    // Praise with a complaint after it, and one thing fixed while another broke.
    (
        Rejected,
        Code,
        &[
            "nice, although the error is still there",
            "great, though the old banner still shows up",
            "the list is fine now but the menu disappeared",
            "the sorting works now but the search box is gone",
            "wonderful, and now nothing builds any more",
            "That's great, just great, now it crashed",
            "oh brilliant, now there are seven errors",
            "tried that, same thing",
            "three of them fail",
            "it's even slower now",
            "don't use globals, pass it as an argument",
        ],
    ),
    (
        Rejected,
        Answer,
        &[
            "that formula is plain incorrect",
            "this date is outright wrong",
            "How come you never answer?",
            "why do you never listen",
            "And this is why I hate bots",
            "since when is butter vegan",
            "wasn't that Linz?",
            "Isn't it 1912?",
        ],
    ),
    (
        Accepted,
        Answer,
        &[
            "isn't that slow?",
            "Isn't it the same for customers in Linz?",
            "cool, although I wonder how it does that?",
        ],
    ),
    (
        Rejected,
        Answer,
        &["Thanks for nothing", "n\u{200b}o, that is wr\u{200b}ong"],
    ),
    (
        Accepted,
        Answer,
        &[
            "Forget the first one, tell me about the second",
            "Not gonna lie, that's exactly what I needed",
        ],
    ),
    (
        Neutral,
        More,
        &["No, it never arrived", "No, you charged me twice"],
    ),
    (Accepted, More, &["No", "No, thank you", "No, that's all"]),
    (Rejected, Code, developers::REJECTED),
    (
        Rejected,
        Answer,
        &[
            "No, I meant gaming laptops",
            "I think you misunderstood me",
            "you misunderstood",
            "That's not helpful at all",
            "not helpful",
            "Not useful.",
            "Not what I need",
            "that's not true",
            "This isn't right.",
            "I don't think that's right",
            "Thanks, but that's not what I was looking for",
            "Sorry, that's wrong",
            "Hmm, that's not it",
            "no that's not what i mean",
            "what on earth are you talking about?",
            "That makes no sense",
            "I did not say that",
            "I asked for something different",
            "you got it wrong",
            "You are wrong",
            "you're mistaken",
            "your answer is wrong",
            "Your answer is not correct.",
            "wrong",
            "No.",
            "nope",
            "nah, that's not what I want",
            "this link is broken",
            "I'm not happy with this",
            "this is too long",
            "You should have asked me first",
            "Not that one.",
            "👎",
            "never mind",
            "Nevermind, I'll do it myself",
            "forget it",
            "Forget about it",
            "let me rephrase",
            "Let's start over",
            "cancel",
            "Cancel that please",
            "stop",
            "Stop it!",
            "stop talking",
            "please stop",
            "quit",
            "I give up",
            "abort",
            "shut up",
            "I want to talk to a human",
            "That's the wrong product",
            "you sent me the wrong item",
        ],
    ),
    (Accepted, Code, developers::ACCEPTED),
    (
        Accepted,
        Answer,
        &[
            "What should I feed a hamster?",
            "Thanks, ordering now",
            "Could you recommend a good book about it?",
            "What about a hash map?",
            "sounds good",
            "ok thanks",
            "thank you so much",
            "That's very helpful",
            "Can you give me an example?",
            "Between a map and a list, what do you recommend?",
        ],
    ),
    (
        Accepted,
        More,
        &[
            "No",
            "No, that's all.",
            "no thanks",
            "Nope, that's all for now",
            "Nothing else, bye",
            "no, thank you",
        ],
    ),
    (
        Accepted,
        Confirmation,
        &[
            "Yes",
            "yes please",
            "That's right",
            "correct",
            "Sounds good, go ahead",
        ],
    ),
    (
        Rejected,
        Confirmation,
        &[
            "No",
            "No, at seven",
            "No, I need a table for three",
            "Make it for four people",
            "Please change the time to seven",
            "Actually, I would like to go to Mario's",
            "Sorry, could you make that eight instead?",
            "Wait, I meant tomorrow",
        ],
    ),
    (
        Neutral,
        Offer,
        &[
            "No",
            "no thanks",
            "not now",
            "No, not yet",
            "Maybe later",
            "No. Don't update them now.",
            "no need",
            "not at the moment",
        ],
    ),
    (
        Neutral,
        Question,
        &[
            "No",
            "No preference",
            "not sure, maybe downtown",
            "I don't know",
            "Downtown",
            "I want something in the old town",
            "anywhere",
            "whatever",
            "no, any area is fine",
        ],
    ),
    (
        Neutral,
        Unknown,
        &[
            "",
            "   \n\t ",
            "no thanks",
            "not sure",
            "I don't mind",
            "maybe",
            "not now",
            "either one",
            "\"that's wrong\"",
            "> that's wrong",
            "```\nno, wrong\n```",
            "lorem ipsum",
        ],
    ),
    (
        Accepted,
        Unknown,
        &[
            "No problem, thanks!",
            "Actually, that's perfect",
            "not bad at all",
            "no, that's all",
            "thanks",
            "Thanks, ordering now",
            "Tell me more about the first one",
            "I'll go with the Lenovo",
            "Tell me more",
            "Can you explain that?",
        ],
    ),
    (
        Rejected,
        Unknown,
        &[
            "no",
            "wrong",
            "that's not what I meant",
            "actually",
            "try again",
            "never mind",
            "forget that",
            "let me rephrase",
            "nope, still broken",
            "you misunderstood",
            "that's not helpful at all",
            "No, I meant the other",
            "That's wrong",
            "Not what I asked",
            "Start over",
            "That doesn't help",
            "Not helpful",
            "Not useful",
            "Not what I need",
            "I meant the other one",
            "Not what I wanted",
        ],
    ),
];

/// Sentences that are not about the answer.
const HARMLESS: &[(After, &[&str])] = &[(
    Code,
    &[
        "wrong password handling should return 401",
        "If it doesn't work on Windows, print a warning",
        "not sure, maybe the second one",
    ],
)];

#[test]
fn harmless_sentences_are_not_rejections() {
    for (after, messages) in HARMLESS {
        for message in *messages {
            let detection = verdict(after, message);
            assert_ne!(
                detection.feedback_type, Rejected,
                "{message}: {detection:?}"
            );
        }
    }
}

#[test]
fn sentences_are_classified_as_labelled() {
    let mut wrong = Vec::new();
    for (expected, after, messages) in SENTENCES {
        for message in *messages {
            let detection = verdict(after, message);
            if detection.feedback_type != *expected {
                let cue = detection.evidence.first().map(|evidence| evidence.cue);
                wrong.push(format!(
                    "{message:?} is {}, was taken as {} ({cue:?})",
                    expected.as_str(),
                    detection.feedback_type.as_str()
                ));
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

//! Sentences as people write them to an assistant, each with what it says of the answer before it.

use super::*;

/// What was said before.
pub(super) enum After {
    /// Nothing that is known.
    Unknown,
    /// An answer that says something.
    Answer,
    /// An answer with code to run.
    Code,
    /// A question for a detail.
    Question,
    /// Several things to choose from.
    Choices,
    /// Steps to take.
    Steps,
    /// News, and whether there is anything else.
    NewsAndMore,
    /// An offer to go on.
    Offer,
    /// Whether it has understood.
    Confirmation,
    /// Whether there is anything else.
    More,
}

use After::{
    Answer, Choices, Code, Confirmation, More, NewsAndMore, Offer, Question, Steps, Unknown,
};
use FeedbackType::{Accepted, Neutral, Rejected};

pub(super) fn verdict(after: &After, message: &str) -> Detection {
    let (prev_query, prev_response) = match after {
        Unknown => (None, None),
        Answer => (
            Some("How do I keep a list of customers in order?"),
            Some("A sorted map keeps its keys in order. Insert each customer under a number."),
        ),
        Code => (
            Some("Write a function that parses the config file"),
            Some("Here it is:\n```rust\nfn parse() {}\n```\nCall it at the start of main."),
        ),
        Question => (
            Some("Book a table for tonight"),
            Some("Sure. Which area of the city do you prefer?"),
        ),
        Choices => (
            Some("lamps under 40 euros"),
            Some("There are three: the Arco for 35, the Luna for 38 and the Stella for 29 euros."),
        ),
        Steps => (
            Some("The scanner is not found"),
            Some("Turn the scanner off and on again. Then select it in the settings."),
        ),
        NewsAndMore => (
            Some("Where is my parcel?"),
            Some("Your parcel was delivered on Tuesday. Is there anything else I can do for you?"),
        ),
        Offer => (
            Some("Rename the column to total"),
            Some("I have renamed the column. Would you like me to update the tests as well?"),
        ),
        Confirmation => (
            Some("Book a table at Luigi's at six"),
            Some("You want a table for 2 at Luigi's at 6 pm. Is that correct?"),
        ),
        More => (
            Some("Thanks"),
            Some("You're welcome! Is there anything else that I can help you with?"),
        ),
    };
    Detector::embedded().detect(&Exchange {
        prev_query,
        prev_response,
        message,
        language: None,
    })
}

const SENTENCES: &[(FeedbackType, After, &[&str])] = &[
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
    // Developers to an assistant that writes code.
    (
        Rejected,
        Code,
        &[
            "that didn't work",
            "It still doesn't work.",
            "nope, still broken",
            "I still get the error",
            "I still get the same error:\n```\nE0308 mismatched types\n```",
            "still failing with the same message",
            "same error",
            "now I get a different error",
            "I get an error: cannot find type `Config`",
            "That's not what I asked for.",
            "this is not what I wanted",
            "why did you delete the tests?",
            "Why did you change the signature? I didn't ask for that.",
            "undo that",
            "revert",
            "Revert the last change please",
            "no, use tabs",
            "No, use spaces instead of tabs",
            "no don't touch that file",
            "wrong file",
            "wrong function",
            "You forgot to handle the empty file.",
            "you missed the second case",
            "You didn't update the imports",
            "you broke the build",
            "That breaks the build",
            "it doesn't compile",
            "this doesn't compile",
            "The code does not compile",
            "the tests still fail",
            "I told you not to use unwrap",
            "I said Rust, not Python",
            "As I said, no external crates",
            "stop adding comments",
            "don't do that",
            "that function doesn't exist",
            "you made that up",
            "that method does not exist in the standard library",
            "You're hallucinating",
            "this is wrong, the parser has to return a Result",
            "the output is wrong",
            "This is overcomplicated and wrong.",
            "that made it worse",
            "put it back",
            "No. Read the file again.",
            "try again",
            "do it again, properly",
            "Not working",
            "doesn't work",
            "no luck",
            "nothing changed",
            "you're not listening",
            "Why didn't you run the tests?",
            "That's not how the API works",
            "I meant the other config file",
            "I asked for a function, not a class",
            "a function, not a class",
            "Your code is missing the error handling, and that's not correct",
            "you ignored my instructions",
            "This is useless",
            "terrible answer",
            "that doesn't answer my question",
            "that does not help",
            "Wrong. The index starts at one.",
            "incorrect",
            "No, that's wrong.",
            "no no no, not like that",
            "That is too complicated",
            "Actually, make it async",
            "use a hash map instead",
            "I said no emojis",
            "you keep changing the formatting",
            "the tests are failing",
            "still red",
            "that's not what the docs say",
            "Your last change broke the login",
            "it's still not right",
            "No! Keep the old name",
            "ugh, no. the other one",
            "this sucks",
            "why are you still using var",
            "can you use a set instead?",
            "You only wrote half of it",
            "doesn't make sense",
            "that isn't the right file",
            "nothing happens when I run it",
            "check again",
        ],
    ),
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
    (
        Accepted,
        Code,
        &[
            "no errors now",
            "No errors anymore, thanks",
            "that works",
            "It works now, thank you!",
            "works",
            "perfect",
            "lgtm",
            "Great, now add tests",
            "ok now commit it",
            "nice. Also handle the empty file",
            "and what about Windows?",
            "Can you explain the second line?",
            "What does the question mark do?",
            "why is that faster?",
            "fix the wrong import",
            "Add a test for a wrong password",
            "Now write the README",
            "Can you also add a retry if the request fails?",
            "How do I undo a commit?",
            "how can I cancel the request from the client?",
            "What if the file is missing?",
            "Rename the variable to count",
            "Please explain why the old code was wrong",
            "Add a stop button to the toolbar",
            "Never mind the linter, it works",
            "not bad at all",
            "Actually, that's perfect",
            "you're right",
            "good catch",
            "exactly what I needed",
            "let's go with the second option",
            "No problem, thanks!",
            "makes sense",
            "That's not bad",
            "nothing wrong with that, go ahead",
            "continue",
            "Compare it with the builder pattern",
            "Make it faster",
            "do the same for the other file",
            "What's wrong with a hash map here?",
            "Is it wrong to use unwrap in tests?",
            "Write a message that says \"that is wrong\"",
            "no issues, ship it",
            "thanks!",
            "Tell me more about the first one",
            "I'll go with the Lenovo",
            "Which one is faster?",
            "👍",
        ],
    ),
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

/// What speaks of no answer, whatever else it may be.
const HARMLESS: &[(After, &[&str])] = &[(
    Code,
    &[
        "wrong password handling should return 401",
        "If it doesn't work on Windows, print a warning",
        "not sure, maybe the second one",
    ],
)];

#[test]
fn what_is_harmless_is_no_rejection() {
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
fn sentences_are_taken_as_they_are_meant() {
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

//! Apparent complaints about the answer that are none, each kind with similar sentences that are complaints.

use super::after::{After, verdict};
use super::*;

use After::{
    Answer, Choices, Code, Confirmation, More, NewsAndMore, Offer, Question, Steps, Unknown,
};

/// A kind of sentence: what precedes it, sentences that reject nothing, and similar ones that reject.
struct Kind {
    what: &'static str,
    after: After,
    harmless: &'static [&'static str],
    rejects: &'static [&'static str],
}

const KINDS: &[Kind] = &[
    Kind {
        what: "what failed before, and does no more",
        after: Code,
        harmless: &[
            "That wasn't working yesterday, but now it does",
            "It failed at first because I was in the wrong folder, works now",
            "it was broken, it's fine now",
            "The build didn't pass before",
        ],
        rejects: &[
            "It wasn't working yesterday and it still isn't working",
            "It worked before, now it is broken",
            "same error as before",
        ],
    },
    Kind {
        what: "a failure that comes after what works",
        after: Code,
        harmless: &[
            "It works, now I get a new error in the tests",
            "That fixed it. Now the linter gives me a warning",
        ],
        rejects: &[
            "It works, but the second one is still wrong",
            "now I get a new error in the tests",
            "It works on my machine but it still crashes in production",
        ],
    },
    Kind {
        what: "a failure with a cause of the user's own",
        after: Code,
        harmless: &[
            "Now the build fails because I haven't merged the other branch yet",
            "the tests fail as expected",
        ],
        rejects: &[
            "Now the build fails because you removed the import",
            "the tests fail, that was not expected",
        ],
    },
    Kind {
        what: "a task that is about failures",
        after: Code,
        harmless: &[
            "Could you add a check that verifies it doesn't crash on empty input?",
            "Write a test that shows that the parser is broken",
            "Print a message when the connection is not working",
            "Find a file that is not valid",
            "Explain why the old version was wrong",
        ],
        rejects: &[
            "Could you check that again? It doesn't work on empty input",
            "The parser you wrote does not work",
            "Explain why it's still broken",
        ],
    },
    Kind {
        what: "a question about what may fail",
        after: Code,
        harmless: &[
            "Does it crash when the file is missing?",
            "how do I stop a job that is stuck?",
            "What happens if the link is broken?",
        ],
        rejects: &["Why is it still broken?", "it is stuck, how do I stop it?"],
    },
    Kind {
        what: "a thing of the user's own",
        after: NewsAndMore,
        harmless: &[
            "Also the vase I bought is the wrong size, can I return it?",
            "My kettle doesn't work",
            "I received a shirt and this is the wrong color",
        ],
        rejects: &[
            "My parcel is still not there",
            "You sent me the wrong size",
            "No, it never came",
            "that's the wrong order",
        ],
    },
    Kind {
        what: "an instruction for what is to come",
        after: Code,
        harmless: &[
            "Use spaces instead of tabs from now on",
            "In future, use pytest, not unittest",
            "Next time use the shorter form instead",
        ],
        rejects: &["Use spaces instead of tabs", "Use pytest, not unittest"],
    },
    Kind {
        what: "none of the choices",
        after: Choices,
        harmless: &[
            "none of them is broken, right?",
            "Are they out of stock?",
            "Which of these are not available in blue?",
        ],
        rejects: &[
            "none of these are in stock",
            "none of those fit my desk",
            "too expensive",
            "they're both sold out",
            "I already have all of these",
            "I don't like either",
            "lamps below 40 euros",
        ],
    },
    Kind {
        what: "what does not end",
        after: Steps,
        harmless: &[
            "What if it never finishes?",
            "my old one hangs forever",
            "there is no problem in the settings any more",
        ],
        rejects: &[
            "it hangs forever",
            "it just freezes",
            "I did that and it is still searching",
            "it keeps loading and times out",
            "still dark",
            "I did all that, no change",
            "I can't find the button",
            "there's no such entry in my settings",
            "I did that, no message appeared",
            "I tried that already",
        ],
    },
    Kind {
        what: "what happens where nothing was done",
        after: Answer,
        harmless: &["it hangs forever", "it just freezes"],
        rejects: &["The answer on how to keep them in order was wrong"],
    },
    Kind {
        what: "another matter",
        after: Code,
        harmless: &[
            "Next bug: the menu is broken",
            "I have an error in a different file, could you see why?",
            "I meant to ask whether it is fast",
            "Don't change anything yet",
            "Hold on, let me check it",
            "Should we use a queue instead?",
            "Actually, could you also explain the last line?",
            "Keep the comments short, not too formal",
            "no more errors",
            "It no longer crashes",
        ],
        rejects: &[
            "Same error in the first file",
            "I meant the other one",
            "That didn't change anything",
            "Hold on, that is wrong",
            "Could you use a queue instead?",
            "Actually, use a queue",
            "It still crashes",
            "your fix does nothing",
            "You didn't import the module",
        ],
    },
    Kind {
        what: "what is known, or too much",
        after: Choices,
        harmless: &[
            "I already have a shade, does it fit the Luna?",
            "Is it too big for a small desk?",
            "Is that within my budget?",
            "Can you show me something else as well?",
        ],
        rejects: &[
            "I've already seen all of these",
            "those are both too big",
            "way over my budget",
            "neither of those",
            "No, a smaller one",
            "these are for another room",
            "meh",
        ],
    },
    Kind {
        what: "what the message reports, and sets itself against",
        after: NewsAndMore,
        harmless: &["It says that it never came if nobody was at home, right?"],
        rejects: &[
            "It says delivered but I never got it",
            "I never received it",
        ],
    },
    Kind {
        what: "what somebody else has said",
        after: Answer,
        harmless: &[
            "I disagree with the author, but what about sets?",
            "still deciding",
        ],
        rejects: &["I disagree", "I disagree with your answer"],
    },
    Kind {
        what: "a slip of the user's own",
        after: Answer,
        harmless: &[
            "oops, wrong window, forget that one",
            "Wrong chat, never mind that",
            "that was for someone else, ignore it",
        ],
        rejects: &["wrong, forget that one", "never mind that"],
    },
    Kind {
        what: "what failed for long, and runs now",
        after: Code,
        harmless: &[
            "this had been broken for months, great that it works now",
            "it had been crashing for days, glad it runs again",
            "what caused it to fail in the first place?",
            "what made this break to begin with?",
        ],
        rejects: &[
            "this is still broken",
            "it keeps crashing, it is still broken",
        ],
    },
    Kind {
        what: "another thing to be undone",
        after: Code,
        harmless: &[
            "and revert the change in main.rs too",
            "also restore the old logo, please",
        ],
        rejects: &["revert the change in main.rs", "put it back"],
    },
    Kind {
        what: "a start over of something else",
        after: Code,
        harmless: &["Rename it and start over from the first row"],
        rejects: &[
            "Let's start over from scratch",
            "start over from the beginning",
        ],
    },
];

#[test]
fn complaint_counts_if_it_is_about_the_answer() {
    let mut wrong = Vec::new();
    for kind in KINDS {
        let harmless = kind.harmless.iter().map(|message| (message, false));
        let rejects = kind.rejects.iter().map(|message| (message, true));
        for (message, rejected) in harmless.chain(rejects) {
            let detection = verdict(&kind.after, message);
            if (detection.feedback_type == FeedbackStatus::Rejected) != rejected {
                let cue = detection.evidence.first().map(|evidence| evidence.cue);
                let said = detection.feedback_type.as_str();
                wrong.push(format!("{}: {message:?} is {said} ({cue:?})", kind.what));
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
fn complaint_that_is_resolved_is_an_acceptance() {
    for message in [
        "It wasn't working before but now it does",
        "That works, now I get a different error",
        "both tests pass now, it works",
    ] {
        let detection = verdict(&Code, message);
        let accepted = detection.feedback_type == FeedbackStatus::Accepted;
        assert!(accepted, "{message}: {detection:?}");
    }
}

/// Ambiguous feedback is neutral: an "ok" to a statement only says that it was read. To a question it is a yes.
#[test]
fn ok_agrees_only_to_a_question() {
    use FeedbackStatus::{Accepted, Neutral};
    for message in ["ok", "Okay.", "alright"] {
        for (after, expected) in [
            (Unknown, Neutral),
            (Answer, Neutral),
            (Offer, Accepted),
            (Confirmation, Accepted),
        ] {
            let detection = verdict(&after, message);
            assert_eq!(
                detection.feedback_type, expected,
                "{message}: {detection:?}"
            );
        }
    }
    for message in ["ok thanks", "okay, great", "alright, that works"] {
        let detection = verdict(&Answer, message);
        assert_eq!(detection.feedback_type, Accepted, "{message}");
    }
}

#[test]
fn complaint_without_a_previous_turn_is_neutral() {
    for (after, rejected) in [(More, false), (NewsAndMore, true), (Question, true)] {
        let detection = verdict(&after, "It never arrived");
        let is = detection.feedback_type == FeedbackStatus::Rejected;
        assert_eq!(is, rejected, "{detection:?}");
    }
}

//! What an answer asks of the user: a "no" to a question only declines what the question offers.

use crate::cue::{Asks, Role};
use crate::lexicon::Lexicon;
use crate::matching::{Found, Matched};
use hearback_text::{Break, Text};

/// What the answer asked, to which a message may be the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// The answer is not known.
    Unknown,
    /// It asked nothing, or proposed something.
    Nothing,
    /// Whether there is anything else, after a statement.
    More,
    /// Whether there is anything else, and nothing more.
    Closing,
    /// Whether it has understood.
    Confirmation,
    /// Whether it should do something.
    Offer,
    /// Something that it needs to know.
    Detail,
}

impl Asked {
    /// Whether it asks for anything else.
    pub(crate) fn is_more(self) -> bool {
        matches!(self, Self::More | Self::Closing)
    }

    /// Whether a wish is a reply to it and not a correction.
    pub(crate) fn wants_reply(self) -> bool {
        self.is_more() || matches!(self, Self::Offer | Self::Detail)
    }
}

/// Bytes of an answer that are read, at its start and at its end.
const READ: usize = 400;
/// The maximum number of words of an answer that is searched for a question as a whole.
const SHORT: usize = 60;

/// The maximum number of words of an answer that may ask without a question mark.
const BRIEF: usize = 20;

/// Maximum number of words of a courtesy: "You are very welcome".
const COURTESY: usize = 4;

/// Whether an answer gives code or steps, or reports an action: the user may say that it failed.
pub(crate) fn may_fail(answer: &str, lexicon: &Lexicon) -> bool {
    answer.contains('`') || {
        let text = Text::read(answer, READ, READ);
        Matched::answer(&text, lexicon).has(Role::Actionable)
    }
}

/// What an answer asks.
pub(crate) fn asked(answer: Option<&str>, lexicon: &Lexicon) -> Asked {
    let Some(answer) = answer else {
        return Asked::Unknown;
    };
    let text = Text::read(answer, READ, READ);
    if text.words.is_empty() {
        return if text.quotes {
            Asked::Nothing
        } else {
            Asked::Unknown
        };
    }
    let matched = Matched::answer(&text, lexicon);
    let last = sentence_before(&matched, matched.tokens.len());
    let late = if text.words.len() <= SHORT {
        0
    } else {
        sentence_before(&matched, last)
    };
    // "Let me know if you need anything else" asks nothing.
    let has = |asks: Asks, from: usize| {
        let is = |found: &&Found| found.role == Role::Asks(asks) && found.from >= from;
        let mut found = matched.found.iter().filter(is);
        found.any(|found| !matched.is_hypothetical(*found))
    };
    let question = text.end == Break::Question;
    // A remark at the end of a long answer expects no reply.
    let replies = question || text.words.len() <= BRIEF;
    if replies && has(Asks::More, late) {
        if last <= COURTESY {
            Asked::Closing
        } else {
            Asked::More
        }
    } else if has(Asks::Confirmation, late) && !(question && has(Asks::Detail, last)) {
        Asked::Confirmation
    } else if has(Asks::Suggestion, last) {
        Asked::Nothing
    } else if has(Asks::Detail, last) {
        Asked::Detail
    } else if replies && has(Asks::Offer, last) {
        Asked::Offer
    } else if question {
        Asked::Detail
    } else {
        Asked::Nothing
    }
}

/// The first token of the sentence that ends before a token.
fn sentence_before(matched: &Matched, end: usize) -> usize {
    let tokens = matched.tokens.get(..end).unwrap_or_default();
    let starts = |token: &crate::vocabulary::Token| token.before.ends_sentence();
    tokens.iter().rposition(starts).unwrap_or(0)
}

//! Whether the question or request in a message that neither rejects nor praises refers to the answer, is about the
//! same subject, or is about another one.
//!
//! A question refers to the answer if
//! - it has a reference (`refers` of the phrase files: "it", "the second one", "which one"), except an empty one
//!   (`dummy`: "what time is it");
//! - it has no subject of its own ("why?", "for how long?");
//! - it has a word that the answer introduced: one that the query did not have, and that is not in every text
//!   (`common`).
//!
//! A question that shares words with the query alone is about the same subject, but says nothing about the answer:
//! users also repeat these words after a bad answer.

use crate::cue::{Cue, Role};
use crate::matching::Found;
use crate::verdict::{Case, Verdict, matters};
use crate::vocabulary::{Token, Trait};
use hearback_text::hash::FastMap;
use hearback_text::{Break, Text, Word};

/// The minimum number of bytes of a word that may be a name, or that may relate a question to the answer.
const NAME: usize = 3;
/// The minimum number of bytes before the ending of a plural.
const SINGULAR: usize = 3;
/// The maximum number of words of a message that may be part of a question: "and in French".
const FRAGMENT: usize = 5;

/// What a question or a request is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum About {
    /// The answer.
    Answer,
    /// The subject of the query.
    Subject,
    /// Something else.
    Other,
}

impl Case<'_> {
    /// Whether the message asks something.
    pub(crate) fn asks(&self) -> bool {
        self.text.end == Break::Question || self.matched.has(Role::Question)
    }

    /// Whether it requests something.
    fn requests(&self) -> bool {
        let roles = [Role::Request, Role::Standing];
        roles.into_iter().any(|role| self.matched.has(role))
    }

    /// The message continues from the answer, or with another subject.
    pub(crate) fn continues(&self) -> Option<Verdict> {
        let by = |cue: Cue| {
            let found = self.first(cue)?;
            Some(Verdict::accepted(cue, found.from, found.to))
        };
        let compares = || {
            let refers = || self.response.is_none() || self.about() == About::Answer;
            by(Cue::Comparison).filter(|_| refers())
        };
        // "What about pasta recipes?" after an answer on laptops is about another subject.
        let drills = || {
            let refers = || self.response.is_none() || self.about() != About::Other;
            by(Cue::DrillDown).filter(|_| refers())
        };
        // "And this is why I left" adds nothing to the conversation.
        let adds = || {
            let short = self.matched.tokens.len() <= FRAGMENT;
            by(Cue::Addition).filter(|_| short || self.asks() || self.requests())
        };
        by(Cue::FollowUp)
            .or_else(compares)
            .or_else(drills)
            .or_else(adds)
            .or_else(|| self.mentions())
            .or_else(|| self.asks_next())
    }

    /// A name or a number of the answer that the query did not have.
    fn mentions(&self) -> Option<Verdict> {
        self.response?;
        let mut tokens = self.matched.tokens.iter().enumerate();
        let words = |token: &Token| self.text.words.get(token.word);
        let digits = |word: &str| word.bytes().any(|byte| byte.is_ascii_digit());
        let at = tokens.find_map(|(at, token)| {
            let word = words(token)?;
            let folded = self.text.folded(word);
            if token.symbol.is_some() || (folded.len() < NAME && !digits(folded)) {
                return None;
            }
            let (response, query) = (self.response(), self.query());
            let named = |other: &Word| {
                let name = other.capital && !other.before.ends_sentence();
                (name || digits(folded)) && response.folded(other) == folded
            };
            let known = query.all_folded().any(|other| other == folded);
            (!known && response.words.iter().any(named)).then_some(at)
        })?;
        Some(Verdict::accepted(Cue::Mention, at, at + 1))
    }

    /// A question or a request without a cue of its own.
    fn asks_next(&self) -> Option<Verdict> {
        let asks = self.asks();
        if !asks && !self.requests() {
            return None;
        }
        let about = self.about();
        // Without the answer its subject is not known, so that a change of it is not either.
        if self.response.is_none() && !(asks && about == About::Answer) {
            return None;
        }
        let cue = match about {
            About::Answer if asks => Cue::FollowUp,
            About::Answer | About::Subject => Cue::NextRequest,
            About::Other => Cue::TopicChange,
        };
        let all = self.matched.tokens.len();
        Some(Verdict::accepted(cue, 0, all))
    }

    fn about(&self) -> About {
        if self.refers_back() || self.has_no_subject() {
            return About::Answer;
        }
        let query = Words::of(self.query());
        let own = self.subject_words();
        if self.response.is_some() {
            let response = Words::of(self.response());
            let introduced = |word: &[&str]| response.has(word) && !query.has(word);
            if own.iter().any(|word| introduced(word)) {
                return About::Answer;
            }
        }
        if own.iter().any(|word| query.has(word)) {
            About::Subject
        } else {
            About::Other
        }
    }

    /// Whether it has a reference to the conversation.
    fn refers_back(&self) -> bool {
        let mut refers = self.matched.of_role(Role::Refers);
        refers.any(|found| !self.is_dummy(found.from))
    }

    /// Whether a token is part of an apparent reference that is none.
    fn is_dummy(&self, token: usize) -> bool {
        let covers = |found: &Found| (found.from..found.to).contains(&token);
        self.matched
            .of_role(Role::Dummy)
            .any(|found| covers(&found))
    }

    /// Whether it is a question without a word that may say what it is about.
    fn has_no_subject(&self) -> bool {
        let mut tokens = self.matched.tokens.iter().enumerate().peekable();
        self.asks()
            && tokens.peek().is_some()
            && tokens.all(|(at, token)| self.is_light(token) && !self.is_dummy(at))
    }

    /// Whether a word says nothing about the subject of a text.
    fn is_light(&self, token: &Token) -> bool {
        let light = [
            Trait::Filler,
            Trait::Opener,
            Trait::Negator,
            Trait::Adversative,
            Trait::Reference,
            Trait::Interrogative,
            Trait::Lasting,
        ];
        let word = self.text.words.get(token.word);
        light.into_iter().any(|class| token.is(class))
            || word.is_some_and(|word| !matters(core(self.text.folded(word))))
    }

    /// The words that say what the message is about. In a script without spaces, each pair of adjacent characters,
    /// because a single character is in every text.
    fn subject_words(&self) -> Vec<Vec<&str>> {
        let tokens = &self.matched.tokens;
        let word = |token: &Token| {
            let word = self.text.words.get(token.word)?;
            Some(core(self.text.folded(word)))
        };
        let is_subject = |token: &Token| !self.is_light(token) && !token.is(Trait::Common);
        let alone = |text: &str| !text.is_ascii() && text.chars().nth(1).is_none();
        let mut words = Vec::new();
        for (at, token) in tokens
            .iter()
            .enumerate()
            .filter(|(_, token)| is_subject(token))
        {
            let Some(one) = word(token) else { continue };
            if !alone(one) {
                let digits = one.bytes().any(|byte| byte.is_ascii_digit());
                if one.len() >= NAME || digits {
                    words.push(vec![one]);
                }
                continue;
            }
            let next = tokens.get(at + 1);
            let next = next.filter(|next| next.before == Break::None && is_subject(next));
            if let Some(two) = next.and_then(word).filter(|two| alone(two)) {
                words.push(vec![one, two]);
            }
        }
        words
    }
}

/// The words of a text, each with those that follow it.
struct Words<'a> {
    following: FastMap<&'a str, Vec<&'a str>>,
}

impl<'a> Words<'a> {
    fn of(text: &'a Text) -> Self {
        let mut following: FastMap<&str, Vec<&str>> = FastMap::default();
        let words = || text.all_folded().map(core);
        for (word, next) in words().zip(words().skip(1).map(Some).chain([None])) {
            following.entry(singular(word)).or_default().extend(next);
        }
        Self { following }
    }

    /// Whether the text has these one or two words, one after the other.
    fn has(&self, words: &[&str]) -> bool {
        match words {
            [one] => self.following.contains_key(singular(one)),
            [one, two] => {
                let following = self.following.get(singular(one));
                following.is_some_and(|following| following.contains(two))
            }
            _ => false,
        }
    }
}

/// The longest part of a contraction: "what" of "what's", "argent" of "l'argent".
fn core(word: &str) -> &str {
    let whole = word.strip_suffix("n't").unwrap_or(word);
    whole
        .split('\'')
        .max_by_key(|part| part.len())
        .unwrap_or(whole)
}

/// A word without the ending of a plural.
fn singular(word: &str) -> &str {
    match word.strip_suffix('s') {
        Some(short) if short.len() >= SINGULAR => short,
        Some(_) | None => word,
    }
}

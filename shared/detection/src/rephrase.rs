//! Whether a message repeats the query in other words.
//!
//! A rephrase has a similarity above 0.8 and the same intent (docs/reference/rules.md, "Detection"). Two messages have
//! the same intent if they ask for the same kind of thing (`[questions]` of the phrase files), have as many denials,
//! and no significant word of one is replaced in the other: "flights to Paris" is not "flights to Rome". Question words
//! are compared by their kind alone, so that "why" and "how come" are equal.

use crate::about::CONTENT;
use crate::cue::{Cue, FeedbackStatus, Kind, RejectionKind, Role};
use crate::lexicon::Lexicon;
use crate::matching::{Found, Matched};
use crate::reply::Asked;
use crate::verdict::{Case, Verdict};
use crate::vocabulary::Trait;
use hearback_text::Text;
use hearback_text::hash::FastSet;
use hearback_text::similarity::{Comparison, Counted};

/// The minimum similarity of a rephrased query.
const THRESHOLD: f64 = 0.8;
/// The minimum cosine similarity of two queries with different significant words.
const CLEAR: f64 = 0.85;
/// The minimum number of words of a rephrase: shorter messages such as "go on" or "yes please" repeat by chance.
const LEAST_WORDS: usize = 3;
/// The maximum number of words of a message that may repeat by chance if it names no subject.
const OFTEN_REPEATED: usize = 4;
/// The maximum ratio of the lengths of two texts, without quotations.
const LENGTH_RATIO: usize = 2;

impl Case<'_> {
    /// The query again, word for word. This is decided before all cues, because the words of a repeated question are
    /// not about the answer ("what works best").
    pub(crate) fn repeated(&self) -> Option<Verdict> {
        // A repeated statement may be thanks, or the answer to a repeated question.
        let states = || self.is_content() && !self.begins_with_task();
        let asks = self.asks() || (!self.asked().wants_reply() && !states());
        // Quoted words are not read: "what does `print` do" names its subject.
        let names_subject = || self.text.quotes || self.names_subject();
        (self.is_query() && asks && names_subject()).then(|| self.rephrase(1.0))
    }

    /// Whether the message is the query, word for word.
    pub(crate) fn is_query(&self) -> bool {
        let Some(query) = self.query else {
            return false;
        };
        self.repeats_query.unwrap_or_else(|| {
            let (now, before) = (self.text, self.query());
            // Of a long text not all words are read. "Fix this: …" with other code is another task.
            let same_words = || !before.quotes && now.all_folded().eq(before.all_folded());
            query.trim() == self.message.trim() || same_words()
        })
    }

    /// Whether the message begins with a significant word that is not praise, as "write a letter to thank my boss" does.
    /// What is said of an answer begins with the praise, or with a word such as "that". Not in scripts without spaces.
    fn begins_with_task(&self) -> bool {
        let Some(first) = self.text.all_folded().next() else {
            return false;
        };
        let wording = Wording::read(self.text, self.lexicon);
        let mut own = wording.numbered_words(self.text, self.lexicon);
        let matters = own
            .next()
            .is_some_and(|(at, word)| at == 0 && word.matters());
        let is_latin = first.chars().all(|letter| letter < '\u{250}');
        let in_praise = CONTENT.iter().any(|cue| {
            let mut found = self.matched.of_cue(*cue);
            found.any(|found| {
                let first = self.matched.tokens.get(found.from);
                first.is_some_and(|token| token.word == 0)
            })
        });
        matters && is_latin && !in_praise
    }

    /// Whether the message names its subject: "why is that" and "tell me more" may follow any answer.
    fn names_subject(&self) -> bool {
        let words = self.text.words.len();
        let onward: Vec<_> = self.matched.of_role(Role::Onward).collect();
        let is_onward = |word: usize| {
            let mut tokens = (onward.iter()).flat_map(|found| found.from..found.to);
            tokens.any(|at| {
                self.matched
                    .tokens
                    .get(at)
                    .is_some_and(|token| token.word == word)
            })
        };
        let wording = Wording::read(self.text, self.lexicon);
        let mut own = wording.numbered_words(self.text, self.lexicon);
        let names = own.any(|(at, word)| word.matters() && !is_onward(at));
        words >= LEAST_WORDS && (names || (words > OFTEN_REPEATED && onward.is_empty()))
    }

    fn rephrase(&self, similarity: f64) -> Verdict {
        Verdict {
            feedback_type: FeedbackStatus::Rejected,
            confidence: similarity,
            correction_type: Some(RejectionKind::Rephrased),
            because: Some((Cue::Rephrase, 0, self.matched.tokens.len())),
        }
    }

    /// Priority 2: the query in other words. This is decided before other kinds of questions: a repeated question is no
    /// follow-up.
    pub(crate) fn rephrased(&self) -> Option<Verdict> {
        self.query?;
        // A repeated wish is a reply if the answer asked for it. A repeated question is not.
        let answers = self.asked() == Asked::Detail && !self.asks();
        if answers || self.is_content() || self.matched.has(Role::Onward) {
            return None;
        }
        let similarity = self.similarity_to_query()?;
        (!self.adds_continuation()).then(|| self.rephrase(similarity))
    }

    /// Whether the message has a cue of continuation that the query does not have.
    pub(crate) fn adds_continuation(&self) -> bool {
        let continues = [
            Cue::FollowUp,
            Cue::DrillDown,
            Cue::Comparison,
            Cue::Addition,
        ];
        let mut continues = continues
            .into_iter()
            .filter(|cue| self.has(*cue))
            .peekable();
        continues.peek().is_some() && {
            let query = Matched::message(self.query(), self.lexicon);
            continues.any(|cue| query.of_cue(cue).next().is_none())
        }
    }

    /// Whether the message is the query, word for word, with significant words added before, in or behind it. "Gaming
    /// laptops under $1000" after "laptops under $1000" changes the search, or says what the answer missed. A word of the
    /// query that is said twice insists on it: "blue. A blue bike for children".
    ///
    /// If only the beginning of the query is known, what is missing would count as added.
    pub(crate) fn extends_query(&self) -> bool {
        let query = self.query();
        let mut said = self.text.all_folded();
        let mut asked = query.all_folded();
        let is_whole = self.repeats_query.is_none();
        if !is_whole || self.is_query() || !asked.all(|word| said.any(|other| other == word)) {
            return false;
        }
        let before = Wording::read(query, self.lexicon);
        let now = Wording::read(self.text, self.lexicon);
        let words = query.all_folded();
        let known: FastSet<&str> = words.map(|word| self.lexicon.synonyms.of(word)).collect();
        let compared = self.compared(&before, &now);
        (compared.only_second.iter()).any(|word| !known.contains(word))
    }

    /// The comparison of the query with the message, without question words.
    fn compared<'a>(&'a self, before: &Wording, now: &Wording) -> Comparison<'a> {
        Comparison::of(
            before.words(self.query(), self.lexicon).collect(),
            now.words(self.text, self.lexicon).collect(),
        )
    }

    /// The similarity of the message to the query, if it is a rephrase.
    fn similarity_to_query(&self) -> Option<f64> {
        let (message, query) = (self.text, self.query());
        // "Fix this: …" with other code is another task.
        if message.words.len() < LEAST_WORDS || query.quotes {
            return None;
        }
        let has_length = have_similar_length(message, query);
        if !has_length && self.embedding_similarity.is_none() {
            return None;
        }
        let (now, before) = (
            Wording::read(message, self.lexicon),
            Wording::read(query, self.lexicon),
        );
        let compared = self.compared(&before, &now);
        let replaced = !compared.only_first.is_empty() && !compared.only_second.is_empty();
        let names_subject = now.words(message, self.lexicon).any(|word| word.matters());
        if !names_subject {
            return None;
        }
        let by_words = compared.similarity > THRESHOLD
            && !replaced
            && now.intent == before.intent
            && has_length;
        let by_vectors = self.embedding_similarity.filter(|cosine| {
            *cosine > if replaced { CLEAR } else { THRESHOLD }
                && !(names_one(query, &compared.only_first)
                    && names_one(message, &compared.only_second))
                && self.has_intent_of_query(&now)
        });
        let candidates = [by_words.then_some(compared.similarity), by_vectors];
        candidates.into_iter().flatten().max_by(f64::total_cmp)
    }

    /// Whether the query has this intent, in its own language.
    fn has_intent_of_query(&self, now: &Wording) -> bool {
        let query = self.query();
        let own = self.languages.lexicon_of(query).unwrap_or(self.lexicon);
        [self.lexicon, own]
            .into_iter()
            .any(|lexicon| Wording::read(query, lexicon).intent == now.intent)
    }
}

/// Whether neither text has more than twice the length of the other.
fn have_similar_length(one: &Text, other: &Text) -> bool {
    let (short, long) = if one.own_bytes < other.own_bytes {
        (one.own_bytes, other.own_bytes)
    } else {
        (other.own_bytes, one.own_bytes)
    };
    long <= short.saturating_mul(LENGTH_RATIO)
}

/// Whether one of these words of a text is a number or a name.
pub(crate) fn names_one(text: &Text, words: &[&str]) -> bool {
    let digits = |word: &str| word.bytes().any(|byte| byte.is_ascii_digit());
    let named = |word: &str| {
        let mut all = text.words.iter();
        all.any(|other| {
            other.capital && !other.before.ends_sentence() && text.folded(other) == word
        })
    };
    words.iter().any(|word| digits(word) || named(word))
}

/// What a text asks for: the kinds of its question words, as bits, and the number of denials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Intent {
    kinds: u8,
    denials: usize,
}

/// The form of a question.
struct Wording {
    intent: Intent,
    /// Whether each word is a question word.
    asking: Vec<bool>,
}

impl Wording {
    fn read(text: &Text, lexicon: &Lexicon) -> Self {
        let matched = Matched::question(text, lexicon);
        let mut asking = vec![false; text.words.len()];
        let mut kinds = 0;
        for Found { role, from, to } in matched.found {
            let Role::Seeks(kind) = role else { continue };
            kinds |= kind.bit();
            let tokens = matched.tokens.get(from..to).unwrap_or_default();
            for token in tokens {
                if let Some(asking) = asking.get_mut(token.word) {
                    *asking = true;
                }
            }
        }
        let denials = matched
            .tokens
            .iter()
            .filter(|token| token.is(Trait::Negator));
        Self {
            // "What is the largest lake" asks for the same as "largest lake".
            intent: Intent {
                kinds: kinds & !Kind::Thing.bit(),
                denials: denials.count(),
            },
            asking,
        }
    }

    /// The words that are not question words, with their weights.
    fn words<'a>(&self, text: &'a Text, lexicon: &'a Lexicon) -> impl Iterator<Item = Counted<'a>> {
        self.numbered_words(text, lexicon).map(|(_, word)| word)
    }

    /// The same, each with its index in the text.
    fn numbered_words<'a>(
        &self,
        text: &'a Text,
        lexicon: &'a Lexicon,
    ) -> impl Iterator<Item = (usize, Counted<'a>)> {
        let words = text.all_folded().zip(&self.asking).enumerate();
        words
            .filter(|(_, (_, asking))| !**asking)
            .map(|(at, (word, _))| {
                let light = lexicon.vocabulary.is(word, Trait::Filler)
                    || lexicon.vocabulary.is(word, Trait::Interrogative);
                (at, Counted::of(lexicon.synonyms.of(word), light))
            })
    }
}

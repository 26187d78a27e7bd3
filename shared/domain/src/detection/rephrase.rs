//! Whether a message asks again what was asked before.
//!
//! Source: `User Feedback System`, "Rephrased Query Detection": a similarity above 0.8, and the
//! same intent. Without a model of intents, the same is asked by the same kind of question, with
//! nothing that matters put in another's place: "flights to Paris" is not "flights to Rome".

use super::lexicon::Lexicon;
use super::vocabulary::Trait;
use crate::hash::FastMap;
use crate::similarity::Comparison;
use crate::text::Text;

/// The least similarity of a rephrased query (the source's own threshold).
const THRESHOLD: f64 = 0.8;
/// Words of a message that is long enough to be told from a chance likeness: "go on", "yes
/// please" are said again and again.
const LEAST_WORDS: usize = 3;
/// The most that the longer of two texts may have over the other, in bytes of its own.
const LENGTHS: usize = 2;

/// Words by which the same may be asked: "under" and "below".
#[derive(Debug, Default, Clone)]
pub(super) struct Synonyms(FastMap<Box<str>, Box<str>>);

impl Synonyms {
    /// Adds a word that says the same as another.
    pub(super) fn add(&mut self, word: &str, same_as: &str) -> Result<(), String> {
        let folded = |word: &str| {
            let text = Text::read(word, word.len(), 0);
            let mut words = text.all_folded();
            let first = words.next().map(Box::<str>::from);
            first.filter(|_| words.next().is_none())
        };
        let (Some(word), Some(same_as)) = (folded(word), folded(same_as)) else {
            return Err("must be one word, for one word".to_owned());
        };
        self.0.insert(word, same_as);
        Ok(())
    }

    /// The word that stands for all that say the same.
    fn of<'a>(&'a self, word: &'a str) -> &'a str {
        self.0.get(word).map_or(word, |same| same)
    }
}

/// The similarity of a message to the query before, if it asks the same again.
pub(super) fn rephrases(message: &Text, query: &Text, lexicon: &Lexicon) -> Option<f64> {
    let (short, long) = if message.own_bytes < query.own_bytes {
        (message.own_bytes, query.own_bytes)
    } else {
        (query.own_bytes, message.own_bytes)
    };
    if message.words.len() < LEAST_WORDS || long > short.saturating_mul(LENGTHS) {
        return None;
    }
    // "Fix this: …" with other code is another task.
    if query.quotes {
        return None;
    }
    let compared = Comparison::by(query, message, |word| lexicon.synonyms.of(word));
    let replaced = !compared.only_first.is_empty() && !compared.only_second.is_empty();
    let same = !replaced && asks(query, lexicon) == asks(message, lexicon);
    (same && compared.similarity > THRESHOLD).then_some(compared.similarity)
}

/// What kind of question a text asks: its question words, and how often it denies something.
fn asks(text: &Text, lexicon: &Lexicon) -> (Vec<u32>, usize) {
    let tokens = lexicon.vocabulary.tokens(text);
    let questions = tokens.iter().filter(|token| token.is(Trait::Interrogative));
    let mut questions: Vec<_> = questions.filter_map(|token| token.symbol).collect();
    questions.sort_unstable();
    let denials = tokens.iter().filter(|token| token.is(Trait::Negator));
    (questions, denials.count())
}

//! Whether a message asks again what was asked before.
//!
//! Source: `User Feedback System`, "Rephrased Query Detection": a similarity above 0.8, and the
//! same intent. Without a model of intents, the same is asked by the same kind of question, with
//! nothing that matters put in another's place: "flights to Paris" is not "flights to Rome".

use super::lexicon::Lexicon;
use super::vocabulary::Trait;
use crate::similarity::Comparison;
use crate::text::Text;

/// The least similarity of a rephrased query (the source's own threshold).
const THRESHOLD: f64 = 0.8;
/// Words of a message that is long enough to be told from a chance likeness: "go on", "yes
/// please" are said again and again.
const LEAST_WORDS: usize = 3;
/// The most that the longer of two texts may have over the other, in bytes of its own.
const LENGTHS: usize = 2;

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
    let compared = Comparison::of(query, message);
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

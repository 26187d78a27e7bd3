//! N-grams of a message: of its words, of their characters, and of the shapes of its sentences; and of the words of the turn
//! before it.

use std::hash::Hasher;
use std::ops::{Range, RangeInclusive};

use hearback_text::hash::{Fnv, fnv_joined};
use hearback_text::{Break, Text};

use super::{
    Before, CHARACTERS, FIRST_CHARACTER, FIRST_REPLY, FIRST_SHAPE, FIRST_WORD, Features, READ,
    REPLIES, SHAPES, WORDS,
};
use crate::verdict::{Case, matters};

/// Tokens that are no words.
const MARKS: [&str; 5] = ["^", "$", ",", ".", "?"];
/// Characters of a word that are read.
const MAX_CHARACTERS: usize = 24;

impl Features {
    /// N-grams of words, with the breaks between them.
    pub(super) fn words(&mut self, text: &Text) {
        // With the index of the word of each, or of the word before it.
        let (mut tokens, mut places) = (vec!["^"], vec![0]);
        let mut push = |token, place| {
            tokens.push(token);
            places.push(place);
        };
        for at in read(text) {
            let Some(word) = text.words.get(at) else {
                continue;
            };
            if at > 0
                && let Some(mark) = mark(word.before)
            {
                push(mark, at - 1);
            }
            push(text.folded(word), at);
        }
        let last = text.words.len().saturating_sub(1);
        if text.end == Break::Question {
            push("?", last);
        }
        push("$", last);
        ngrams(&tokens, " ", 1..=3, |range, hash| {
            let gram = tokens.get(range.clone()).unwrap_or_default();
            // Neither a mark alone nor words with others between them that are not read.
            let has_word = gram.iter().any(|token| !MARKS.contains(token));
            if let Some([first, .., last] | [first @ last]) = places.get(range)
                && has_word
                && last - first < gram.len()
            {
                self.grams.push((self.values.len(), *first, *last));
            }
            self.hashed(FIRST_WORD, WORDS, hash, 1.0);
        });
    }

    /// N-grams of the characters of each word, of scripts in which words have many.
    pub(super) fn characters(&mut self, text: &Text) {
        for word in read(text).filter_map(|at| text.words.get(at)) {
            let folded = text.folded(word);
            let is_latin = folded.chars().all(|letter| letter < '\u{250}');
            if folded.len() < 3 || !is_latin {
                continue;
            }
            let letters = folded.split_inclusive(|_| true).take(MAX_CHARACTERS);
            let bounded: Vec<&str> = ["<"].into_iter().chain(letters).chain([">"]).collect();
            ngrams(&bounded, "", 3..=5, |_, hash| {
                self.hashed(FIRST_CHARACTER, CHARACTERS, hash, 1.0);
            });
        }
    }

    /// N-grams of words in which each significant word is replaced by where it comes from.
    pub(super) fn shapes(&mut self, case: &Case<'_>, before: &Before<'_>) {
        let text = case.text;
        let mut tokens: Vec<&str> = vec!["^"];
        for at in read(text) {
            let Some(word) = text.words.get(at) else {
                continue;
            };
            if at > 0 {
                tokens.extend(mark(word.before));
            }
            let token = shape(case, before, text.folded(word));
            if tokens.last() != Some(&token) {
                tokens.push(token);
            }
        }
        tokens.push(if text.end == Break::Question {
            "?"
        } else {
            "$"
        });
        ngrams(&tokens, " ", 2..=4, |_, hash| {
            self.hashed(FIRST_SHAPE, SHAPES, hash, 1.0);
        });
    }

    /// Each word together with what the answer asked.
    pub(super) fn replies(&mut self, case: &Case<'_>) {
        let asked = format!("{:?}", case.asked());
        let end = if case.text.end == Break::Question {
            "?"
        } else {
            ""
        };
        for word in case.text.all_folded().take(READ) {
            let hash = fnv_joined(&[word, " ", &asked, end]);
            self.hashed(FIRST_REPLY, REPLIES, hash, 1.0);
        }
    }

    /// Words and pairs of words of the answer, or of the query.
    pub(super) fn context_words(&mut self, text: &Text, first: usize, buckets: usize) {
        let words = read(text).filter_map(|at| text.words.get(at));
        let words: Vec<&str> = words.map(|word| text.folded(word)).collect();
        ngrams(&words, " ", 1..=2, |_, hash| {
            self.hashed(first, buckets, hash, 1.0);
        });
    }
}

/// Calls `add` with each sequence of so many tokens, and with the hash of these, joined.
fn ngrams(
    tokens: &[&str],
    separator: &str,
    sizes: RangeInclusive<usize>,
    mut add: impl FnMut(Range<usize>, u64),
) {
    for from in 0..tokens.len() {
        let mut hash = Fnv::default();
        for (size, token) in (1..=*sizes.end()).zip(tokens.iter().skip(from)) {
            hash.write(token.as_bytes());
            hash.write(separator.as_bytes());
            if sizes.contains(&size) {
                add(from..from + size, hash.finish());
            }
        }
    }
}

/// The indexes of the words that are read as n-grams.
fn read(text: &Text) -> impl Iterator<Item = usize> {
    let count = text.words.len();
    (0..count.min(READ)).chain(count.saturating_sub(READ).max(READ)..count)
}

/// What precedes a word, as a token.
fn mark(before: Break) -> Option<&'static str> {
    match before {
        Break::None => None,
        Break::Clause => Some(","),
        Break::Sentence => Some("."),
        Break::Question => Some("?"),
    }
}

/// A word, or where it comes from if it is about the subject and not about the conversation.
fn shape<'w>(case: &Case<'_>, before: &Before<'_>, word: &'w str) -> &'w str {
    let is_kana = word
        .chars()
        .all(|letter| ('\u{3040}'..'\u{3100}').contains(&letter));
    if !matters(word) || is_kana || case.lexicon.vocabulary.knows(word) {
        return word;
    }
    match (before.query.contains(word), before.answer.contains(word)) {
        (true, true) => "=both",
        (true, false) => "=query",
        (false, true) => "=answer",
        (false, false) if word.bytes().all(|byte| byte.is_ascii_digit()) => "=number",
        (false, false) => "=other",
    }
}

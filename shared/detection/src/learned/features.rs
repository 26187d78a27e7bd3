//! What the learned model sees of a message and of the turn before it.
//!
//! Each feature has an index and a value. The first are vectors and numbers, the last are [measures]. All others are hashed:
//! [n-grams](ngrams), and symbols, which say what the phrases found and where.

mod measures;
mod ngrams;

use std::fmt::{Arguments, Write};
use std::ops::Range;

use hearback_semantics::{DIMENSIONS, Sum, cosine};
use hearback_text::hash::{FastSet, fnv};
use hearback_text::similarity::{Comparison, Words};
use hearback_text::{Break, Text};

use crate::conversation::asks_of_another;
use crate::cue::{Cue, Role};
use crate::matching::Found;
use crate::pattern::Start;
use crate::reply::{Asked, may_fail};
use crate::verdict::{Case, Verdict, matters};
use crate::vocabulary::Trait;

/// Vectors of the message, its first and its last sentence, the answer, its last sentence, and the query.
const VECTORS: usize = 6;
/// Similarities, shares and flags: how the texts relate, the style of the message, and kinds of its words; and the
/// confidence of the phrases.
const NUMBERS: usize = 64;
/// The numbers of buckets of the blocks of hashed features.
const WORDS: usize = 1 << 15;
const CHARACTERS: usize = 1 << 14;
const SYMBOLS: usize = 1 << 13;
const SHAPES: usize = 1 << 14;
const REPLIES: usize = 1 << 13;
const ANSWERS: usize = 1 << 13;
const QUERIES: usize = 1 << 13;
/// Measures of the three texts: see [`measures`].
const MEASURES: usize = 73;
/// The indexes of the first features of the blocks.
const FIRST_NUMBER: usize = VECTORS * DIMENSIONS;
const FIRST_WORD: usize = FIRST_NUMBER + NUMBERS;
const FIRST_CHARACTER: usize = FIRST_WORD + WORDS;
const FIRST_SYMBOL: usize = FIRST_CHARACTER + CHARACTERS;
const FIRST_SHAPE: usize = FIRST_SYMBOL + SYMBOLS;
const FIRST_REPLY: usize = FIRST_SHAPE + SHAPES;
const FIRST_ANSWER: usize = FIRST_REPLY + REPLIES;
const FIRST_QUERY: usize = FIRST_ANSWER + ANSWERS;
const FIRST_MEASURE: usize = FIRST_QUERY + QUERIES;
/// The number of features.
pub(crate) const COUNT: usize = FIRST_MEASURE + MEASURES;
/// The index of the first feature of each block.
pub(crate) const BLOCKS: [usize; 10] = [
    0,
    FIRST_NUMBER,
    FIRST_WORD,
    FIRST_CHARACTER,
    FIRST_SYMBOL,
    FIRST_SHAPE,
    FIRST_REPLY,
    FIRST_ANSWER,
    FIRST_QUERY,
    FIRST_MEASURE,
];
/// What pasted failures contain.
const TRACES: [&str; 11] = [
    "error",
    "exception",
    "traceback",
    "undefined",
    "null",
    "panic",
    "failed",
    "cannot",
    "segfault",
    "at line",
    "line ",
];
/// Words that are read at the start and at the end of a text, for its n-grams and for the vectors of its parts; and phrases
/// of a message that are read.
const READ: usize = 40;

/// The features of one message that are not zero.
#[derive(Debug, Default)]
pub(crate) struct Features {
    /// The index and the value of each; an index may be there several times, and its values are added.
    pub(crate) values: Vec<(usize, f32)>,
    /// The similarity of the message to the query, from 0 to 1.
    pub(crate) similarity: f64,
    /// Whether the message asks the same as the query, of something else.
    pub(crate) asks_of_another: bool,
    /// The index in `values` of each n-gram of words that has a word, with its first and its last word.
    pub(crate) grams: Vec<(usize, usize, usize)>,
    numbered: usize,
    symbol: String,
}

/// The words of the turn before the message. The words of the message are looked up in them.
struct Before<'a> {
    query: FastSet<&'a str>,
    answer: FastSet<&'a str>,
}

impl<'a> Before<'a> {
    fn of(case: &'a Case<'_>) -> Self {
        Self {
            query: case.query().all_folded().collect(),
            answer: case.response().all_folded().collect(),
        }
    }
}

impl Features {
    /// Reads the features of a message.
    pub(crate) fn of(case: &Case<'_>, verdict: &Verdict) -> Self {
        let mut features = Self::default();
        features.values.reserve(2048);
        let before = Before::of(case);
        features.vectors(case);
        features.relations(case, &before);
        features.style(case);
        features.content(case);
        features.number(to_f32(verdict.confidence));
        debug_assert_eq!(features.numbered, NUMBERS);
        features.scaled(|features| features.words(case.text));
        features.scaled(|features| features.characters(case.text));
        features.symbols(case, verdict);
        features.scaled(|features| features.shapes(case, &before));
        features.scaled(|features| features.replies(case));
        features.scaled(|features| features.context_words(case.response(), FIRST_ANSWER, ANSWERS));
        features.scaled(|features| features.context_words(case.query(), FIRST_QUERY, QUERIES));
        features.measures(case);
        features
    }

    fn add(&mut self, index: usize, value: f32) {
        self.values.push((index, value));
    }

    fn number(&mut self, value: f32) {
        if value != 0.0 {
            self.add(FIRST_NUMBER + self.numbered, value);
        }
        self.numbered += 1;
    }

    fn flag(&mut self, value: bool) {
        self.number(if value { 0.5 } else { 0.0 });
    }

    /// Adds the feature of a block that has this hash.
    fn hashed(&mut self, first: usize, buckets: usize, hash: u64, value: f32) {
        let buckets = u64::try_from(buckets).unwrap_or(1);
        let bucket = usize::try_from(hash % buckets).unwrap_or(0);
        self.add(first + bucket, value);
    }

    /// Gives the features that are added a length of about one together.
    fn scaled(&mut self, add: impl FnOnce(&mut Self)) {
        let from = self.values.len();
        add(self);
        let added = self.values.get_mut(from..).unwrap_or_default();
        let count = u16::try_from(added.len()).map_or(f32::INFINITY, f32::from);
        for (_, value) in added {
            *value /= count.sqrt();
        }
    }

    fn symbol(&mut self, parts: Arguments<'_>, weight: f32) {
        let mut symbol = std::mem::take(&mut self.symbol);
        symbol.clear();
        let _ = symbol.write_fmt(parts);
        self.hashed(FIRST_SYMBOL, SYMBOLS, fnv(&symbol), weight);
        self.symbol = symbol;
    }

    fn vectors(&mut self, case: &Case<'_>) {
        let text = case.text;
        let (first, last) = (first_sentence(text), last_sentence(text));
        let opening = of_words(text, 0..first);
        // Of one sentence, all three are equal.
        let (message, end) = if last == 0 {
            (opening, opening)
        } else {
            let end = of_words(text, last..text.words.len());
            (opening + of_words(text, first..last) + end, end)
        };
        let (message, first, end) = (message.vector(), opening.vector(), end.vector());
        let response = case.response();
        let last = last_sentence(response);
        let closing = of_words(response, last..response.words.len());
        let answer = (of_words(response, 0..last) + closing).vector();
        let closing = closing.vector();
        let query = of_words(case.query(), 0..case.query().words.len()).vector();
        let vectors = [
            (&message, 1.0),
            (&first, 0.5),
            (&end, 0.5),
            (&answer, 0.4),
            (&closing, 0.4),
            (&query, 0.3),
        ];
        for (at, (vector, weight)) in vectors.into_iter().enumerate() {
            for (dimension, number) in vector.iter().enumerate() {
                self.add(at * DIMENSIONS + dimension, number * weight);
            }
        }
        for (one, other) in [
            (&message, &answer),
            (&message, &query),
            (&message, &closing),
            (&first, &query),
            (&answer, &query),
        ] {
            self.number(3.0 * cosine(one, other));
        }
    }

    /// How the words of the message relate to those of the answer and of the query.
    fn relations(&mut self, case: &Case<'_>, before: &Before<'_>) {
        let (text, response, query) = (case.text, case.response(), case.query());
        let compared = Comparison::of(Words::of(query), Words::of(text));
        self.similarity = compared.similarity;
        self.asks_of_another = asks_of_another(query, text, &compared);
        let similarity = to_f32(compared.similarity);
        let answered = ratio(text, &before.answer);
        let repeated = ratio(text, &before.query);
        // The words of the query again are a complaint after a statement, and a reply after a question. Thanks resemble
        // each other.
        let replies = case.asked().wants_reply() || response.end == Break::Question;
        let content = [Cue::Thanks, Cue::Praise, Cue::Enough, Cue::Agreement];
        let is_content = (content.into_iter()).any(|cue| case.matched.of_cue(cue).next().is_some());
        let adds_nothing = compared.only_second.is_empty();
        let leaves_nothing = compared.only_first.is_empty();
        for applies in [!replies && !is_content, replies && !is_content, is_content] {
            let of = |number: f32| if applies { number } else { 0.0 };
            self.number(of(answered));
            self.number(of(repeated));
            self.number(of(similarity));
            self.flag(applies && similarity > 0.6);
            self.flag(applies && adds_nothing && !text.words.is_empty());
            self.flag(applies && leaves_nothing && !adds_nothing);
        }
        self.number(ratio(query, &before.answer));
        self.flag(case.is_query());
        // After "flats in Leeds", "flats in Leeds with a garden" searches on, and "cheap ones! flats in Leeds" says what
        // the answer missed.
        let asked: Vec<&str> = query.all_folded().collect();
        let said: Vec<&str> = text.all_folded().collect();
        let is_longer = !asked.is_empty() && said.len() > asked.len();
        self.flag(is_longer && said.starts_with(&asked));
        self.flag(is_longer && said.ends_with(&asked));
    }

    /// Marks, capitals and lengths.
    fn style(&mut self, case: &Case<'_>) {
        let (text, message) = (case.text, case.message.trim());
        let answer = case.response.unwrap_or_default();
        self.flag(text.end == Break::Question);
        self.flag(
            text.words
                .iter()
                .skip(1)
                .any(|word| word.before == Break::Question),
        );
        self.flag(message.contains('!') || message.contains('！'));
        self.flag(message.contains("!!") || message.contains("??"));
        self.flag(message.contains("...") || message.contains('…'));
        self.flag(
            message.chars().any(char::is_uppercase)
                && !message.chars().any(char::is_lowercase)
                && message.len() > 3,
        );
        self.flag(message.chars().next().is_some_and(char::is_lowercase));
        self.flag(message.contains('\n'));
        self.flag(message.contains('`'));
        self.flag(answer.contains('`'));
        self.flag(case.query.unwrap_or_default().contains('`'));
        self.flag(text.quotes);
        let length = message.chars().count();
        for limit in [3, 8, 15, 30, 60, 120, 300] {
            self.flag(length < limit);
        }
        let sentences = text
            .words
            .iter()
            .filter(|word| word.before.ends_sentence())
            .count();
        self.flag(sentences > 1);
        self.flag(sentences > 3);
        let length = answer.chars().count();
        for limit in [25, 60, 150, 400] {
            self.flag(length < limit);
        }
    }

    /// Traces of failures, scripts, and kinds of words.
    fn content(&mut self, case: &Case<'_>) {
        let message = case.message.trim();
        let lower = message.to_ascii_lowercase();
        self.flag(TRACES.iter().any(|trace| lower.contains(trace)));
        self.flag(lower.contains("http"));
        self.flag(
            case.response
                .is_some_and(|answer| may_fail(answer, case.lexicon)),
        );
        self.flag(message.chars().any(|letter| letter > '\u{3000}'));
        self.flag(
            message
                .chars()
                .any(|letter| ('\u{1f300}'..'\u{1fb00}').contains(&letter)),
        );
        let has = |of: Trait| case.matched.tokens.iter().any(|token| token.is(of));
        for of in [
            Trait::Negator,
            Trait::Hypothetical,
            Trait::Adversative,
            Trait::Reference,
            Trait::Interrogative,
            Trait::Lasting,
        ] {
            self.flag(has(of));
        }
    }

    fn symbols(&mut self, case: &Case<'_>, verdict: &Verdict) {
        let asked = case.asked();
        let cue = verdict.because.map(|(cue, ..)| cue);
        let said = verdict.feedback_type;
        self.symbol(format_args!("verdict {said:?}"), 1.0);
        self.symbol(format_args!("cue {cue:?} {said:?}"), 1.0);
        self.symbol(format_args!("cue {cue:?} after {asked:?}"), 0.7);
        self.symbol(format_args!("after {asked:?}"), 0.5);
        let size = match case.message.chars().count() {
            0..4 => 0,
            4..12 => 1,
            12..30 => 2,
            30..80 => 3,
            80..200 => 4,
            _ => 5,
        };
        let end = case.text.end;
        self.symbol(format_args!("after {asked:?} {end:?} {size}"), 0.5);
        self.symbol(format_args!("{end:?} {size}"), 0.5);
        let mut folded = case.text.all_folded();
        let (first, second) = (
            folded.next().unwrap_or_default(),
            folded.next().unwrap_or_default(),
        );
        self.symbol(format_args!("first {first} after {asked:?}"), 0.5);
        self.symbol(format_args!("first {first} {second} after {asked:?}"), 0.5);
        let response = case.response();
        let mut words = response.all_folded();
        let (one, two) = (
            words.next().unwrap_or_default(),
            words.next().unwrap_or_default(),
        );
        self.symbol(format_args!("answer {one}"), 0.4);
        self.symbol(format_args!("answer {one} {two}"), 0.4);
        self.symbol(format_args!("answer {one} first {first}"), 0.4);
        self.symbol(format_args!("answer {one} {said:?}"), 0.4);
        let closing = last_sentence(response);
        let mut words = response
            .words
            .iter()
            .skip(closing)
            .map(|word| response.folded(word));
        let (one, two) = (
            words.next().unwrap_or_default(),
            words.next().unwrap_or_default(),
        );
        self.symbol(format_args!("closing {one} {two}"), 0.4);
        let answer_end = response.end;
        self.symbol(format_args!("closing {answer_end:?} first {first}"), 0.4);
        self.roles(case, asked);
    }

    fn roles(&mut self, case: &Case<'_>, asked: Asked) {
        let matched = case.matched;
        let tokens = &matched.tokens;
        let first = matched.sentence(0).end;
        let last = matched.sentence(tokens.len().saturating_sub(1)).start;
        let contrast = tokens
            .iter()
            .rposition(|token| token.is(Trait::Adversative));
        for found in matched.found.iter().take(READ).copied() {
            let Found { role, from, .. } = found;
            let denied = matched.is_denied(found);
            self.symbol(format_args!("{role:?} {denied}"), 0.7);
            let opens = matched.head(from) == Start::Message;
            self.symbol(format_args!("{role:?} {denied} opens {opens}"), 0.4);
            self.symbol(
                format_args!(
                    "{role:?} {denied} in last {} first {}",
                    from >= last,
                    from < first
                ),
                0.4,
            );
            if let Some(contrast) = contrast {
                self.symbol(
                    format_args!("{role:?} {denied} after but {}", from > contrast),
                    0.6,
                );
            }
            if matches!(role, Role::Cue(_)) {
                self.symbol(format_args!("{role:?} {denied} after {asked:?}"), 0.5);
            }
        }
    }
}

fn of_words(text: &Text, range: Range<usize>) -> Sum {
    let words = text.words.get(range).unwrap_or_default();
    let (first, rest) = words.split_at(words.len().min(READ));
    let last = rest.get(rest.len().saturating_sub(READ)..);
    let read = first.iter().chain(last.unwrap_or_default());
    Sum::of(read.map(|word| text.folded(word)))
}

/// The index after the last word of the first sentence.
fn first_sentence(text: &Text) -> usize {
    let ends = text
        .words
        .iter()
        .skip(1)
        .position(|word| word.before.ends_sentence());
    ends.map_or(text.words.len(), |at| at + 1)
}

/// The index of the first word of the last sentence.
fn last_sentence(text: &Text) -> usize {
    text.words
        .iter()
        .rposition(|word| word.before.ends_sentence())
        .unwrap_or(0)
}

/// The share of the significant words of a text that are among others.
fn ratio(text: &Text, others: &FastSet<&str>) -> f32 {
    let (mut all, mut shared) = (0_u16, 0_u16);
    for word in text.all_folded().take(60).filter(|word| matters(word)) {
        all += 1;
        shared += u16::from(others.contains(word));
    }
    f32::from(shared) / f32::from(all.max(1))
}

#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "only the last bits are lost"
)]
fn to_f32(number: f64) -> f32 {
    number as f32
}

//! Measures of a message and of the turn before it: how long each text is, its marks and numbers, and how many of the words
//! and numbers of one text are also in another. Counts are logarithms; the others are shares, and the mean weight of a word.
//!
//! People quote what they object to, give figures of their own, and name what the answer has missed.

use std::hash::Hasher;

use hearback_text::hash::{FastSet, Fnv};
use hearback_text::{GAP, Text};

use super::{FIRST_MEASURE, Features, MEASURES, to_f32};
use crate::verdict::Case;

/// Classes of characters that are counted: see [`class`].
const CLASSES: usize = 16;
/// Characters, words, and marks of a class that are counted. Few texts of the corpus have more, so what more of them would
/// mean is not known.
const MAX_CHARACTERS: usize = 400;
const MAX_WORDS: usize = 80;
const MAX_MARKS: usize = 12;
/// Words of a text that are compared with those of another.
const MAX_COMPARED: usize = 400;
/// Numbers of a text that are compared with those of another.
const MAX_NUMBERS: usize = 30;
/// A word of more letters does not weigh more.
const MAX_LETTERS: usize = 8;
/// What two characters of a script without spaces weigh.
const PAIR_WEIGHT: u16 = 3;

impl Features {
    pub(super) fn measures(&mut self, case: &Case<'_>) {
        let query = case.query.unwrap_or_default();
        let answer = case.response.unwrap_or_default();
        let mut measures = Vec::with_capacity(MEASURES);
        for (text, read) in [
            (case.message, case.text),
            (answer, case.response()),
            (query, case.query()),
        ] {
            counts(text, read, &mut measures);
        }
        shared_words(case, &mut measures);
        let (mine, theirs, before) = (numbers(case.message), numbers(answer), numbers(query));
        let among = |some: &[&str], others: &[&str]| {
            logarithm(some.iter().filter(|each| others.contains(each)).count())
        };
        let own = mine
            .iter()
            .filter(|each| !theirs.contains(each) && !before.contains(each));
        measures.extend([
            logarithm(mine.len()),
            logarithm(theirs.len()),
            logarithm(before.len()),
            among(&mine, &theirs),
            among(&mine, &before),
            logarithm(own.count()),
            among(&before, &theirs),
        ]);
        debug_assert_eq!(measures.len(), MEASURES);
        for (at, measure) in measures.into_iter().enumerate() {
            if measure != 0.0 {
                self.add(FIRST_MEASURE + at, measure);
            }
        }
    }
}

/// The length of a text in characters and words, and how many characters it has of each class.
fn counts(text: &str, read: &Text, measures: &mut Vec<f32>) {
    let (mut characters, mut classes) = (0, [0_usize; CLASSES]);
    // The gap between excerpts is no mark of the answer.
    for character in text.trim().split(GAP).flat_map(str::chars) {
        characters += 1;
        if let Some(count) = class(character).and_then(|class| classes.get_mut(class)) {
            *count += 1;
        }
    }
    measures.extend([
        logarithm(characters.min(MAX_CHARACTERS)),
        logarithm(read.words.len().min(MAX_WORDS)),
    ]);
    measures.extend(classes.map(|count| logarithm(count.min(MAX_MARKS))));
}

/// The class of a character; most letters, and older symbols such as ❤, have none.
fn class(character: char) -> Option<usize> {
    Some(match character {
        ' ' | 'a'..='z' => return None,
        ',' | '，' | '、' => 0,
        '.' | '。' => 1,
        '?' | '？' => 2,
        '!' | '！' => 3,
        '0'..='9' => 4,
        '\n' => 5,
        '"' | '«' | '»' | '“' | '”' | '„' | '「' | '」' | '『' | '』' => 6,
        '\'' | '’' => 7,
        ':' | '：' | ';' | '；' => 8,
        '…' => 9,
        '(' | '（' => 10,
        '-' | '–' | '—' => 11,
        '*' | '`' | '_' | '#' | '|' => 12,
        other if other.is_ascii_punctuation() => 13,
        '\u{1f000}'..'\u{20000}' => 14,
        other if other.is_uppercase() => 15,
        _ => return None,
    })
}

/// How the words of the message are divided among the answer, the query, both and neither, by their weights.
fn shared_words(case: &Case<'_>, measures: &mut Vec<f32>) {
    let of = |text| units(text).map(|(unit, _)| unit).collect();
    let (answer, query): (FastSet<u64>, FastSet<u64>) = (of(case.response()), of(case.query()));
    let mut message = FastSet::default();
    let [mut in_both, mut in_answer, mut in_query, mut in_neither] = [0_u16; 4];
    let [mut count, mut longest] = [0_u16; 2];
    for (unit, weight) in units(case.text) {
        if message.insert(unit) {
            *match (answer.contains(&unit), query.contains(&unit)) {
                (true, true) => &mut in_both,
                (true, false) => &mut in_answer,
                (false, true) => &mut in_query,
                (false, false) => &mut in_neither,
            } += weight;
            longest = longest.max(weight);
            count += 1;
        }
    }
    let mut seen = FastSet::default();
    let [mut asked, mut answered] = [0_u16; 2];
    for (unit, weight) in units(case.query()) {
        if seen.insert(unit) {
            asked += weight;
            answered += if answer.contains(&unit) { weight } else { 0 };
        }
    }
    let all = in_both + in_answer + in_query + in_neither;
    let share = |part: u16, all: u16| f32::from(part) / f32::from(all.max(1));
    measures.extend([
        share(in_both + in_answer, all),
        share(in_both + in_query, all),
        share(in_query, all),
        share(in_answer, all),
        share(in_neither, all),
        share(answered, asked),
        share(in_both + in_query, asked),
        logarithm(in_neither.into()),
        logarithm(in_query.into()),
        logarithm(in_answer.into()),
        logarithm(longest.into()),
        f32::from(all) / f32::from(count.max(1)),
    ]);
}

/// The words of a text, and the pairs of characters of scripts that are written without spaces: the hash of each, and its
/// weight, by its length.
fn units(text: &Text) -> impl Iterator<Item = (u64, u16)> {
    let mut before: Option<&str> = None;
    text.all_folded()
        .take(MAX_COMPARED)
        .filter_map(move |word| {
            let alone = word.len() >= 3 && word.chars().nth(1).is_none();
            let mut hash = Fnv::default();
            let first = std::mem::replace(&mut before, alone.then_some(word));
            let weight = if alone {
                hash.write(first?.as_bytes());
                PAIR_WEIGHT
            } else {
                let letters = word.chars().take(MAX_LETTERS).count();
                u16::try_from(letters.saturating_sub(1)).unwrap_or(0)
            };
            hash.write(word.as_bytes());
            Some((hash.finish(), weight))
        })
}

/// The numbers in a text, as they are written.
fn numbers(text: &str) -> Vec<&str> {
    let parts = text.split(|letter: char| !letter.is_ascii_digit());
    let numbers = parts.filter(|part| !part.is_empty());
    numbers.take(MAX_NUMBERS).collect()
}

/// The natural logarithm of a count and 1.
#[expect(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "a count of characters is far below 2^52"
)]
fn logarithm(count: usize) -> f32 {
    to_f32((count as f64).ln_1p())
}

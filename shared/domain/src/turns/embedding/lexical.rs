//! The lexical half of a vector: the words of a text and their character n-grams.
//!
//! Each word and each of its character n-grams (3 and 4 characters) is hashed to a dimension and a sign. The n-grams
//! keep typos and inflections close. Function words have a lower weight. How rare a word is in the user's own turns is
//! considered when vectors are compared ([`crate::turns::rarity`]), because a stored vector is not updated when a word
//! becomes frequent.

use hearback_text::Text;
use hearback_text::hash::{fnv, mixed};
use hearback_text::language::is_function_word;

use super::unit;

/// The numbers of this half.
pub(super) const DIMENSIONS: usize = 256;
/// The weight of all n-grams of a word together, relative to the word itself.
const NGRAMS: f64 = 0.6;
/// The weights of function words and of other words: typical inverse document frequencies.
const FUNCTION_WORD: f64 = 0.5;
const OTHER_WORD: f64 = 3.7;

/// A unit vector, or zeros for a text without words.
pub(super) fn embed(text: &Text) -> Vec<f64> {
    let mut vector = vec![0.0_f64; DIMENSIONS];
    let mut bounded = String::new();
    for word in text.all_folded() {
        let weight = if is_function_word(word) {
            FUNCTION_WORD
        } else {
            OTHER_WORD
        };
        add(&mut vector, fnv(word), weight);
        bounded.clear();
        bounded.push('<');
        bounded.push_str(word);
        bounded.push('>');
        let ngrams = || ngrams(&bounded, 3).chain(ngrams(&bounded, 4));
        let count = u32::try_from(ngrams().count()).unwrap_or(u32::MAX);
        for ngram in ngrams() {
            add(
                &mut vector,
                fnv(ngram),
                NGRAMS * weight / f64::from(count).sqrt(),
            );
        }
    }
    unit(vector)
}

/// Adds the weight to the dimension of a hash, with the sign of the hash.
fn add(vector: &mut [f64], hash: u64, weight: f64) {
    let dimensions = u64::try_from(vector.len()).unwrap_or(1).max(1);
    let hash = mixed(hash);
    let at = usize::try_from((hash >> 1) % dimensions).unwrap_or(0);
    if let Some(number) = vector.get_mut(at) {
        *number += if hash & 1 == 0 { weight } else { -weight };
    }
}

/// All substrings of `length` characters.
fn ngrams(text: &str, length: usize) -> impl Iterator<Item = &str> {
    let starts = text.char_indices().map(|(at, _)| at);
    let ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    starts
        .zip(ends.skip(length))
        .filter_map(|(start, end)| text.get(start..end))
}

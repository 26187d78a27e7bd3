//! The lexical embedder: vectors from the words of a text, without a model.
//!
//! It knows no synonyms: "car" is as far from "automobile" as from "pear". It is good enough to find the turn that a
//! message is about among the user's own turns, because people repeat their words. A caller with better embeddings can
//! send them.
//!
//! Each word and each of its character n-grams (3 and 4 characters) is hashed to a dimension and a sign. The n-grams
//! keep typos and inflections close. Function words have a lower weight. How rare a word is in the user's own turns is
//! considered when vectors are compared ([`crate::turns::rarity`]), because a stored vector is not updated when a word becomes
//! frequent.

use hearback_text::Text;
use hearback_text::hash::{fnv, mixed};
use hearback_text::language::is_function_word;

/// The name of this embedder.
pub const NAME: &str = "embedded-lexical-256";
/// The length of a vector.
pub const DIMENSIONS: usize = 256;
/// Bytes of a text that are read at each end.
const READ: usize = 4_000;
/// The weight of all n-grams of a word together, relative to the word itself.
const NGRAMS: f64 = 0.6;
/// The weights of function words and of other words: typical inverse document frequencies.
const FUNCTION_WORD: f64 = 0.5;
const OTHER_WORD: f64 = 3.7;

/// The vector of a text: a unit vector of [`DIMENSIONS`] numbers, or zeros for a text without words. Quotations in the
/// text do not count. The result is the same in every version and on every machine, except for the last bit.
#[must_use]
pub fn embed(text: &str) -> Vec<f32> {
    let text = Text::read(text, READ, READ);
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
    let length = vector.iter().map(|x| x * x).sum::<f64>().sqrt();
    let scale = if length > 0.0 { 1.0 / length } else { 0.0 };
    vector.iter().map(|x| to_f32(x * scale)).collect()
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

#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "only the last bits are lost"
)]
pub(crate) fn to_f32(number: f64) -> f32 {
    number as f32
}

/// A stored vector as [`crate::turns::turn::quantized`] returns it: a scale, and a signed byte for each number. The scale is
/// ignored, because the cosine does not depend on it.
#[derive(Debug, Clone, Copy)]
pub struct Quantized<'a> {
    numbers: &'a [u8],
}

/// Bytes of the scale before the numbers.
const SCALE: usize = 4;
/// Number of products of two bytes whose sum always fits into 32 bits.
const CHUNK: usize = 4_096;

impl<'a> Quantized<'a> {
    /// Parses a stored vector; `None` if it is too short.
    #[must_use]
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        let numbers = bytes.get(SCALE..)?;
        Some(Self { numbers })
    }

    /// The quantized numbers, one signed byte each.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.numbers
    }

    /// The quantized numbers.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = f32> {
        (self.numbers.iter()).map(|byte| f32::from(byte.cast_signed()))
    }

    /// The squared length of the quantized vector.
    pub(crate) fn square(&self) -> f64 {
        to_f64(dot(self.numbers, self.numbers))
    }

    /// The cosine of two stored vectors, −1 to 1; `None` if their dimensions differ.
    #[must_use]
    pub fn cosine(&self, other: &Quantized<'_>) -> Option<f64> {
        self.cosine_of(self.square(), other)
    }

    /// Like [`cosine`](Self::cosine), with the squared length of this vector precomputed.
    pub(crate) fn cosine_of(&self, square: f64, other: &Quantized<'_>) -> Option<f64> {
        if self.numbers.len() != other.numbers.len() {
            return None;
        }
        let dot = to_f64(dot(self.numbers, other.numbers));
        Some(quotient(dot, square, other.square()))
    }
}

fn dot(one: &[u8], other: &[u8]) -> i64 {
    let signed = |byte: &u8| i32::from(byte.cast_signed());
    let parts = one.chunks(CHUNK).zip(other.chunks(CHUNK));
    parts
        .map(|(one, other)| {
            let products = one.iter().zip(other).map(|(a, b)| signed(a) * signed(b));
            i64::from(products.sum::<i32>())
        })
        .sum()
}

#[expect(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "sums of squared bytes are far below 2^53"
)]
fn to_f64(sum: i64) -> f64 {
    sum as f64
}

fn quotient(dot: f64, one: f64, other: f64) -> f64 {
    let lengths = (one * other).sqrt();
    if lengths > 0.0 {
        (dot / lengths).clamp(-1.0, 1.0)
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::turns::turn::quantized;

    /// The cosine of two vectors, −1 to 1; `None` if their dimensions differ, 0 if one of them is zero.
    fn cosine(one: &[f32], other: &[f32]) -> Option<f64> {
        if one.len() != other.len() {
            return None;
        }
        let dot = |one: &[f32], other: &[f32]| -> f64 {
            let pairs = one.iter().zip(other);
            pairs.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
        };
        Some(quotient(dot(one, other), dot(one, one), dot(other, other)))
    }

    fn similarity(one: &str, other: &str) -> f64 {
        cosine(&embed(one), &embed(other)).unwrap()
    }

    #[test]
    fn texts_that_share_content_words_are_similar() {
        let near = similarity("cheap gaming laptops", "the gaming laptop you showed me");
        let far = similarity("cheap gaming laptops", "what do hamsters eat?");
        assert!(near > far + 0.3, "{near} {far}");
        assert!(similarity("the cat and the dog", "the sun and the moon") < 0.4);
    }

    #[test]
    fn vectors_of_different_dimensions_have_no_cosine() {
        assert_eq!(cosine(&[1.0], &[1.0, 0.0]), None);
        assert!(Quantized::read(&[0, 0, 0]).is_none());
        let (one, two) = (quantized(&[1.0]), quantized(&[1.0, 0.0]));
        let [one, two] = [&one, &two].map(|bytes| Quantized::read(bytes).unwrap());
        assert_eq!(one.cosine(&two), None);
        assert_eq!(one.cosine(&one), Some(1.0));
    }

    proptest! {
        #[test]
        fn a_vector_has_length_one_or_zero(text in ".*") {
            let vector = embed(&text);
            prop_assert_eq!(vector.len(), DIMENSIONS);
            let length: f64 = vector.iter().map(|x| f64::from(*x).powi(2)).sum();
            prop_assert!(length.abs() < 1e-6 || (length - 1.0).abs() < 1e-4, "{}", length);
        }

        #[test]
        fn quantized_vectors_keep_their_cosine(
            pairs in prop::collection::vec((-1.0_f32..1.0, -1.0_f32..1.0), 64..300)
        ) {
            let (one, other): (Vec<f32>, Vec<f32>) = pairs.into_iter().unzip();
            let exact = cosine(&one, &other).unwrap();
            let (one, other) = (quantized(&one), quantized(&other));
            let stored = Quantized::read(&one).unwrap().cosine(&Quantized::read(&other).unwrap());
            prop_assert!((stored.unwrap() - exact).abs() < 0.02);
        }

        #[test]
        fn the_cosine_is_symmetric(one in "[a-z ]{0,40}", other in "[a-z ]{0,40}") {
            prop_assert!((similarity(&one, &other) - similarity(&other, &one)).abs() < 1e-12);
        }
    }
}

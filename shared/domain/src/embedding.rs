//! The embedded lexical embedder: vectors by the words of a text, without a model.
//!
//! It is lexical and says so in its name: "car" is as far from "automobile" as from "pear". What
//! it is good for is to find the turn that a message is about among the user's own, where people
//! repeat their words; a caller with better vectors sends them.
//!
//! Each word, and each run of three or four letters of it, falls by its hash on one of the
//! dimensions with a sign. Letters make a typo or another ending land near. A frequent word of the
//! language counts less; how rare a word is in the user's own turns counts where vectors are compared
//! ([`crate::rarity`]), since a stored vector cannot follow how often a word is used after it.

use crate::hash::{fnv, mixed};
use crate::text::Text;
use crate::text::language::is_function_word;

/// What a report calls the vectors of this module.
pub const NAME: &str = "embedded-lexical-256";
/// How many numbers a vector has.
pub const DIMENSIONS: usize = 256;
/// Bytes of a text that are read at either end.
const READ: usize = 4_000;
/// What all runs of letters of a word count, beside the word itself.
const LETTERS: f64 = 0.6;
/// What a frequent word of the language counts, and any other: the logarithm of how many of twenty
/// turns there are to each that has it.
const FREQUENT: f64 = 0.5;
const OTHER: f64 = 3.7;

/// The vector of a text: [`DIMENSIONS`] numbers of length 1 together, or all 0 for a text without
/// a word. What is quoted in the text does not count. The same in every version and on every
/// machine, but for the last bit.
#[must_use]
pub fn embed(text: &str) -> Vec<f32> {
    let text = Text::read(text, READ, READ);
    let mut vector = vec![0.0_f64; DIMENSIONS];
    let mut edged = String::new();
    for word in text.all_folded() {
        let weight = if is_function_word(word) {
            FREQUENT
        } else {
            OTHER
        };
        add(&mut vector, fnv(word), weight);
        edged.clear();
        edged.push('<');
        edged.push_str(word);
        edged.push('>');
        let runs = || runs(&edged, 3).chain(runs(&edged, 4));
        let count = u32::try_from(runs().count()).unwrap_or(u32::MAX);
        for run in runs() {
            add(
                &mut vector,
                fnv(run),
                LETTERS * weight / f64::from(count).sqrt(),
            );
        }
    }
    let length = vector.iter().map(|x| x * x).sum::<f64>().sqrt();
    let scale = if length > 0.0 { 1.0 / length } else { 0.0 };
    vector.iter().map(|x| to_f32(x * scale)).collect()
}

/// Adds to the dimension that a hash falls on, with the sign that it has.
fn add(vector: &mut [f64], hash: u64, weight: f64) {
    let dimensions = u64::try_from(vector.len()).unwrap_or(1).max(1);
    let hash = mixed(hash);
    let at = usize::try_from((hash >> 1) % dimensions).unwrap_or(0);
    if let Some(number) = vector.get_mut(at) {
        *number += if hash & 1 == 0 { weight } else { -weight };
    }
}

/// Every run of so many characters.
fn runs(text: &str, length: usize) -> impl Iterator<Item = &str> {
    let starts = text.char_indices().map(|(at, _)| at);
    let ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    starts
        .zip(ends.skip(length))
        .filter_map(|(start, end)| text.get(start..end))
}

#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "what is weighed loses nothing but its last bits"
)]
pub(crate) fn to_f32(number: f64) -> f32 {
    number as f32
}

/// A stored vector, as [`crate::turn::quantized`] makes it: a scale, and a signed byte for each
/// number, from which these are read without the scale. The cosine does not depend on the scale, so that it is exact for the bytes.
#[derive(Debug, Clone, Copy)]
pub struct Quantized<'a> {
    numbers: &'a [u8],
}

/// Bytes of the scale before the numbers.
const SCALE: usize = 4;
/// Products of bytes that a sum of 32 bits holds for sure.
const SUMMED: usize = 4_096;

impl<'a> Quantized<'a> {
    /// Reads a stored vector; `None` if it is too short to be one.
    #[must_use]
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        let numbers = bytes.get(SCALE..)?;
        Some(Self { numbers })
    }

    /// Its numbers, a signed byte each, without the scale.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.numbers
    }

    /// Its numbers, without the scale.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = f32> {
        (self.numbers.iter()).map(|byte| f32::from(byte.cast_signed()))
    }

    /// The square of its length, without the scale.
    pub(crate) fn square(&self) -> f64 {
        to_f64(dot(self.numbers, self.numbers))
    }

    /// The cosine of two stored vectors, −1 to 1; `None` if they have not equally many numbers.
    #[must_use]
    pub fn cosine(&self, other: &Quantized<'_>) -> Option<f64> {
        self.cosine_of(self.square(), other)
    }

    /// The same, for one who has the square of this one's length.
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
    let parts = one.chunks(SUMMED).zip(other.chunks(SUMMED));
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
    reason = "sums of squares of bytes are far below what is exact"
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
    use crate::turn::quantized;

    /// The cosine of two vectors, −1 to 1; `None` if they have not equally many numbers. 0 if one of
    /// them is nothing but 0.
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

    fn likeness(one: &str, other: &str) -> f64 {
        cosine(&embed(one), &embed(other)).unwrap()
    }

    #[test]
    fn what_shares_words_that_matter_is_near() {
        let near = likeness("cheap gaming laptops", "the gaming laptop you showed me");
        let far = likeness("cheap gaming laptops", "what do hamsters eat?");
        assert!(near > far + 0.3, "{near} {far}");
        assert!(likeness("the cat and the dog", "the sun and the moon") < 0.4);
    }

    #[test]
    fn vectors_of_other_sizes_have_no_cosine() {
        assert_eq!(cosine(&[1.0], &[1.0, 0.0]), None);
        assert!(Quantized::read(&[0, 0, 0]).is_none());
        let (one, two) = (quantized(&[1.0]), quantized(&[1.0, 0.0]));
        let [one, two] = [&one, &two].map(|bytes| Quantized::read(bytes).unwrap());
        assert_eq!(one.cosine(&two), None);
        assert_eq!(one.cosine(&one), Some(1.0));
    }

    proptest! {
        #[test]
        fn a_vector_has_length_one_or_none(text in ".*") {
            let vector = embed(&text);
            prop_assert_eq!(vector.len(), DIMENSIONS);
            let length: f64 = vector.iter().map(|x| f64::from(*x).powi(2)).sum();
            prop_assert!(length.abs() < 1e-6 || (length - 1.0).abs() < 1e-4, "{}", length);
        }

        #[test]
        fn stored_vectors_keep_their_cosine(
            pairs in prop::collection::vec((-1.0_f32..1.0, -1.0_f32..1.0), 64..300)
        ) {
            let (one, other): (Vec<f32>, Vec<f32>) = pairs.into_iter().unzip();
            let exact = cosine(&one, &other).unwrap();
            let (one, other) = (quantized(&one), quantized(&other));
            let stored = Quantized::read(&one).unwrap().cosine(&Quantized::read(&other).unwrap());
            prop_assert!((stored.unwrap() - exact).abs() < 0.02);
        }

        #[test]
        fn cosine_is_symmetric(one in "[a-z ]{0,40}", other in "[a-z ]{0,40}") {
            prop_assert!((likeness(&one, &other) - likeness(&other, &one)).abs() < 1e-12);
        }
    }
}

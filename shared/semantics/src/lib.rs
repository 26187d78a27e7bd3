//! Static vectors of English word pieces: the meaning of a text as the mean of its pieces.
//!
//! The table was distilled from a sentence encoder (`distil.py`, NOTICE). It is read where it is in the program: nothing
//! is parsed or allocated at the start. Words that it does not have are split into the longest pieces that it has
//! (`WordPiece`), and contractions at their apostrophe. Words of scripts other than the Latin one have no pieces.

use std::hash::Hasher;
use std::ops::Add;

use hearback_text::hash::Fnv;

/// The numbers of a vector.
pub const DIMENSIONS: usize = 128;

/// `distil.py` describes the layout.
static TABLE: &[u8] = include_bytes!("../table.bin");

/// The size of the hash table of the pieces.
const SLOTS: usize = 1 << 15;
const SLOT_COUNT: u64 = 1 << 15;
/// The maximum length of a word that is split into pieces, in bytes.
const MAX_WORD: usize = 32;
/// The prefix of a piece that continues a word.
const CONTINUES: &str = "##";

/// A vector of a text: of length one, or zeros for a text without pieces.
pub type Vector = [f32; DIMENSIONS];

/// The vector of these words, which are lower-case and without accents.
#[must_use]
pub fn embed<'a>(words: impl IntoIterator<Item = &'a str>) -> Vector {
    Sum::of(words).vector()
}

/// The sum of the vectors of the pieces of a text. The sum of a text is that of its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sum([i32; DIMENSIONS]);

impl Sum {
    /// The sum of these words, which are lower-case and without accents.
    #[must_use]
    pub fn of<'a>(words: impl IntoIterator<Item = &'a str>) -> Self {
        let mut sum = [0_i32; DIMENSIONS];
        let parts = words
            .into_iter()
            .flat_map(|word| word.split(|letter: char| !letter.is_ascii_alphanumeric()))
            // Between two characters of another script.
            .filter(|part| !part.is_empty());
        for part in parts {
            for piece in pieces(part) {
                let row = TABLE_PARTS
                    .vectors
                    .get(piece * DIMENSIONS..)
                    .unwrap_or_default();
                for (sum, number) in sum.iter_mut().zip(row) {
                    *sum += i32::from(number.cast_signed());
                }
            }
        }
        Self(sum)
    }

    /// The vector of the text.
    #[must_use]
    pub fn vector(&self) -> Vector {
        normal(&self.0)
    }
}

impl Add for Sum {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        for (one, other) in self.0.iter_mut().zip(other.0) {
            *one += other;
        }
        self
    }
}

/// The cosine of two vectors, −1 to 1.
#[must_use]
pub fn cosine(one: &Vector, other: &Vector) -> f32 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}

#[expect(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "sums of signed bytes are far below 2^24"
)]
fn normal(sum: &[i32; DIMENSIONS]) -> Vector {
    let numbers = sum.map(|number| number as f32);
    let length = numbers.iter().map(|x| x * x).sum::<f32>().sqrt();
    let scale = if length > 0.0 { 1.0 / length } else { 0.0 };
    numbers.map(|number| number * scale)
}

/// The parts of the table.
struct Parts {
    slots: &'static [u8],
    offsets: &'static [u8],
    strings: &'static [u8],
    vectors: &'static [u8],
}

static TABLE_PARTS: Parts = parts();

/// Divides the table when the program is compiled.
#[expect(
    clippy::as_conversions,
    reason = "there is no other conversion in a constant"
)]
const fn parts() -> Parts {
    let count = match TABLE.first_chunk::<4>() {
        Some(bytes) => u32::from_le_bytes(*bytes) as usize,
        None => 0,
    };
    let (_, rest) = TABLE.split_at(4);
    let (slots, rest) = rest.split_at(SLOTS * 2);
    let (offsets, rest) = rest.split_at((count + 1) * 4);
    let (strings, vectors) = rest.split_at(rest.len() - count * DIMENSIONS);
    Parts {
        slots,
        offsets,
        strings,
        vectors,
    }
}

/// The pieces of a word, or none if it has a part without a piece.
fn pieces(word: &str) -> Vec<usize> {
    let mut found = Vec::new();
    if word.len() > MAX_WORD || !word.is_ascii() {
        return found;
    }
    let mut from = 0;
    while let Some(rest) = word.get(from..).filter(|rest| !rest.is_empty()) {
        let prefix = if from == 0 { "" } else { CONTINUES };
        let Some((piece, length)) = longest(prefix, rest) else {
            return Vec::new();
        };
        found.push(piece);
        from += length;
    }
    found
}

/// The longest piece that is a prefix and the start of a text of at most [`MAX_WORD`] bytes, and the length of that start.
fn longest(prefix: &str, text: &str) -> Option<(usize, usize)> {
    // The hash of each start continues that of the one before it.
    let mut hash = Fnv::default();
    hash.write(prefix.as_bytes());
    let mut hashes = [hash; MAX_WORD];
    for (byte, of_start) in text.as_bytes().iter().zip(&mut hashes) {
        hash.write(&[*byte]);
        *of_start = hash;
    }
    let mut starts = hashes.iter().take(text.len()).enumerate().rev();
    starts.find_map(|(last, hash)| {
        let length = last + 1;
        let piece = piece(hash.finish(), prefix, text.get(..length)?)?;
        Some((piece, length))
    })
}

/// The index of a piece with this hash.
fn piece(hash: u64, prefix: &str, rest: &str) -> Option<usize> {
    let mut slot = usize::try_from(hash % SLOT_COUNT).ok()?;
    loop {
        let index = u16_at(TABLE_PARTS.slots, slot)?;
        let index = usize::from(index.checked_sub(1)?);
        let string = TABLE_PARTS
            .strings
            .get(u32_at(TABLE_PARTS.offsets, index)?..u32_at(TABLE_PARTS.offsets, index + 1)?)?;
        // Most other strings of a slot differ in length already.
        let has_length = string.len() == prefix.len() + rest.len();
        if has_length && string.strip_prefix(prefix.as_bytes()) == Some(rest.as_bytes()) {
            return Some(index);
        }
        slot = (slot + 1) % SLOTS;
    }
}

fn u16_at(bytes: &[u8], index: usize) -> Option<u16> {
    let bytes = bytes.get(index * 2..)?.first_chunk::<2>()?;
    Some(u16::from_le_bytes(*bytes))
}

fn u32_at(bytes: &[u8], index: usize) -> Option<usize> {
    let bytes = bytes.get(index * 4..)?.first_chunk::<4>()?;
    usize::try_from(u32::from_le_bytes(*bytes)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn similarity(one: &str, other: &str) -> f32 {
        cosine(&embed(one.split(' ')), &embed(other.split(' ')))
    }

    #[test]
    fn paraphrases_are_nearer_than_other_texts() {
        for (text, paraphrase, other) in [
            ("cheap laptop", "inexpensive notebook computer", "loud dog"),
            (
                "my car is broken",
                "the vehicle needs repair",
                "write a poem",
            ),
            ("the answer is wrong", "this is incorrect", "book a table"),
        ] {
            let (near, far) = (similarity(text, paraphrase), similarity(text, other));
            assert!(near > far + 0.15, "{text}: {near} {far}");
        }
    }

    #[test]
    fn every_piece_is_found() {
        let count = TABLE_PARTS.vectors.len() / DIMENSIONS;
        assert!(count > 10_000, "{count}");
        for index in 0..count {
            let range = u32_at(TABLE_PARTS.offsets, index).unwrap()
                ..u32_at(TABLE_PARTS.offsets, index + 1).unwrap();
            let string = std::str::from_utf8(&TABLE_PARTS.strings[range]).unwrap();
            let found = match string.strip_prefix(CONTINUES) {
                Some(rest) => longest(CONTINUES, rest),
                None => longest("", string),
            };
            assert_eq!(found.map(|(piece, _)| piece), Some(index), "{string}");
        }
    }

    #[test]
    fn a_word_is_split_into_the_longest_pieces() {
        assert_eq!(pieces("laptop").len(), 1);
        assert_eq!(
            pieces("laptopish"),
            [pieces("laptop"), vec![longest(CONTINUES, "ish").unwrap().0]].concat()
        );
        assert_eq!(pieces("zq").len(), 2);
        for without in ["", "größe", "東京", &"a".repeat(33)] {
            assert!(pieces(without).is_empty(), "{without}");
        }
    }

    #[test]
    fn a_vector_has_length_one_or_zero() {
        for (words, expected) in [
            ("", 0.0),
            ("東京", 0.0),
            ("no", 1.0),
            ("book a table", 1.0),
            ("don't", 1.0),
        ] {
            let vector = embed(words.split(' '));
            assert!(
                (cosine(&vector, &vector) - expected).abs() < 1e-5,
                "{words}"
            );
        }
    }
}

//! The semantic half of a vector: the mean of the vectors of a text's words, in English.
//!
//! All texts have a direction in common, which is subtracted: otherwise unrelated texts would be similar. Texts that are
//! recognised as another language have no semantic half, since the table has only English pieces. Function words are
//! skipped, because they say nothing about the subject.

use std::collections::HashMap;

use hearback_semantics::DIMENSIONS;
use hearback_text::Text;
use hearback_text::language::{guess, is_function_word};

use super::unit;

/// The language of the table.
const ENGLISH: &str = "en";
/// The mean vector of some 4,000 English turns of the corpus that the detector is trained on, in units of 1/256. It is
/// part of the embedder: with another one, stored vectors could not be compared with new ones.
const CENTRE: [i8; DIMENSIONS] = [
    -39, -79, -59, 53, -3, 38, -10, 7, -19, 10, 1, 1, 14, -10, -5, -10, -12, 5, -5, 4, -1, 10, 2,
    6, 3, 6, -8, 6, -6, -2, 2, 12, -6, -2, 13, 5, 12, -3, 7, 1, -8, 2, 5, 5, 5, 4, 2, -1, -5, 4,
    -3, -4, 3, 0, -13, -7, 0, -12, 2, 5, -1, -4, 1, -6, 0, -12, 10, -8, -8, -1, 12, -5, 11, 5, 11,
    -4, -2, 9, 3, -5, 2, 9, 7, -8, 9, -13, -10, 13, 3, -2, 3, 6, -2, -2, -11, 5, -3, -4, 9, -1, -1,
    -2, -10, 6, -10, 4, 0, 2, -8, -3, 0, 6, 1, 7, 5, 1, 2, 0, 2, 12, -1, 4, 1, -4, -3, 3, 0, -1,
];
const CENTRE_UNIT: f64 = 256.0;

/// A unit vector, or zeros for a text without English words.
pub(super) fn embed(text: &Text) -> Vec<f64> {
    let added: HashMap<String, String> = HashMap::new();
    if guess(text, &added).is_some_and(|language| language != ENGLISH) {
        return vec![0.0; DIMENSIONS];
    }
    let words = text.all_folded().filter(|word| !is_function_word(word));
    let vector = hearback_semantics::embed(words);
    if vector.iter().all(|number| *number == 0.0) {
        return vec![0.0; DIMENSIONS];
    }
    let centred = vector.iter().zip(CENTRE);
    unit(
        centred
            .map(|(number, centre)| f64::from(*number) - f64::from(centre) / CENTRE_UNIT)
            .collect(),
    )
}

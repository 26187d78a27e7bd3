//! The embedded embedder: vectors from the words of a text and from their meanings, without a model.
//!
//! A vector has a lexical half, in every language, and a semantic half, in English. People repeat their words, names and
//! numbers, which only the lexical half knows; for "car" and "automobile" there is the semantic one. A caller with better
//! embeddings can send them.

mod lexical;
mod semantic;

use hearback_text::Text;

/// The name of this embedder.
pub const NAME: &str = "embedded-semantic-384";
/// The length of a vector.
pub const DIMENSIONS: usize = lexical::DIMENSIONS + hearback_semantics::DIMENSIONS;
/// The name of the embedder of earlier versions: its vectors are the lexical half alone.
pub const LEXICAL: &str = "embedded-lexical-256";
/// The length of its vectors.
pub const LEXICAL_DIMENSIONS: usize = lexical::DIMENSIONS;
/// The length of the semantic half, relative to the lexical one.
const SEMANTIC: f64 = 0.8;
/// Bytes of a text that are read at each end.
const READ: usize = 4_000;

/// The vector of a text: a unit vector of [`DIMENSIONS`] numbers, or zeros for a text without words. Quotations in the
/// text do not count. The result is the same in every version and on every machine, except for the last bit.
#[must_use]
pub fn embed(text: &str) -> Vec<f32> {
    let text = Text::read(text, READ, READ);
    let mut vector = lexical::embed(&text);
    vector.extend(semantic::embed(&text).iter().map(|x| SEMANTIC * x));
    unit(vector).into_iter().map(to_f32).collect()
}

/// The vector with the length one, or zeros.
fn unit(mut vector: Vec<f64>) -> Vec<f64> {
    let length = vector.iter().map(|x| x * x).sum::<f64>().sqrt();
    if length > 0.0 {
        for number in &mut vector {
            *number /= length;
        }
    }
    vector
}

#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "only the last bits are lost"
)]
pub(crate) fn to_f32(number: f64) -> f32 {
    number as f32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::turns::quantized::Quantized;
    use crate::turns::turn::quantized;

    fn similarity(one: &str, other: &str) -> f64 {
        let [one, other] = [one, other].map(|text| quantized(&embed(text)));
        let [one, other] = [&one, &other].map(|bytes| Quantized::read(bytes).unwrap());
        one.cosine(&other).unwrap()
    }

    #[test]
    fn texts_that_share_content_words_are_similar() {
        let near = similarity("cheap gaming laptops", "the gaming laptop you showed me");
        let far = similarity("cheap gaming laptops", "what do hamsters eat?");
        assert!(near > far + 0.3, "{near} {far}");
        assert!(similarity("the cat and the dog", "the sun and the moon") < 0.4);
    }

    #[test]
    fn paraphrases_without_a_common_word_are_similar() {
        for (text, paraphrase, other) in [
            (
                "cheap laptop",
                "inexpensive notebook computer",
                "what do hamsters eat?",
            ),
            (
                "my car does not start",
                "the engine of this vehicle is dead",
                "a poem about spring",
            ),
            (
                "how do I cancel my subscription",
                "end the membership",
                "flights to Rome in May",
            ),
            (
                "headache since yesterday",
                "pain in my forehead",
                "translate this letter",
            ),
        ] {
            let (near, far) = (similarity(text, paraphrase), similarity(text, other));
            assert!(near > far + 0.1 && near > 0.1, "{text}: {near} {far}");
        }
    }

    #[test]
    fn unrelated_texts_are_not_similar() {
        let texts = [
            "write a birthday card for my sister",
            "why does my build fail with an undefined symbol",
            "the capital of Australia",
            "a recipe with lentils and spinach",
        ];
        for (at, text) in texts.iter().enumerate() {
            for other in texts.iter().skip(at + 1) {
                assert!(similarity(text, other) < 0.2, "{text} / {other}");
            }
        }
    }

    #[test]
    fn other_languages_have_no_semantic_half() {
        for (text, is_english) in [
            ("a cheap laptop for the school", true),
            ("ein billiger Laptop für die Schule", false),
            ("un ordinateur portable pas cher pour l'école", false),
            ("学校で使う安いノートパソコン", false),
        ] {
            let vector = embed(text);
            let semantic = &vector[LEXICAL_DIMENSIONS..];
            assert_eq!(semantic.iter().any(|x| *x != 0.0), is_english, "{text}");
        }
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
        fn the_cosine_is_symmetric(one in "[a-z ]{0,40}", other in "[a-z ]{0,40}") {
            prop_assert!((similarity(&one, &other) - similarity(&other, &one)).abs() < 1e-12);
        }
    }
}

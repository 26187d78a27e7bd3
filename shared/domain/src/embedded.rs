//! An embedding with the name of what made it: only those of one maker can be compared.
//!
//! Source: product specification, section 3: embeddings come from the request, or else from the
//! embedded lexical embedder, and the report says from which.

use crate::embedding::{self, Idf, embed};
use crate::turn::quantized;

/// A vector, and who made it.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedded {
    /// Who made it: `request:<numbers>`, or the name of the embedded embedder.
    pub embedder: String,
    /// Its numbers.
    pub vector: Vec<f32>,
}

impl Embedded {
    /// The caller's own vector, or that of a text.
    #[must_use]
    pub fn of(given: Option<&[f32]>, text: &str) -> Self {
        match given {
            Some(given) => Self {
                embedder: format!("request:{}", given.len()),
                vector: given.to_vec(),
            },
            // What is stored is compared with what will be said in a year: it cannot follow how
            // often a word is used meanwhile.
            None => Self {
                embedder: embedding::NAME.to_owned(),
                vector: embed(text, &Idf::default()),
            },
        }
    }

    /// The vector as it is kept.
    #[must_use]
    pub fn stored(&self) -> Vec<u8> {
        quantized(&self.vector)
    }
}

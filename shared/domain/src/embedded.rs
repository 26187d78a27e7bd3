//! An embedding with the name of what made it: only those of one maker can be compared.
//!
//! Source: product specification, section 3: embeddings come from the request, from Amazon Bedrock,
//! or from the embedded lexical embedder, and the report says from which.

use serde::Serialize;
use utoipa::ToSchema;

use crate::embedding::{self, Quantized, embed};
use crate::turn::quantized;

/// A vector, and who made it.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedded {
    /// Who made it: `request:<numbers>`, `bedrock:<model>:<numbers>`, or the name of the embedded
    /// embedder.
    pub embedder: String,
    /// Its numbers.
    pub vector: Vec<f32>,
}

/// What kind of maker made a vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EmbeddingKind {
    /// The caller.
    Caller,
    /// A model on Amazon Bedrock.
    Bedrock,
    /// The embedded lexical embedder.
    Lexical,
}

impl Embedded {
    /// What kind of maker made it.
    #[must_use]
    pub fn kind(&self) -> EmbeddingKind {
        if self.embedder == embedding::NAME {
            EmbeddingKind::Lexical
        } else if self.embedder.starts_with("bedrock:") {
            EmbeddingKind::Bedrock
        } else {
            EmbeddingKind::Caller
        }
    }

    /// A caller's own vector.
    #[must_use]
    pub fn given(vector: &[f32]) -> Self {
        Self {
            embedder: format!("request:{}", vector.len()),
            vector: vector.to_vec(),
        }
    }

    /// The embedded lexical embedder's vector of a text.
    #[must_use]
    pub fn lexical(text: &str) -> Self {
        Self {
            embedder: embedding::NAME.to_owned(),
            vector: embed(text),
        }
    }

    /// The cosine of this vector and a stored one of `embedder`, −1 to 1; `None` if another made that
    /// one.
    #[must_use]
    pub fn cosine(&self, embedder: &str, stored: &[u8]) -> Option<f64> {
        if self.embedder != embedder {
            return None;
        }
        let own = self.stored();
        Quantized::read(&own)?.cosine(&Quantized::read(stored)?)
    }

    /// The vector as it is kept.
    #[must_use]
    pub fn stored(&self) -> Vec<u8> {
        quantized(&self.vector)
    }
}

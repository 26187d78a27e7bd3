//! Embeddings with the name of their embedder: only embeddings of the same embedder can be compared.
//!
//! An embedding is sent by the caller, or computed by Amazon Bedrock or by the embedded embedder. Responses name
//! the source.

use serde::Serialize;
use utoipa::ToSchema;

use crate::turns::embedding::{LEXICAL, NAME, embed};
use crate::turns::quantized::Quantized;
use crate::turns::turn::quantized;

/// A vector and its embedder.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedded {
    /// `request:<dimensions>`, `bedrock:<model>:<dimensions>`, or [`NAME`].
    pub embedder: String,
    /// The numbers of the vector.
    pub vector: Vec<f32>,
}

/// The source of a vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EmbeddingKind {
    /// Sent by the caller.
    Caller,
    /// A model on Amazon Bedrock.
    Bedrock,
    /// The embedded embedder: words, and in English their meanings.
    Embedded,
}

impl Embedded {
    /// The source of the vector.
    #[must_use]
    pub fn kind(&self) -> EmbeddingKind {
        if self.embedder == NAME {
            EmbeddingKind::Embedded
        } else if self.embedder.starts_with("bedrock:") {
            EmbeddingKind::Bedrock
        } else {
            EmbeddingKind::Caller
        }
    }

    /// A vector that the caller sent.
    #[must_use]
    pub fn from_caller(vector: &[f32]) -> Self {
        Self {
            embedder: format!("request:{}", vector.len()),
            vector: vector.to_vec(),
        }
    }

    /// The embedding of a text by the embedded embedder.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self {
            embedder: NAME.to_owned(),
            vector: embed(text),
        }
    }

    /// Whether a vector of this embedder can be compared with this one: it has the same embedder, or is a vector that
    /// the embedded embedder of an earlier version made.
    #[must_use]
    pub fn is_comparable(&self, embedder: &str) -> bool {
        self.embedder == embedder || (self.embedder == NAME && embedder == LEXICAL)
    }

    /// The cosine of this vector and a stored vector of `embedder`, −1 to 1; `None` if the embedders differ.
    #[must_use]
    pub fn cosine(&self, embedder: &str, stored: &[u8]) -> Option<f64> {
        if self.embedder != embedder {
            return None;
        }
        let own = self.stored();
        Quantized::read(&own)?.cosine(&Quantized::read(stored)?)
    }

    /// The stored form of the vector.
    #[must_use]
    pub fn stored(&self) -> Vec<u8> {
        quantized(&self.vector)
    }
}

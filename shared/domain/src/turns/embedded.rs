//! Embeddings with the name of their embedder: only embeddings of the same embedder can be compared.
//!
//! An embedding is sent by the caller, or computed by Amazon Bedrock or by the built-in lexical embedder. Responses
//! name the source.

use serde::Serialize;
use utoipa::ToSchema;

use crate::turns::embedding::{self, Quantized, embed};
use crate::turns::turn::quantized;

/// A vector and its embedder.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedded {
    /// `request:<dimensions>`, `bedrock:<model>:<dimensions>`, or the name of the lexical embedder.
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
    /// The built-in lexical embedder.
    Lexical,
}

impl Embedded {
    /// The source of the vector.
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

    /// A vector that the caller sent.
    #[must_use]
    pub fn from_caller(vector: &[f32]) -> Self {
        Self {
            embedder: format!("request:{}", vector.len()),
            vector: vector.to_vec(),
        }
    }

    /// The lexical embedding of a text.
    #[must_use]
    pub fn lexical(text: &str) -> Self {
        Self {
            embedder: embedding::NAME.to_owned(),
            vector: embed(text),
        }
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

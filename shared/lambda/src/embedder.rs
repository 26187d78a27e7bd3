//! Embedders: the caller, a model on Amazon Bedrock, or the embedded embedder.
//!
//! Each vector has the name of its embedder, by which it is stored, compared and reported.

#[cfg(feature = "bedrock")]
mod bedrock;

use std::fmt::Debug;
use std::pin::Pin;
use std::sync::Arc;

use hearback_domain::turns::embedded::Embedded;

use crate::settings::{BadSetting, EMBEDDING_MODEL, setting};

#[cfg(feature = "bedrock")]
pub use bedrock::Bedrock;

/// The future of a vector.
pub type Embedding<'a> =
    Pin<Box<dyn Future<Output = Result<Embedded, EmbeddingFailed>> + Send + 'a>>;

/// Embeds texts with a model.
pub trait Embedder: Debug + Send + Sync {
    /// The vector of a text, with the name of the embedder.
    fn embed<'a>(&'a self, text: &'a str) -> Embedding<'a>;
}

/// The reason for which an embedder failed, without the text.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct EmbeddingFailed(pub String);

/// The embedder of this deployment, for texts without a vector: a model, or the embedded embedder.
///
/// The embedded one is called by [`of`](Self::of) alone, so that functions without vectors do not contain its table.
#[derive(Debug, Clone, Default)]
pub struct Embeddings(Option<Arc<dyn Embedder>>);

impl Embeddings {
    /// Uses this embedder.
    pub fn with(embedder: impl Embedder + 'static) -> Self {
        Self(Some(Arc::new(embedder)))
    }

    /// Uses the model that the environment names, or the embedded embedder.
    pub fn from_env() -> Result<Self, BadSetting> {
        match setting(EMBEDDING_MODEL) {
            Ok(model) if !model.is_empty() => Self::of_model(&model)
                .map_err(|reason| BadSetting::Unusable(EMBEDDING_MODEL, reason)),
            _ => Ok(Self::default()),
        }
    }

    #[cfg(feature = "bedrock")]
    fn of_model(model: &str) -> Result<Self, String> {
        Bedrock::from_env(model).map(Self::with)
    }

    #[cfg(not(feature = "bedrock"))]
    fn of_model(_model: &str) -> Result<Self, String> {
        Err("this was built without the feature `bedrock`".to_owned())
    }

    /// The caller's vector, or that of the text. If the deployment's model fails, the embedded
    /// one replaces it: a weak vector is better than a rejected turn, and the name shows it.
    pub async fn of(&self, given: Option<&[f32]>, text: &str) -> Embedded {
        let model = match (given, &self.0) {
            (Some(given), _) => return Embedded::from_caller(given),
            (None, None) => return Embedded::of(text),
            (None, Some(model)) => model,
        };
        model.embed(text).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "the embedded embedder is used instead");
            Embedded::of(text)
        })
    }
}

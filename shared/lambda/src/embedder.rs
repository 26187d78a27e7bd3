//! Who makes a vector of a text: the caller, a model on Amazon Bedrock, or the embedded lexical
//! embedder.
//!
//! Source: product specification, section 3. Each vector carries the name of its maker, by which it is
//! stored, compared and reported.

#[cfg(feature = "bedrock")]
mod bedrock;

use std::fmt::Debug;
use std::pin::Pin;
use std::sync::Arc;

use hearback_domain::embedded::Embedded;

use crate::app::{BadSetting, EMBEDDING_MODEL, setting};

#[cfg(feature = "bedrock")]
pub use bedrock::Bedrock;

/// A vector in the making.
pub type Embedding<'a> =
    Pin<Box<dyn Future<Output = Result<Embedded, EmbeddingFailed>> + Send + 'a>>;

/// Makes vectors of texts.
pub trait Embedder: Debug + Send + Sync {
    /// The vector of a text, with the name of its maker.
    fn embed<'a>(&'a self, text: &'a str) -> Embedding<'a>;
}

/// Why an embedder made no vector. It tells nothing of the text.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct EmbeddingFailed(pub String);

/// The caller's own vector, which came with the text.
#[derive(Debug, Clone, Copy)]
pub struct Given<'v>(pub &'v [f32]);

impl Embedder for Given<'_> {
    fn embed<'a>(&'a self, _text: &'a str) -> Embedding<'a> {
        Box::pin(async { Ok(Embedded::given(self.0)) })
    }
}

/// The embedded lexical embedder: needs nothing, and never fails.
#[derive(Debug, Clone, Copy)]
pub struct Lexical;

impl Embedder for Lexical {
    fn embed<'a>(&'a self, text: &'a str) -> Embedding<'a> {
        Box::pin(async move { Ok(Embedded::lexical(text)) })
    }
}

/// The embedder of this deployment, for texts that come without a vector.
#[derive(Debug, Clone)]
pub struct Embeddings(Arc<dyn Embedder>);

impl Default for Embeddings {
    fn default() -> Self {
        Self::by(Lexical)
    }
}

impl Embeddings {
    /// By this embedder.
    pub fn by(embedder: impl Embedder + 'static) -> Self {
        Self(Arc::new(embedder))
    }

    /// By the model that the environment names, or else the embedded one.
    pub fn from_env() -> Result<Self, BadSetting> {
        match setting(EMBEDDING_MODEL) {
            Ok(model) if !model.is_empty() => Self::of_model(&model)
                .map_err(|reason| BadSetting::Unusable(EMBEDDING_MODEL, reason)),
            _ => Ok(Self::default()),
        }
    }

    #[cfg(feature = "bedrock")]
    fn of_model(model: &str) -> Result<Self, String> {
        Bedrock::from_env(model).map(Self::by)
    }

    #[cfg(not(feature = "bedrock"))]
    fn of_model(_model: &str) -> Result<Self, String> {
        Err("this was built without the feature `bedrock`".to_owned())
    }

    /// The caller's own vector, or that of a text. Where this deployment's embedder fails, the embedded
    /// one stands in: it is better to find little than to take no turn, and the name tells.
    pub async fn of(&self, given: Option<&[f32]>, text: &str) -> Embedded {
        let made = match given {
            Some(given) => Given(given).embed(text).await,
            None => self.0.embed(text).await,
        };
        made.unwrap_or_else(|error| {
            tracing::warn!(%error, "the embedded embedder stands in");
            Embedded::lexical(text)
        })
    }
}

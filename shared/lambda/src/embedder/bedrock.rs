//! Vectors by a Titan Text Embeddings model on Amazon Bedrock.
//!
//! Source: Amazon Bedrock User Guide, 'Amazon Titan Text Embeddings models', request and response of V2.

use std::time::Duration;

use aws_sdk_bedrockruntime::Client;
use aws_sdk_bedrockruntime::config::Builder;
use aws_sdk_bedrockruntime::primitives::Blob;
use aws_smithy_types::retry::RetryConfig;
use aws_smithy_types::timeout::TimeoutConfig;
use hearback_domain::turns::embedded::Embedded;
use serde::{Deserialize, Serialize};

use super::{Embedder, Embedding, EmbeddingFailed};
use crate::aws::{Aws, Service, error_code};

/// The supported model family.
const FAMILY: &str = "amazon.titan-embed-text-v2";
/// Dimensions of a vector: the fewest that the model supports, because each search reads the stored
/// vectors.
const DIMENSIONS: usize = 256;
/// Characters of a text that are sent. The model accepts 8,192 tokens; in the densest scripts, a
/// character is about one token.
const MAX_CHARACTERS: usize = 8_000;
/// Timeout of a call with all its attempts, because a client waits for the turn.
const OPERATION_TIMEOUT: Duration = Duration::from_secs(3);
/// Timeout of one attempt.
const ATTEMPT_TIMEOUT: Duration = Duration::from_millis(1_500);
const ATTEMPTS: u32 = 2;

/// A model on Amazon Bedrock.
#[derive(Debug, Clone)]
pub struct Bedrock {
    client: Client,
    model: String,
    name: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    input_text: &'a str,
    dimensions: usize,
    normalize: bool,
}

#[derive(Deserialize)]
struct Response {
    embedding: Vec<f32>,
}

impl Bedrock {
    /// This model, with the region and the credentials of the environment.
    pub fn from_env(model: &str) -> Result<Self, String> {
        let config = Aws::from_env(Service::BedrockRuntime).config();
        Self::new(Builder::from(&config), model)
    }

    /// This model, with a client of this configuration. Fails for a model of another family.
    pub fn new(config: Builder, model: &str) -> Result<Self, String> {
        // The id of an inference profile has a prefix for the region group.
        if !model.contains(FAMILY) {
            return Err(format!(
                "`{model}` is not a model of the supported family {FAMILY}"
            ));
        }
        let config = config
            .retry_config(RetryConfig::standard().with_max_attempts(ATTEMPTS))
            .timeout_config(
                TimeoutConfig::builder()
                    .operation_attempt_timeout(ATTEMPT_TIMEOUT)
                    .operation_timeout(OPERATION_TIMEOUT)
                    .build(),
            );
        Ok(Self {
            client: Client::from_conf(config.build()),
            model: model.to_owned(),
            name: format!("bedrock:{model}:{DIMENSIONS}"),
        })
    }

    async fn invoke(&self, text: &str) -> Result<Embedded, EmbeddingFailed> {
        let end = text.char_indices().nth(MAX_CHARACTERS).map(|(at, _)| at);
        let request = Request {
            input_text: end.and_then(|end| text.get(..end)).unwrap_or(text),
            dimensions: DIMENSIONS,
            normalize: true,
        };
        let request = serde_json::to_vec(&request)
            .map_err(|_| failed("the request could not be serialized"))?;
        let response = self
            .client
            .invoke_model()
            .model_id(&self.model)
            .content_type("application/json")
            .accept("application/json")
            .body(Blob::new(request))
            .send()
            .await
            .map_err(|error| failed(error_code(&error)))?;
        let Response { embedding } = serde_json::from_slice(response.body().as_ref())
            .map_err(|_| failed("the response has no vector"))?;
        if embedding.len() != DIMENSIONS || !embedding.iter().all(|number| number.is_finite()) {
            return Err(failed("the vector has unexpected dimensions or values"));
        }
        Ok(Embedded {
            embedder: self.name.clone(),
            vector: embedding,
        })
    }
}

impl Embedder for Bedrock {
    fn embed<'a>(&'a self, text: &'a str) -> Embedding<'a> {
        Box::pin(async move {
            // The model rejects an empty text.
            if text.trim().is_empty() {
                return Err(failed("the text is empty"));
            }
            self.invoke(text).await
        })
    }
}

fn failed(reason: impl AsRef<str>) -> EmbeddingFailed {
    EmbeddingFailed(format!("Amazon Bedrock: {}", reason.as_ref()))
}

//! Vectors by a Titan Text Embeddings model on Amazon Bedrock.
//!
//! Source: Amazon Bedrock User Guide, 'Amazon Titan Text Embeddings models', request and response of V2.

use std::time::Duration;

use aws_sdk_bedrockruntime::Client;
use aws_sdk_bedrockruntime::config::Builder;
use aws_sdk_bedrockruntime::primitives::Blob;
use aws_smithy_types::retry::RetryConfig;
use aws_smithy_types::timeout::TimeoutConfig;
use hearback_domain::embedded::Embedded;
use serde::{Deserialize, Serialize};

use super::{Embedder, Embedding, EmbeddingFailed};
use crate::aws::{Aws, Service, error_code};

/// The models whose requests are known.
const FAMILY: &str = "amazon.titan-embed-text-v2";
/// How many numbers a vector has: the fewest that the model makes. A stored one is read at each search.
const DIMENSIONS: usize = 256;
/// Characters of a text that are sent. The model takes 8,192 tokens, of which a character of the
/// densest scripts is about one.
const SENT: usize = 8_000;
/// The longest that a vector may take, with all tries: somebody waits for the turn.
const OPERATION_TIMEOUT: Duration = Duration::from_secs(3);
/// The longest that one try may take.
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
    /// This model, in the region and with the credentials of the environment.
    pub fn from_env(model: &str) -> Result<Self, String> {
        let config = Aws::from_env(Service::BedrockRuntime).config();
        Self::new(Builder::from(&config), model)
    }

    /// This model, by a client of this configuration; an error for a model of another family.
    pub fn new(config: Builder, model: &str) -> Result<Self, String> {
        // An inference profile puts its region group before the model's own name.
        if !model.contains(FAMILY) {
            return Err(format!(
                "`{model}` is no model of the family {FAMILY}, whose requests are known"
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
        let end = text.char_indices().nth(SENT).map(|(at, _)| at);
        let request = Request {
            input_text: end.and_then(|end| text.get(..end)).unwrap_or(text),
            dimensions: DIMENSIONS,
            normalize: true,
        };
        let request = serde_json::to_vec(&request).map_err(|_| failed("no request"))?;
        let answer = self
            .client
            .invoke_model()
            .model_id(&self.model)
            .content_type("application/json")
            .accept("application/json")
            .body(Blob::new(request))
            .send()
            .await
            .map_err(|error| failed(error_code(&error)))?;
        let Response { embedding } = serde_json::from_slice(answer.body().as_ref())
            .map_err(|_| failed("its answer holds no vector"))?;
        if embedding.len() != DIMENSIONS || !embedding.iter().all(|number| number.is_finite()) {
            return Err(failed("its vector has another form"));
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
            // The model refuses an empty text, which is like no other.
            if text.trim().is_empty() {
                return Err(failed("a text without a word"));
            }
            self.invoke(text).await
        })
    }
}

fn failed(reason: impl AsRef<str>) -> EmbeddingFailed {
    EmbeddingFailed(format!("Amazon Bedrock: {}", reason.as_ref()))
}

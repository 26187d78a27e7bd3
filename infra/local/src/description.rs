//! The description of the API: OpenAPI, put together from the routes of all functions.

use std::collections::HashMap;

use serde_json::Value;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{License, OpenApi, RefOr};

/// The description of the API.
#[must_use]
pub fn openapi() -> OpenApi {
    let mut document = OpenApi::default();
    document.merge(hearback_submit::routes().description());
    document.merge(hearback_batch::routes().description());
    document.merge(hearback_retrieval::routes().description());
    document.merge(hearback_stream::routes().description());
    document.merge(hearback_turns::routes().description());
    document.merge(hearback_preferences::routes().description());
    document.merge(hearback_erasure::routes().description());
    document.merge(hearback_relay::webhook_routes().description());
    document.merge(hearback_operations::routes().description());
    "Hearback".clone_into(&mut document.info.title);
    env!("CARGO_PKG_VERSION").clone_into(&mut document.info.version);
    document.info.contact = None;
    document.info.license = Some(License::new("Apache-2.0"));
    document.info.description =
        Some("Collects feedback on AI answers, and turns it into learning signals, preferences and training data.".to_owned());
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .bearer_format("JWT")
        .build();
    document
        .components
        .get_or_insert_default()
        .add_security_scheme("bearer", SecurityScheme::Http(bearer));
    add_examples(&mut document);
    document
}

/// Adds an example of its response to each operation, from `responses.json`, which has them by their `operationId`.
fn add_examples(document: &mut OpenApi) {
    let examples: HashMap<String, Value> =
        serde_json::from_str(include_str!("../responses.json")).unwrap_or_default();
    let operations = document.paths.paths.values_mut().flat_map(|item| {
        let methods = [
            &mut item.get,
            &mut item.put,
            &mut item.post,
            &mut item.delete,
        ];
        methods.into_iter().flatten()
    });
    for operation in operations {
        let example = operation.operation_id.as_ref();
        let example = example.and_then(|id| examples.get(id));
        for (status, response) in &mut operation.responses.responses {
            if let RefOr::T(response) = response
                && status.starts_with('2')
                && let Some(RefOr::T(content)) = response.content.get_mut("application/json")
            {
                content.example = example.cloned();
            }
        }
    }
}

//! Rejections of an engine's port, with a code and a message as AWS sends them.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// Why a request is rejected, with the error code of AWS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EngineRejection {
    pub(super) code: &'static str,
    pub(super) message: &'static str,
}

impl IntoResponse for EngineRejection {
    fn into_response(self) -> Response {
        tracing::debug!(code = self.code, "an engine rejected a request");
        let body = json!({
            "__type": format!("com.amazon.coral.service#{}", self.code),
            "message": self.message,
        });
        let headers = [
            (header::CONTENT_TYPE, "application/x-amz-json-1.0"),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        ];
        (StatusCode::FORBIDDEN, headers, body.to_string()).into_response()
    }
}

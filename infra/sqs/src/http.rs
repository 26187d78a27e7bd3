//! HTTP: the operation of a request, and the response of its outcome.

use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, State},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
    routing::post,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;
use tracing::{debug, error};
use uuid::Uuid;

use crate::{Sqs, fault::Fault};

/// JSON may escape each byte of a message of 1 MiB as six, and a batch adds member names.
const MAX_REQUEST: usize = 16 * 1_048_576;
const CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/x-amz-json-1.0");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-amzn-requestid");
const QUERY_ERROR: HeaderName = HeaderName::from_static("x-amzn-query-error");

/// Operations of SQS that are rejected as unsupported.
const UNSUPPORTED: [&str; 9] = [
    "AddPermission",
    "CancelMessageMoveTask",
    "ListDeadLetterSourceQueues",
    "ListMessageMoveTasks",
    "ListQueueTags",
    "RemovePermission",
    "StartMessageMoveTask",
    "TagQueue",
    "UntagQueue",
];

/// SDKs post to the root; some clients post to the queue's own URL.
pub(crate) fn routes(sqs: Sqs) -> Router {
    Router::new()
        .route("/", post(answer))
        .route("/{account}/{queue}", post(answer))
        .layer(DefaultBodyLimit::max(MAX_REQUEST))
        .with_state(sqs)
}

async fn answer(State(sqs): State<Sqs>, headers: HeaderMap, body: Bytes) -> Response {
    let mut response = match perform(&sqs, &headers, &body).await {
        Ok(json) => (StatusCode::OK, json).into_response(),
        Err(fault) => reject(&fault),
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, CONTENT_TYPE);
    if let Ok(id) = HeaderValue::from_str(&Uuid::new_v4().to_string()) {
        headers.insert(REQUEST_ID, id);
    }
    response
}

async fn perform(sqs: &Sqs, headers: &HeaderMap, body: &[u8]) -> Result<Vec<u8>, Fault> {
    let host = text(headers, &header::HOST).unwrap_or("localhost");
    match operation(headers)? {
        "CreateQueue" => reply(&sqs.create_queue(read(body)?, host).await?),
        "GetQueueUrl" => reply(&sqs.get_queue_url(read(body)?, host).await?),
        "ListQueues" => reply(&sqs.list_queues(read(body)?, host).await?),
        "GetQueueAttributes" => reply(&sqs.get_queue_attributes(read(body)?).await?),
        "SetQueueAttributes" => reply(&sqs.set_queue_attributes(read(body)?).await?),
        "PurgeQueue" => reply(&sqs.purge_queue(read(body)?).await?),
        "DeleteQueue" => reply(&sqs.delete_queue(read(body)?).await?),
        "SendMessage" => reply(&sqs.send_message(read(body)?).await?),
        "SendMessageBatch" => reply(&sqs.send_message_batch(read(body)?).await?),
        "ReceiveMessage" => reply(&sqs.receive_message(read(body)?).await?),
        "DeleteMessage" => reply(&sqs.delete_message(read(body)?).await?),
        "DeleteMessageBatch" => reply(&sqs.delete_message_batch(read(body)?).await?),
        "ChangeMessageVisibility" => reply(&sqs.change_message_visibility(read(body)?).await?),
        "ChangeMessageVisibilityBatch" => {
            reply(&sqs.change_message_visibility_batch(read(body)?).await?)
        }
        other if UNSUPPORTED.contains(&other) => Err(Fault::Unsupported(other.to_owned())),
        other => Err(Fault::UnknownOperation(other.to_owned())),
    }
}

fn operation(headers: &HeaderMap) -> Result<&str, Fault> {
    let target = text(headers, &HeaderName::from_static("x-amz-target")).ok_or_else(|| {
        Fault::Unsupported("A request without X-Amz-Target, as of the older query protocol,".into())
    })?;
    target
        .strip_prefix("AmazonSQS.")
        .ok_or_else(|| Fault::UnknownOperation(target.to_owned()))
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Fault> {
    serde_json::from_slice(body).map_err(|error| Fault::Malformed(error.to_string()))
}

fn reply<T: Serialize>(outcome: &T) -> Result<Vec<u8>, Fault> {
    serde_json::to_vec(outcome).map_err(|_| Fault::Corrupt("a response could not be serialized"))
}

fn reject(fault: &Fault) -> Response {
    let code = fault.code();
    let (status, side) = if fault.is_client_error() {
        debug!(code = code.shape, "a request was rejected");
        (StatusCode::BAD_REQUEST, "Sender")
    } else {
        error!(cause = ?fault, "a request failed");
        (StatusCode::INTERNAL_SERVER_ERROR, "Receiver")
    };
    let body = json!({
        "__type": format!("com.amazonaws.sqs#{}", code.shape),
        "message": fault.to_string(),
    });
    let mut response = (status, body.to_string()).into_response();
    if let Ok(value) = HeaderValue::from_str(&format!("{};{side}", code.query)) {
        response.headers_mut().insert(QUERY_ERROR, value);
    }
    response
}

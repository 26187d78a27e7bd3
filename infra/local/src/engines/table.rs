//! The DynamoDB engine's port: the engine's operations over HTTP, AWS JSON 1.0.
//!
//! This replaces the engine's own server, which serves pages of every origin, accepts every signature, and cannot be
//! configured otherwise.

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use dynoxide::{Database, DynoxideError};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::EngineFault;
use crate::files::TABLE_FILE;
use crate::writes::Writes;

/// 16 MiB: DynamoDB's limit for a batch.
const MAX_BODY: usize = 16 * 1_048_576;
const PREFIXES: [&str; 2] = ["DynamoDB_20120810.", "DynamoDBStreams_20120810."];
const UNKNOWN: &str = r#"{"__type":"com.amazon.coral.service#UnknownOperationException"}"#;

/// The operations that may add a record to the stream.
const WRITES: [&str; 8] = [
    "BatchExecuteStatement",
    "BatchWriteItem",
    "DeleteItem",
    "ExecuteStatement",
    "ExecuteTransaction",
    "PutItem",
    "TransactWriteItems",
    "UpdateItem",
];

#[derive(Clone)]
struct Table {
    database: Database,
    writes: Writes,
}

pub(super) fn routes(database: Database, writes: Writes) -> Router {
    Router::new()
        .route("/", post(respond))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .with_state(Table { database, writes })
}

async fn respond(State(table): State<Table>, headers: HeaderMap, body: Bytes) -> Response {
    let target = headers
        .get("x-amz-target")
        .and_then(|target| target.to_str().ok());
    let operation = target.and_then(|target| {
        PREFIXES
            .iter()
            .find_map(|prefix| target.strip_prefix(prefix))
    });
    // This blocks the thread, so the engine runs on its own threads.
    let mut fault = None;
    let performed = operation.and_then(|operation| perform(&table.database, operation, &body));
    if operation.is_some_and(|operation| WRITES.contains(&operation)) {
        table.writes.record();
    }
    let (status, body) = match performed {
        Some(Ok(response)) => (StatusCode::OK, response),
        Some(Err(error)) => {
            let status = StatusCode::from_u16(error.status_code());
            let status = status.unwrap_or(StatusCode::BAD_REQUEST);
            fault =
                (status == StatusCode::INTERNAL_SERVER_ERROR).then(|| log_fault(operation, &error));
            (status, error.to_json())
        }
        None => (StatusCode::BAD_REQUEST, UNKNOWN.to_owned()),
    };
    let headers = [
        (header::CONTENT_TYPE.as_str(), "application/x-amz-json-1.0"),
        (
            "x-amzn-requestid",
            &uuid::Uuid::new_v4().simple().to_string(),
        ),
    ];
    let mut response = (status, headers, body).into_response();
    if let Some(fault) = fault {
        response.extensions_mut().insert(fault);
    }
    response
}

/// Logs an internal error of the engine, whose callers see only a code.
fn log_fault(operation: Option<&str>, error: &DynoxideError) -> EngineFault {
    let reason = error.to_string();
    tracing::error!(
        operation,
        reason,
        file = TABLE_FILE,
        "the DynamoDB engine failed"
    );
    let is_damage = ["malformed", "not a database", "not a valid database"]
        .iter()
        .any(|text| reason.contains(text));
    EngineFault { reason, is_damage }
}

/// Performs an operation; `None` if the engine does not know it.
pub(super) fn perform(
    database: &Database,
    operation: &str,
    body: &[u8],
) -> Option<Result<String, DynoxideError>> {
    /// Deserializes the request, calls the method, and serializes its response.
    macro_rules! call {
        ($method:ident) => {
            read(body).and_then(|request| write(&database.$method(request)?))
        };
    }
    Some(match operation {
        "BatchExecuteStatement" => call!(batch_execute_statement),
        "BatchGetItem" => call!(batch_get_item),
        "BatchWriteItem" => call!(batch_write_item),
        "CreateTable" => call!(create_table),
        "DeleteItem" => call!(delete_item),
        "DeleteTable" => call!(delete_table),
        "DescribeStream" => call!(describe_stream),
        "DescribeTable" => call!(describe_table),
        "DescribeTimeToLive" => call!(describe_time_to_live),
        "ExecuteStatement" => call!(execute_statement),
        "ExecuteTransaction" => call!(execute_transaction),
        "GetItem" => call!(get_item),
        "GetRecords" => call!(get_records),
        "GetShardIterator" => call!(get_shard_iterator),
        "ListStreams" => call!(list_streams),
        "ListTables" => call!(list_tables),
        "ListTagsOfResource" => call!(list_tags_of_resource),
        "PutItem" => call!(put_item),
        "Query" => call!(query),
        "Scan" => call!(scan),
        "TagResource" => call!(tag_resource),
        "TransactGetItems" => call!(transact_get_items),
        "TransactWriteItems" => call!(transact_write_items),
        "UntagResource" => call!(untag_resource),
        "UpdateItem" => call!(update_item),
        "UpdateTable" => call!(update_table),
        "UpdateTimeToLive" => call!(update_time_to_live),
        _ => return None,
    })
}

fn write<T: Serialize>(response: &T) -> Result<String, DynoxideError> {
    serde_json::to_string(response)
        .map_err(|error| DynoxideError::InternalServerError(error.to_string()))
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, DynoxideError> {
    serde_json::from_slice(body).map_err(|error| invalid_request(&error.to_string()))
}

/// Classifies a parse error. The engine's types put the class of the error first, in capitals.
fn invalid_request(message: &str) -> DynoxideError {
    let (class, text) = match message.split_once(':') {
        Some((class, text))
            if class
                .bytes()
                .all(|byte| byte.is_ascii_uppercase() || byte == b'_') =>
        {
            (class, text)
        }
        _ => ("", message),
    };
    // SDKs write the body, so its line and column mean nothing to the caller.
    let text = text
        .rsplit_once(" at line ")
        .map_or(text, |(text, _)| text)
        .to_owned();
    let is_validation = [
        "missing field",
        "unknown variant",
        "invalid type: null",
        "AttributeValue",
    ];
    if class.starts_with("VALIDATION") || is_validation.iter().any(|part| text.contains(part)) {
        DynoxideError::ValidationException(text)
    } else {
        DynoxideError::SerializationException(text)
    }
}

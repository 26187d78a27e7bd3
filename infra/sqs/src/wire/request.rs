//! What callers send. Absent and `null` are the same.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::message_attributes::WireAttribute;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct CreateQueue {
    pub(crate) queue_name: String,
    pub(crate) attributes: Option<BTreeMap<String, String>>,
    /// Lowercase in the service model.
    #[serde(rename = "tags")]
    pub(crate) tags: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct GetQueueUrl {
    pub(crate) queue_name: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ListQueues {
    pub(crate) queue_name_prefix: Option<String>,
    pub(crate) max_results: Option<i64>,
    pub(crate) next_token: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct GetQueueAttributes {
    pub(crate) queue_url: String,
    pub(crate) attribute_names: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct SetQueueAttributes {
    pub(crate) queue_url: String,
    pub(crate) attributes: BTreeMap<String, String>,
}

/// A request that needs a queue and nothing else: `PurgeQueue`, `DeleteQueue`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct OfQueue {
    pub(crate) queue_url: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct SendMessage {
    pub(crate) queue_url: String,
    #[serde(flatten)]
    pub(crate) message: Outgoing,
}

/// A message to be sent, alone or in a batch.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Outgoing {
    #[serde(default)]
    pub(crate) message_body: String,
    pub(crate) delay_seconds: Option<i64>,
    pub(crate) message_attributes: Option<BTreeMap<String, WireAttribute>>,
    pub(crate) message_system_attributes: Option<BTreeMap<String, WireAttribute>>,
    pub(crate) message_deduplication_id: Option<String>,
    pub(crate) message_group_id: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ReceiveMessage {
    pub(crate) queue_url: String,
    pub(crate) max_number_of_messages: Option<i64>,
    pub(crate) visibility_timeout: Option<i64>,
    pub(crate) wait_time_seconds: Option<i64>,
    /// The older name of `message_system_attribute_names`.
    pub(crate) attribute_names: Option<Vec<String>>,
    pub(crate) message_system_attribute_names: Option<Vec<String>>,
    pub(crate) message_attribute_names: Option<Vec<String>>,
    pub(crate) receive_request_attempt_id: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct DeleteMessage {
    pub(crate) queue_url: String,
    #[serde(flatten)]
    pub(crate) deletion: Deletion,
}

/// A message to be deleted, alone or in a batch.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Deletion {
    pub(crate) receipt_handle: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ChangeMessageVisibility {
    pub(crate) queue_url: String,
    #[serde(flatten)]
    pub(crate) change: VisibilityChange,
}

/// A message to be hidden for longer or shorter, alone or in a batch.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct VisibilityChange {
    pub(crate) receipt_handle: String,
    /// Required alone, optional in a batch in the service model; missing is an error in both.
    pub(crate) visibility_timeout: Option<i64>,
}

/// Several of the same, each with an id under which its outcome is reported.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Batch<T> {
    pub(crate) queue_url: String,
    pub(crate) entries: Vec<Entry<T>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Entry<T> {
    pub(crate) id: String,
    #[serde(flatten)]
    pub(crate) item: T,
}

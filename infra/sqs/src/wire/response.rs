//! What callers get. Empty lists and maps are left out, as SQS does and callers test for.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{fault::Fault, message_attributes::WireAttribute};

/// `{}`.
#[derive(Debug, Serialize)]
pub(crate) struct Empty {}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct QueueUrl {
    pub(crate) queue_url: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Queues {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) queue_urls: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_token: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Attributes {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) attributes: BTreeMap<&'static str, String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Sent {
    pub(crate) message_id: String,
    #[serde(rename = "MD5OfMessageBody")]
    pub(crate) md5_of_message_body: String,
    #[serde(
        rename = "MD5OfMessageAttributes",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) md5_of_message_attributes: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Messages {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) messages: Vec<Delivery>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Delivery {
    pub(crate) message_id: String,
    pub(crate) receipt_handle: String,
    #[serde(rename = "MD5OfBody")]
    pub(crate) md5_of_body: String,
    pub(crate) body: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) attributes: BTreeMap<&'static str, String>,
    #[serde(
        rename = "MD5OfMessageAttributes",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) md5_of_message_attributes: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) message_attributes: BTreeMap<String, WireAttribute>,
}

/// The outcome of a batch, entry by entry.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Outcomes<T> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) successful: Vec<Successful<T>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) failed: Vec<Failed>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Successful<T> {
    pub(crate) id: String,
    #[serde(flatten)]
    pub(crate) item: T,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Failed {
    pub(crate) id: String,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) sender_fault: bool,
}

impl Failed {
    pub(crate) fn new(id: String, fault: &Fault) -> Self {
        Self {
            id,
            code: fault.code().query,
            message: fault.to_string(),
            sender_fault: fault.is_client_error(),
        }
    }
}

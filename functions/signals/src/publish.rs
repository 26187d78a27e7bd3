//! What subscribers are told: the messages that stored outcomes become.
//!
//! In AWS this is the enrichment of a pipe, whose target is a topic with one queue for each
//! subject. It is a pure function and needs no permission.

use hearback_domain::publication::{Outcome, Subject, retracted};
use hearback_storage::Error;
use hearback_storage::stream::{self, Published};
use serde_json::Value;

/// The messages of a batch of stream records, in order.
pub fn messages(records: &[Value]) -> Result<Vec<Value>, Error> {
    let mut messages = Vec::new();
    for record in records {
        messages.extend(addressed(record)?.into_iter().map(|(_, message)| message));
    }
    Ok(messages)
}

/// The messages of one stream record, each with its subject.
pub fn addressed(record: &Value) -> Result<Vec<(Subject, Value)>, Error> {
    Ok(match stream::result(record)? {
        Published::Outcome(Outcome::Processed(processed)) => processed.messages(),
        Published::Outcome(Outcome::Deduplicated { .. }) => Vec::new(),
        Published::Retraction(retraction) => vec![retracted(&retraction)],
    })
}

//! Leads the erasure of a user to an event that cannot be read.
//!
//! The claim that leads to an event is written when the event is processed, which an event that cannot be read never
//! is. So its row gets an author instead, if what is left of its text still names the user.

use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity};
use hearback_domain::identity::identifier::{UserId, UserRef};
use serde_json::Value;

use crate::attributes::CORE;
use crate::conditional::changed;
use crate::item::embedded_string;
use crate::table::{AUTHOR, PK, SK};
use crate::{Error, Store, keys};

impl Store {
    /// Sets the author of an event that [`submitted`](crate::stream::submitted) could not read, so that the author
    /// index leads to it. Does nothing for other records, for a text that names no user, and once the row is replaced.
    /// Idempotent. No call, or one call and two writes, one of them to the index.
    pub async fn attribute_unreadable_event(&self, record: &str) -> Result<(), Error> {
        let Some((partition, core, author)) = attributable(record) else {
            return Ok(());
        };
        let attributed = self
            .client
            .update_item()
            .table_name(&self.table)
            .key(PK, AttributeValue::S(partition))
            .key(SK, AttributeValue::S(keys::EVENT.to_owned()))
            .update_expression("SET #author = :author")
            .condition_expression("#core = :core")
            .expression_attribute_names("#author", AUTHOR)
            .expression_attribute_names("#core", CORE)
            .expression_attribute_values(":author", AttributeValue::S(author))
            .expression_attribute_values(":core", AttributeValue::S(core))
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
            .send()
            .await;
        changed("UpdateItem", attributed).map(|_| ())
    }
}

/// The partition, the text and the author of an event.
fn attributable(record: &str) -> Option<(String, String, String)> {
    let record: Value = serde_json::from_str(record).ok()?;
    let text = |path: &str| record.pointer(path)?.as_str().map(str::to_owned);
    let partition = text("/dynamodb/Keys/PK/S")?;
    if text("/dynamodb/Keys/SK/S")? != keys::EVENT {
        return None;
    }
    let (tenant, _) = keys::event_of(&partition)?;
    let core = text("/dynamodb/NewImage/core/S")?;
    let user = UserId::or_pseudonym(embedded_string(&core, "userId")?).ok()?;
    Some((partition, core, keys::user(UserRef::new(&tenant, &user))))
}

//! Turns: an index row for each, and a directory from messages to turns.

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity};
use chrono::{DateTime, Utc};
use hearback_domain::feedback::follow_up::FollowUp;
use hearback_domain::identity::identifier::MessageId;
use hearback_domain::turns::turn::{ConversationRef, Turn, TurnCore, TurnRef, quantized};
use hearback_domain::views::insights::AnswerFacts;
use serde::{Deserialize, Serialize};

use crate::attributes::{CORE, FACTS, FOLLOW_UP, HOSTED_URI, TEXT};
use crate::conditional::changed;
use crate::error::if_readable;
use crate::item::{self, Builder, Item};
use crate::table::{PK, SK};
use crate::turn_rows::{EMBEDDING, IndexRow, TAGS, TURN, index_row, json_text};
use crate::turns_by_status::TurnPage;
use crate::{Error, Store, Written, keys};

/// The turn of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryEntry {
    /// The turn.
    #[serde(flatten)]
    pub at: TurnRef,
    /// The fingerprint of the registration that made the entry.
    pub fingerprint: String,
}

impl DirectoryEntry {
    fn of(turn: &TurnCore) -> Self {
        Self {
            at: turn.at.clone(),
            fingerprint: turn.fingerprint.clone(),
        }
    }
}

impl Store {
    /// A turn's index row, unless it has expired by `now`. Strongly consistent. One call, one read
    /// for each 4 KB.
    pub async fn turn(&self, at: &TurnRef, now: DateTime<Utc>) -> Result<Option<IndexRow>, Error> {
        let row = self.turn_row(at, now).await?;
        Ok(row.filter(|row| row.core.expires_at.is_none_or(|expires| expires > now)))
    }

    /// A turn's index row, even if it or its feedback has expired, to change or erase it. One call,
    /// one read for each 4 KB.
    pub async fn kept_turn(&self, at: &TurnRef) -> Result<Option<IndexRow>, Error> {
        self.turn_row(at, DateTime::<Utc>::MIN_UTC).await
    }

    async fn turn_row(&self, at: &TurnRef, now: DateTime<Utc>) -> Result<Option<IndexRow>, Error> {
        let key = (keys::conversation(&at.within), keys::turn(&at.turn));
        let item = self.get(key.0, key.1).await?.item;
        item.map(|item| index_row(&item, now)).transpose()
    }

    /// The index rows of distinct turns with their status at `now`, even if the turns have expired, in the order of the
    /// turns. One call for each hundred, one read for each 4 KB of each.
    pub async fn kept_turns(
        &self,
        turns: &[TurnRef],
        now: DateTime<Utc>,
    ) -> Result<Vec<Option<IndexRow>>, Error> {
        let key = |at: &TurnRef| (keys::conversation(&at.within), keys::turn(&at.turn));
        let keys: Vec<_> = turns.iter().map(key).collect();
        let items = self.get_batch(&keys).await?.into_iter();
        let row = |item: Item| item::readable(&item, index_row(&item, now));
        Ok(items.map(|item| item.and_then(row)).collect())
    }

    /// A page of the turns of a conversation that have not expired by `now`, by their ids, after a position. At most
    /// `limit` are read. Strongly consistent. One call, one read for each 4 KB.
    pub async fn conversation_turns(
        &self,
        within: &ConversationRef,
        (after, limit): (Option<&str>, usize),
        now: DateTime<Utc>,
    ) -> Result<TurnPage, Error> {
        let pk = keys::conversation(within);
        let key = |sk: &str| {
            let text = |text: &str| AttributeValue::S(text.to_owned());
            Item::from([(PK.to_owned(), text(&pk)), (SK.to_owned(), text(sk))])
        };
        let response = self
            .client
            .query()
            .table_name(&self.table)
            .key_condition_expression("PK = :pk AND begins_with(SK, :turn)")
            .expression_attribute_values(":pk", AttributeValue::S(pk.clone()))
            .expression_attribute_values(":turn", AttributeValue::S(keys::TURN_PREFIX.to_owned()))
            .set_exclusive_start_key(after.map(key))
            .limit(i32::try_from(limit).unwrap_or(i32::MAX))
            .consistent_read(true)
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
            .send()
            .await
            .map_err(|error| Error::unavailable("Query", &error))?;
        let next = response.last_evaluated_key().cloned();
        let next = next.map(|last| item::string(&last, TURN, SK).map(str::to_owned));
        let rows = (response.items().iter())
            .filter(|item| !item::is_expired(item, now))
            .filter_map(|item| item::readable(item, index_row(item, now)))
            .map(|row| (keys::turn(&row.core.at.turn), row));
        Ok(TurnPage {
            rows: rows.collect(),
            next: next.transpose()?,
        })
    }

    /// Stores an index row, if the turn is new or its row has expired by `now`. One call, one write
    /// for each KB.
    pub async fn put_turn(
        &self,
        turn: &Turn,
        hosted_uri: &str,
        follow_up: Option<&FollowUp>,
        now: DateTime<Utc>,
    ) -> Result<Written, Error> {
        let at = &turn.core.at;
        let mut item = Builder::new(keys::conversation(&at.within), keys::turn(&at.turn))
            .json(TURN, CORE, &turn.core)?
            .json(TURN, TAGS, &turn.core.tags())?
            .json(TURN, TEXT, &turn.summary)?
            .string(HOSTED_URI, hosted_uri.to_owned())
            .expires_at(turn.core.expires_at);
        item = self.with_hour_of_turn(item, &turn.core)?;
        if let Some(follow_up) = follow_up {
            item = item.json(TURN, FOLLOW_UP, follow_up)?;
        }
        let mut item = item.build();
        if let Some(bytes) = embedding(turn) {
            item.insert(EMBEDDING.to_owned(), bytes);
        }
        self.insert_live(item, now).await
    }

    /// Completes an open turn whose log is at `to`, if its row is unchanged since it was read.
    /// Other attributes stay. One call; writes for the whole row.
    pub async fn complete_turn(
        &self,
        turn: &Turn,
        open: &IndexRow,
        to: &str,
    ) -> Result<TurnUpdate, Error> {
        let at = &turn.core.at;
        let text = AttributeValue::S;
        let mut set =
            "SET #core = :core, #facts = :facts, #text = :text, #tags = :tags, #hosted = :to"
                .to_owned();
        let facts = AnswerFacts::of_turn(&turn.core);
        let mut update = self
            .client
            .update_item()
            .table_name(&self.table)
            .key(PK, AttributeValue::S(keys::conversation(&at.within)))
            .key(SK, AttributeValue::S(keys::turn(&at.turn)))
            .condition_expression("#core = :seen AND #hosted = :from")
            .expression_attribute_names("#core", CORE)
            .expression_attribute_names("#facts", FACTS)
            .expression_attribute_names("#text", TEXT)
            .expression_attribute_names("#tags", TAGS)
            .expression_attribute_names("#hosted", HOSTED_URI)
            .expression_attribute_values(":core", text(json_text(&turn.core)?))
            .expression_attribute_values(":facts", text(json_text(&facts)?))
            .expression_attribute_values(":text", text(json_text(&turn.summary)?))
            .expression_attribute_values(":tags", text(json_text(&turn.core.tags())?))
            .expression_attribute_values(":to", text(to.to_owned()))
            .expression_attribute_values(":seen", text(json_text(&open.core)?))
            .expression_attribute_values(":from", text(open.hosted_uri.clone()));
        if let Some(bytes) = embedding(turn) {
            set.push_str(", #embedding = :embedding");
            update = update
                .expression_attribute_names("#embedding", EMBEDDING)
                .expression_attribute_values(":embedding", bytes);
        }
        let completed = update
            .update_expression(set)
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
            .send()
            .await;
        turn_update(changed("UpdateItem", completed))
    }

    /// Points an index row to another version of the turn's log, if it still points to `from`. One
    /// call; writes for the whole row.
    pub async fn move_turn_log(
        &self,
        at: &TurnRef,
        from: &str,
        to: &str,
    ) -> Result<TurnUpdate, Error> {
        let result = self
            .client
            .update_item()
            .table_name(&self.table)
            .key(PK, AttributeValue::S(keys::conversation(&at.within)))
            .key(SK, AttributeValue::S(keys::turn(&at.turn)))
            .update_expression("SET hosted_uri = :to")
            .condition_expression("hosted_uri = :from")
            .expression_attribute_values(":from", AttributeValue::S(from.to_owned()))
            .expression_attribute_values(":to", AttributeValue::S(to.to_owned()))
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
            .send()
            .await;
        turn_update(changed("UpdateItem", result))
    }

    /// Adds a message to the directory, unless it is another turn's; then returns that turn. One
    /// call, one write; one more of each to replace the entry of an interrupted registration of the
    /// turn.
    pub async fn put_message(
        &self,
        message: &MessageId,
        turn: &TurnCore,
        now: DateTime<Utc>,
    ) -> Result<Option<TurnRef>, Error> {
        let within = &turn.at.within;
        let key = keys::message(&within.tenant, &within.project, message);
        let item = Builder::new(key, keys::MESSAGE)
            .json(MESSAGE, CORE, &DirectoryEntry::of(turn))?
            .expires_at(turn.expires_at)
            .build();
        let Some(existing) = self.insert_live_or_get(item.clone(), now).await? else {
            return Ok(None);
        };
        let entry = item::json::<DirectoryEntry>(&existing, MESSAGE, CORE);
        // An entry that cannot be read leads nowhere, and is replaced.
        if let Some(entry) = if_readable(entry, &within.tenant)?
            && entry.at != turn.at
        {
            return Ok(Some(entry.at));
        }
        if existing != item {
            // If another registration has replaced it, that entry is equivalent.
            self.replace_unchanged(item, CORE, existing.get(CORE))
                .await?;
        }
        Ok(None)
    }

    /// Removes a message from the directory, if this registration added it, and returns whether it did. One call, one
    /// write.
    pub async fn remove_message(
        &self,
        message: &MessageId,
        turn: &TurnCore,
    ) -> Result<bool, Error> {
        let entry = AttributeValue::S(json_text(&DirectoryEntry::of(turn))?);
        self.remove_entry(message, &turn.at, Some(&entry)).await
    }

    /// Removes a message from the directory, unless it is another turn's; also an entry that cannot be read. Two calls,
    /// one read and one write.
    pub async fn remove_message_of(&self, message: &MessageId, at: &TurnRef) -> Result<(), Error> {
        let within = &at.within;
        let key = keys::message(&within.tenant, &within.project, message);
        let Some(row) = self.get(key, keys::MESSAGE.to_owned()).await?.item else {
            return Ok(());
        };
        let entry = item::json::<DirectoryEntry>(&row, MESSAGE, CORE);
        if entry.is_ok_and(|entry| entry.at != *at) {
            return Ok(());
        }
        self.remove_entry(message, at, row.get(CORE)).await?;
        Ok(())
    }

    /// Removes an entry with this content, and returns whether there was one.
    async fn remove_entry(
        &self,
        message: &MessageId,
        at: &TurnRef,
        entry: Option<&AttributeValue>,
    ) -> Result<bool, Error> {
        let within = &at.within;
        let key = keys::message(&within.tenant, &within.project, message);
        let delete = self
            .client
            .delete_item()
            .table_name(&self.table)
            .key(PK, AttributeValue::S(key))
            .key(SK, AttributeValue::S(keys::MESSAGE.to_owned()))
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        let delete = match entry {
            Some(entry) => delete
                .condition_expression("core = :entry")
                .expression_attribute_values(":entry", entry.clone()),
            None => delete.condition_expression("attribute_not_exists(core)"),
        };
        changed("DeleteItem", delete.send().await)
    }
}

const MESSAGE: &str = "message";

/// The outcome of the conditional update of a turn's row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnUpdate {
    /// The row is updated.
    Done,
    /// Another writer changed the row first.
    Conflict,
}

fn turn_update(changed: Result<bool, Error>) -> Result<TurnUpdate, Error> {
    changed.map(|changed| {
        if changed {
            TurnUpdate::Done
        } else {
            TurnUpdate::Conflict
        }
    })
}

/// The embedding that a turn's caller gave.
fn embedding(turn: &Turn) -> Option<AttributeValue> {
    let embedding = turn.embedding.as_deref()?;
    Some(AttributeValue::B(Blob::new(quantized(embedding))))
}

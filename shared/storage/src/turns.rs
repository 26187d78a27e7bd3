//! Turns: an index row for each, and a directory from messages to turns.

use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::delete_item::DeleteItemError;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity};
use chrono::{DateTime, Utc};
use hearback_domain::follow_up::FollowUp;
use hearback_domain::identifier::{MessageId, UserId};
use hearback_domain::turn::{Summary, Turn, TurnCore, TurnRef, quantized};
use hearback_domain::turn_status::{Said, TurnStatus};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::item::{self, Builder, Item};
use crate::statuses::{SAID, USER_FEEDBACK};
use crate::table::{PK, SK};
use crate::{Error, Store, Written, keys};

pub(crate) const TURN: &str = "turn";
/// What the index row tells of a turn.
pub(crate) const CORE: &str = "core";
/// What was said, in short.
const TEXT: &str = "text";
const TAGS: &str = "tags";
const EMBEDDING: &str = "embedding";
/// Where the turn's log is.
pub(crate) const HOSTED_URI: &str = "hosted_uri";

/// What the turn says of the one before it.
const FOLLOW_UP: &str = "follow_up";

/// An index row.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexRow {
    /// What it tells of the turn.
    pub core: TurnCore,
    /// What was said in it, in short.
    pub summary: Summary,
    /// Where the turn's log is.
    pub hosted_uri: String,
    /// Whether its caller gave an embedding.
    pub embedded: bool,
    /// What it says of the turn before it, if one was found.
    pub follow_up: Option<FollowUp>,
    /// How it was taken.
    pub status: TurnStatus,
}

/// Which turn a message is of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryEntry {
    /// The turn.
    #[serde(flatten)]
    pub at: TurnRef,
    /// Tells which registration of the turn made the entry.
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

impl IndexRow {
    /// Whether this is the turn that a user's vector marks. A registration that lost against
    /// another's, or died and was tried again later, leaves a vector that marks none.
    #[must_use]
    pub fn is_marked(&self, user: &UserId, ts: DateTime<Utc>) -> bool {
        self.core.user_id == *user && self.core.ts == ts
    }
}

impl Store {
    /// A turn's index row, unless it has expired by `now`; sees every write that was acknowledged. One
    /// call, one read for each 4 KB.
    pub async fn turn(&self, at: &TurnRef, now: DateTime<Utc>) -> Result<Option<IndexRow>, Error> {
        let found = self.kept_turn(at).await?;
        Ok(found.filter(|row| row.core.expires_at.is_none_or(|expires| expires > now)))
    }

    /// A turn's index row as long as the table keeps it, for what changes or erases it. One call, one
    /// read for each 4 KB.
    pub async fn kept_turn(&self, at: &TurnRef) -> Result<Option<IndexRow>, Error> {
        let found = self
            .get(keys::conversation(&at.within), keys::turn(&at.turn))
            .await?;
        found.item.as_ref().map(index_row).transpose()
    }

    /// The index rows of turns as long as the table keeps them, each in its place; no turn twice. One
    /// call for each hundred, one read for each 4 KB of each.
    pub async fn kept_turns(&self, turns: &[TurnRef]) -> Result<Vec<Option<IndexRow>>, Error> {
        let key = |at: &TurnRef| (keys::conversation(&at.within), keys::turn(&at.turn));
        let keys: Vec<_> = turns.iter().map(key).collect();
        let found = self.get_batch(&keys).await?.into_iter();
        found
            .map(|item| item.as_ref().map(index_row).transpose())
            .collect()
    }

    /// Stores an index row, if the turn is new or the row of that name has expired by `now`. One call,
    /// one write for each KB.
    pub async fn put_turn(
        &self,
        turn: &Turn,
        (hosted_uri, follow_up): (&str, Option<&FollowUp>),
        now: DateTime<Utc>,
    ) -> Result<Written, Error> {
        let at = &turn.core.at;
        let mut item = Builder::new(keys::conversation(&at.within), keys::turn(&at.turn))
            .json(TURN, CORE, &turn.core)?
            .json(TURN, TAGS, &turn.core.tags())?
            .json(TURN, TEXT, &turn.summary)?
            .string(HOSTED_URI, hosted_uri.to_owned())
            .expires_at(turn.core.expires_at);
        if let Some(follow_up) = follow_up {
            item = item.json(TURN, FOLLOW_UP, follow_up)?;
        }
        let mut item = item.build();
        if let Some(bytes) = embedding(turn) {
            item.insert(EMBEDDING.to_owned(), bytes);
        }
        self.put_live_once(item, now).await
    }

    /// Completes an open turn whose log is at `to`, if its row still is the one that was read; what is
    /// noted in it stays. One call; writes for the whole row.
    pub async fn complete_turn(
        &self,
        turn: &Turn,
        (open, to): (&IndexRow, &str),
    ) -> Result<Moved, Error> {
        let at = &turn.core.at;
        let text = AttributeValue::S;
        let mut set = "SET #core = :core, #text = :text, #tags = :tags, #hosted = :to".to_owned();
        let mut update = self
            .client
            .update_item()
            .table_name(&self.table)
            .key(PK, AttributeValue::S(keys::conversation(&at.within)))
            .key(SK, AttributeValue::S(keys::turn(&at.turn)))
            .condition_expression("#core = :seen AND #hosted = :from")
            .expression_attribute_names("#core", CORE)
            .expression_attribute_names("#text", TEXT)
            .expression_attribute_names("#tags", TAGS)
            .expression_attribute_names("#hosted", HOSTED_URI)
            .expression_attribute_values(":core", text(json_text(&turn.core)?))
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
        moved(completed.map(|_| ()))
    }

    /// Points an index row to another version of the turn's log, if it still points to `from`,
    /// and changes nothing else of it. One call; writes for the whole row.
    pub async fn move_turn_log(&self, at: &TurnRef, from: &str, to: &str) -> Result<Moved, Error> {
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
        moved(result.map(|_| ()))
    }

    /// Enters a message into the directory, if it is new or the turn's already. Answers the turn
    /// that has it otherwise. One call, one write; another if another registration of the turn, which
    /// was not finished, had entered it.
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
        let Some(held) = self.put_live_if_new(item.clone(), now).await? else {
            return Ok(None);
        };
        let entry: DirectoryEntry = item::json(&held, MESSAGE, CORE)?;
        if entry.at != turn.at {
            return Ok(Some(entry.at));
        }
        if held != item {
            self.renew_message(item, &held).await?;
        }
        Ok(None)
    }

    /// Puts an entry in the place of one of the same turn, unless that was replaced meanwhile: by
    /// another registration, whose entry is as good.
    async fn renew_message(&self, item: Item, held: &Item) -> Result<(), Error> {
        let seen = item::string(held, MESSAGE, CORE)?.to_owned();
        let renewed = self
            .client
            .put_item()
            .table_name(&self.table)
            .set_item(Some(item))
            .condition_expression("core = :seen")
            .expression_attribute_values(":seen", AttributeValue::S(seen))
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
            .send()
            .await;
        match renewed {
            Err(error)
                if !error
                    .as_service_error()
                    .is_some_and(PutItemError::is_conditional_check_failed_exception) =>
            {
                Err(Error::unavailable("PutItem", &error))
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Takes a message out of the directory, if this registration entered it. One call, one
    /// write.
    pub async fn remove_message(&self, message: &MessageId, turn: &TurnCore) -> Result<(), Error> {
        let entry = DirectoryEntry::of(turn);
        let own = Builder::new(String::new(), "").json(MESSAGE, CORE, &entry)?;
        let removed = self
            .client
            .delete_item()
            .table_name(&self.table)
            .key(
                PK,
                AttributeValue::S(keys::message(
                    &turn.at.within.tenant,
                    &turn.at.within.project,
                    message,
                )),
            )
            .key(SK, AttributeValue::S(keys::MESSAGE.to_owned()))
            .condition_expression("core = :own")
            .set_expression_attribute_values(Some(
                own.build()
                    .remove(CORE)
                    .map(|core| (":own".to_owned(), core))
                    .into_iter()
                    .collect(),
            ))
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
            .send()
            .await;
        match removed {
            Ok(_) => Ok(()),
            Err(error)
                if error
                    .as_service_error()
                    .is_some_and(DeleteItemError::is_conditional_check_failed_exception) =>
            {
                Ok(())
            }
            Err(error) => Err(Error::unavailable("DeleteItem", &error)),
        }
    }
}

const MESSAGE: &str = "message";

/// What became of an attempt to point a row elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moved {
    /// It points there.
    Done,
    /// Somebody else was faster.
    Lost,
}

fn moved(result: Result<(), SdkError<UpdateItemError>>) -> Result<Moved, Error> {
    match result {
        Ok(()) => Ok(Moved::Done),
        Err(error)
            if error
                .as_service_error()
                .is_some_and(UpdateItemError::is_conditional_check_failed_exception) =>
        {
            Ok(Moved::Lost)
        }
        Err(error) => Err(Error::unavailable("UpdateItem", &error)),
    }
}

/// The embedding that a turn's caller gave.
fn embedding(turn: &Turn) -> Option<AttributeValue> {
    let embedding = turn.embedding.as_deref()?;
    Some(AttributeValue::B(Blob::new(quantized(embedding))))
}

pub(crate) fn json_text(part: &impl Serialize) -> Result<String, Error> {
    serde_json::to_string(part).map_err(|error| Error::undecodable(TURN, &error))
}

pub(crate) fn index_row(found: &Item) -> Result<IndexRow, Error> {
    let said: Option<Said> = part(found, SAID)?;
    Ok(IndexRow {
        core: core(found)?,
        summary: item::json(found, TURN, TEXT)?,
        hosted_uri: item::string(found, TURN, HOSTED_URI)?.to_owned(),
        embedded: found.contains_key(EMBEDDING),
        follow_up: part(found, FOLLOW_UP)?,
        status: TurnStatus {
            inferred: part(found, USER_FEEDBACK)?,
            said: said.and_then(|said| said.verdict()),
        },
    })
}

/// What a row tells of its turn.
pub(crate) fn core(found: &Item) -> Result<TurnCore, Error> {
    let core: TurnCore = item::json(found, TURN, CORE)?;
    let expires_at = item::expires_at(found);
    Ok(TurnCore { expires_at, ..core })
}

/// A part that may not be there.
pub(crate) fn part<T: DeserializeOwned>(found: &Item, name: &str) -> Result<Option<T>, Error> {
    if found.contains_key(name) {
        item::json(found, TURN, name).map(Some)
    } else {
        Ok(None)
    }
}

//! Reactions on turns, beside the turns of their conversation.

use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::types::{
    AttributeValue, KeysAndAttributes, ReturnConsumedCapacity, ReturnValuesOnConditionCheckFailure,
};
use hearback_domain::identifier::TurnId;
use hearback_domain::legacy::{self, LegacyReaction};
use hearback_domain::reaction::{ReactionCore, StoredReaction};
use hearback_domain::turn::{ConversationRef, TurnCore, TurnRef};
use uuid::Uuid;

use crate::item::{self, Builder, Item};
use crate::table::{PK, SK};
use crate::turns::CORE;
use crate::{Error, Store, keys};

const REACTION: &str = "reaction";
const TEXT: &str = "text";
/// The number of the attempt that wrote the row: its version.
const ATTEMPT: &str = "attempt";

/// A reaction that stands in the table, as it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// What it says.
    pub reaction: StoredReaction,
    version: AttributeValue,
}

/// What became of an attempt to take a place.
#[derive(Debug, Clone, PartialEq)]
pub enum Replaced {
    /// It stands.
    Done,
    /// Somebody else was faster, and this stands now.
    Lost(Option<Box<Standing>>),
}

/// A row of a conversation's reactions.
#[derive(Debug, Clone, PartialEq)]
pub enum Row {
    /// As this code writes it.
    Reaction(Box<StoredReaction>),
    /// As an older system wrote it: the reaction as text.
    Legacy(LegacyReaction),
    /// As nobody can read it.
    Unreadable,
}

impl Store {
    /// A turn, and what stands where a reaction of this key would go, if the key is known. Sees
    /// every write that was acknowledged. One call, one read for each.
    pub async fn turn_and_reaction(
        &self,
        at: &TurnRef,
        reaction_key: Option<&str>,
    ) -> Result<Option<(TurnCore, Option<Standing>)>, Error> {
        let pk = keys::conversation(&at.within);
        let turn_key = keys::turn(&at.turn);
        let key = |sk: &str| {
            Item::from([
                (PK.to_owned(), AttributeValue::S(pk.clone())),
                (SK.to_owned(), AttributeValue::S(sk.to_owned())),
            ])
        };
        let wanted = KeysAndAttributes::builder()
            .set_keys(Some(
                std::iter::once(turn_key.as_str())
                    .chain(reaction_key)
                    .map(key)
                    .collect(),
            ))
            .consistent_read(true)
            .build()
            .map_err(|error| Error::unreadable("key", error.to_string()))?;
        let found = self
            .client
            .batch_get_item()
            .request_items(&self.table, wanted)
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
            .send()
            .await
            .map_err(|error| Error::unavailable("BatchGetItem", &error))?;
        if found
            .unprocessed_keys()
            .is_some_and(|left| !left.is_empty())
        {
            return Err(Error::Unavailable {
                operation: "BatchGetItem",
                code: "keys left unprocessed".to_owned(),
            });
        }
        let rows = found.responses.unwrap_or_default();
        let rows = rows.get(&self.table).map(Vec::as_slice).unwrap_or_default();
        let row = |sk: &str| {
            let is = |item: &&Item| {
                item.get(SK)
                    .and_then(|v| v.as_s().ok())
                    .is_some_and(|v| v == sk)
            };
            rows.iter().find(is)
        };
        let Some(turn) = row(&turn_key) else {
            return Ok(None);
        };
        let standing = reaction_key.and_then(row).map(standing).transpose()?;
        Ok(Some((item::json(turn, "turn", CORE)?, standing)))
    }

    /// Puts a reaction where `seen` stood, or nothing. One call, one write for each KB.
    pub async fn put_reaction(
        &self,
        reaction: &StoredReaction,
        seen: Option<&Standing>,
    ) -> Result<Replaced, Error> {
        let core = &reaction.core;
        let (drawn, _) = Uuid::new_v4().as_u64_pair();
        let version = AttributeValue::N((drawn >> 32).to_string());
        let mut item = Builder::new(keys::conversation(&core.at.within), keys::reaction(core))
            .json(REACTION, CORE, core)?;
        if !reaction.text.is_empty() {
            item = item.string(TEXT, reaction.text.clone());
        }
        let mut item = item.build();
        item.insert(ATTEMPT.to_owned(), version.clone());
        let put = self
            .client
            .put_item()
            .table_name(&self.table)
            .set_item(Some(item))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        let put = match seen {
            None => put.condition_expression("attribute_not_exists(PK)"),
            Some(seen) => put
                .condition_expression("attempt = :seen")
                .expression_attribute_values(":seen", seen.version.clone()),
        };
        let Err(error) = put.send().await else {
            return Ok(Replaced::Done);
        };
        let Some(PutItemError::ConditionalCheckFailedException(failed)) = error.as_service_error()
        else {
            return Err(Error::unavailable("PutItem", &error));
        };
        match failed.item().map(standing).transpose()? {
            // A try that the SDK repeated, because the answer to the first was lost.
            Some(held) if held.version == version => Ok(Replaced::Done),
            held => Ok(Replaced::Lost(held.map(Box::new))),
        }
    }

    /// What stands where this reaction was put. One call, one read.
    pub async fn reaction(&self, core: &ReactionCore) -> Result<Option<StoredReaction>, Error> {
        let found = self
            .get(keys::conversation(&core.at.within), keys::reaction(core))
            .await?;
        let item = found.item.as_ref();
        Ok(item.map(standing).transpose()?.map(|held| held.reaction))
    }

    /// The reactions of a conversation, by turn; sees every write that was acknowledged. One
    /// call for each MB, one read for each 4 KB.
    pub async fn reactions(&self, at: &ConversationRef) -> Result<Vec<Row>, Error> {
        let span = Span {
            from: keys::REACTION_PREFIX.to_owned(),
            // The character after `#`.
            to: keys::REACTION_PREFIX.replace('#', "$"),
        };
        self.reactions_in(at, &span).await
    }

    /// The reactions of a turn. One call, one read for each 4 KB.
    pub async fn reactions_of(&self, at: &TurnRef) -> Result<Vec<Row>, Error> {
        let from = keys::reactions_of(&at.turn);
        let span = Span {
            to: after_turn(&from),
            from,
        };
        self.reactions_in(&at.within, &span).await
    }

    async fn reactions_in(&self, at: &ConversationRef, span: &Span) -> Result<Vec<Row>, Error> {
        let mut rows = Vec::new();
        let mut resume = None;
        loop {
            let (page, next) = self.reaction_page(at, span, resume).await?;
            rows.extend(page);
            resume = next;
            if resume.is_none() {
                return Ok(rows);
            }
        }
    }

    /// A page of reactions, by turn, from the key `from` on, and the key behind the last turn of
    /// the page if there is more. That turn may be cut in two.
    pub async fn reactions_from(
        &self,
        at: &ConversationRef,
        from: Option<&str>,
    ) -> Result<(Vec<Row>, Option<String>), Error> {
        let span = Span {
            from: from.unwrap_or(keys::REACTION_PREFIX).to_owned(),
            to: keys::REACTION_PREFIX.replace('#', "$"),
        };
        let (rows, next) = self.reaction_page(at, &span, None).await?;
        let next = next.and_then(|last| item::string(&last, REACTION, SK).map(after_turn).ok());
        Ok((rows, next))
    }

    async fn reaction_page(
        &self,
        at: &ConversationRef,
        span: &Span,
        resume: Option<Item>,
    ) -> Result<(Vec<Row>, Option<Item>), Error> {
        let found = self
            .client
            .query()
            .table_name(&self.table)
            .key_condition_expression("PK = :pk AND SK BETWEEN :from AND :to")
            .expression_attribute_values(":pk", AttributeValue::S(keys::conversation(at)))
            .expression_attribute_values(":from", AttributeValue::S(span.from.clone()))
            .expression_attribute_values(":to", AttributeValue::S(span.to.clone()))
            .consistent_read(true)
            .set_exclusive_start_key(resume)
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
            .send()
            .await
            .map_err(|error| Error::unavailable("Query", &error))?;
        let rows = found.items().iter().map(row).collect();
        Ok((rows, found.last_evaluated_key))
    }
}

/// Sort keys from one to another.
struct Span {
    from: String,
    to: String,
}

/// The first sort key behind all reactions of a reaction's turn: `#` ends the turn's name, and
/// `$` is the character that follows it.
fn after_turn(key: &str) -> String {
    let mut parts = key.splitn(3, '#');
    let (kind, turn) = (parts.next(), parts.next());
    format!("{}#{}$", kind.unwrap_or_default(), turn.unwrap_or_default())
}

/// The key of the first reaction of a turn behind this one.
#[must_use]
pub fn behind(turn: &TurnId) -> String {
    after_turn(&keys::reactions_of(turn))
}

fn row(item: &Item) -> Row {
    if item.contains_key(CORE) {
        return match stored(item) {
            Ok(reaction) => Row::Reaction(Box::new(reaction)),
            Err(_) => Row::Unreadable,
        };
    }
    item::string(item, REACTION, TEXT)
        .ok()
        .and_then(legacy::reaction)
        .map_or(Row::Unreadable, Row::Legacy)
}

fn stored(item: &Item) -> Result<StoredReaction, Error> {
    Ok(StoredReaction {
        core: item::json(item, REACTION, CORE)?,
        text: if item.contains_key(TEXT) {
            item::string(item, REACTION, TEXT)?.to_owned()
        } else {
            String::new()
        },
    })
}

fn standing(item: &Item) -> Result<Standing, Error> {
    Ok(Standing {
        reaction: stored(item)?,
        version: item
            .get(ATTEMPT)
            .cloned()
            .ok_or_else(|| Error::unreadable(REACTION, "attempt is missing"))?,
    })
}

//! Reactions on turns, beside the turns of their conversation; and among them what signals on their answers
//! and events say of these turns, so that one read finds all that counts.

use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity};
use chrono::{DateTime, Utc};
use hearback_domain::identifier::{TurnId, UserId};
use hearback_domain::legacy::{self, LegacyReaction};
use hearback_domain::reaction::{ReactionCore, StoredReaction};
use hearback_domain::turn::{ConversationRef, TurnCore, TurnRef};

use crate::item::{self, Builder, Item};
use crate::table::SK;
use crate::turns::{self, CORE};
use crate::{Error, Replaced, Standing, Store, keys};

const REACTION: &str = "reaction";
const TEXT: &str = "text";
/// What [`CORE`] is of a reaction, of what counts as one. By another name, since it follows from an act that is in
/// the ledger already: the stream's readers take no notice of it.
const COUNTED: &str = "counted";

/// A row of a conversation's reactions.
#[derive(Debug, Clone, PartialEq)]
pub enum Row {
    /// As this code writes it.
    Reaction(Box<StoredReaction>),
    /// What a signal or an event says, which counts as a reaction.
    Counted(Box<StoredReaction>),
    /// As an older system wrote it: the reaction as text; and whose it is, if its key tells.
    Legacy(LegacyReaction, Option<UserId>),
    /// As nobody can read it.
    Unreadable,
}

impl Store {
    /// A turn, and what stands where a reaction of this key would go, if the key is known; neither if it
    /// has expired by `now`. Sees every write that was acknowledged. One call, one read for each.
    pub async fn turn_and_reaction(
        &self,
        at: &TurnRef,
        reaction_key: Option<&str>,
        now: DateTime<Utc>,
    ) -> Result<Option<(TurnCore, Option<Standing<StoredReaction>>)>, Error> {
        let pk = keys::conversation(&at.within);
        let mut wanted = vec![(pk.clone(), keys::turn(&at.turn))];
        wanted.extend(reaction_key.map(|key| (pk, key.to_owned())));
        let found = self.get_batch(&wanted).await?.into_iter();
        let mut found = found.map(|item| item.filter(|item| !item::is_expired(item, now)));
        let Some(turn) = found.next().flatten() else {
            return Ok(None);
        };
        let place = found.next().flatten();
        let standing = place.map(|item| standing(at, &item)).transpose()?;
        Ok(Some((turns::core(&turn)?, standing)))
    }

    /// Puts a reaction where `seen` stood, or nothing. One call, one write for each KB.
    pub async fn put_reaction(
        &self,
        reaction: &StoredReaction,
        seen: Option<&Standing<StoredReaction>>,
    ) -> Result<Replaced<StoredReaction>, Error> {
        let core = &reaction.core;
        let seen = (seen, core.received_at);
        let standing = |item: &Item| standing(&core.at, item);
        self.put_over_live(item_of(reaction, CORE)?, seen, standing)
            .await
    }

    /// Puts what counts as a reaction where `seen` stood, or nothing. One call, one write for each KB.
    pub async fn put_counted(
        &self,
        counted: &StoredReaction,
        seen: Option<&Standing<StoredReaction>>,
    ) -> Result<Replaced<StoredReaction>, Error> {
        let seen = (seen, counted.core.received_at);
        let standing = |item: &Item| Standing::of(item, REACTION, |item| stored(item, COUNTED));
        self.put_over_live(item_of(counted, COUNTED)?, seen, standing)
            .await
    }

    /// What stands where this reaction was put, unless it is of an older system. One call, one read.
    pub async fn reaction(&self, core: &ReactionCore) -> Result<Option<StoredReaction>, Error> {
        let found = self
            .get(keys::conversation(&core.at.within), keys::reaction(core))
            .await?;
        let item = found.item.filter(|item| item.contains_key(CORE));
        item.as_ref().map(|item| stored(item, CORE)).transpose()
    }

    /// The reactions of a conversation that have not expired by `now`, by turn; sees every write that was
    /// acknowledged. One call for each MB, one read for each 4 KB.
    pub async fn reactions(
        &self,
        at: &ConversationRef,
        now: DateTime<Utc>,
    ) -> Result<Vec<Row>, Error> {
        self.reactions_in(at, &Span::from(None), now).await
    }

    /// The reactions of a turn that have not expired by `now`. One call, one read for each 4 KB.
    pub async fn reactions_of(&self, at: &TurnRef, now: DateTime<Utc>) -> Result<Vec<Row>, Error> {
        self.reactions_in(&at.within, &Span::of(&at.turn), now)
            .await
    }

    async fn reactions_in(
        &self,
        at: &ConversationRef,
        span: &Span,
        now: DateTime<Utc>,
    ) -> Result<Vec<Row>, Error> {
        let mut rows = Vec::new();
        let mut resume = None;
        loop {
            let (page, next) = self.reaction_page(at, span, resume).await?;
            rows.extend(live(&page, now));
            resume = next;
            if resume.is_none() {
                return Ok(rows);
            }
        }
    }

    /// A page of reactions, by turn, from the key `from` on, and the key behind the last turn of
    /// the page if there is more. That turn may be cut in two. What has expired by `now` is left out.
    pub async fn reactions_from(
        &self,
        at: &ConversationRef,
        from: Option<&str>,
        now: DateTime<Utc>,
    ) -> Result<(Vec<Row>, Option<String>), Error> {
        let (page, next) = self.reaction_page(at, &Span::from(from), None).await?;
        let next = next.and_then(|last| item::string(&last, REACTION, SK).map(after_turn).ok());
        Ok((live(&page, now).collect(), next))
    }

    pub(crate) async fn reaction_page(
        &self,
        at: &ConversationRef,
        span: &Span,
        resume: Option<Item>,
    ) -> Result<(Vec<Item>, Option<Item>), Error> {
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
        Ok((found.items.unwrap_or_default(), found.last_evaluated_key))
    }
}

/// Sort keys from one to another.
pub(crate) struct Span {
    from: String,
    to: String,
}

impl Span {
    /// The reactions of a conversation, from the key `from` on.
    pub(crate) fn from(from: Option<&str>) -> Self {
        Self {
            from: from.unwrap_or(keys::REACTION_PREFIX).to_owned(),
            // The character after `#`.
            to: keys::REACTION_PREFIX.replace('#', "$"),
        }
    }

    /// Those of a turn.
    pub(crate) fn of(turn: &TurnId) -> Self {
        let from = keys::reactions_of(turn);
        Self {
            to: after_turn(&from),
            from,
        }
    }
}

/// The first sort key behind all reactions of a reaction's turn: `#` ends the turn's name, and
/// `$` is the character that follows it.
pub(crate) fn after_turn(key: &str) -> String {
    let mut parts = key.splitn(3, '#');
    let (kind, turn) = (parts.next(), parts.next());
    format!("{}#{}$", kind.unwrap_or_default(), turn.unwrap_or_default())
}

/// The key of the first reaction of a turn behind this one.
#[must_use]
pub fn behind(turn: &TurnId) -> String {
    after_turn(&keys::reactions_of(turn))
}

fn live(page: &[Item], now: DateTime<Utc>) -> impl Iterator<Item = Row> {
    page.iter()
        .filter(move |item| !item::is_expired(item, now))
        .map(row)
}

pub(crate) fn row(item: &Item) -> Row {
    if item.contains_key(CORE) {
        return match stored(item, CORE) {
            Ok(reaction) => Row::Reaction(Box::new(reaction)),
            Err(_) => Row::Unreadable,
        };
    }
    if item.contains_key(COUNTED) {
        return match stored(item, COUNTED) {
            Ok(counted) => Row::Counted(Box::new(counted)),
            Err(_) => Row::Unreadable,
        };
    }
    legacy_of(item).map_or(Row::Unreadable, |legacy| {
        Row::Legacy(legacy, key_of(item).map(|(_, user)| user))
    })
}

/// What a row of an older system says, if anybody can read it.
fn legacy_of(item: &Item) -> Option<LegacyReaction> {
    let text = item::string(item, REACTION, TEXT).ok()?;
    legacy::reaction(text)
}

/// The turn and the user that the key of a user's reaction names.
pub(crate) fn key_of(item: &Item) -> Option<(TurnId, UserId)> {
    keys::user_of_reaction(item::string(item, REACTION, SK).ok()?)
}

fn item_of(reaction: &StoredReaction, part: &str) -> Result<Item, Error> {
    let core = &reaction.core;
    let mut item = Builder::new(keys::conversation(&core.at.within), keys::reaction(core))
        .json(REACTION, part, core)?
        .expires_at(core.expires_at);
    if !reaction.text.is_empty() {
        item = item.string(TEXT, reaction.text.clone());
    }
    Ok(item.build())
}

fn stored(item: &Item, part: &str) -> Result<StoredReaction, Error> {
    let core: ReactionCore = item::json(item, REACTION, part)?;
    Ok(StoredReaction {
        core: ReactionCore {
            expires_at: item::expires_at(item),
            ..core
        },
        text: if item.contains_key(TEXT) {
            item::string(item, REACTION, TEXT)?.to_owned()
        } else {
            String::new()
        },
    })
}

/// What stands in a place of a turn's reactions, whichever system put it there.
fn standing(at: &TurnRef, item: &Item) -> Result<Standing<StoredReaction>, Error> {
    if item.contains_key(CORE) {
        return Standing::of(item, REACTION, |item| stored(item, CORE));
    }
    let (_, user) = key_of(item).ok_or_else(|| Error::unreadable(REACTION, "it is no user's"))?;
    let held = StoredReaction::of_older_system(at.clone(), user, legacy_of(item));
    Ok(Standing::of_older_system(held))
}

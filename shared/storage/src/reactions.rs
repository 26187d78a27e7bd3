//! Reactions on turns, in the partition of their conversation. Message signals and events that
//! count as reactions are among them, so that one query reads both.

use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity};
use chrono::{DateTime, Utc};
use hearback_domain::feedback::legacy::{self, LegacyReaction};
use hearback_domain::feedback::reaction::{ReactionCore, StoredReaction};
use hearback_domain::identity::identifier::{TurnId, UserId};
use hearback_domain::turns::turn::{ConversationRef, TurnCore, TurnRef};
use uuid::Uuid;

use crate::attributes::{CORE, COUNTED, TEXT};
use crate::item::{self, Builder, Item};
use crate::table::SK;
use crate::turn_rows;
use crate::{Error, Replaced, Store, Versioned, keys};

const REACTION: &str = "reaction";

/// A row of a conversation's reactions.
#[derive(Debug, Clone, PartialEq)]
pub enum ReactionRow {
    /// A reaction.
    Reaction(Box<StoredReaction>),
    /// A signal or an event that counts as a reaction.
    Counted(Box<StoredReaction>),
    /// A row of an older system, and its user if the key names one.
    Legacy(LegacyReaction, Option<UserId>),
    /// An unreadable row.
    Unreadable,
}

impl Store {
    /// A turn, and the current reaction of `user`, if given and readable; `None` if the turn has
    /// expired by `now`. Strongly consistent. One call, one read for each.
    pub async fn turn_and_reaction(
        &self,
        at: &TurnRef,
        user: Option<&UserId>,
        now: DateTime<Utc>,
    ) -> Result<Option<(TurnCore, Option<Versioned<StoredReaction>>)>, Error> {
        let pk = keys::conversation(&at.within);
        let mut wanted = vec![(pk.clone(), keys::turn(&at.turn))];
        wanted.extend(user.map(|user| (pk, keys::user_reaction(&at.turn, user))));
        let items = self.get_batch(&wanted).await?.into_iter();
        let mut items = items.map(|item| item.filter(|item| !item::is_expired(item, now)));
        let Some(turn) = items.next().flatten() else {
            return Ok(None);
        };
        let reaction = items.next().flatten();
        let reaction = reaction.and_then(|item| item::readable(&item, current_reaction(at, &item)));
        Ok(Some((turn_rows::core(&turn)?, reaction)))
    }

    /// Replaces the reaction that was read or cannot be read, or inserts one. One call, one write for each KB.
    pub async fn put_reaction(
        &self,
        reaction: &StoredReaction,
        seen: Option<&Versioned<StoredReaction>>,
    ) -> Result<Replaced<StoredReaction>, Error> {
        let core = &reaction.core;
        let seen = (seen, core.received_at);
        let read = |item: &Item| current_reaction(&core.at, item);
        self.replace_live(item_of(reaction, CORE)?, seen, read)
            .await
    }

    /// Replaces the row of feedback that counts as a reaction, or inserts one. One call, one write
    /// for each KB.
    pub async fn put_counted(
        &self,
        counted: &StoredReaction,
        seen: Option<&Versioned<StoredReaction>>,
    ) -> Result<Replaced<StoredReaction>, Error> {
        let seen = (seen, counted.core.received_at);
        let read = |item: &Item| Versioned::of(item, REACTION, |item| stored(item, COUNTED));
        self.replace_live(item_of(counted, COUNTED)?, seen, read)
            .await
    }

    /// An event that counts for a turn, unless it has expired by `now` or cannot be read. One call, one read.
    pub async fn counted_event(
        &self,
        at: &TurnRef,
        event: Uuid,
        now: DateTime<Utc>,
    ) -> Result<Option<StoredReaction>, Error> {
        let key = keys::counted_event(&at.turn, event);
        let item = self.get(keys::conversation(&at.within), key).await?.item;
        let item = item.filter(|item| !item::is_expired(item, now));
        Ok(item.and_then(|item| item::readable(&item, stored(&item, COUNTED))))
    }

    /// The current reaction at the key of this one, unless an older system stored it. One call, one read.
    pub async fn reaction(&self, core: &ReactionCore) -> Result<Option<StoredReaction>, Error> {
        let response = self
            .get(keys::conversation(&core.at.within), keys::reaction(core))
            .await?;
        let item = response.item.filter(|item| item.contains_key(CORE));
        item.as_ref().map(|item| stored(item, CORE)).transpose()
    }

    /// The reactions in a conversation that have not expired by `now`, by turn. Strongly
    /// consistent. One call for each MB, one read for each 4 KB.
    pub async fn reactions(
        &self,
        at: &ConversationRef,
        now: DateTime<Utc>,
    ) -> Result<Vec<ReactionRow>, Error> {
        self.reactions_in(at, &KeyRange::from(None), now).await
    }

    /// The reactions of a turn that have not expired by `now`. One call, one read for each 4 KB.
    pub async fn reactions_of(
        &self,
        at: &TurnRef,
        now: DateTime<Utc>,
    ) -> Result<Vec<ReactionRow>, Error> {
        self.reactions_in(&at.within, &KeyRange::of(&at.turn), now)
            .await
    }

    /// The machine's reactions to a turn that have not expired by `now`, tombstones too. Strongly
    /// consistent. One call for each MB, one read for each 4 KB.
    pub async fn machine_reactions(
        &self,
        at: &TurnRef,
        now: DateTime<Utc>,
    ) -> Result<Vec<Versioned<StoredReaction>>, Error> {
        let span = KeyRange::of_machine(&at.turn);
        let items = self.reaction_items(&at.within, &span, now).await?;
        let stored = items.iter().filter(|item| item.contains_key(CORE));
        let reactions = stored.filter_map(|item| item::readable(item, current_reaction(at, item)));
        Ok(reactions.collect())
    }

    async fn reactions_in(
        &self,
        at: &ConversationRef,
        span: &KeyRange,
        now: DateTime<Utc>,
    ) -> Result<Vec<ReactionRow>, Error> {
        let items = self.reaction_items(at, span, now).await?;
        Ok(items.iter().map(row).collect())
    }

    /// The reactions of a range that have not expired by `now`.
    async fn reaction_items(
        &self,
        at: &ConversationRef,
        span: &KeyRange,
        now: DateTime<Utc>,
    ) -> Result<Vec<Item>, Error> {
        let mut items = Vec::new();
        let mut resume = None;
        loop {
            let (page, next) = self.reaction_page(at, span, resume).await?;
            items.extend(page.into_iter().filter(|item| !item::is_expired(item, now)));
            resume = next;
            if resume.is_none() {
                return Ok(items);
            }
        }
    }

    /// A page of reactions that have not expired by `now`, by turn, from the key `from` on; and the key after the last
    /// turn of the page, if there may be more. The page may lack some reactions to that turn.
    pub async fn reactions_from(
        &self,
        at: &ConversationRef,
        from: Option<&str>,
        now: DateTime<Utc>,
    ) -> Result<(Vec<ReactionRow>, Option<String>), Error> {
        let (page, next) = self.reaction_page(at, &KeyRange::from(from), None).await?;
        let next = next.and_then(|last| item::string(&last, REACTION, SK).map(after_turn).ok());
        Ok((live(&page, now).collect(), next))
    }

    pub(crate) async fn reaction_page(
        &self,
        at: &ConversationRef,
        span: &KeyRange,
        resume: Option<Item>,
    ) -> Result<(Vec<Item>, Option<Item>), Error> {
        let response = self
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
        Ok((
            response.items.unwrap_or_default(),
            response.last_evaluated_key,
        ))
    }
}

/// A range of sort keys.
pub(crate) struct KeyRange {
    from: String,
    to: String,
}

impl KeyRange {
    /// The reactions of a conversation, from the key `from` on.
    pub(crate) fn from(from: Option<&str>) -> Self {
        Self {
            from: from.unwrap_or(keys::REACTION_PREFIX).to_owned(),
            // The character after `#`.
            to: keys::REACTION_PREFIX.replace('#', "$"),
        }
    }

    /// The machine's reactions to a turn.
    fn of_machine(turn: &TurnId) -> Self {
        let from = keys::machine_reactions(turn);
        Self {
            // The character after `#`. The turn's id may have the same ending.
            to: format!("{}$", from.trim_end_matches('#')),
            from,
        }
    }

    /// The reactions to a turn.
    pub(crate) fn of(turn: &TurnId) -> Self {
        let from = keys::reactions_of(turn);
        Self {
            to: after_turn(&from),
            from,
        }
    }
}

/// The first sort key after all reactions to the turn of `key`: `#` ends the turn's id, and `$` is
/// the next character.
pub(crate) fn after_turn(key: &str) -> String {
    let mut parts = key.splitn(3, '#');
    let (kind, turn) = (parts.next(), parts.next());
    format!("{}#{}$", kind.unwrap_or_default(), turn.unwrap_or_default())
}

/// The sort key at which the reactions to the next turn begin.
#[must_use]
pub fn key_after_turn(turn: &TurnId) -> String {
    after_turn(&keys::reactions_of(turn))
}

fn live(page: &[Item], now: DateTime<Utc>) -> impl Iterator<Item = ReactionRow> {
    page.iter()
        .filter(move |item| !item::is_expired(item, now))
        .map(row)
}

pub(crate) fn row(item: &Item) -> ReactionRow {
    if item.contains_key(CORE) {
        let reaction = item::readable(item, stored(item, CORE)).map(Box::new);
        return reaction.map_or(ReactionRow::Unreadable, ReactionRow::Reaction);
    }
    if item.contains_key(COUNTED) {
        let counted = item::readable(item, stored(item, COUNTED)).map(Box::new);
        return counted.map_or(ReactionRow::Unreadable, ReactionRow::Counted);
    }
    legacy_of(item).map_or(ReactionRow::Unreadable, |legacy| {
        ReactionRow::Legacy(legacy, key_of(item).map(|(_, user)| user))
    })
}

/// The reaction of a row of an older system, if it is readable.
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

/// The reaction in a row that this or an older system stored.
fn current_reaction(at: &TurnRef, item: &Item) -> Result<Versioned<StoredReaction>, Error> {
    if item.contains_key(CORE) {
        return Versioned::of(item, REACTION, |item| stored(item, CORE));
    }
    let (_, user) =
        key_of(item).ok_or_else(|| Error::unreadable(REACTION, "its key names no user"))?;
    let legacy = StoredReaction::from_legacy(at.clone(), user, legacy_of(item));
    Ok(Versioned::of_older_system(legacy))
}

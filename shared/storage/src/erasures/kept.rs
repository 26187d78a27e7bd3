//! What is kept of a person, and how it is found.
//!
//! | what | is found by | which lies |
//! |---|---|---|
//! | events that were worked off | their claims | with the user |
//! | events that came second, or were withdrawn | their outcomes, their retractions | in the index of authors |
//! | reactions, and markers of activity | the markers | in the index of authors |
//! | turns, their logs and messages | the turn vectors | with the user |
//! | signals on messages | themselves | with the user |
//! | preference versions | themselves | in a partition of the user's |
//!
//! An event that was not worked off yet is found by nothing: whoever works it off removes it instead.

use std::collections::BTreeSet;

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity};
use hearback_domain::event::EventCore;
use hearback_domain::identifier::{TenantId, UserId};
use hearback_domain::message_signal::SignalCore;
use hearback_domain::turn::{ConversationRef, TurnRef};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{ERASURE, Owner, Unit};
use crate::activity::Activity;
use crate::claims::claimant;
use crate::events::CORE;
use crate::item::{self, Item};
use crate::reactions::{self, Row, Span, row};
use crate::reads::{self, Key};
use crate::table::{AUTHOR, BY_AUTHOR, PK, SK};
use crate::vectors::Mark;
use crate::{Error, Store, keys};

/// Rows of a page that is removed.
const PAGE: i32 = 25;

/// Something of a user's, as it is found.
#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    /// An event.
    Event {
        /// Its name.
        id: Uuid,
        /// Its rows.
        unit: Unit,
        /// The claim that led to it, if one did.
        claim: Option<Unit>,
    },
    /// That the user reacted in a conversation, or the machine in their name.
    Active {
        /// The conversation.
        within: ConversationRef,
        /// The marker.
        marker: Unit,
    },
    /// A turn; there may be none, if its registration died.
    Turn {
        /// The turn.
        at: TurnRef,
        /// The row that leads to it.
        vector: Unit,
    },
    /// A signal on a message.
    Signal {
        /// The event of what was said.
        act: Uuid,
        /// Its row.
        unit: Unit,
    },
    /// A version of preferences.
    Version(Unit),
    /// What led to something that is not there any more, or is another's by now.
    Trail(Unit),
}

/// A reaction of a user's, or what counts as one.
#[derive(Debug, Clone, PartialEq)]
pub struct Reacted {
    /// The turn.
    pub at: TurnRef,
    /// The act, if it is in the ledger.
    pub act: Option<Uuid>,
    /// Whether it only counts as one: what it follows from is kept elsewhere.
    pub counted: bool,
    /// Its row.
    pub unit: Unit,
}

/// Where something is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listing {
    /// With the user: claims.
    Claims,
    /// In the index of authors.
    Authored,
    /// With the user: turn vectors.
    Vectors,
    /// With the user: signals on messages.
    Signals,
    /// Preference versions.
    Versions,
}

/// A page of what is found, and where the next one begins.
#[derive(Debug, Default)]
pub struct Page {
    /// What is found.
    pub found: Vec<Found>,
    /// Behind which row there may be more.
    pub next: Option<Next>,
}

/// Behind which row a page begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Next(Key);

/// How much of a listing is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// As much as is removed at once.
    Few,
    /// As much as one call reads.
    Many,
}

impl Store {
    /// A page of what is kept of a user. Of the index it may miss what was written a moment ago. One call,
    /// another for each hundred rows of the index, and another for the events of claims that are few.
    pub async fn kept_of(
        &self,
        owner: Owner<'_>,
        (listing, extent): (Listing, Extent),
        from: Option<&Next>,
    ) -> Result<Page, Error> {
        let (tenant, user) = owner;
        let partition = keys::user(tenant, user);
        let query = match listing {
            Listing::Claims => self.rows(partition.clone(), keys::CLAIM_PREFIX),
            Listing::Vectors => self.rows(partition.clone(), keys::VECTOR_PREFIX),
            Listing::Signals => self.rows(partition.clone(), keys::SIGNAL_PREFIX),
            Listing::Versions => self.rows(keys::preferences(tenant, user), keys::VERSION_PREFIX),
            Listing::Authored => self
                .client
                .query()
                .index_name(BY_AUTHOR)
                .key_condition_expression("#author = :author")
                .expression_attribute_names("#author", AUTHOR)
                .expression_attribute_values(":author", AttributeValue::S(partition.clone())),
        };
        let from = from.map(|Next((pk, sk))| {
            let text = |text: &String| AttributeValue::S(text.clone());
            let mut row = Item::from([(PK.to_owned(), text(pk)), (SK.to_owned(), text(sk))]);
            if listing == Listing::Authored {
                row.insert(AUTHOR.to_owned(), text(&partition));
            }
            row
        });
        let answer = query
            .table_name(&self.table)
            .set_limit((extent == Extent::Few).then_some(PAGE))
            .set_exclusive_start_key(from)
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
            .send()
            .await
            .map_err(|error| Error::unavailable("Query", &error))?;
        let next = answer.last_evaluated_key.as_ref();
        let next = next.and_then(reads::key_of).map(Next);
        let rows = answer.items.unwrap_or_default();
        let rows = if listing == Listing::Authored {
            let places: Vec<Key> = rows.iter().filter_map(reads::key_of).collect();
            // What is gone is still in the index for a moment.
            let rows = self.get_batch(&places).await?;
            rows.into_iter().flatten().collect()
        } else {
            rows
        };
        let found = rows.iter().map(|row| found(tenant, listing, row));
        let found = found.collect::<Result<_, _>>()?;
        let found = if listing == Listing::Claims && extent == Extent::Few {
            self.own_events(user, found).await?
        } else {
            found
        };
        Ok(Page { found, next })
    }

    /// What claims lead to, as far as it is the user's: once an event has expired, its name is free for
    /// anybody's.
    async fn own_events(&self, user: &UserId, found: Vec<Found>) -> Result<Vec<Found>, Error> {
        let first = |found: &Found| match found {
            Found::Event { unit, .. } => Some(unit.first.clone()),
            _ => None,
        };
        let mut places: Vec<Key> = found.iter().filter_map(first).collect();
        places.sort();
        places.dedup();
        let rows = self.get_batch(&places).await?;
        let mut others = BTreeSet::new();
        for (place, row) in places.into_iter().zip(rows) {
            if let Some(row) = row {
                let core: EventCore = item::json(&row, "event", CORE)?;
                if core.user_id != *user {
                    others.insert(place);
                }
            }
        }
        let found = found.into_iter().map(|found| match found {
            Found::Event { unit, claim, .. } if others.contains(&unit.first) => {
                Found::Trail(claim.unwrap_or(unit))
            }
            found => found,
        });
        Ok(found.collect())
    }

    fn rows(&self, partition: String, prefix: &str) -> QueryFluentBuilder {
        self.client
            .query()
            .key_condition_expression("PK = :pk AND begins_with(SK, :prefix)")
            .expression_attribute_values(":pk", AttributeValue::S(partition))
            .expression_attribute_values(":prefix", AttributeValue::S(prefix.to_owned()))
            .consistent_read(true)
    }

    /// A user's reactions in a conversation, the machine's in their name and those of an older system
    /// too, and what counts as such. A call for each MB.
    pub async fn reactions_by(
        &self,
        user: &UserId,
        within: &ConversationRef,
    ) -> Result<Vec<Reacted>, Error> {
        let mut own = Vec::new();
        let mut from = None;
        loop {
            let span = Span::from(None);
            let (page, next) = self.reaction_page(within, &span, from).await?;
            for item in &page {
                let Some(key) = reads::key_of(item) else {
                    continue;
                };
                let row = row(item);
                let counted = matches!(row, Row::Counted(_));
                let (turn, author, act) = match row {
                    Row::Reaction(reaction) | Row::Counted(reaction) => {
                        let core = reaction.core;
                        (core.at.turn, core.user_id, Some(core.id))
                    }
                    Row::Legacy(..) | Row::Unreadable => match reactions::key_of(item) {
                        Some((turn, author)) => (turn, author, None),
                        None => continue,
                    },
                };
                if author == *user {
                    let within = within.clone();
                    own.push(Reacted {
                        at: TurnRef { within, turn },
                        act,
                        counted,
                        unit: Unit::of(key, []),
                    });
                }
            }
            from = next;
            if from.is_none() {
                return Ok(own);
            }
        }
    }
}

/// What a row of a listing is.
fn found(tenant: &TenantId, listing: Listing, row: &Item) -> Result<Found, Error> {
    let key = reads::key_of(row).ok_or_else(|| Error::unreadable(ERASURE, "a row has no key"))?;
    Ok(match listing {
        Listing::Claims => {
            let id = claimant(row)?;
            let unit = Unit::event_in(&keys::event(tenant, id), Some(key.clone()));
            let claim = Some(Unit::of(key, []));
            Found::Event { id, unit, claim }
        }
        Listing::Authored => authored(tenant, key, row)?,
        Listing::Vectors => {
            let Mark { at, .. } = item::json(row, "turn vector", CORE)?;
            let vector = Unit::of(key, []);
            Found::Turn { at, vector }
        }
        Listing::Signals => {
            let core: SignalCore = item::json(row, "message signal", CORE)?;
            let (act, unit) = (core.act, Unit::of(key, []));
            if core.retracted {
                Found::Trail(unit)
            } else {
                Found::Signal { act, unit }
            }
        }
        Listing::Versions => Found::Version(Unit::of(key, [])),
    })
}

/// What a row is to which the index of authors leads: one of an event, or a marker of activity.
fn authored(tenant: &TenantId, (pk, sk): Key, row: &Item) -> Result<Found, Error> {
    if sk == keys::RESULT || sk == keys::RETRACTION {
        let id = pk.rsplit('#').next().and_then(|id| id.parse().ok());
        return Ok(Found::Event {
            id: id.ok_or_else(|| Error::unreadable(ERASURE, "an event has no name"))?,
            unit: Unit::event_in(&pk, None),
            claim: None,
        });
    }
    let activity: Activity = item::json(row, "activity marker", CORE)?;
    let within = ConversationRef {
        tenant: tenant.clone(),
        project: activity.project,
        conversation: activity.conversation,
    };
    let marker = Unit::of((pk, sk), []);
    Ok(Found::Active { within, marker })
}

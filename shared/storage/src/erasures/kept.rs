//! A user's data, and how it is found.
//!
//! | data | found by | where |
//! |---|---|---|
//! | processed events | their claims | the user's partition |
//! | duplicate or retracted events | their outcomes, their retractions | the author index |
//! | events that could not be read when they were to be processed | themselves | the author index |
//! | reactions and activity markers | the markers | the author index |
//! | tickets and connections of the live feed, corrections | themselves | the author index |
//! | turns, their logs and messages | the turn vectors | the user's partition |
//! | message signals | themselves | the user's partition |
//! | preference versions | themselves | the partition of the user's preferences |
//!
//! Events that are not processed yet are not found: the signal generator removes them instead of
//! processing them.
//!
//! A row that cannot be read is removed by its key. If it is one by which other data is found, that data is searched
//! in the whole table first.

use std::collections::BTreeSet;

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity};
use hearback_domain::events::event::EventCore;
use hearback_domain::feedback::message_signal::SignalCore;
use hearback_domain::identity::identifier::{UserId, UserRef};
use hearback_domain::turns::turn::{ConversationRef, TurnCore, TurnRef};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::RowGroup;
use crate::activity::Activity;
use crate::attributes::{CORE, COUNTED, HOSTED_URI};
use crate::claims::claimant;
use crate::item::{self, Item, embedded_string};
use crate::reads::{self, Key};
use crate::table::{AUTHOR, BY_AUTHOR, PK, SK};
use crate::turn_rows::{self, TURN};
use crate::vectors::TurnMark;
use crate::{Error, Store, keys};

/// Rows that are read before each removal.
const PAGE: i32 = 25;

/// A piece of a user's data.
#[derive(Debug, Clone, PartialEq)]
pub enum PersonalData {
    /// An event.
    Event {
        /// Its id.
        id: Uuid,
        /// Its rows.
        unit: RowGroup,
        /// The claim that led to it, if one did.
        claim: Option<RowGroup>,
    },
    /// The user, or the machine on their behalf, reacted in a conversation.
    Active {
        /// The conversation.
        within: ConversationRef,
        /// The activity marker by which it was found, if it was.
        marker: Option<RowGroup>,
    },
    /// A turn, which may not exist if its registration was not completed.
    Turn {
        /// The turn.
        at: TurnRef,
        /// The row that refers to it.
        vector: RowGroup,
    },
    /// A signal on a message.
    Signal {
        /// The event of the signal; `None` if the row cannot be read.
        act: Option<Uuid>,
        /// Its row.
        unit: RowGroup,
    },
    /// A version of preferences.
    Version(RowGroup),
    /// A row that points to data that no longer exists, or is now another user's.
    Orphan(RowGroup),
    /// A claim, vector or marker that cannot be read: what it points to is unknown.
    Damaged(RowGroup),
}

/// Where the data is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataSource {
    /// Claims in the user's partition.
    Claims,
    /// The author index.
    AuthorIndex,
    /// Turn vectors in the user's partition.
    Vectors,
    /// Message signals in the user's partition.
    Signals,
    /// Preference versions.
    Versions,
}

/// A page of a user's data.
#[derive(Debug, Default)]
pub struct PersonalDataPage {
    /// The data.
    pub found: Vec<PersonalData>,
    /// Where the next page begins, if there may be one.
    pub next: Option<ErasureCursor>,
}

/// The row after which a page begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErasureCursor(Key);

impl ErasureCursor {
    pub(super) fn after(row: Key) -> Self {
        Self(row)
    }

    pub(super) fn row(&self) -> Item {
        let Self((pk, sk)) = self;
        let text = |text: &String| AttributeValue::S(text.clone());
        Item::from([(PK.to_owned(), text(pk)), (SK.to_owned(), text(sk))])
    }
}

/// A turn's row, as far as it can be read.
#[derive(Debug, Clone)]
pub struct ErasableTurn {
    /// The turn.
    pub core: Option<TurnCore>,
    /// The URI of its log.
    pub hosted_uri: Option<String>,
    /// The row, unless it is replaced meanwhile.
    pub unit: RowGroup,
}

impl ErasableTurn {
    fn of(at: &TurnRef, row: &Item) -> Self {
        let raw = |name| item::string(row, TURN, name).ok().map(str::to_owned);
        Self {
            core: turn_rows::core(row).ok(),
            hosted_uri: raw(HOSTED_URI),
            unit: RowGroup::turn(turn_key(at), raw(CORE)),
        }
    }
}

fn turn_key(at: &TurnRef) -> Key {
    (keys::conversation(&at.within), keys::turn(&at.turn))
}

/// How many rows a page has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageSize {
    /// As many as one removal takes.
    Removal,
    /// As many as one call reads.
    Full,
}

impl Store {
    /// A page of a user's data. The author index is eventually consistent. One call, one more for
    /// each hundred rows of the index, and one more for the events of claims in a page for removal.
    pub async fn personal_data(
        &self,
        owner: UserRef<'_>,
        source: DataSource,
        size: PageSize,
        from: Option<&ErasureCursor>,
    ) -> Result<PersonalDataPage, Error> {
        let user = owner.user;
        let partition = keys::user(owner);
        let query = match source {
            DataSource::Claims => self.rows(partition.clone(), keys::CLAIM_PREFIX),
            DataSource::Vectors => self.rows(partition.clone(), keys::VECTOR_PREFIX),
            DataSource::Signals => self.rows(partition.clone(), keys::SIGNAL_PREFIX),
            DataSource::Versions => self.rows(keys::preferences(owner), keys::VERSION_PREFIX),
            DataSource::AuthorIndex => self
                .client
                .query()
                .index_name(BY_AUTHOR)
                .key_condition_expression("#author = :author")
                .expression_attribute_names("#author", AUTHOR)
                .expression_attribute_values(":author", AttributeValue::S(partition.clone())),
        };
        let from = from.map(|from| {
            let mut row = from.row();
            if source == DataSource::AuthorIndex {
                row.insert(AUTHOR.to_owned(), AttributeValue::S(partition.clone()));
            }
            row
        });
        let response = query
            .table_name(&self.table)
            .set_limit((size == PageSize::Removal).then_some(PAGE))
            .set_exclusive_start_key(from)
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
            .send()
            .await
            .map_err(|error| Error::unavailable("Query", &error))?;
        let next = response.last_evaluated_key.as_ref();
        let next = next.and_then(reads::key_of).map(ErasureCursor::after);
        let rows = response.items.unwrap_or_default();
        let rows = if source == DataSource::AuthorIndex {
            let keys: Vec<Key> = rows.iter().filter_map(reads::key_of).collect();
            // The index still has rows that were just deleted.
            let rows = self.get_batch(&keys).await?;
            rows.into_iter().flatten().collect()
        } else {
            rows
        };
        let data = rows.iter().filter_map(|row| data_of(owner, source, row));
        let data = data.collect();
        let data = if source == DataSource::Claims && size == PageSize::Removal {
            self.own_events(user, data).await?
        } else {
            data
        };
        Ok(PersonalDataPage { found: data, next })
    }

    /// Replaces other users' events by orphans: once an event has expired, another user's event may
    /// have its id. An unreadable one counts as the user's.
    async fn own_events(
        &self,
        user: &UserId,
        data: Vec<PersonalData>,
    ) -> Result<Vec<PersonalData>, Error> {
        let event_key = |item: &PersonalData| match item {
            PersonalData::Event { unit, .. } => Some(unit.first.clone()),
            _ => None,
        };
        let mut keys: Vec<Key> = data.iter().filter_map(event_key).collect();
        keys.sort();
        keys.dedup();
        let rows = self.get_batch(&keys).await?;
        let mut others = BTreeSet::new();
        for (key, row) in keys.into_iter().zip(rows) {
            if let Some(row) = row {
                let core = item::json::<EventCore>(&row, "event", CORE);
                if core.is_ok_and(|core| core.user_id != *user) {
                    others.insert(key);
                }
            }
        }
        let data = data.into_iter().map(|item| match item {
            PersonalData::Event { unit, claim, .. } if others.contains(&unit.first) => {
                PersonalData::Orphan(claim.unwrap_or(unit))
            }
            item => item,
        });
        Ok(data.collect())
    }

    fn rows(&self, partition: String, prefix: &str) -> QueryFluentBuilder {
        self.client
            .query()
            .key_condition_expression("PK = :pk AND begins_with(SK, :prefix)")
            .expression_attribute_values(":pk", AttributeValue::S(partition))
            .expression_attribute_values(":prefix", AttributeValue::S(prefix.to_owned()))
            .consistent_read(true)
    }

    /// The row of a turn, as far as it can be read. Strongly consistent. One call, one read for each
    /// 4 KB.
    pub async fn erasable_turn(&self, at: &TurnRef) -> Result<Option<ErasableTurn>, Error> {
        let (pk, sk) = turn_key(at);
        let row = self.get(pk, sk).await?.item;
        Ok(row.map(|row| ErasableTurn::of(at, &row)))
    }

    /// The rows of distinct turns that exist. One call for each hundred, one read for each 4 KB of
    /// each.
    pub async fn erasable_turns(
        &self,
        turns: BTreeSet<TurnRef>,
    ) -> Result<Vec<(TurnRef, ErasableTurn)>, Error> {
        let keys: Vec<_> = turns.iter().map(turn_key).collect();
        let rows = self.get_batch(&keys).await?;
        let rows = turns.into_iter().zip(rows);
        let rows = rows.filter_map(|(at, row)| {
            let turn = ErasableTurn::of(&at, &row?);
            Some((at, turn))
        });
        Ok(rows.collect())
    }
}

/// The data of a row.
fn data_of(owner: UserRef<'_>, source: DataSource, row: &Item) -> Option<PersonalData> {
    let tenant = owner.tenant;
    let key = reads::key_of(row)?;
    let unit = RowGroup::of(key.clone(), []);
    Some(match source {
        DataSource::Claims => match claimant(row) {
            Ok(id) => PersonalData::Event {
                id,
                unit: RowGroup::event_in(&keys::event(tenant, id), Some(key)),
                claim: Some(unit),
            },
            Err(_) => PersonalData::Damaged(unit),
        },
        DataSource::AuthorIndex => return authored(owner, key, row),
        DataSource::Vectors => match item::json::<TurnMark>(row, "turn vector", CORE) {
            Ok(mark) => PersonalData::Turn {
                at: mark.at,
                vector: unit,
            },
            Err(_) => PersonalData::Damaged(unit),
        },
        DataSource::Signals => match item::json::<SignalCore>(row, "message signal", CORE) {
            Ok(core) if core.retracted => PersonalData::Orphan(unit),
            core => PersonalData::Signal {
                act: core.ok().map(|core| core.act),
                unit,
            },
        },
        DataSource::Versions => PersonalData::Version(unit),
    })
}

/// The data of a row from the author index: an event or an activity marker.
fn authored(
    UserRef { tenant, user }: UserRef<'_>,
    (pk, sk): Key,
    row: &Item,
) -> Option<PersonalData> {
    let unit = RowGroup::of((pk.clone(), sk.clone()), []);
    if keys::is_of_live_feed(&pk) {
        // Without its row, a connection receives nothing, and is closed soon.
        return Some(PersonalData::Orphan(unit));
    }
    if sk.starts_with(keys::CORRECTION_PREFIX) {
        // It is in no report, and counts nowhere.
        return Some(PersonalData::Orphan(unit));
    }
    if sk == keys::EVENT {
        // It has an author since it could not be read, and may have been replaced by another user's event.
        let core = item::json::<EventCore>(row, "event", CORE).ok();
        let own = row.contains_key(AUTHOR) && core.is_none_or(|core| core.user_id == *user);
        return event_id(&pk).filter(|_| own).map(|id| PersonalData::Event {
            id,
            unit: RowGroup::event_in(&pk, None),
            claim: None,
        });
    }
    if sk == keys::RESULT || sk == keys::RETRACTION {
        return Some(match event_id(&pk) {
            Some(id) => PersonalData::Event {
                id,
                unit: RowGroup::event_in(&pk, None),
                claim: None,
            },
            None => PersonalData::Orphan(unit),
        });
    }
    Some(match item::json::<Activity>(row, "activity marker", CORE) {
        Ok(activity) => PersonalData::Active {
            within: ConversationRef {
                tenant: tenant.clone(),
                project: activity.project,
                conversation: activity.conversation,
            },
            marker: Some(unit),
        },
        Err(_) => PersonalData::Damaged(unit),
    })
}

/// Whether what is left of a row's text names the user as this member.
pub(super) fn text_names(row: &Item, member: &str, user: &UserId) -> bool {
    let texts = [CORE, COUNTED].into_iter();
    let mut texts = texts.filter_map(|name| row.get(name)?.as_s().ok());
    texts.any(|text| embedded_string(text, member).as_deref() == Some(user.as_str()))
}

/// The event of a partition.
pub(super) fn event_id(partition: &str) -> Option<Uuid> {
    partition.rsplit('#').next()?.parse().ok()
}

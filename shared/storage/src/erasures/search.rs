//! Finds a user's data that no row leads to, because its claim, vector or marker cannot be read.
//!
//! Nothing else leads to it, so the whole table is scanned.

use hearback_domain::identity::identifier::UserRef;
use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity};
use chrono::{DateTime, Utc};
use hearback_domain::events::event::EventCore;
use hearback_domain::turns::turn::{TurnCore, TurnRef};

use super::kept::{event_id, text_names};
use super::reacted::is_by;
use super::{DataSource, ErasureCursor, PageSize, PersonalData, PersonalDataPage, RowGroup};
use crate::attributes::{CORE, COUNTED};
use crate::conditional::changed;
use crate::item::{self, Builder, Item};
use crate::reactions::{ReactionRow, row};
use crate::reads::{Key, key_of};
use crate::table::{PK, SK};
use crate::turn_rows::TURN;
use crate::vectors::TurnMark;
use crate::{Error, Store, keys};

/// Vectors that cannot be read, by the digest of their turn, each with its time.
#[derive(Debug, Default)]
pub struct DamagedVectors(BTreeMap<String, Vec<(Key, DateTime<Utc>)>>);

impl DamagedVectors {
    fn of(&self, at: &TurnRef) -> &[(Key, DateTime<Utc>)] {
        if self.0.is_empty() {
            return &[];
        }
        let of_turn = self.0.get(&keys::turn_digest(at));
        of_turn.map_or(&[], Vec::as_slice)
    }
}

impl Store {
    /// The vectors of a user that cannot be read, and so do not lead to their turns. One call for each MB.
    pub async fn damaged_vectors(&self, owner: UserRef<'_>) -> Result<DamagedVectors, Error> {
        let mut damaged = DamagedVectors::default();
        let mut from = None;
        loop {
            let page =
                self.personal_data(owner, DataSource::Vectors, PageSize::Full, from.as_ref());
            let page = page.await?;
            for found in page.found {
                if let PersonalData::Damaged(unit) = found
                    && let Some((ts, turn)) = keys::vector_of(&unit.first.1)
                {
                    let turn = damaged.0.entry(turn.to_owned()).or_default();
                    turn.push((unit.first.clone(), ts));
                }
            }
            from = page.next;
            if from.is_none() {
                return Ok(damaged);
            }
        }
    }

    /// A user's events and reactions in a page of the whole table. A turn is not returned: its vector is made readable,
    /// because it must be found until no writer can replace its log. The turn is found by the digest in the vector's
    /// key, so its row may be damaged too. One call for each MB of the table, half a read for each 4 KB; one call and
    /// one write for each damaged vector.
    pub async fn search_personal_data(
        &self,
        owner: UserRef<'_>,
        vectors: &DamagedVectors,
        from: Option<&ErasureCursor>,
    ) -> Result<PersonalDataPage, Error> {
        let user = owner.user;
        let text = |value: &str| AttributeValue::S(value.to_owned());
        let name = serde_json::to_string(user);
        let name = name.map_err(|error| Error::undecodable("user id", &error))?;
        let [reaction_key, signal_key] = keys::reactions_of_user(user);
        let response = self
            .client
            .scan()
            .table_name(&self.table)
            .filter_expression(
                "(#sk = :event AND contains(#core, :name)) OR begins_with(#sk, :turn) \
                 OR (begins_with(#sk, :reaction) AND (contains(#core, :name) \
                 OR contains(#counted, :name) OR contains(#sk, :reactor) OR contains(#sk, :signaller)))",
            )
            .projection_expression("#pk, #sk, #core, #counted")
            .expression_attribute_names("#pk", PK)
            .expression_attribute_names("#sk", SK)
            .expression_attribute_names("#core", CORE)
            .expression_attribute_names("#counted", COUNTED)
            .expression_attribute_values(":event", text(keys::EVENT))
            .expression_attribute_values(":turn", text(keys::TURN_PREFIX))
            .expression_attribute_values(":reaction", text(keys::REACTION_PREFIX))
            .expression_attribute_values(":name", AttributeValue::S(name))
            .expression_attribute_values(":reactor", AttributeValue::S(reaction_key))
            .expression_attribute_values(":signaller", AttributeValue::S(signal_key))
            .set_exclusive_start_key(from.map(ErasureCursor::row))
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
            .send()
            .await
            .map_err(|error| Error::unavailable("Scan", &error))?;
        let next = response.last_evaluated_key.as_ref();
        let mut page = PersonalDataPage {
            found: Vec::new(),
            next: next.and_then(key_of).map(ErasureCursor::after),
        };
        for item in response.items() {
            let Some((pk, sk)) = key_of(item) else {
                continue;
            };
            if sk == keys::EVENT {
                page.found.extend(event(owner, &pk, item));
            } else if sk.starts_with(keys::TURN_PREFIX) {
                let core = item::json::<TurnCore>(item, TURN, CORE).ok();
                let at = core.map_or_else(|| keys::turn_of(&pk, &sk), |core| Some(core.at));
                if let Some(at) = at.filter(|at| at.within.tenant == *owner.tenant) {
                    for (vector, ts) in vectors.of(&at) {
                        self.restore_vector(vector, &at, *ts).await?;
                    }
                }
            } else {
                page.found.extend(reaction(owner, &pk, item));
            }
        }
        Ok(page)
    }

    /// Makes a vector lead to its turn again.
    async fn restore_vector(
        &self,
        (pk, sk): &Key,
        at: &TurnRef,
        ts: DateTime<Utc>,
    ) -> Result<(), Error> {
        let mark = TurnMark {
            at: at.clone(),
            ts,
            // It is not to be compared.
            embedder: String::new(),
        };
        let mark = Builder::new(pk.clone(), sk.clone()).json("turn vector", CORE, &mark)?;
        let restored = self
            .client
            .update_item()
            .table_name(&self.table)
            .key(PK, AttributeValue::S(pk.clone()))
            .key(SK, AttributeValue::S(sk.clone()))
            .update_expression("SET #core = :core")
            .condition_expression("attribute_exists(PK)")
            .expression_attribute_names("#core", CORE)
            .set_expression_attribute_values(
                (mark.build().remove(CORE)).map(|core| [(":core".to_owned(), core)].into()),
            )
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
            .send()
            .await;
        changed("UpdateItem", restored).map(|_| ())
    }
}

/// An event, if it is the user's.
fn event(
    UserRef { tenant, user }: UserRef<'_>,
    partition: &str,
    item: &Item,
) -> Option<PersonalData> {
    let own = item::json::<EventCore>(item, "event", CORE).map_or_else(
        |_| {
            let of = keys::event_of(partition);
            of.is_some_and(|(of, _)| of == *tenant) && text_names(item, "userId", user)
        },
        |core| core.owner() == UserRef { tenant, user },
    );
    let id = event_id(partition)?;
    own.then(|| PersonalData::Event {
        id,
        unit: RowGroup::event_in(partition, None),
        claim: None,
    })
}

/// A conversation with a reaction of the user.
fn reaction(
    UserRef { tenant, user }: UserRef<'_>,
    partition: &str,
    item: &Item,
) -> Option<PersonalData> {
    let within = match row(item) {
        ReactionRow::Reaction(found) | ReactionRow::Counted(found) => {
            let core = found.core;
            (core.user_id == *user).then_some(core.at.within)
        }
        ReactionRow::Legacy(..) | ReactionRow::Unreadable => {
            let within = keys::conversation_of(partition);
            within.filter(|_| is_by(item, user))
        }
    };
    let within = within.filter(|within| within.tenant == *tenant)?;
    Some(PersonalData::Active {
        within,
        marker: None,
    })
}

//! Finds a user's data that no row leads to, because its claim, vector or marker cannot be read.
//!
//! Nothing else leads to it, so the whole table is scanned.

use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity};
use hearback_domain::event::EventCore;
use hearback_domain::identifier::UserId;
use hearback_domain::turn::TurnCore;

use super::kept::event_id;
use super::{ErasureCursor, Owner, PersonalData, PersonalDataPage, RowGroup};
use crate::attributes::CORE;
use crate::conditional::changed;
use crate::item::{self, Builder, Item};
use crate::reactions::{COUNTED, ReactionRow, row};
use crate::reads::key_of;
use crate::table::{PK, SK};
use crate::turn_rows::TURN;
use crate::vectors::TurnMark;
use crate::{Error, Store, keys};

impl Store {
    /// A user's events and reactions in a page of the whole table. A turn is not returned: its vector is made readable,
    /// because it must be found until no writer can replace its log. One call for each MB of the table, half a read for
    /// each 4 KB; one call and one write for each turn.
    pub async fn search_personal_data(
        &self,
        owner: Owner<'_>,
        from: Option<&ErasureCursor>,
    ) -> Result<PersonalDataPage, Error> {
        let (_, user) = owner;
        let text = |value: &str| AttributeValue::S(value.to_owned());
        let name = serde_json::to_string(user);
        let name = name.map_err(|error| Error::undecodable("user id", &error))?;
        let response = self
            .client
            .scan()
            .table_name(&self.table)
            .filter_expression(
                "(#sk = :event OR begins_with(#sk, :turn) OR begins_with(#sk, :reaction)) \
                 AND (contains(#core, :name) OR contains(#counted, :name))",
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
                let own = core.filter(|core| (&core.at.within.tenant, &core.user_id) == owner);
                if let Some(core) = own {
                    self.restore_vector(user, &core).await?;
                }
            } else {
                page.found.extend(reaction(owner, item));
            }
        }
        Ok(page)
    }

    /// Makes the vector of a turn lead to it again, if there is one.
    async fn restore_vector(&self, user: &UserId, turn: &TurnCore) -> Result<(), Error> {
        let mark = TurnMark {
            at: turn.at.clone(),
            ts: turn.ts,
            // It is not to be compared.
            embedder: String::new(),
        };
        let (pk, sk) = (
            keys::user(&turn.at.within.tenant, user),
            keys::vector(turn.ts, &turn.at),
        );
        let mark = Builder::new(pk.clone(), sk.clone()).json("turn vector", CORE, &mark)?;
        let restored = self
            .client
            .update_item()
            .table_name(&self.table)
            .key(PK, AttributeValue::S(pk))
            .key(SK, AttributeValue::S(sk))
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
fn event((tenant, user): Owner<'_>, partition: &str, item: &Item) -> Option<PersonalData> {
    let core: EventCore = item::json(item, "event", CORE).ok()?;
    let id = event_id(partition)?;
    ((&core.tenant, &core.user_id) == (tenant, user)).then(|| PersonalData::Event {
        id,
        unit: RowGroup::event_in(partition, None),
        claim: None,
    })
}

/// A conversation with a reaction of the user.
fn reaction(owner: Owner<'_>, item: &Item) -> Option<PersonalData> {
    let (ReactionRow::Reaction(found) | ReactionRow::Counted(found)) = row(item) else {
        return None;
    };
    let within = found.core.at.within;
    ((&within.tenant, &found.core.user_id) == owner).then(|| PersonalData::Active {
        within: within.clone(),
        marker: None,
    })
}

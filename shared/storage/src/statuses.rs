//! How turns were taken: noted in their rows, and listed by it.
//!
//! A row with a verdict carries two attributes of the sparse index by status; they change in the very
//! update that changes the verdict. A neutral row carries none.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::{
    AttributeValue, ReturnConsumedCapacity, ReturnValuesOnConditionCheckFailure,
};
use chrono::{DateTime, Utc};
use futures::future::try_join_all;
use hearback_domain::detection::{CorrectionType, FeedbackType};
use hearback_domain::follow_up::{Precedence, UserFeedback};
use hearback_domain::identifier::{ProjectId, TenantId, UserId};
use hearback_domain::reaction::{Means, Reaction, StoredReaction};
use hearback_domain::sequence::MOST_COUNTED;
use hearback_domain::turn::{ConversationRef, TurnRef};
use hearback_domain::turn_status::{Said, TurnStatus};

use crate::item::{self, Item};
use crate::reads::{self, Key};
use crate::table::{BY_STATUS, PK, SK, STATUS, STATUS_AT};
use crate::turns::{IndexRow, TURN, index_row, json_text, part};
use crate::vectors::Mark;
use crate::{Error, Store, keys};

/// What was inferred of a turn.
pub(crate) const USER_FEEDBACK: &str = "user_feedback";
/// How that counts beside what else was inferred: [`Precedence`].
const PRECEDENCE: &str = "precedence";
/// What its user said of it on purpose, by which means: [`Said`].
pub(crate) const SAID: &str = "said";
/// How often a note is tried while what is noted beside it changes.
const TRIES: usize = 20;

/// What is to be noted in a row.
enum Note<'a> {
    /// What was inferred.
    Inferred(&'a UserFeedback, Precedence),
    /// What its user said by one means, and when; `None` if they took it back.
    Said(Means, (Option<Reaction>, DateTime<Utc>)),
}

/// What a note makes of a row.
struct Change {
    /// The part of the row that changes.
    part: &'static str,
    /// What it is to say.
    value: String,
    /// How the turn was taken then.
    status: FeedbackType,
    /// Parts that must be as they were read: the status depends on them.
    rests_on: &'static [&'static str],
}

impl Note<'_> {
    /// What it makes of a row; `None` if that has what counts before it.
    fn over(&self, row: &Item) -> Result<Option<Change>, Error> {
        let said: Said = part(row, SAID)?.unwrap_or_default();
        match self {
            Self::Inferred(feedback, precedence) => {
                let noted = row.get(PRECEDENCE).and_then(|noted| noted.as_n().ok());
                let noted = noted.and_then(|noted| noted.parse::<i128>().ok());
                if noted.is_some_and(|noted| noted <= precedence.number()) {
                    return Ok(None);
                }
                let status = TurnStatus {
                    inferred: Some((*feedback).clone()),
                    said: said.verdict(),
                };
                Ok(Some(Change {
                    part: USER_FEEDBACK,
                    value: json_text(feedback)?,
                    status: status.status(),
                    rests_on: &[SAID],
                }))
            }
            Self::Said(means, act) => {
                let Some(said) = said.with(*means, *act) else {
                    return Ok(None);
                };
                let verdict = said.verdict();
                let status = TurnStatus {
                    inferred: part(row, USER_FEEDBACK)?,
                    said: verdict,
                };
                Ok(Some(Change {
                    part: SAID,
                    value: json_text(&said)?,
                    status: status.status(),
                    rests_on: match verdict {
                        Some(_) => &[SAID],
                        None => &[SAID, USER_FEEDBACK],
                    },
                }))
            }
        }
    }
}

impl Store {
    /// Notes what was inferred of a turn, which was at `turn_ts`, unless what is noted takes precedence, or is
    /// the same. Answers whether no other follow-up counts instead. May be repeated. One call, and another
    /// where its user said something of it; writes for the whole row, and for its entry in the index by
    /// status as far as that changes.
    pub async fn note_inferred(
        &self,
        (at, turn_ts): (&TurnRef, DateTime<Utc>),
        feedback: &UserFeedback,
        precedence: Precedence,
    ) -> Result<bool, Error> {
        let note = Note::Inferred(feedback, precedence);
        let Some(standing) = self.note((at, turn_ts), &note).await? else {
            return Ok(true);
        };
        let counts: Option<UserFeedback> = part(&standing, USER_FEEDBACK)?;
        let named = counts.is_some_and(|counts| counts.detected_in_turn.is_none());
        let number = AttributeValue::N(precedence.number().to_string());
        Ok(named || standing.get(PRECEDENCE) == Some(&number))
    }

    /// Notes what a reaction of the machine says of its turn, if that sets how it was taken. May be
    /// repeated. Calls and writes as for what is inferred.
    pub async fn note_machine(
        &self,
        reaction: &StoredReaction,
        correction: Option<CorrectionType>,
    ) -> Result<(), Error> {
        let core = &reaction.core;
        let feedback = UserFeedback::of_machine(reaction, correction, core.received_at);
        if let Some((feedback, precedence)) = feedback {
            let turn = (&core.at, core.turn_ts);
            self.note_inferred(turn, &feedback, precedence).await?;
        }
        Ok(())
    }

    /// Notes what a turn's user said of it on purpose by one means, or that they took it back, unless
    /// something later was noted by the same means. May be repeated. One call, and another where anything was
    /// noted before; writes as for what is inferred.
    pub async fn note_said(
        &self,
        turn: (&TurnRef, DateTime<Utc>),
        means: Means,
        act: (Option<Reaction>, DateTime<Utc>),
    ) -> Result<(), Error> {
        self.note(turn, &Note::Said(means, act)).await.map(|_| ())
    }

    /// Notes something, or answers the row as it stands if there is nothing to change in it.
    async fn note(
        &self,
        turn: (&TurnRef, DateTime<Utc>),
        note: &Note<'_>,
    ) -> Result<Option<Item>, Error> {
        // As a rule nothing is noted yet, and then one call is enough.
        let mut seen = Item::new();
        for _ in 0..TRIES {
            let Some(change) = note.over(&seen)? else {
                return Ok(Some(seen));
            };
            let Some(row) = self.change(turn, note, &change, &seen).await? else {
                return Ok(None);
            };
            if row.is_empty() {
                return Ok(Some(row));
            }
            seen = row;
        }
        Err(Error::Unavailable {
            operation: "UpdateItem",
            code: "changed too often at once".to_owned(),
        })
    }

    /// Changes a row that is as it was seen, or answers how it stands; empty if there is none.
    async fn change(
        &self,
        (at, turn_ts): (&TurnRef, DateTime<Utc>),
        note: &Note<'_>,
        change: &Change,
        seen: &Item,
    ) -> Result<Option<Item>, Error> {
        let mut conditions = vec!["attribute_exists(PK)".to_owned()];
        let mut set = "SET #part = :part".to_owned();
        let mut update = self
            .client
            .update_item()
            .table_name(&self.table)
            .key(PK, AttributeValue::S(keys::conversation(&at.within)))
            .key(SK, AttributeValue::S(keys::turn(&at.turn)))
            .expression_attribute_names("#part", change.part)
            .expression_attribute_names("#status", STATUS)
            .expression_attribute_names("#status_at", STATUS_AT)
            .expression_attribute_values(":part", AttributeValue::S(change.value.clone()))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        if let Note::Inferred(_, precedence) = note {
            set.push_str(", #order = :order");
            conditions.push("(attribute_not_exists(#order) OR #order > :order)".to_owned());
            let order = AttributeValue::N(precedence.number().to_string());
            update = update
                .expression_attribute_names("#order", PRECEDENCE)
                .expression_attribute_values(":order", order);
        }
        for (number, part) in change.rests_on.iter().enumerate() {
            let (name, value) = (format!("#seen{number}"), format!(":seen{number}"));
            if let Some(was) = seen.get(*part) {
                conditions.push(format!("{name} = {value}"));
                update = update.expression_attribute_values(value, was.clone());
            } else {
                conditions.push(format!("attribute_not_exists({name})"));
            }
            update = update.expression_attribute_names(name, *part);
        }
        let noted = if change.status == FeedbackType::Neutral {
            update.update_expression(format!("{set} REMOVE #status, #status_at"))
        } else {
            let ConversationRef {
                tenant, project, ..
            } = &at.within;
            let shard = self.shard(at.within.conversation.as_str());
            let status = keys::turn_status(tenant, project, change.status, shard);
            let status_at = keys::turn_time(turn_ts, at);
            update
                .update_expression(format!("{set}, #status = :status, #status_at = :status_at"))
                .expression_attribute_values(":status", AttributeValue::S(status))
                .expression_attribute_values(":status_at", AttributeValue::S(status_at))
        };
        let Err(error) = noted
            .condition_expression(conditions.join(" AND "))
            .send()
            .await
        else {
            return Ok(None);
        };
        match error.as_service_error() {
            Some(UpdateItemError::ConditionalCheckFailedException(failed)) => {
                Ok(Some(failed.item().cloned().unwrap_or_default()))
            }
            _ => Err(Error::unavailable("UpdateItem", &error)),
        }
    }

    /// How many turns in a row before this one were rejected, as far as is known now, and as far as they
    /// are counted. One call and one read for each, and for the one that was not.
    pub async fn rejections_before(
        &self,
        row: &IndexRow,
        now: DateTime<Utc>,
    ) -> Result<usize, Error> {
        let mut at = row.core.at.clone();
        let mut follow_up = row.follow_up.clone();
        let mut count = 0;
        while let Some(before) = follow_up.filter(|_| count < MOST_COUNTED) {
            at.turn = before.previous_turn_id;
            let before = self.turn(&at, now).await?;
            let rejected = |row: &IndexRow| row.status.status() == FeedbackType::Rejected;
            let Some(before) = before.filter(rejected) else {
                break;
            };
            count += 1;
            follow_up = before.follow_up;
        }
        Ok(count)
    }
}

/// Which turns of a project are listed: from the first instant, included, to the second, included.
#[derive(Debug, Clone)]
pub struct Listed<'a> {
    /// The tenant.
    pub tenant: &'a TenantId,
    /// The project.
    pub project: &'a ProjectId,
    /// How they were taken; not neutral.
    pub status: FeedbackType,
    /// The first instant, and the last.
    pub span: (DateTime<Utc>, DateTime<Utc>),
    /// The time: what has expired is not listed.
    pub now: DateTime<Utc>,
}

/// A place in a list of turns; the latest turn comes first.
pub type Place = String;

/// Turns of a list, each with its place, and where the list goes on if it does.
#[derive(Debug, Clone, Default)]
pub struct TurnPage {
    /// The turns, the latest first.
    pub rows: Vec<(Place, IndexRow)>,
    /// Behind which place there may be more.
    pub next: Option<Place>,
}

impl Listed<'_> {
    /// Sort keys of the index from the oldest to the newest that comes behind a place.
    fn between(&self, after: Option<&Place>) -> Option<(String, String)> {
        let (from, to) = self.span;
        let from = keys::turn_times(from);
        // `$` follows the `#` behind the last instant.
        let newest = keys::turn_times(to).replace('#', "$");
        let newest = match after {
            // The greatest key before a place: `turn_time` ends with a digit of a hexadecimal number.
            Some(after) => before(after).min(newest),
            None => newest,
        };
        (from <= newest).then_some((from, newest))
    }

    fn has(&self, row: &IndexRow) -> bool {
        let (from, to) = self.span;
        let status = row.status.status() == self.status;
        let kept = row.core.expires_at.is_none_or(|expires| expires > self.now);
        status
            && kept
            && row.core.at.within.project == *self.project
            && (from..=to).contains(&row.core.ts)
    }
}

/// A key before which nothing of a list lies between it and `place`: the last character is made the one
/// before it, and what could follow that is behind it.
fn before(place: &str) -> String {
    let mut key = place.to_owned();
    let last = key.pop().map(u32::from).unwrap_or_default();
    let smaller = last.checked_sub(1).and_then(char::from_u32);
    key.extend(smaller);
    key.push('~');
    key
}

impl Store {
    /// A page of the turns of a project that were taken so, the latest first, behind a place. It may miss what
    /// was noted a moment ago. One call for each shard, half a read each for each 4 KB of keys; one for each
    /// hundred turns, a read each.
    pub async fn turns_by_status(
        &self,
        listed: &Listed<'_>,
        after: Option<&Place>,
        limit: usize,
    ) -> Result<TurnPage, Error> {
        let Some((from, to)) = listed.between(after) else {
            return Ok(TurnPage::default());
        };
        let shards = (0..self.shards()).map(|shard| {
            let key = keys::turn_status(listed.tenant, listed.project, listed.status, shard);
            self.status_keys(key, (from.clone(), to.clone()), limit)
        });
        let mut found: Vec<(Place, Key)> = Vec::new();
        let mut more = false;
        for (keys, cut) in try_join_all(shards).await? {
            found.extend(keys);
            more |= cut;
        }
        found.sort_by(|(one, _), (other, _)| other.cmp(one));
        more |= found.len() > limit;
        found.truncate(limit);
        let next = found
            .last()
            .filter(|_| more)
            .map(|(place, _)| place.clone());
        let places: Vec<Key> = found.iter().map(|(_, key)| key.clone()).collect();
        let rows = self.get_batch(&places).await?;
        let rows = found.into_iter().zip(rows).filter_map(|((place, _), row)| {
            // What changed since, or is gone, is in the index for a moment.
            let row = index_row(&row?).map(|row| listed.has(&row).then_some((place, row)));
            row.transpose()
        });
        let rows = rows.collect::<Result<_, _>>()?;
        Ok(TurnPage { rows, next })
    }

    /// The latest entries of a shard of the index, and whether there are more.
    async fn status_keys(
        &self,
        key: String,
        (from, to): (String, String),
        limit: usize,
    ) -> Result<(Vec<(Place, Key)>, bool), Error> {
        let found = self
            .client
            .query()
            .table_name(&self.table)
            .index_name(BY_STATUS)
            .key_condition_expression("#status = :value AND #at BETWEEN :from AND :to")
            .expression_attribute_names("#status", STATUS)
            .expression_attribute_names("#at", STATUS_AT)
            .expression_attribute_values(":value", AttributeValue::S(key))
            .expression_attribute_values(":from", AttributeValue::S(from))
            .expression_attribute_values(":to", AttributeValue::S(to))
            .scan_index_forward(false)
            .limit(i32::try_from(limit).unwrap_or(i32::MAX))
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
            .send()
            .await
            .map_err(|error| Error::unavailable("Query", &error))?;
        let keys = found.items().iter().map(|entry| {
            let place = item::string(entry, TURN, STATUS_AT)?.to_owned();
            let key = reads::key_of(entry);
            let key = key.ok_or_else(|| Error::unreadable(TURN, "an entry has no key"))?;
            Ok((place, key))
        });
        let more = found.last_evaluated_key().is_some();
        Ok((keys.collect::<Result<_, Error>>()?, more))
    }

    /// A page of a user's own turns that were taken so, the latest first, behind a place; `limit` are looked
    /// at. Sees every write that was acknowledged. One call, one read for each 4 KB of vectors; one for each
    /// hundred turns, a read each.
    pub async fn own_turns_by_status(
        &self,
        user: &UserId,
        listed: &Listed<'_>,
        after: Option<&Place>,
        limit: usize,
    ) -> Result<TurnPage, Error> {
        let Some((from, to)) = listed.between(after) else {
            return Ok(TurnPage::default());
        };
        let key = |at: String| AttributeValue::S(format!("{}{at}", keys::VECTOR_PREFIX));
        let pk = keys::user(listed.tenant, user);
        let found = self
            .client
            .query()
            .table_name(&self.table)
            .key_condition_expression("PK = :pk AND SK BETWEEN :from AND :to")
            .expression_attribute_values(":pk", AttributeValue::S(pk))
            .expression_attribute_values(":from", key(from))
            .expression_attribute_values(":to", key(to))
            .scan_index_forward(false)
            .limit(i32::try_from(limit).unwrap_or(i32::MAX))
            .consistent_read(true)
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
            .send()
            .await
            .map_err(|error| Error::unavailable("Query", &error))?;
        let more = found.last_evaluated_key().is_some();
        let marks = found.items().iter().map(|entry| {
            let mark: Mark = item::json(entry, TURN, "core")?;
            Ok((keys::turn_time(mark.ts, &mark.at), mark))
        });
        let marks: Vec<(Place, Mark)> = marks.collect::<Result<_, Error>>()?;
        let next = marks
            .last()
            .filter(|_| more)
            .map(|(place, _)| place.clone());
        let marks: Vec<_> = (marks.into_iter())
            .filter(|(_, mark)| mark.at.within.project == *listed.project)
            .collect();
        // A turn may be marked twice, of which one counts.
        let mut places: Vec<TurnRef> = marks.iter().map(|(_, mark)| mark.at.clone()).collect();
        places.sort();
        places.dedup();
        let rows = self.kept_turns(&places).await?;
        let rows: BTreeMap<_, _> = places.into_iter().zip(rows).collect();
        let rows = marks.into_iter().filter_map(|(place, mark)| {
            let row = rows.get(&mark.at)?.as_ref();
            let row = row.filter(|row| row.is_marked(user, mark.ts) && listed.has(row))?;
            Some((place, row.clone()))
        });
        Ok(TurnPage {
            rows: rows.collect(),
            next,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_begins_right_behind_a_place() {
        for (place, behind) in [
            ("000000000000000005#0a", "000000000000000005#09"),
            ("000000000000000005#a0", "000000000000000005#9f"),
            ("000000000000000005#00", "000000000000000004#ff"),
        ] {
            let newest = before(place);
            assert!(
                behind < newest.as_str() && newest.as_str() < place,
                "{newest}"
            );
        }
    }
}

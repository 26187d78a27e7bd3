//! The status of turns: in their rows, and in an index.
//!
//! The index lists a project's turns for those who may read all of them, so it has the status that others see: the one
//! without message signals, which are private. A row with such a verdict has the two key attributes of the sparse index;
//! the update that changes the verdict changes them too. A neutral row has neither.

use std::cmp::Ordering;

use aws_sdk_dynamodb::types::{
    AttributeValue, ReturnConsumedCapacity, ReturnValuesOnConditionCheckFailure,
};
use chrono::{DateTime, Utc};
use hearback_detection::{FeedbackStatus, RejectionKind};
use hearback_domain::feedback::follow_up::{Precedence, UserFeedback};
use hearback_domain::feedback::reaction::{ReactionCore, StoredReaction};
use hearback_domain::feedback::sequence::MAX_COUNTED;
use hearback_domain::feedback::turn_status::{ExplicitAct, ExplicitFeedback, TurnStatus};
use hearback_domain::identity::identifier::{TenantId, UserId};
use hearback_domain::turns::turn::{ConversationRef, TurnRef};

use crate::attributes::{GIVEN_FEEDBACK, IS_EXPLICIT, IS_INFERRED, USER_FEEDBACK};
use crate::conditional::{WriteOutcome, outcome};
use crate::error::unless_unreadable;
use crate::item::Item;
use crate::table::{PK, SK, STATUS, STATUS_AT};
use crate::turn_rows::{IndexRow, json_text, part};
use crate::{Error, Store, keys};

/// The [`Precedence`] of the inference.
const PRECEDENCE: &str = "precedence";
/// Attempts to update a row that other writers update too.
const TRIES: usize = 20;

/// Feedback to store in a row.
enum Note<'a> {
    /// An inference.
    Inferred(&'a UserFeedback, Precedence),
    /// What a person says instead of an inference, whose place it takes.
    Corrected {
        inferred: &'a UserFeedback,
        right: &'a UserFeedback,
    },
    /// Explicit feedback of the turn's user, or its withdrawal.
    Given(ExplicitAct),
}

/// A change of a row.
struct Change {
    /// The part of the row that changes.
    part: &'static str,
    /// Its new value.
    value: String,
    /// The status of the turn after the change, as others see it; `None` if they see no change.
    status: Option<FeedbackStatus>,
    /// Whether the turn has feedback of this kind after the change: an attribute for insights.
    feedback: (&'static str, bool),
    /// Parts that must be unchanged since they were read, because the status depends on them.
    depends_on: &'static [&'static str],
}

impl Note<'_> {
    /// The change of a row of `tenant`; `None` if the row has feedback that takes precedence. New feedback replaces a
    /// part that cannot be read.
    fn resolve(&self, row: &Item, tenant: &TenantId) -> Result<Option<Change>, Error> {
        let given = unless_unreadable(part(row, GIVEN_FEEDBACK), tenant)?;
        let given: ExplicitFeedback = given.unwrap_or_default();
        match self {
            Self::Inferred(feedback, precedence) => {
                let stored = row.get(PRECEDENCE).and_then(|stored| stored.as_n().ok());
                let stored = stored.and_then(|stored| stored.parse::<i128>().ok());
                let order = stored.map(|stored| stored.cmp(&precedence.number()));
                let is_known = match order {
                    None | Some(Ordering::Greater) => false,
                    Some(Ordering::Less) => true,
                    Some(Ordering::Equal) => !is_greater(feedback, row, tenant)?,
                };
                if is_known {
                    return Ok(None);
                }
                let status = TurnStatus {
                    inferred: Some((*feedback).clone()),
                    explicit: given.shared().verdict(feedback.detected_at),
                };
                Ok(Some(Change {
                    part: USER_FEEDBACK,
                    value: json_text(feedback)?,
                    feedback: (IS_INFERRED, feedback.is_event()),
                    status: Some(status.status()),
                    depends_on: match order {
                        Some(Ordering::Equal) => &[GIVEN_FEEDBACK, USER_FEEDBACK],
                        Some(_) | None => &[GIVEN_FEEDBACK],
                    },
                }))
            }
            Self::Corrected { inferred, right } => {
                let current = unless_unreadable(part(row, USER_FEEDBACK), tenant)?;
                if current.as_ref() != Some(*inferred) {
                    return Ok(None);
                }
                let status = TurnStatus {
                    inferred: Some((*right).clone()),
                    explicit: given.shared().verdict(right.detected_at),
                };
                Ok(Some(Change {
                    part: USER_FEEDBACK,
                    value: json_text(right)?,
                    feedback: (IS_INFERRED, right.is_event()),
                    status: Some(status.status()),
                    depends_on: &[GIVEN_FEEDBACK, USER_FEEDBACK],
                }))
            }
            Self::Given(act) => {
                let Some(given) = given.with(*act) else {
                    return Ok(None);
                };
                let change = Change {
                    part: GIVEN_FEEDBACK,
                    value: json_text(&given)?,
                    feedback: (
                        IS_EXPLICIT,
                        given.verdict(act.recency.received_at()).is_some(),
                    ),
                    status: None,
                    depends_on: &[GIVEN_FEEDBACK],
                };
                if act.kind.is_private() {
                    return Ok(Some(change));
                }
                let status = TurnStatus {
                    inferred: unless_unreadable(part(row, USER_FEEDBACK), tenant)?,
                    explicit: given.shared().verdict(act.recency.received_at()),
                };
                Ok(Some(Change {
                    status: Some(status.status()),
                    depends_on: match status.explicit {
                        Some(_) => &[GIVEN_FEEDBACK],
                        None => &[GIVEN_FEEDBACK, USER_FEEDBACK],
                    },
                    ..change
                }))
            }
        }
    }
}

/// Whether an inference counts instead of the stored one with the same precedence: one of the two does, in whatever order
/// they are processed. The time of the detection is that of the processing.
fn is_greater(feedback: &UserFeedback, row: &Item, tenant: &TenantId) -> Result<bool, Error> {
    let stored = part::<UserFeedback>(row, USER_FEEDBACK);
    let Some(mut stored) = unless_unreadable(stored, tenant)? else {
        return Ok(true);
    };
    if stored.corrected.is_some() {
        return Ok(false);
    }
    stored.detected_at = feedback.detected_at;
    Ok(json_text(feedback)? > json_text(&stored)?)
}

impl Store {
    /// Stores an inference about a turn, whose time is `turn_ts`, unless the stored one takes
    /// precedence or is the same. Returns `false` if the inference of another follow-up, or a
    /// correction, takes precedence. Idempotent. One call, two if the turn has explicit feedback; writes for the
    /// whole row, and for its status index entry if that changes.
    pub async fn note_inferred(
        &self,
        at: &TurnRef,
        turn_ts: DateTime<Utc>,
        feedback: &UserFeedback,
        precedence: Precedence,
    ) -> Result<bool, Error> {
        let note = Note::Inferred(feedback, precedence);
        let Some(row) = self.note(at, turn_ts, &note).await? else {
            return Ok(true);
        };
        let current = part::<UserFeedback>(&row, USER_FEEDBACK);
        let current = unless_unreadable(current, &at.within.tenant)?;
        if (current.as_ref()).is_some_and(|current| current.corrected.is_some()) {
            return Ok(false);
        }
        let names_turn = current.is_some_and(|current| current.detected_in_turn.is_none());
        let number = AttributeValue::N(precedence.number().to_string());
        Ok(names_turn || row.get(PRECEDENCE) == Some(&number))
    }

    /// Stores a machine reaction as an inference about its turn, if it sets the status. Idempotent.
    /// Calls and writes as for an inference.
    pub async fn note_machine(
        &self,
        reaction: &StoredReaction,
        correction: Option<RejectionKind>,
    ) -> Result<(), Error> {
        let core = &reaction.core;
        let feedback = UserFeedback::of_machine(reaction, correction, core.received_at);
        if let Some((feedback, precedence)) = feedback {
            let noted = self.note_inferred(&core.at, core.turn_ts, &feedback, precedence);
            noted.await?;
        }
        Ok(())
    }

    /// Replaces what was inferred about a turn by what a person says, with the same precedence. Returns `false` if
    /// something else is stored meanwhile. Two calls, one read; writes as for an inference.
    pub async fn correct_inference(
        &self,
        (at, turn_ts): (&TurnRef, DateTime<Utc>),
        inferred: &UserFeedback,
        right: &UserFeedback,
    ) -> Result<bool, Error> {
        let row = self.get(keys::conversation(&at.within), keys::turn(&at.turn));
        let seen = row.await?.item.unwrap_or_default();
        let note = Note::Corrected { inferred, right };
        let Some(row) = self.note_from(at, turn_ts, &note, seen).await? else {
            return Ok(true);
        };
        // The response to an update that was executed may be lost.
        let current = part::<UserFeedback>(&row, USER_FEEDBACK);
        let current = unless_unreadable(current, &at.within.tenant)?;
        Ok(current.as_ref() == Some(right))
    }

    /// Stores explicit feedback of the turn's user, or its withdrawal, unless later feedback of the
    /// same kind is stored. Idempotent. One call, two if the turn has explicit feedback, or an
    /// inference that counts again; writes as for an inference.
    pub async fn note_given_feedback(&self, core: &ReactionCore) -> Result<(), Error> {
        let note = Note::Given(ExplicitAct::of(core));
        let noted = self.note(&core.at, core.turn_ts, &note);
        noted.await.map(|_| ())
    }

    /// Stores feedback; returns the row if nothing changes.
    async fn note(
        &self,
        at: &TurnRef,
        turn_ts: DateTime<Utc>,
        note: &Note<'_>,
    ) -> Result<Option<Item>, Error> {
        // Usually no feedback is stored yet, and one call is enough.
        self.note_from(at, turn_ts, note, Item::new()).await
    }

    /// Stores feedback in a row that was `seen` like this; returns the row if nothing changes.
    async fn note_from(
        &self,
        at: &TurnRef,
        turn_ts: DateTime<Utc>,
        note: &Note<'_>,
        mut seen: Item,
    ) -> Result<Option<Item>, Error> {
        for _ in 0..TRIES {
            let Some(change) = note.resolve(&seen, &at.within.tenant)? else {
                return Ok(Some(seen));
            };
            let changed = self.change(at, turn_ts, note, &change, &seen);
            let Some(row) = changed.await? else {
                return Ok(None);
            };
            if row.is_empty() {
                return Ok(Some(row));
            }
            seen = row;
        }
        Err(Error::failed("UpdateItem", "changed too often at once"))
    }

    /// Changes a row if it is unchanged since it was read; otherwise returns the current row, empty
    /// if there is none.
    async fn change(
        &self,
        at: &TurnRef,
        turn_ts: DateTime<Utc>,
        note: &Note<'_>,
        change: &Change,
        seen: &Item,
    ) -> Result<Option<Item>, Error> {
        let mut conditions = vec!["attribute_exists(PK)".to_owned()];
        let (mut set, mut remove) = ("SET #part = :part".to_owned(), Vec::new());
        let (feedback, has_feedback) = change.feedback;
        let mut update = self
            .client
            .update_item()
            .table_name(&self.table)
            .key(PK, AttributeValue::S(keys::conversation(&at.within)))
            .key(SK, AttributeValue::S(keys::turn(&at.turn)))
            .expression_attribute_names("#part", change.part)
            .expression_attribute_names("#feedback", feedback)
            .expression_attribute_values(":part", AttributeValue::S(change.value.clone()))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        // Without feedback there is no flag, so that a neutral follow-up does not change the index.
        if has_feedback {
            set.push_str(", #feedback = :yes");
            update = update.expression_attribute_values(":yes", AttributeValue::Bool(true));
        } else {
            remove.push("#feedback");
        }
        if let Note::Inferred(_, precedence) = note {
            set.push_str(", #order = :order");
            // An equal inference is replaced only as it was read.
            let order = if change.depends_on.contains(&USER_FEEDBACK) {
                "#order = :order"
            } else {
                "(attribute_not_exists(#order) OR #order > :order)"
            };
            conditions.push(order.to_owned());
            let order = AttributeValue::N(precedence.number().to_string());
            update = update
                .expression_attribute_names("#order", PRECEDENCE)
                .expression_attribute_values(":order", order);
        }
        for (number, part) in change.depends_on.iter().enumerate() {
            let (name, value) = (format!("#seen{number}"), format!(":seen{number}"));
            if let Some(was) = seen.get(*part) {
                conditions.push(format!("{name} = {value}"));
                update = update.expression_attribute_values(value, was.clone());
            } else {
                conditions.push(format!("attribute_not_exists({name})"));
            }
            update = update.expression_attribute_names(name, *part);
        }
        if let Some(status) = change.status {
            if status == FeedbackStatus::Neutral {
                remove.extend(["#status", "#status_at"]);
            } else {
                let ConversationRef {
                    tenant, project, ..
                } = &at.within;
                let shard = self.shard(at.within.conversation.as_str());
                let status = keys::turn_status(tenant, project, status, shard);
                let status_at = keys::turn_time(turn_ts, at);
                set.push_str(", #status = :status, #status_at = :status_at");
                update = update
                    .expression_attribute_values(":status", AttributeValue::S(status))
                    .expression_attribute_values(":status_at", AttributeValue::S(status_at));
            }
            update = update
                .expression_attribute_names("#status", STATUS)
                .expression_attribute_names("#status_at", STATUS_AT);
        }
        if !remove.is_empty() {
            set.push_str(" REMOVE ");
            set.push_str(&remove.join(", "));
        }
        let update = update
            .update_expression(set)
            .condition_expression(conditions.join(" AND "));
        Ok(match outcome("UpdateItem", update.send().await)? {
            WriteOutcome::Done => None,
            WriteOutcome::Conflict(row) => Some(row.unwrap_or_default()),
        })
    }

    /// The number of consecutive rejected turns before this one, as `user` sees them, at most [`MAX_COUNTED`]. One call
    /// and one read for each, and for the first that was not rejected.
    pub async fn rejections_before(
        &self,
        row: &IndexRow,
        user: &UserId,
        now: DateTime<Utc>,
    ) -> Result<usize, Error> {
        let mut at = row.core.at.clone();
        let mut follow_up = row.follow_up.clone();
        let mut count = 0;
        while let Some(before) = follow_up.filter(|_| count < MAX_COUNTED) {
            at.turn = before.previous_turn_id;
            let before = self.turn(&at, now).await;
            let before = unless_unreadable(before, &at.within.tenant)?;
            let before = before.map(|before| before.seen_by(user, now));
            let rejected = |row: &IndexRow| row.status.status() == FeedbackStatus::Rejected;
            let Some(before) = before.filter(rejected) else {
                break;
            };
            count += 1;
            follow_up = before.follow_up;
        }
        Ok(count)
    }
}

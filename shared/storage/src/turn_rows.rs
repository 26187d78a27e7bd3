//! The index row of a turn, as an item and as a value.

use chrono::{DateTime, Utc};
use hearback_domain::feedback::follow_up::FollowUp;
use hearback_domain::feedback::turn_status::{ExplicitFeedback, TurnStatus};
use hearback_domain::identity::identifier::UserId;
use hearback_domain::turns::turn::{Summary, TurnCore};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Error;
use crate::attributes::{CORE, FOLLOW_UP, GIVEN_FEEDBACK, HOSTED_URI, TEXT, USER_FEEDBACK};
use crate::item::{self, Item};

/// Names the kind of item in errors.
pub(crate) const TURN: &str = "turn";
pub(crate) const TAGS: &str = "tags";
pub(crate) const EMBEDDING: &str = "embedding";

/// An index row.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexRow {
    /// The turn without its texts.
    pub core: TurnCore,
    /// The beginnings of its texts.
    pub summary: Summary,
    /// The URI of the turn's log.
    pub hosted_uri: String,
    /// Whether the caller supplied an embedding.
    pub embedded: bool,
    /// The detection about the previous turn, if any.
    pub follow_up: Option<FollowUp>,
    /// The explicit feedback of its user.
    pub given: ExplicitFeedback,
    /// Its status.
    pub status: TurnStatus,
}

impl IndexRow {
    /// Whether a user's vector refers to this registration of the turn. A registration that lost a
    /// conflict or was interrupted leaves a vector without a turn.
    #[must_use]
    pub fn is_marked(&self, user: &UserId, ts: DateTime<Utc>) -> bool {
        self.core.user_id == *user && self.core.ts == ts
    }

    /// The row as `user` sees it at `now`: the status of another user's turn does not reveal that user's private
    /// feedback.
    #[must_use]
    pub fn seen_by(self, user: &UserId, now: DateTime<Utc>) -> Self {
        if self.core.user_id == *user {
            self
        } else {
            self.shared(now)
        }
    }

    /// The row as every other user sees it at `now`.
    pub(crate) fn shared(self, now: DateTime<Utc>) -> Self {
        let given = self.given.shared();
        let status = TurnStatus {
            explicit: given.verdict(now),
            ..self.status
        };
        Self {
            given,
            status,
            ..self
        }
    }
}

pub(crate) fn json_text(part: &impl Serialize) -> Result<String, Error> {
    serde_json::to_string(part).map_err(|error| Error::undecodable(TURN, &error))
}

/// The index row of an item, with the status that it has at `now`.
pub(crate) fn index_row(item: &Item, now: DateTime<Utc>) -> Result<IndexRow, Error> {
    let given: ExplicitFeedback = part(item, GIVEN_FEEDBACK)?.unwrap_or_default();
    Ok(IndexRow {
        core: core(item)?,
        summary: item::json(item, TURN, TEXT)?,
        hosted_uri: item::string(item, TURN, HOSTED_URI)?.to_owned(),
        embedded: item.contains_key(EMBEDDING),
        follow_up: part(item, FOLLOW_UP)?,
        status: TurnStatus {
            inferred: part(item, USER_FEEDBACK)?,
            explicit: given.verdict(now),
        },
        given,
    })
}

/// The turn of a row.
pub(crate) fn core(item: &Item) -> Result<TurnCore, Error> {
    let core: TurnCore = item::json(item, TURN, CORE)?;
    let expires_at = item::expires_at(item);
    Ok(TurnCore { expires_at, ..core })
}

/// A part that may be missing.
pub(crate) fn part<T: DeserializeOwned>(item: &Item, name: &str) -> Result<Option<T>, Error> {
    if item.contains_key(name) {
        item::json(item, TURN, name).map(Some)
    } else {
        Ok(None)
    }
}

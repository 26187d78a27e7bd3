//! Keys of conversations, turns and their vectors.

use chrono::{DateTime, Utc};
use hearback_detection::FeedbackStatus;
use hearback_domain::identity::identifier::{ProjectId, TenantId, TurnId};
use hearback_domain::text::digest::digest;
use hearback_domain::turns::turn::{ConversationRef, TurnRef};

use super::parts::{named, part, short, sort_part};

/// Prefix of the sort keys of turns.
pub const TURN_PREFIX: &str = "TURN#";
/// Prefix of the sort keys of a user's turns by time.
pub const VECTOR_PREFIX: &str = "VEC#";

/// The partition of a conversation: its turns and their reactions.
#[must_use]
pub fn conversation(at: &ConversationRef) -> String {
    let (tenant, project) = (part(at.tenant.as_str()), part(at.project.as_str()));
    format!("CONV#{tenant}#{project}#{}", part(at.conversation.as_str()))
}

/// The sort key of a turn.
#[must_use]
pub fn turn(turn: &TurnId) -> String {
    format!("{TURN_PREFIX}{}", sort_part(turn.as_str()))
}

/// The conversation of a partition; `None` if a name was too long and hashed, and for any other
/// partition.
#[must_use]
pub fn conversation_of(partition: &str) -> Option<ConversationRef> {
    let mut parts = partition.strip_prefix("CONV#")?.split('#');
    let mut name = || named(parts.next()?);
    Some(ConversationRef {
        tenant: name()?.try_into().ok()?,
        project: name()?.try_into().ok()?,
        conversation: name()?.try_into().ok()?,
    })
}

/// The turn of a row; `None` if a name was too long and hashed, and for any other row.
#[must_use]
pub fn turn_of(partition: &str, sort_key: &str) -> Option<TurnRef> {
    let turn = named(sort_key.strip_prefix(TURN_PREFIX)?)?;
    Some(TurnRef {
        within: conversation_of(partition)?,
        turn: turn.try_into().ok()?,
    })
}

/// Prefix of the sort keys of a user's turns at an instant; sorts by time from 1970 on, and before
/// all turns from that instant on.
#[must_use]
pub fn vectors(ts: DateTime<Utc>) -> String {
    format!("{VECTOR_PREFIX}{}", turn_times(ts))
}

/// Prefix of the positions of turns at an instant; sorts like [`vectors`].
#[must_use]
pub fn turn_times(ts: DateTime<Utc>) -> String {
    format!("{:018}#", ts.timestamp_micros().max(0))
}

/// The position of a turn among others by time.
#[must_use]
pub fn turn_time(ts: DateTime<Utc>, at: &TurnRef) -> String {
    format!("{}{}", turn_times(ts), turn_digest(at))
}

/// Prefix of the sort keys of corrections.
pub const CORRECTION_PREFIX: &str = "CORRECTION#";

/// The sort key of a turn's correction.
#[must_use]
pub fn correction(turn: &TurnId) -> String {
    format!("{CORRECTION_PREFIX}{}", sort_part(turn.as_str()))
}

/// The sort key of the turn of a [`correction`].
#[must_use]
pub fn turn_of_correction(key: &str) -> String {
    key.replacen(CORRECTION_PREFIX, TURN_PREFIX, 1)
}

/// The index key of a shard of a project's corrections, among its turns by status.
#[must_use]
pub fn corrections(tenant: &TenantId, project: &ProjectId, shard: u32) -> String {
    status_shard(tenant, project, "corrected", shard)
}

/// The index key of a shard of a project's turns with one status.
#[must_use]
pub fn turn_status(
    tenant: &TenantId,
    project: &ProjectId,
    status: FeedbackStatus,
    shard: u32,
) -> String {
    status_shard(tenant, project, status.as_str(), shard)
}

fn status_shard(tenant: &TenantId, project: &ProjectId, status: &str, shard: u32) -> String {
    let (tenant, project) = (part(tenant.as_str()), part(project.as_str()));
    format!("STATUS#{tenant}#{project}#{status}#{shard}")
}

/// The sort key of a user's turn vector. Contains a digest of the turn's ids, to keep the read of a
/// year's turns small; the item contains the ids.
#[must_use]
pub fn vector(ts: DateTime<Utc>, at: &TurnRef) -> String {
    format!("{VECTOR_PREFIX}{}", turn_time(ts, at))
}

/// The time and the digest of the turn in the sort key of a turn vector; `None` for any other key.
#[must_use]
pub fn vector_of(key: &str) -> Option<(DateTime<Utc>, &str)> {
    let (micros, turn) = key.strip_prefix(VECTOR_PREFIX)?.split_once('#')?;
    let ts = DateTime::from_timestamp_micros(micros.parse().ok()?)?;
    Some((ts, turn))
}

/// The digest of a turn's ids in the sort keys of its vectors.
#[must_use]
pub fn turn_digest(at: &TurnRef) -> String {
    let names = [
        at.within.project.as_str(),
        at.within.conversation.as_str(),
        at.turn.as_str(),
    ];
    short(digest(names), 16)
}

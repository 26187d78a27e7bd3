//! Keys. Every partition key begins with its kind and its tenant, and is injective: two
//! different names never give the same key.
//!
//! Parts are joined by `#`, so a `#` within a part is escaped. A part whose UTF-8 is too long for
//! a key (2,048 bytes for a partition key, 1,024 for a sort key) is replaced by its SHA-256.

mod days;
mod files;
mod insights;
mod live;
mod parts;
mod reactions;
mod turns;
mod webhooks;

use chrono::NaiveDate;
use hearback_domain::events::dedupe::DedupeKey;
use hearback_domain::feedback::message_signal::MessageSignal;
use hearback_domain::identity::identifier::{Label, MessageId, ProjectId, TenantId, UserRef};
use parts::{MAX_INDEXED_PART, escaped, join, part, sort_part};
use uuid::Uuid;

pub use days::{active_in, activity, date_of, day, days, month, months};
pub use files::{
    IMPORTS, REPORT_SUFFIX, erasure_traces, export_day, export_training, import_work, imports_of,
    is_turn_log, signal_exports_of, tenant_of_folder, training_exports_of, turn_log, turn_logs,
};
pub use insights::{
    counted, event_at, hour, hour_of, insights, interval_of, occurred_at, turn_occurred_at,
};
pub use live::{
    CONNECTION, TICKET, connection, is_of_live_feed, tenant_listeners, ticket, user_listeners,
};
pub use parts::named;
pub use reactions::{
    REACTION_PREFIX, ReactionAuthor, ReactionKey, counted_event, machine_reactions, reaction,
    reaction_key, reaction_part, reactions_of, reactions_of_user, user_of_reaction, user_reaction,
};
pub use turns::{
    CORRECTION_PREFIX, TURN_PREFIX, VECTOR_PREFIX, conversation, conversation_of, correction,
    corrections, turn, turn_digest, turn_of, turn_of_correction, turn_status, turn_time,
    turn_times, vector, vector_of, vectors,
};
pub use webhooks::{webhook, webhooks};

/// Sort key of an event.
pub const EVENT: &str = "EVENT";
/// Sort key of the outcome of an event.
pub const RESULT: &str = "RESULT";
/// Sort key of the retraction of an event.
pub const RETRACTION: &str = "RETRACTION";
/// Prefix of the sort keys of message signals.
pub const SIGNAL_PREFIX: &str = "SIGNAL#";
/// Sort key of a message's directory entry.
pub const MESSAGE: &str = "MESSAGE";
/// Prefix of the sort keys of a user's dedupe claims.
pub const CLAIM_PREFIX: &str = "CLAIM#";
/// Sort key of the erasure of a user.
pub const ERASURE: &str = "ERASURE";
/// Prefix of the sort keys of preference versions.
pub const VERSION_PREFIX: &str = "V#";
/// Sort key of an import.
pub const IMPORT: &str = "IMPORT";
/// Prefix of the sort keys of an import's pieces.
pub const PIECE_PREFIX: &str = "PIECE#";

/// The partition of an event and its outcome.
#[must_use]
pub fn event(tenant: &TenantId, feedback_id: Uuid) -> String {
    join("EVENT", tenant, &feedback_id.to_string())
}

/// The sort key of a dedupe claim. It is in its user's partition, so that an erasure finds the
/// user's events.
#[must_use]
pub fn claim(key: &DedupeKey) -> String {
    format!("{CLAIM_PREFIX}{}", hex::encode(key.fingerprint()))
}

/// The partition of a user's preferences.
#[must_use]
pub fn preferences(UserRef { tenant, user }: UserRef<'_>) -> String {
    join("PREF", tenant, user.as_str())
}

/// The sort key of a preference version; sorts as the numbers do.
#[must_use]
pub fn version(number: u64) -> String {
    format!("{VERSION_PREFIX}{number:010}")
}

/// The number of a [`version`] key; `None` for any other key.
#[must_use]
pub fn version_of(key: &str) -> Option<u64> {
    key.strip_prefix(VERSION_PREFIX)?.parse().ok()
}

/// The tenant and the id of an event's partition; `None` if the tenant was too long and hashed, and for any other
/// partition.
#[must_use]
pub fn event_of(partition: &str) -> Option<(TenantId, Uuid)> {
    let (tenant, id) = partition.strip_prefix("EVENT#")?.split_once('#')?;
    Some((named(tenant)?.try_into().ok()?, id.parse().ok()?))
}

/// The partition of a message's directory entry. Message ids are unique within a project, so that a
/// conflict does not reveal ids of another project.
#[must_use]
pub fn message(tenant: &TenantId, project: &ProjectId, message: &MessageId) -> String {
    let (tenant, project) = (part(tenant.as_str()), part(project.as_str()));
    format!("MESSAGE#{tenant}#{project}#{}", part(message.as_str()))
}

/// The partition of a user's own items. It is also a sort key of indexes, and therefore shorter
/// than the others.
#[must_use]
pub fn user(UserRef { tenant, user }: UserRef<'_>) -> String {
    let part = |raw| escaped(raw, MAX_INDEXED_PART);
    format!("USER#{}#{}", part(tenant.as_str()), part(user.as_str()))
}

/// Prefix of the sort keys of a user's signals on a message.
#[must_use]
pub fn message_signals(message: &MessageId) -> String {
    format!("{SIGNAL_PREFIX}{}#", sort_part(message.as_str()))
}

/// The sort key of a signal on a message.
#[must_use]
pub fn message_signal(message: &MessageId, signal: MessageSignal) -> String {
    format!("{}{}", message_signals(message), signal.as_str())
}

/// The index key of a shard of a tenant's day in the feed.
#[must_use]
pub fn feed(tenant: &TenantId, day: NaiveDate, shard: u32) -> String {
    format!("FEED#{}#{day}#{shard}", part(tenant.as_str()))
}

/// The index key of message signals on a trace.
#[must_use]
pub fn trace(tenant: &TenantId, trace: &Label) -> String {
    join("TRACE", tenant, trace.as_str())
}

/// The index key of a shard of a tenant's day of message signals.
#[must_use]
pub fn signal_day(tenant: &TenantId, day: NaiveDate, shard: u32) -> String {
    format!("SIGNALS#{}#{day}#{shard}", part(tenant.as_str()))
}

/// The partition of an import and its pieces.
#[must_use]
pub fn import(tenant: &TenantId, id: &str) -> String {
    join("IMPORT", tenant, id)
}

/// The sort key of a piece of an import; sorts as the numbers do.
#[must_use]
pub fn import_piece(number: u64) -> String {
    format!("{PIECE_PREFIX}{number:010}")
}

#[cfg(test)]
mod tests {
    use chrono::NaiveTime;
    use hearback_domain::identity::identifier::{ConversationId, TurnId, UserId};
    use proptest::prelude::*;

    use super::parts::HASHED;
    use super::*;

    fn name() -> impl Strategy<Value = String> {
        prop_oneof![
            "[#%~a2357E]{1,6}",
            "\\PC{1,256}",
            // Four bytes a character, and escapes of three: beyond what a key can hold.
            "[🙂#]{250,256}",
        ]
    }

    proptest! {
        #[test]
        fn different_names_have_different_keys(a in (name(), name()), b in (name(), name())) {
            let key = |(tenant, user): &(String, String)| {
                Some(preferences(UserRef::new(&tenant.as_str().try_into().ok()?, &user.as_str().try_into().ok()?)))
            };
            if let (Some(key_a), Some(key_b)) = (key(&a), key(&b)) {
                prop_assert_eq!(a == b, key_a == key_b);
            }
        }

        #[test]
        fn a_key_fits_into_the_table(tenant in name(), user in name()) {
            if let Ok(tenant) = tenant.as_str().try_into()
                && let Ok(user) = UserId::try_from(user.as_str())
            {
                let project = ProjectId::try_from(user.as_str()).unwrap();
                let owner = UserRef { tenant: &tenant, user: &user };
                prop_assert!(preferences(owner).len() <= 2048);
                // Sort keys of the indexes.
                prop_assert!(super::user(owner).len() <= 1024);
                prop_assert!(event(&tenant, Uuid::nil()).len() <= 1024);
                prop_assert!(day(&tenant, &project, NaiveDate::MAX, u32::MAX).len() <= 1024);
            }
        }

        #[test]
        fn signals_on_different_messages_have_different_keys(a in name(), b in name()) {
            let key = |message: &str| {
                let message = MessageId::try_from(message).ok()?;
                Some(message_signal(&message, MessageSignal::Edit))
            };
            if let (Some(key_a), Some(key_b)) = (key(&a), key(&b)) {
                prop_assert_eq!(a == b, key_a == key_b);
                prop_assert!(key_a.len() <= 1024);
            }
        }

        #[test]
        fn the_key_of_activity_names_its_minute_and_conversation_unless_that_is_long(
            conversation in name(), project in name(), minute in 0..1_440_u32, day in -700_000..2_900_000_i32
        ) {
            let minute = NaiveTime::from_hms_opt(minute / 60, minute % 60, 0).unwrap();
            let user = UserId::try_from("ada").unwrap();
            if let Ok(conversation) = ConversationId::try_from(conversation) {
                if let Some(named) = active_in(&activity(minute, &conversation, &user)) {
                    prop_assert_eq!(named, (minute, conversation));
                } else {
                    prop_assert!(conversation.as_str().len() > 60);
                }
            }
            let date = NaiveDate::from_num_days_from_ce_opt(day).unwrap();
            if let Ok(project) = ProjectId::try_from(project) {
                let tenant = TenantId::try_from("a#b").unwrap();
                let partition = self::day(&tenant, &project, date, 3);
                prop_assert_eq!(date_of(&partition), Some(date));
                let (from, to) = days(&tenant, &project, (date, date));
                prop_assert!(from < partition && partition < to);
            }
        }

        #[test]
        fn the_key_of_a_reaction_names_its_turn_and_user(turn in name(), user in name()) {
            if let (Ok(turn), Ok(user)) = (TurnId::try_from(turn), UserId::try_from(user)) {
                let key = user_reaction(&turn, &user);
                prop_assert!(reaction_key(&key).unwrap().is_by(&user));
                let named = user_of_reaction(&key).unwrap();
                // In a key, a name of its own never begins with the mark of a digest.
                let is_hashed = |name: &str| sort_part(name).starts_with(HASHED);
                if !is_hashed(turn.as_str()) {
                    prop_assert_eq!(named.0, turn);
                }
                if !is_hashed(user.as_str()) {
                    prop_assert_eq!(named.1, user);
                }
            }
        }

        #[test]
        fn the_files_of_different_tenants_are_in_different_folders(a in name(), b in name()) {
            let day = NaiveDate::default();
            let key = |tenant: &str| Some(export_day(&TenantId::try_from(tenant).ok()?, day));
            if let (Some(key_a), Some(key_b)) = (key(&a), key(&b)) {
                prop_assert_eq!(a == b, key_a == key_b);
                let folder = key_a.split('/').nth(2).unwrap();
                prop_assert!(key_a.matches('/').count() == 3 && folder.len() <= 200);
                prop_assert!(!folder.contains('.'));
                if !folder.starts_with(HASHED) {
                    let tenant = tenant_of_folder(folder).unwrap();
                    prop_assert_eq!(tenant.as_str(), a);
                }
            }
        }

        #[test]
        fn versions_sort_as_numbers(a in 0..9_999_999_999_u64, b in 0..9_999_999_999_u64) {
            prop_assert_eq!(a.cmp(&b), version(a).cmp(&version(b)));
            prop_assert_eq!(version_of(&version(a)), Some(a));
        }
    }
}

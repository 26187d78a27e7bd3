//! Keys. Every partition key begins with its kind and its tenant, and is injective: two
//! different names never give the same key.
//!
//! Parts are joined by `#`, so a `#` within a part is escaped. A part whose UTF-8 is too long for
//! a key (2,048 bytes for a partition key, 1,024 for a sort key) is replaced by its SHA-256.

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use hearback_detection::FeedbackStatus;
use hearback_domain::events::dedupe::DedupeKey;
use hearback_domain::feedback::message_signal::MessageSignal;
use hearback_domain::feedback::reaction::{FeedbackKind, Origin, ReactionCore};
use hearback_domain::identity::identifier::{
    ConversationId, Label, MessageId, ProjectId, TenantId, TurnId, UserId, UserRef,
};
use hearback_domain::text::digest::digest;
use hearback_domain::turns::turn::{ConversationRef, TurnRef};
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// Sort key of an event.
pub const EVENT: &str = "EVENT";
/// Sort key of the outcome of an event.
pub const RESULT: &str = "RESULT";
/// Sort key of the retraction of an event.
pub const RETRACTION: &str = "RETRACTION";
/// Prefix of the sort keys of turns.
pub const TURN_PREFIX: &str = "TURN#";
/// Prefix of the sort keys of message signals.
pub const SIGNAL_PREFIX: &str = "SIGNAL#";
/// Prefix of the sort keys of a user's turns by time.
pub const VECTOR_PREFIX: &str = "VEC#";
/// Prefix of the sort keys of reactions.
pub const REACTION_PREFIX: &str = "REACTION#";
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
/// The folder of the logs of turns in the bucket.
pub const TURN_LOGS: &str = "turn-logs/";
/// The folder of files to import in the bucket.
pub const IMPORTS: &str = "imports/";
/// Suffix of a file's key that gives the folder of its reports.
pub const REPORT_SUFFIX: &str = ".import/";

/// Longest part of a partition key, in bytes after escaping: three parts and a kind fit into 2,048.
const MAX_PART: usize = 600;
/// Longest part of a sort key: two parts, prefixes and separators fit into 1,024.
const MAX_SORT_PART: usize = 400;
/// Longest part of a partition key that is a sort key of an index: two of them and a kind fit into
/// 1,024.
const MAX_INDEXED_PART: usize = 500;
/// Longest part of the partition key of a day, which is a sort key of an index too: two of them, a kind, a
/// date and a shard fit into 1,024.
const MAX_DAY_PART: usize = 480;
/// Begins the hash of a part that was too long. No escaped part begins with it.
const HASHED: char = '~';

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

/// Prefix of the sort keys of a turn's reactions.
#[must_use]
pub fn reactions_of(turn: &TurnId) -> String {
    format!("{REACTION_PREFIX}{}#", sort_part(turn.as_str()))
}

/// The sort key of a reaction: one for each user, and one for each machine reaction. Feedback that
/// counts as a reaction has one for each user and signal, and one for each event.
#[must_use]
pub fn reaction(core: &ReactionCore) -> String {
    let (turn, user) = (&core.at.turn, &core.user_id);
    match (core.kind, core.origin) {
        (FeedbackKind::Reaction, Origin::User) => user_reaction(turn, user),
        (FeedbackKind::Reaction, Origin::Machine) => {
            format!("{}machine#{}", reactions_of(turn), core.id)
        }
        (FeedbackKind::Event, _) => counted_event(turn, core.id),
        (
            FeedbackKind::Helpful
            | FeedbackKind::NotHelpful
            | FeedbackKind::Inaccurate
            | FeedbackKind::Unsafe,
            _,
        ) => {
            let (turn, user) = (reactions_of(turn), sort_part(user.as_str()));
            format!("{turn}signal#{user}#{}", core.kind.as_str())
        }
    }
}

/// The sort key of an event that counts as a reaction.
#[must_use]
pub fn counted_event(turn: &TurnId, event: Uuid) -> String {
    format!("{}event#{event}", reactions_of(turn))
}

/// The sort key of a user's reaction to a turn.
#[must_use]
pub fn user_reaction(turn: &TurnId, user: &UserId) -> String {
    format!("{}user#{}", reactions_of(turn), sort_part(user.as_str()))
}

/// What the sort key of a reaction names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReactionKey<'a> {
    /// The turn, as in keys.
    pub turn: &'a str,
    /// Whose reaction it is.
    pub author: ReactionAuthor<'a>,
    /// Whether it is a message signal or an event that counts as a reaction.
    pub counted: bool,
}

/// Whose reaction a sort key names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReactionAuthor<'a> {
    /// A user, as in keys.
    User(&'a str),
    /// A feedback act.
    Act(Uuid),
    /// Nobody's: no writer makes such a key.
    Unknown,
}

impl ReactionKey<'_> {
    /// Whether it names the user.
    #[must_use]
    pub fn is_by(&self, user: &UserId) -> bool {
        matches!(self.author, ReactionAuthor::User(part) if part == sort_part(user.as_str()))
    }
}

/// Reads the sort key of a reaction; `None` for any other key.
#[must_use]
pub fn reaction_key(key: &str) -> Option<ReactionKey<'_>> {
    let mut parts = key.strip_prefix(REACTION_PREFIX)?.split('#');
    let (turn, kind, name) = (parts.next()?, parts.next()?, parts.next()?);
    let act = |name: &str| {
        let act = name.parse().map(ReactionAuthor::Act);
        act.unwrap_or(ReactionAuthor::Unknown)
    };
    let author = match kind {
        "user" | "signal" => ReactionAuthor::User(name),
        "machine" | "event" => act(name),
        _ => ReactionAuthor::Unknown,
    };
    Some(ReactionKey {
        turn,
        author,
        counted: matches!(kind, "signal" | "event"),
    })
}

/// A turn or user in the sort key of a reaction.
#[must_use]
pub fn reaction_part(name: &str) -> String {
    sort_part(name)
}

/// Parts of the sort keys of a user's reactions and of signals that count as reactions.
#[must_use]
pub fn reactions_of_user(user: &UserId) -> [String; 2] {
    let user = sort_part(user.as_str());
    [format!("#user#{user}"), format!("#signal#{user}#")]
}

/// The name in a part of a key; `None` if it was too long and hashed.
#[must_use]
pub fn named(part: &str) -> Option<String> {
    (!part.starts_with(HASHED)).then(|| unescaped(part))
}

/// The turn and the user of a user's reaction, from its sort key; an id that was too long is its
/// digest. `None` for any other key.
#[must_use]
pub fn user_of_reaction(key: &str) -> Option<(TurnId, UserId)> {
    let mut parts = key.strip_prefix(REACTION_PREFIX)?.split('#');
    let (turn, kind, user) = (parts.next()?, parts.next()?, parts.next()?);
    if kind != "user" {
        return None;
    }
    let turn = TurnId::try_from(unescaped(turn)).ok()?;
    Some((turn, UserId::or_pseudonym(unescaped(user)).ok()?))
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

/// The tenant and the id of an event's partition; `None` if the tenant was too long and hashed, and for any other
/// partition.
#[must_use]
pub fn event_of(partition: &str) -> Option<(TenantId, Uuid)> {
    let (tenant, id) = partition.strip_prefix("EVENT#")?.split_once('#')?;
    Some((named(tenant)?.try_into().ok()?, id.parse().ok()?))
}

/// The partition of a shard of a project's day, so that a busy day is spread over several
/// partitions. It is also a sort key of the author index.
#[must_use]
pub fn day(tenant: &TenantId, project: &ProjectId, day: NaiveDate, shard: u32) -> String {
    format!("{}#{shard}", day_of(tenant, project, day))
}

/// The bounds of the partitions of these days.
#[must_use]
pub fn days(
    tenant: &TenantId,
    project: &ProjectId,
    (first, last): (NaiveDate, NaiveDate),
) -> (String, String) {
    // `$` follows the `#` that ends the date.
    let day = |day| day_of(tenant, project, day);
    (format!("{}#", day(first)), format!("{}$", day(last)))
}

fn day_of(tenant: &TenantId, project: &ProjectId, day: NaiveDate) -> String {
    let part = |raw| escaped(raw, MAX_DAY_PART);
    let (tenant, project) = (part(tenant.as_str()), part(project.as_str()));
    format!("DAY#{tenant}#{project}#{day}")
}

/// The day of a [`day`] partition.
#[must_use]
pub fn date_of(day: &str) -> Option<NaiveDate> {
    let mut parts = day.rsplit('#');
    let (_shard, date) = (parts.next()?, parts.next()?);
    date.parse().ok()
}

/// The partition of a project's month markers.
#[must_use]
pub fn months(tenant: &TenantId, project: &ProjectId) -> String {
    join("MONTHS", tenant, project.as_str())
}

/// The sort key of a month marker.
#[must_use]
pub fn month(day: NaiveDate) -> String {
    day.format("%Y-%m").to_string()
}

/// The sort key of an activity marker; sorts by the minute.
#[must_use]
pub fn activity(minute: NaiveTime, conversation: &ConversationId, user: &UserId) -> String {
    let (conversation, user) = (sort_part(conversation.as_str()), sort_part(user.as_str()));
    format!("{}#{conversation}#{user}", minute.format("%H:%M"))
}

/// The minute and the conversation of an [`activity`] key. `None` if the conversation id was too
/// long and hashed, and for any other key.
#[must_use]
pub fn active_in(key: &str) -> Option<(NaiveTime, ConversationId)> {
    let mut parts = key.split('#');
    let (minute, conversation) = (parts.next()?, parts.next()?);
    if conversation.starts_with(HASHED) {
        return None;
    }
    let minute = NaiveTime::parse_from_str(minute, "%H:%M").ok()?;
    Some((minute, unescaped(conversation).try_into().ok()?))
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

/// The index key of a shard of a project's turns with one status.
#[must_use]
pub fn turn_status(
    tenant: &TenantId,
    project: &ProjectId,
    status: FeedbackStatus,
    shard: u32,
) -> String {
    let (tenant, project) = (part(tenant.as_str()), part(project.as_str()));
    format!("STATUS#{tenant}#{project}#{}#{shard}", status.as_str())
}

/// The sort key of a user's turn vector. Contains a digest of the turn's ids, to keep the read of a
/// year's turns small; the item contains the ids.
#[must_use]
pub fn vector(ts: DateTime<Utc>, at: &TurnRef) -> String {
    format!("{VECTOR_PREFIX}{}", turn_time(ts, at))
}

/// The index key of a shard of a tenant's day in the feed.
#[must_use]
pub fn feed(tenant: &TenantId, day: NaiveDate, shard: u32) -> String {
    format!("FEED#{}#{day}#{shard}", part(tenant.as_str()))
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

/// The key of a turn's log in the bucket; `version` distinguishes its versions. Contains digests,
/// because ids may have characters that S3 keys may not.
#[must_use]
pub fn turn_log(at: &TurnRef, version: &str) -> String {
    format!("{}{version}.json", turn_logs(at))
}

/// Prefix of the keys of all versions of a turn's log.
#[must_use]
pub fn turn_logs(at: &TurnRef) -> String {
    let names = [
        at.within.project.as_str(),
        at.within.conversation.as_str(),
        at.turn.as_str(),
    ];
    let (tenant, turn) = (digest([at.within.tenant.as_str()]), digest(names));
    format!("{TURN_LOGS}{}/{}/", short(tenant, 8), short(turn, 20))
}

/// Whether a key can be that of a turn's log.
#[must_use]
pub fn is_turn_log(key: &str) -> bool {
    let name = key.strip_prefix(TURN_LOGS);
    let name = name.and_then(|name| name.strip_suffix(".json"));
    let is_digest =
        |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    name.is_some_and(|name| {
        key.len() <= 200 && name.split('/').count() == 3 && name.split('/').all(is_digest)
    })
}

/// The key of the traces that an erasure keeps between its passes.
#[must_use]
pub fn erasure_traces(tenant: &TenantId, id: Uuid) -> String {
    format!("erasures/{}/{id}.json", file_part(tenant.as_str()))
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

/// The folder of a tenant's files to import.
#[must_use]
pub fn imports_of(tenant: &TenantId) -> String {
    format!("{IMPORTS}{}/", file_part(tenant.as_str()))
}

/// The folder of the intermediate files of an import.
#[must_use]
pub fn import_work(tenant: &TenantId, id: &str) -> String {
    format!("imports-work/{}/{id}/", file_part(tenant.as_str()))
}

/// The tenant of a folder; `None` if the folder is no tenant's, or the tenant id was too long and
/// hashed.
#[must_use]
pub fn tenant_of_folder(folder: &str) -> Option<TenantId> {
    let mut bytes = Vec::with_capacity(folder.len());
    let mut rest = folder.as_bytes();
    while let [byte, after @ ..] = rest {
        if let (b'%', [high, low, after @ ..]) = (byte, after) {
            let mut decoded = [0];
            hex::decode_to_slice([*high, *low], &mut decoded).ok()?;
            bytes.extend(decoded);
            rest = after;
        } else {
            bytes.push(*byte);
            rest = after;
        }
    }
    let tenant = TenantId::try_from(String::from_utf8(bytes).ok()?).ok()?;
    (file_part(tenant.as_str()) == folder).then_some(tenant)
}

/// The first bytes of a digest, in hex.
fn short(digest: [u8; 32], bytes: usize) -> String {
    hex::encode(digest.into_iter().take(bytes).collect::<Vec<_>>())
}

/// The folder of a tenant's exports for evaluations.
#[must_use]
pub fn signal_exports_of(tenant: &TenantId) -> String {
    format!("exports/signals/{}/", file_part(tenant.as_str()))
}

/// The folder of a tenant's training exports.
#[must_use]
pub fn training_exports_of(tenant: &TenantId) -> String {
    format!("exports/training/{}/", file_part(tenant.as_str()))
}

/// The folder of a day's exports.
#[must_use]
pub fn export_day(tenant: &TenantId, day: NaiveDate) -> String {
    format!("{}{day}", signal_exports_of(tenant))
}

/// The folder of a project's training exports.
#[must_use]
pub fn export_training(tenant: &TenantId, project: &ProjectId) -> String {
    let project = file_part(project.as_str());
    format!("{}{project}", training_exports_of(tenant))
}

/// A readable part of an S3 key: every character except ASCII letters, digits, `-` and `_` is
/// escaped, and a part that is too long for a file name is replaced by its SHA-256.
fn file_part(raw: &str) -> String {
    const MAX: usize = 200;
    let escaped: String = (raw.bytes())
        .map(|byte| match byte {
            b'-' | b'_' => char::from(byte).to_string(),
            _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect();
    if escaped.len() > MAX {
        format!("{HASHED}{}", hex::encode(Sha256::digest(raw)))
    } else {
        escaped
    }
}

fn join(kind: &str, tenant: &TenantId, name: &str) -> String {
    format!("{kind}#{}#{}", part(tenant.as_str()), part(name))
}

fn part(raw: &str) -> String {
    escaped(raw, MAX_PART)
}

fn sort_part(raw: &str) -> String {
    escaped(raw, MAX_SORT_PART)
}

/// Escapes `#`, `%` and `~`, and hashes what is too long.
fn escaped(raw: &str, limit: usize) -> String {
    let mut escaped = String::with_capacity(raw.len());
    for character in raw.chars() {
        match character {
            '#' => escaped.push_str("%23"),
            '%' => escaped.push_str("%25"),
            HASHED => escaped.push_str("%7E"),
            other => escaped.push(other),
        }
    }
    if escaped.len() > limit {
        format!("{HASHED}{}", hex::encode(Sha256::digest(raw)))
    } else {
        escaped
    }
}

/// Reverses [`escaped`], unless the part was hashed.
fn unescaped(part: &str) -> String {
    // `%25` last, so that its `%` does not form another escape.
    part.replace("%23", "#")
        .replace("%7E", "~")
        .replace("%25", "%")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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

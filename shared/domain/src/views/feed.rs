//! The feed: what was published about a tenant's feedback, in the order of publication. See docs/reference/feed.md.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, TimeDelta, Utc};
use hearback_wire::wire_names;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::events::event::{Channel, EventContext, FeedbackType};
use crate::identity::caller::{Caller, Forbidden, Scope};
use crate::identity::identifier::{Label, ProjectId, UserId};
use crate::identity::labels::Labels;
use crate::learning::ledger::Retraction;
use crate::learning::publication::{Action, Processed, retracted};

/// Entries of this age are complete: a writer gives up earlier, indexes lag less, and clocks differ less.
pub const SETTLED_AFTER: TimeDelta = TimeDelta::seconds(15);

/// What an entry of the feed says about its event. The order is that of the feed, where both have one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryKind {
    /// It was processed.
    Processed,
    /// It was retracted.
    Retracted,
}

/// A position in the feed: that of a message, or a time. It is stored as its event id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct FeedPosition {
    /// When the entry was made, in microseconds since 1970.
    at: i64,
    event: Uuid,
    kind: EntryKind,
    /// The message of the entry.
    message: u8,
}

/// An event id that no message has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be an eventId, or the id at the end of a page or frame, of this feed")]
pub struct InvalidEventId;

impl FeedPosition {
    /// The position before everything of an instant.
    #[must_use]
    pub fn before(instant: DateTime<Utc>) -> Self {
        Self {
            at: instant.timestamp_micros().max(0),
            event: Uuid::nil(),
            kind: EntryKind::Processed,
            message: 0,
        }
    }

    /// The position of the first message of a processed event.
    #[must_use]
    pub fn of_processed(processed: &Processed) -> Self {
        Self {
            event: processed.feedback_id(),
            ..Self::before(processed.at())
        }
    }

    /// The position of a retraction.
    #[must_use]
    pub fn of_retraction(retraction: &Retraction) -> Self {
        Self {
            event: retraction.feedback_id,
            kind: EntryKind::Retracted,
            ..Self::before(retraction.published_at.unwrap_or(retraction.at))
        }
    }

    /// The position of the entry that has this message.
    #[must_use]
    pub fn entry(self) -> Self {
        Self { message: 0, ..self }
    }

    /// The event.
    #[must_use]
    pub fn event(&self) -> Uuid {
        self.event
    }

    /// The instant.
    #[must_use]
    pub fn at(&self) -> DateTime<Utc> {
        DateTime::from_timestamp_micros(self.at).unwrap_or_default()
    }

    /// The position as an event id. The event of a message has the same id whenever it is read.
    #[must_use]
    pub fn event_id(&self) -> String {
        let mut bytes = self.at.to_be_bytes().to_vec();
        bytes.extend(self.event.as_bytes());
        bytes.push(match self.kind {
            EntryKind::Processed => 0,
            EntryKind::Retracted => 1,
        });
        bytes.push(self.message);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Parses an event id.
    pub fn from_event_id(id: &str) -> Result<Self, InvalidEventId> {
        let bytes = URL_SAFE_NO_PAD.decode(id).map_err(|_| InvalidEventId)?;
        let (at, bytes) = bytes.split_first_chunk().ok_or(InvalidEventId)?;
        let (event, bytes) = bytes.split_first_chunk().ok_or(InvalidEventId)?;
        let (kind, message) = match bytes {
            [0, message] => (EntryKind::Processed, *message),
            [1, message] => (EntryKind::Retracted, *message),
            _ => return Err(InvalidEventId),
        };
        let at = i64::from_be_bytes(*at);
        // Positions are sorted as text with 18 digits.
        if !(0..1_000_000_000_000_000_000).contains(&at) {
            return Err(InvalidEventId);
        }
        Ok(Self {
            at,
            event: Uuid::from_bytes(*event),
            kind,
            message,
        })
    }

    /// The position in the index of the entry: sorts like positions, but for the message.
    #[must_use]
    pub fn entry_key(&self) -> String {
        let kind = match self.kind {
            EntryKind::Processed => "p",
            EntryKind::Retracted => "r",
        };
        format!("{:018}#{}#{kind}", self.at, self.event)
    }

    /// The last index key of an instant.
    #[must_use]
    pub fn last_key(instant: DateTime<Utc>) -> String {
        // `$` follows the `#` after the instant.
        format!("{:018}$", instant.timestamp_micros().max(0))
    }

    /// The position after all messages of the entry with this index key.
    #[must_use]
    pub fn after_entry(key: &str) -> Option<Self> {
        let mut parts = key.split('#');
        let (at, event, kind) = (parts.next()?, parts.next()?, parts.next()?);
        Some(Self {
            at: at.parse().ok()?,
            event: event.parse().ok()?,
            kind: match kind {
                "p" => EntryKind::Processed,
                "r" => EntryKind::Retracted,
                _ => return None,
            },
            message: u8::MAX,
        })
    }
}

impl From<FeedPosition> for String {
    fn from(position: FeedPosition) -> Self {
        position.event_id()
    }
}

impl TryFrom<String> for FeedPosition {
    type Error = InvalidEventId;

    fn try_from(id: String) -> Result<Self, InvalidEventId> {
        Self::from_event_id(&id)
    }
}

/// An entry of the feed, which was published as one or more messages.
#[derive(Debug, Clone, PartialEq)]
pub enum FeedEntry {
    /// An event was processed.
    Processed(Box<Processed>),
    /// An event was retracted.
    Retracted(Box<Retraction>),
}

/// What filters compare.
struct Facts<'a> {
    user: &'a str,
    private: bool,
    channel: Option<Channel>,
    context: &'a EventContext,
}

impl FeedEntry {
    /// The position of its first message.
    #[must_use]
    pub fn position(&self) -> FeedPosition {
        match self {
            Self::Processed(processed) => FeedPosition::of_processed(processed),
            Self::Retracted(retraction) => FeedPosition::of_retraction(retraction),
        }
    }

    /// Its messages as they were published, each with its `eventId`.
    #[must_use]
    pub fn messages(&self) -> Vec<(FeedPosition, Value)> {
        let messages = match self {
            Self::Processed(processed) => processed.messages(),
            Self::Retracted(retraction) => vec![retracted(retraction)],
        };
        let first = self.position();
        (0..)
            .zip(messages)
            .map(|(message, (_, mut published))| {
                let position = FeedPosition { message, ..first };
                if let Value::Object(members) = &mut published {
                    members.insert("eventId".to_owned(), position.event_id().into());
                }
                (position, published)
            })
            .collect()
    }

    fn facts(&self) -> Facts<'_> {
        match self {
            Self::Processed(processed) => Facts {
                user: processed.user_id(),
                private: processed.is_private(),
                channel: Some(processed.channel()),
                context: processed.context(),
            },
            Self::Retracted(retraction) => Facts {
                user: retraction.user_id.as_str(),
                private: retraction.private,
                channel: retraction.channel,
                context: &retraction.context,
            },
        }
    }
}

/// Whose feed a caller reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FeedView {
    /// All feedback of these users: of the caller, under the name and the pseudonym.
    Own(Vec<UserId>),
    /// The feedback of a user under the name: of private feedback only that in projects of the back end's token.
    OnBehalf {
        /// The user.
        user: UserId,
        /// The back end.
        reader: Box<Caller>,
    },
    /// The tenant's feedback, or that of a user of the tenant: without private feedback of others, and without that in
    /// projects that the token does not have.
    Tenant {
        /// The user.
        user: Option<UserId>,
        /// Who reads it.
        reader: Box<Caller>,
        /// The reader's name and pseudonym.
        own: Vec<UserId>,
    },
}

impl FeedView {
    /// The view of a caller with this pseudonym: its own feedback or with `feedback:report` its tenant's; or the
    /// feedback of `user`.
    pub fn of(
        caller: &Caller,
        pseudonym: Option<UserId>,
        user: Option<UserId>,
    ) -> Result<Self, Forbidden> {
        let own = std::iter::once(caller.user.clone())
            .chain(pseudonym)
            .collect();
        let reader = Box::new(caller.clone());
        Ok(match user {
            Some(user) if user == caller.user => Self::Own(own),
            // Not under the pseudonym, which names nobody to a back end.
            Some(user) if caller.has(Scope::OnBehalf) => Self::OnBehalf { user, reader },
            user if caller.has(Scope::Report) => Self::Tenant { user, reader, own },
            None => Self::Own(own),
            Some(_) => return Err(Forbidden::AnotherUsersFeedback),
        })
    }

    fn allows(&self, facts: &Facts<'_>) -> bool {
        let project = facts.context.project_id.as_ref();
        let is_held = |reader: &Caller| {
            let holds = |project: &Label| {
                let project = ProjectId::try_from(project.as_str());
                project.is_ok_and(|project| reader.holds(&project))
            };
            project.is_none_or(holds)
        };
        match self {
            // The store has found it in the partition of one of these users.
            Self::Own(_) => true,
            Self::OnBehalf { reader, .. } => !facts.private || is_held(reader),
            Self::Tenant { reader, own, .. } => {
                let is_own = own.iter().any(|own| facts.user == own.as_str());
                is_own || (!facts.private && is_held(reader))
            }
        }
    }
}

/// The `eventType` of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum EventType {
    /// An event was processed.
    #[serde(rename = "feedback.processed")]
    Processed,
    /// An event was retracted.
    #[serde(rename = "feedback.retracted")]
    Retracted,
    /// An event gave a learning signal.
    #[serde(rename = "learning.signal.generated")]
    Signal,
}

wire_names!(EventType {
    Processed = "feedback.processed",
    Retracted = "feedback.retracted",
    Signal = "learning.signal.generated",
});

/// Which entries are listed. An empty list matches every value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FeedFilter {
    /// The channels of the feedback.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub channels: Vec<Channel>,
    /// The types of the feedback. A retraction is listed whatever the type of its event.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<FeedbackType>,
    /// What the user did. A retraction is listed whatever its event's outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Action>,
    /// The types of the messages.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub event_types: Vec<EventType>,
    /// The project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<ProjectId>,
    /// Labels that the feedback has.
    #[serde(skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
}

/// Whether a list of wanted values has this value. An empty list matches every value.
fn wants<T: PartialEq>(wanted: &[T], value: Option<T>) -> bool {
    wanted.is_empty() || value.is_some_and(|value| wanted.contains(&value))
}

impl FeedFilter {
    /// Whether an entry is listed in a view.
    #[must_use]
    pub fn lists(&self, view: &FeedView, entry: &FeedEntry) -> bool {
        let facts = entry.facts();
        let context = facts.context;
        let is_wanted = match entry {
            FeedEntry::Processed(processed) => {
                wants(&self.types, processed.feedback_type())
                    && self
                        .outcome
                        .is_none_or(|wanted| processed.action() == wanted)
            }
            FeedEntry::Retracted(_) => true,
        };
        let project = context.project_id.as_ref().map(Label::as_str);
        let has = |(key, value): (&str, &str)| context.labels.get(key) == Some(value);
        view.allows(&facts)
            && is_wanted
            && wants(&self.channels, facts.channel)
            && (self.project.as_ref()).is_none_or(|wanted| project == Some(wanted.as_str()))
            && self.labels.iter().all(has)
    }

    /// Whether a message of a listed entry is listed.
    #[must_use]
    pub fn lists_message(&self, message: &Value) -> bool {
        let is = |wanted: &EventType| message["eventType"] == wanted.as_str();
        self.event_types.is_empty() || self.event_types.iter().any(is)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn positions() -> impl Strategy<Value = FeedPosition> {
        let kinds = prop_oneof![Just(EntryKind::Processed), Just(EntryKind::Retracted)];
        (0..4_i64, 0..3_u128, kinds, 0..3_u8).prop_map(|(at, event, kind, message)| FeedPosition {
            at,
            event: Uuid::from_u128(event << 64),
            kind,
            message,
        })
    }

    proptest! {
        #[test]
        fn an_event_id_is_its_position(position in positions()) {
            prop_assert_eq!(FeedPosition::from_event_id(&position.event_id()), Ok(position));
        }

        #[test]
        fn index_keys_sort_like_positions(one in positions(), other in positions()) {
            let first = |position| FeedPosition { message: 0, ..position };
            let by_key = one.entry_key().cmp(&other.entry_key());
            prop_assert_eq!(by_key, first(one).cmp(&first(other)));
        }

        #[test]
        fn all_messages_of_an_entry_are_before_its_end(position in positions()) {
            let end = FeedPosition::after_entry(&position.entry_key()).unwrap();
            prop_assert_eq!(end, FeedPosition { message: u8::MAX, ..position });
        }

        #[test]
        fn other_texts_are_no_event_ids(text in "\\PC{0,60}") {
            if let Ok(position) = FeedPosition::from_event_id(&text) {
                prop_assert_eq!(position.event_id(), text);
            }
        }
    }
}

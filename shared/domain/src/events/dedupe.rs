//! Dedupe keys identify duplicate events. See docs/reference/rules.md, "Dedupe key".

use std::fmt;

use uuid::Uuid;

use crate::events::event::{EventContext, EventCore};
use crate::identity::identifier::{ConversationId, Label};
use crate::text::digest::digest;

/// What makes two events duplicates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DedupeKey {
    /// The user, the subject, the kind of feedback, the hour, and the turn.
    Hour {
        /// The user.
        user: String,
        /// The artifact, or the session if there is none.
        subject: String,
        /// The feedback type, or the channel if there is none.
        act: &'static str,
        /// The hour, in UTC.
        hour: String,
        /// The project, the conversation and the id of the turn that the event names, as far as it does. Feedback on two
        /// turns of a session is no duplicate.
        turn: Vec<String>,
    },
    /// The event's own id, for the event of a feedback act: a change of mind within the hour is a new act.
    Identity(Uuid),
}

impl EventCore {
    /// The dedupe key. Of several events with the same key, only the first counts.
    #[must_use]
    pub fn dedupe_key(&self) -> DedupeKey {
        DedupeKey::of(self)
    }
}

/// The names of the turn in a context, empty where one is left out; none without a turn.
fn turn_of(context: &EventContext) -> Vec<String> {
    let Some(turn) = &context.turn_id else {
        return Vec::new();
    };
    let project = context.project_id.as_ref().map_or("", Label::as_str);
    let conversation = context.conversation_id.as_ref();
    let conversation = conversation.map_or("", ConversationId::as_str);
    [project, conversation, turn.as_str()]
        .map(str::to_owned)
        .into()
}

impl DedupeKey {
    pub(crate) fn of(core: &EventCore) -> Self {
        if core.derived {
            return Self::Identity(core.feedback_id);
        }
        let subject = core
            .artifact_id
            .as_ref()
            .map_or(core.session_id.as_str(), |artifact| artifact.as_str());
        Self::Hour {
            user: core.user_id.to_string(),
            subject: subject.to_owned(),
            act: core.feedback_type.map_or(
                core.channel.as_str(),
                crate::events::event::FeedbackType::as_str,
            ),
            hour: core.timestamp.format("%Y-%m-%dT%H").to_string(),
            turn: turn_of(&core.context),
        }
    }

    /// The key with the original user and session, for the response to the caller of an anonymous event. Only
    /// pseudonyms are stored.
    #[must_use]
    pub(crate) fn with_original_ids(
        mut self,
        user_id: &str,
        session: &str,
        has_artifact: bool,
    ) -> Self {
        if let Self::Hour { user, subject, .. } = &mut self {
            user_id.clone_into(user);
            if !has_artifact {
                session.clone_into(subject);
            }
        }
        self
    }

    /// A digest that is unique for each key. The printed key is ambiguous, because identifiers may contain colons.
    #[must_use]
    pub fn fingerprint(&self) -> [u8; 32] {
        match self {
            Self::Hour {
                user,
                subject,
                act,
                hour,
                turn,
            } => {
                let turn = turn.iter().map(String::as_str);
                digest([user.as_str(), subject, act, hour].into_iter().chain(turn))
            }
            Self::Identity(id) => digest([id.to_string().as_str()]),
        }
    }
}

impl fmt::Display for DedupeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hour {
                user,
                subject,
                act,
                hour,
                turn,
            } => {
                write!(f, "{user}:{subject}:{act}:{hour}")?;
                let mut named = turn.iter().filter(|name| !name.is_empty());
                named.try_for_each(|name| write!(f, ":{name}"))
            }
            Self::Identity(id) => write!(f, "{id}"),
        }
    }
}

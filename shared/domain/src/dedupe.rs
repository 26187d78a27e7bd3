//! Dedupe keys identify duplicate events. See docs/reference/rules.md, "Dedupe key".

use std::fmt;

use uuid::Uuid;

use crate::digest::digest;
use crate::event::EventCore;

/// What makes two events duplicates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DedupeKey {
    /// The user, the subject, the kind of feedback and the hour.
    Hour {
        /// The user.
        user: String,
        /// The artifact, or the session if there is none.
        subject: String,
        /// The feedback type, or the channel if there is none.
        act: &'static str,
        /// The hour, in UTC.
        hour: String,
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
            act: core
                .feedback_type
                .map_or(core.channel.as_str(), crate::event::FeedbackType::as_str),
            hour: core.timestamp.format("%Y-%m-%dT%H").to_string(),
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
            } => digest([user.as_str(), subject, act, hour]),
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
            } => write!(f, "{user}:{subject}:{act}:{hour}"),
            Self::Identity(id) => write!(f, "{id}"),
        }
    }
}

//! Which events are the same act said twice.
//!
//! Source: `SDS-009`, invariant 2, and the product specification, section 7: the key is
//! `userId:artifactId:feedbackType:<UTC hour of timestamp>`; without an artifact the session
//! stands in its place, without a type the channel. The first one wins.

use std::fmt;

use uuid::Uuid;

use crate::digest::digest;
use crate::event::EventCore;

/// The identity of an act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DedupeKey {
    /// Within its hour.
    Hour {
        /// Who acted.
        user: String,
        /// On what.
        subject: String,
        /// What the act was.
        act: &'static str,
        /// The hour, in UTC.
        hour: String,
    },
    /// By the event's own id: it was derived from what makes the act unique, so a change of mind
    /// within the hour is a new act (product specification, "One ledger").
    Identity(Uuid),
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

    /// The same key for another user and session: what the caller of an anonymous event is told,
    /// while the store only ever sees pseudonyms.
    #[must_use]
    pub(crate) fn told_to(mut self, user_id: &str, session: &str, has_artifact: bool) -> Self {
        if let Self::Hour { user, subject, .. } = &mut self {
            user_id.clone_into(user);
            if !has_artifact {
                session.clone_into(subject);
            }
        }
        self
    }

    /// A digest that differs wherever a part differs. The printed key cannot say that, since an
    /// identifier may itself contain a colon.
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

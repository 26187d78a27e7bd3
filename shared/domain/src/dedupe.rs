//! Which events are the same act said twice.
//!
//! Source: `SDS-009`, invariant 2, and the product specification, section 7: the key is
//! `userId:artifactId:feedbackType:<UTC hour of timestamp>`; without an artifact the session
//! stands in its place, without a type the channel. The first one wins.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::event::EventCore;

/// The identity of an act within its hour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DedupeKey {
    user: String,
    subject: String,
    act: &'static str,
    hour: String,
}

impl DedupeKey {
    pub(crate) fn of(core: &EventCore) -> Self {
        let subject = core
            .artifact_id
            .as_ref()
            .map_or(core.session_id.as_str(), |artifact| artifact.as_str());
        Self {
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
    pub(crate) fn told_to(mut self, user: &str, session: &str, has_artifact: bool) -> Self {
        user.clone_into(&mut self.user);
        if !has_artifact {
            session.clone_into(&mut self.subject);
        }
        self
    }

    /// A digest that differs wherever a part differs. The printed key cannot say that, since an
    /// identifier may itself contain a colon.
    #[must_use]
    pub fn fingerprint(&self) -> [u8; 32] {
        let mut digest = Sha256::new();
        for part in [&self.user, &self.subject, self.act, &self.hour] {
            digest.update(part.len().to_be_bytes());
            digest.update(part);
        }
        digest.finalize().into()
    }
}

impl fmt::Display for DedupeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            user,
            subject,
            act,
            hour,
        } = self;
        write!(f, "{user}:{subject}:{act}:{hour}")
    }
}

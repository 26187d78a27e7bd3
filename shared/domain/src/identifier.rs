//! Names that callers give to things: 1 to 256 characters, any Unicode but control characters and the two
//! characters U+FFFE and U+FFFF, which no queue carries ([`carried`](crate::carried)).
//!
//! What was stored before the second rule is read as it is: a row is not lost because it would be rejected today.

use std::borrow::Borrow;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};

use crate::carried::is_carried;

/// Longest identifier, in characters (not bytes).
pub const MAX_CHARACTERS: usize = 256;

/// Why a string is not an identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotAnIdentifier {
    /// The string is empty.
    #[error("must not be empty")]
    Empty,
    /// The string has more than [`MAX_CHARACTERS`] characters.
    #[error("must have at most 256 characters")]
    TooLong,
    /// The string has a control character.
    #[error("must not contain control characters")]
    ControlCharacter,
    /// The string has a character that no queue carries.
    #[error("must not contain U+FFFE or U+FFFF")]
    NotCarried,
}

fn check(value: &str) -> Result<(), NotAnIdentifier> {
    check_stored(value)?;
    if value.chars().all(is_carried) {
        Ok(())
    } else {
        Err(NotAnIdentifier::NotCarried)
    }
}

/// What every identifier is that was ever stored.
fn check_stored(value: &str) -> Result<(), NotAnIdentifier> {
    if value.is_empty() {
        Err(NotAnIdentifier::Empty)
    } else if value.chars().count() > MAX_CHARACTERS {
        Err(NotAnIdentifier::TooLong)
    } else if value.chars().any(char::is_control) {
        Err(NotAnIdentifier::ControlCharacter)
    } else {
        Ok(())
    }
}

macro_rules! identifiers {
    ($($(#[$doc:meta])* $name:ident;)+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(into = "String")]
        pub struct $name(String);

        /// Reads what was stored. What callers send is read by `TryFrom`.
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let value = String::deserialize(deserializer)?;
                check_stored(&value).map_err(serde::de::Error::custom)?;
                Ok(Self(value))
            }
        }

        impl $name {
            /// The identifier as it was given.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = NotAnIdentifier;

            fn try_from(value: String) -> Result<Self, NotAnIdentifier> {
                check(&value).map(|()| Self(value))
            }
        }

        impl TryFrom<&str> for $name {
            type Error = NotAnIdentifier;

            fn try_from(value: &str) -> Result<Self, NotAnIdentifier> {
                Self::try_from(value.to_owned())
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> Self {
                value.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )+};
}

identifiers! {
    /// A person who gives feedback: the `sub` of a token, or a pseudonym.
    UserId;
    /// The organisation whose data is kept apart from every other's.
    TenantId;
    /// A project of a tenant.
    ProjectId;
    /// A session, which groups what one user did in one sitting.
    SessionId;
    /// What the feedback is about: an answer, a document, a turn.
    ArtifactId;
    /// A conversation of a project.
    ConversationId;
    /// A turn of a conversation: what the user said, and what was answered.
    TurnId;
    /// An answer, by a name that is the tenant's own.
    MessageId;
    /// A name of a class that a caller chose: an artifact type, a task type, an agent.
    Label;
}

impl Label {
    /// The class of what was not classified (product specification, section 7).
    #[must_use]
    pub fn unknown() -> Self {
        Self("unknown".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_counts_characters_and_not_bytes() {
        assert!(UserId::try_from("é".repeat(256)).is_ok());
        assert_eq!(
            UserId::try_from("é".repeat(257)),
            Err(NotAnIdentifier::TooLong)
        );
    }

    #[test]
    fn an_identifier_may_be_any_text_but_control_characters() {
        assert!(UserId::try_from("a#b/c:d e%🙂").is_ok());
        assert_eq!(
            UserId::try_from("a\u{0}b"),
            Err(NotAnIdentifier::ControlCharacter)
        );
        assert_eq!(UserId::try_from(""), Err(NotAnIdentifier::Empty));
    }

    #[test]
    fn an_identifier_that_no_queue_carries_is_rejected_and_a_stored_one_is_still_read() {
        for name in ["\u{FFFE}", "a\u{FFFF}b"] {
            assert_eq!(UserId::try_from(name), Err(NotAnIdentifier::NotCarried));
            let stored: UserId = serde_json::from_value(name.into()).unwrap();
            assert_eq!(stored.as_str(), name);
        }
        assert!(UserId::try_from("\u{FFFD}\u{1FFFF}\u{E000}").is_ok());
        assert!(serde_json::from_str::<UserId>(r#""\u0000""#).is_err());
    }
}

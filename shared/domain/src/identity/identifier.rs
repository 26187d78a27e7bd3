//! Identifiers that callers choose: 1 to 256 characters, any Unicode except control characters and U+FFFE and U+FFFF,
//! which SQS rejects ([`sqs_text`](crate::text::sqs_text)).
//!
//! Stored identifiers are accepted even if they would be rejected today, so that old rows stay readable.
//!
//! A user id cannot begin with the prefix of pseudonyms: a token for such a user could read a person's anonymous
//! events.

use std::borrow::Borrow;
use std::fmt;

use hearback_wire::{Errors, FromJson, Pointer, noted, parse};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};

use crate::text::sqs_text::is_supported;

/// Maximum length of an identifier, in characters (not bytes).
pub const MAX_CHARACTERS: usize = 256;

/// Why a string is not a valid identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidIdentifier {
    /// The string is empty.
    #[error("must not be empty")]
    Empty,
    /// The string has more than [`MAX_CHARACTERS`] characters.
    #[error("must have at most 256 characters")]
    TooLong,
    /// The string contains a control character.
    #[error("must not contain control characters")]
    ControlCharacter,
    /// The string contains a character that SQS rejects.
    #[error("must not contain U+FFFE or U+FFFF")]
    UnsupportedCharacter,
    /// The user id begins with [`PSEUDONYM_PREFIX`].
    #[error("must not begin with anon-, as pseudonyms do")]
    Reserved,
}

/// The prefix of pseudonyms, which is reserved.
pub const PSEUDONYM_PREFIX: &str = "anon-";

fn check(value: &str) -> Result<(), InvalidIdentifier> {
    check_stored(value)?;
    if value.chars().all(is_supported) {
        Ok(())
    } else {
        Err(InvalidIdentifier::UnsupportedCharacter)
    }
}

/// Checks a user id that a caller sends.
fn check_user(value: &str) -> Result<(), InvalidIdentifier> {
    if value.starts_with(PSEUDONYM_PREFIX) {
        return Err(InvalidIdentifier::Reserved);
    }
    check(value)
}

/// Checks the rules that every stored identifier follows.
fn check_stored(value: &str) -> Result<(), InvalidIdentifier> {
    if value.is_empty() {
        Err(InvalidIdentifier::Empty)
    } else if value.chars().count() > MAX_CHARACTERS {
        Err(InvalidIdentifier::TooLong)
    } else if value.chars().any(char::is_control) {
        Err(InvalidIdentifier::ControlCharacter)
    } else {
        Ok(())
    }
}

/// The form of an identifier, as a regular expression.
const PATTERN: &str = r"^[^\u0000-\u001f\u007f-\u009f\ufffe\uffff]+$";
/// The form of a user id, as a regular expression.
const USER_PATTERN: &str = r"^(?!anon-)[^\u0000-\u001f\u007f-\u009f\ufffe\uffff]+$";

fn schema_of(pattern: &str) -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(1))
        .max_length(Some(MAX_CHARACTERS))
        .pattern(Some(pattern))
        .into()
}

macro_rules! identifiers {
    ($($(#[$doc:meta])* $name:ident, $check:ident, $pattern:ident;)+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(into = "String")]
        pub struct $name(String);

        /// For stored identifiers. Identifiers from callers are checked by `TryFrom`.
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let value = String::deserialize(deserializer)?;
                check_stored(&value).map_err(serde::de::Error::custom)?;
                Ok(Self(value))
            }
        }

        impl FromJson for $name {
            fn read(value: &Value, at: Pointer<'_>, errors: &mut Errors) -> Option<Self> {
                noted(parse::identifier(value), at, errors)
            }

            fn schema() -> RefOr<Schema> {
                schema_of($pattern)
            }
        }

        impl $name {
            /// The identifier as a string.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidIdentifier;

            fn try_from(value: String) -> Result<Self, InvalidIdentifier> {
                $check(&value).map(|()| Self(value))
            }
        }

        impl TryFrom<&str> for $name {
            type Error = InvalidIdentifier;

            fn try_from(value: &str) -> Result<Self, InvalidIdentifier> {
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
    /// A user: the `sub` of a token, or a pseudonym.
    UserId, check_user, USER_PATTERN;
    /// A tenant, whose data is isolated from that of every other tenant.
    TenantId, check, PATTERN;
    /// A project of a tenant.
    ProjectId, check, PATTERN;
    /// A session of a user.
    SessionId, check, PATTERN;
    /// An artifact that feedback is about: an answer, a document, a turn.
    ArtifactId, check, PATTERN;
    /// A conversation of a project.
    ConversationId, check, PATTERN;
    /// A turn of a conversation.
    TurnId, check, PATTERN;
    /// A message: the answer of a turn.
    MessageId, check, PATTERN;
    /// A webhook of a tenant.
    WebhookName, check, PATTERN;
    /// A name that callers choose for a class, such as an artifact type, a task type or an agent.
    Label, check, PATTERN;
}

impl UserId {
    /// A user id or a pseudonym, as stored in a key of the table.
    pub fn or_pseudonym(value: String) -> Result<Self, InvalidIdentifier> {
        check(&value).map(|()| Self(value))
    }
}

/// A user of a tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserRef<'a> {
    /// The tenant.
    pub tenant: &'a TenantId,
    /// The user.
    pub user: &'a UserId,
}

impl<'a> UserRef<'a> {
    /// A user of a tenant.
    #[must_use]
    pub fn new(tenant: &'a TenantId, user: &'a UserId) -> Self {
        Self { tenant, user }
    }
}

/// A user id or a pseudonym whose data is erased. Only the pseudonym identifies a person whose pseudonym was made with
/// an older key.
#[derive(Debug, Clone)]
pub struct UserIdOrPseudonym(pub UserId);

impl FromJson for UserIdOrPseudonym {
    fn read(value: &Value, at: Pointer<'_>, errors: &mut Errors) -> Option<Self> {
        let name = noted(parse::string(value), at, errors)?;
        noted(Self::try_from(name.to_owned()), at, errors)
    }

    fn schema() -> RefOr<Schema> {
        schema_of(PATTERN)
    }
}

impl TryFrom<String> for UserIdOrPseudonym {
    type Error = InvalidIdentifier;

    fn try_from(value: String) -> Result<Self, InvalidIdentifier> {
        UserId::or_pseudonym(value).map(Self)
    }
}

impl Label {
    /// The artifact type to use if there is none.
    #[must_use]
    pub fn unknown() -> Self {
        Self("unknown".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_an_identifier_is_in_characters() {
        assert!(UserId::try_from("é".repeat(256)).is_ok());
        assert_eq!(
            UserId::try_from("é".repeat(257)),
            Err(InvalidIdentifier::TooLong)
        );
    }

    #[test]
    fn control_characters_and_empty_identifiers_are_rejected() {
        assert!(UserId::try_from("a#b/c:d e%🙂").is_ok());
        assert_eq!(
            UserId::try_from("a\u{0}b"),
            Err(InvalidIdentifier::ControlCharacter)
        );
        assert_eq!(UserId::try_from(""), Err(InvalidIdentifier::Empty));
    }

    #[test]
    fn a_user_id_with_the_pseudonym_prefix_is_rejected_unless_it_is_stored() {
        let pseudonym = "anon-0123456789abcdef0123456789abcdef";
        for name in [pseudonym, "anon-", "anon-ymous"] {
            assert_eq!(UserId::try_from(name), Err(InvalidIdentifier::Reserved));
            let stored: UserId = serde_json::from_value(name.into()).unwrap();
            assert_eq!(stored.as_str(), name);
            assert_eq!(UserId::or_pseudonym(name.to_owned()), Ok(stored));
        }
        for name in ["anon", "anonymous", "Anon-1", "an-anon-1"] {
            assert!(UserId::try_from(name).is_ok(), "{name}");
        }
        assert!(ConversationId::try_from(pseudonym).is_ok());
    }

    #[test]
    fn an_identifier_that_sqs_rejects_is_rejected_unless_it_is_stored() {
        for name in ["\u{FFFE}", "a\u{FFFF}b"] {
            assert_eq!(
                UserId::try_from(name),
                Err(InvalidIdentifier::UnsupportedCharacter)
            );
            let stored: UserId = serde_json::from_value(name.into()).unwrap();
            assert_eq!(stored.as_str(), name);
        }
        assert!(UserId::try_from("\u{FFFD}\u{1FFFF}\u{E000}").is_ok());
        assert!(serde_json::from_str::<UserId>(r#""\u0000""#).is_err());
    }
}

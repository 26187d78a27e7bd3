//! The characters that SQS and SNS accept: those of XML 1.0 (section 2.2).
//!
//! SQS and SNS reject a message with any other character. New identifiers therefore cannot contain U+FFFE and U+FFFF
//! ([`InvalidIdentifier`](crate::identity::identifier::InvalidIdentifier)). Identifiers that were stored earlier are escaped or
//! replaced here. Free text may contain any character, because it is never sent to a queue.

use std::borrow::Cow;
use std::fmt::Write;

/// Whether SQS and SNS accept a character.
#[must_use]
pub fn is_supported(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\r' | ' '..='\u{FFFD}' | '\u{10000}'..)
}

/// Escapes the characters of a JSON text that SQS and SNS reject. They occur only in strings, so the meaning is the
/// same.
#[must_use]
pub fn escape_json(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_supported) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 6);
    for character in text.chars() {
        if is_supported(character) {
            escaped.push(character);
        } else {
            // These characters are below U+10000. Writing to a string cannot fail.
            let _ = write!(escaped, "\\u{:04x}", u32::from(character));
        }
    }
    Cow::Owned(escaped)
}

/// Replaces each character that SQS and SNS reject by U+FFFD.
#[must_use]
pub fn replace_unsupported(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_supported) {
        return Cow::Borrowed(text);
    }
    let replaced = |character| {
        if is_supported(character) {
            character
        } else {
            '\u{FFFD}'
        }
    };
    Cow::Owned(text.chars().map(replaced).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    proptest! {
        #[test]
        fn escaped_json_has_the_same_meaning(
            key in any::<String>(),
            value in "[\u{0}-\u{1F}\"\\\\a\u{D7FF}\u{FFFD}-\u{10001}]{0,20}",
        ) {
            let document = json!({(key): value});
            let original = document.to_string();
            let escaped = escape_json(&original);
            prop_assert!(escaped.chars().all(is_supported), "{escaped}");
            prop_assert_eq!(serde_json::from_str::<Value>(&escaped).unwrap(), document);
        }

        #[test]
        fn replaced_text_has_only_supported_characters(value in any::<String>()) {
            prop_assert!(replace_unsupported(&value).chars().all(is_supported));
        }
    }
}

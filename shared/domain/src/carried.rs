//! Which characters queues and topics carry: those of XML 1.0 (section 2.2).
//!
//! SQS and SNS refuse a message with any other. Of the characters that an identifier may have otherwise, these are
//! U+FFFE and U+FFFF, so no identifier has them ([`NotAnIdentifier`](crate::identifier::NotAnIdentifier)). Free text
//! may: it does not travel. What was stored before that rule is written so that it can travel.

use std::borrow::Cow;
use std::fmt::Write;

/// Whether queues and topics carry a character.
#[must_use]
pub fn is_carried(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\r' | ' '..='\u{FFFD}' | '\u{10000}'..)
}

/// JSON text with the same meaning that queues carry: other characters, which stand within strings, are escaped.
#[must_use]
pub fn json(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_carried) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 6);
    for character in text.chars() {
        if is_carried(character) {
            escaped.push(character);
        } else {
            // All of them are below U+10000. Writing to a string does not fail.
            let _ = write!(escaped, "\\u{:04x}", u32::from(character));
        }
    }
    Cow::Owned(escaped)
}

/// A text that queues carry: each other character is replaced by U+FFFD.
#[must_use]
pub fn text(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_carried) {
        return Cow::Borrowed(text);
    }
    let replaced = |character| {
        if is_carried(character) {
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
        fn json_that_is_carried_means_the_same(
            key in any::<String>(),
            value in "[\u{0}-\u{1F}\"\\\\a\u{D7FF}\u{FFFD}-\u{10001}]{0,20}",
        ) {
            let document = json!({(key): value});
            let written = document.to_string();
            let carried = json(&written);
            prop_assert!(carried.chars().all(is_carried), "{carried}");
            prop_assert_eq!(serde_json::from_str::<Value>(&carried).unwrap(), document);
        }

        #[test]
        fn any_text_can_be_carried(value in any::<String>()) {
            prop_assert!(text(&value).chars().all(is_carried));
        }
    }
}

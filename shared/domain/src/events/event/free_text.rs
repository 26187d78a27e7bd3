//! The free text of an event.

use serde::{Deserialize, Serialize};

/// What a user wrote. It is stored with the event, and never sent to a queue.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FreeText {
    /// The comment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// The names of the elements that the user changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modified_elements: Vec<String>,
    /// The original text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original_value: Option<String>,
    /// The corrected text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corrected_value: Option<String>,
}

impl FreeText {
    /// Whether there is no text.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The rejected text and its correction. If `original_value` is a part of the answer, that part is replaced;
    /// otherwise it is the rejected text itself. `None` without a corrected value.
    #[must_use]
    pub fn corrected(&self, answer: &str) -> Option<(String, String)> {
        let corrected = self.corrected_value.as_deref()?;
        let original = self.original_value.as_deref();
        Some(match original.filter(|part| !part.trim().is_empty()) {
            None => (answer.to_owned(), corrected.to_owned()),
            Some(part) if answer.contains(part) => {
                (answer.to_owned(), answer.replacen(part, corrected, 1))
            }
            Some(shown) => (shown.to_owned(), corrected.to_owned()),
        })
    }
}

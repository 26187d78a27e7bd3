//! Validation errors of an input, each with its position.

use serde::{Deserialize, Serialize};

/// A validation error of a member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldError {
    /// JSON Pointer of the member, for example `/data/rating`.
    pub pointer: String,
    /// What is expected there, as a sentence part: `must be an integer from 1 to 5`.
    pub detail: String,
}

/// Largest number of listed errors; the others are only counted, so that a response is never much
/// larger than its request.
pub const MAX_ERRORS: usize = 50;
/// Largest length of a pointer, in characters: the name of a member may be long.
pub const MAX_POINTER: usize = 120;

/// Collects errors while an input is read to its end.
#[derive(Debug, Default)]
pub struct Errors {
    listed: Vec<FieldError>,
    others: usize,
    unknown: Vec<FieldError>,
}

impl Errors {
    /// Adds an error.
    pub fn add(&mut self, pointer: impl Into<String>, detail: impl Into<String>) {
        if self.listed.len() == MAX_ERRORS {
            self.others += 1;
            return;
        }
        let mut pointer = pointer.into();
        if let Some((end, _)) = pointer.char_indices().nth(MAX_POINTER) {
            pointer.truncate(end);
            pointer.push('…');
        }
        self.listed.push(FieldError {
            pointer,
            detail: detail.into(),
        });
    }

    /// Adds the error of a string that is not in its closed set. The document can still be valid
    /// otherwise.
    pub fn add_unknown(&mut self, pointer: impl Into<String>, detail: impl Into<String>) {
        self.unknown.push(FieldError {
            pointer: pointer.into(),
            detail: detail.into(),
        });
    }

    /// Whether there is no error, apart from unknown strings.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.listed.is_empty()
    }

    /// The errors of unknown strings.
    #[must_use]
    pub fn into_unknown(self) -> Vec<FieldError> {
        self.unknown
    }

    /// The errors in the order in which they were found; the last entry counts those that are not listed.
    #[must_use]
    pub fn into_vec(self) -> Vec<FieldError> {
        let Self {
            mut listed, others, ..
        } = self;
        if others > 0 {
            listed.push(FieldError {
                pointer: String::new(),
                detail: format!("has {others} more errors, which are not listed"),
            });
        }
        listed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_above_the_limit_are_counted_instead_of_listed() {
        let mut errors = Errors::default();
        for index in 0..MAX_ERRORS + 7 {
            errors.add(format!("/{index}{}", "é".repeat(500)), "is wrong");
        }
        let listed = errors.into_vec();
        assert_eq!(listed.len(), MAX_ERRORS + 1);
        let last = listed.last().unwrap();
        assert_eq!(last.detail, "has 7 more errors, which are not listed");
        assert!(
            listed
                .iter()
                .all(|error| error.pointer.len() <= 2 * MAX_POINTER + 3)
        );
    }
}

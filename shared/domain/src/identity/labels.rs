//! Labels, by which answers are compared, such as the model and the prompt version.
//!
//! | rule | value |
//! |---|---|
//! | labels of an event or a turn | at most 16 |
//! | key | 1 to 64 of `A`–`Z`, `a`–`z`, `0`–`9`, `_`, `.`, `-` |
//! | value | a string of 1 to 256 characters, without control characters |

use std::collections::BTreeMap;

use hearback_wire::{Errors, FromJson, Pointer, noted};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};

use crate::identity::identifier::Label;

/// Maximum number of labels of an event or a turn.
pub const MAX_LABELS: usize = 16;
/// Maximum length of a key, in characters.
pub const MAX_KEY: usize = 64;
/// The form of a key, as a regular expression.
const KEY_PATTERN: &str = "^[A-Za-z0-9_.-]{1,64}$";
/// The well-known key for the model that answered.
pub const MODEL: &str = "model";
/// The well-known key for the version of the prompt.
pub const PROMPT_VERSION: &str = "prompt_version";

/// The labels of an event or a turn, by key.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Labels(BTreeMap<String, Label>);

impl FromJson for Labels {
    fn read(value: &Value, at: Pointer<'_>, errors: &mut Errors) -> Option<Self> {
        let labels = noted(value.as_object().ok_or("must be an object"), at, errors)?;
        if labels.len() > MAX_LABELS {
            errors.add(at, format!("must have at most {MAX_LABELS} labels"));
            return None;
        }
        let mut valid = BTreeMap::new();
        for (key, value) in labels {
            let at = at.member(key);
            if !is_key(key) {
                errors.add(
                    at,
                    "the key must have 1 to 64 characters of A-Z, a-z, 0-9, _, . and -",
                );
            }
            valid.extend(Label::read(value, at, errors).map(|value| (key.clone(), value)));
        }
        Some(Self(valid))
    }

    fn schema() -> RefOr<Schema> {
        let key = ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some(KEY_PATTERN));
        ObjectBuilder::new()
            .schema_type(Type::Object)
            .property_names(Some(key.build()))
            .additional_properties(Some(Label::schema()))
            .max_properties(Some(MAX_LABELS))
            .examples([json!({"model": "gpt-5", "prompt_version": "v7"})])
            .into()
    }
}

impl Labels {
    /// Whether there are no labels.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the labels of `others` whose keys are missing here, up to [`MAX_LABELS`] labels.
    pub fn inherit(&mut self, others: &Self) {
        for (key, value) in &others.0 {
            if self.0.len() < MAX_LABELS && !self.0.contains_key(key) {
                self.0.insert(key.clone(), value.clone());
            }
        }
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(Label::as_str)
    }

    /// The keys and values, sorted by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let labels = self.0.iter();
        labels.map(|(key, value)| (key.as_str(), value.as_str()))
    }
}

/// Whether a text can be the key of a label.
pub(crate) fn is_key(key: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    (1..=MAX_KEY).contains(&key.len()) && key.chars().all(allowed)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pointers(value: &Value) -> Vec<String> {
        let mut errors = Errors::default();
        let _ = Labels::read(value, Pointer::ROOT.member("labels"), &mut errors);
        let errors = errors.into_vec().into_iter();
        errors.map(|error| error.pointer).collect()
    }

    #[test]
    fn each_invalid_label_is_reported() {
        let long = "k".repeat(MAX_KEY + 1);
        let value = json!({
            "": "x", "a b": "x", "a/b": "x", "é": "x", long.as_str(): "x",
            "empty": "", "long": "v".repeat(257), "number": 3, "nothing": null,
            "A-Z.a_z-09": "any text, é too"
        });
        let mut reported = pointers(&value);
        reported.sort();
        let mut expected: Vec<_> = ["", "a b", "a~1b", "é", "empty", "long", "nothing", "number"]
            .map(|key| format!("/labels/{key}"))
            .into();
        expected.push(format!("/labels/{long}"));
        expected.sort();
        assert_eq!(reported, expected);
    }

    #[test]
    fn own_labels_outrank_inherited_ones_and_there_are_at_most_sixteen() {
        let labels = |value: &Value| {
            Labels::read(value, Pointer::ROOT, &mut Errors::default()).unwrap_or_default()
        };
        let mut own = labels(&json!({"model": "own"}));
        own.inherit(&labels(&json!({"model": "turn's", "prompt_version": "v7"})));
        assert_eq!(
            own,
            labels(&json!({"model": "own", "prompt_version": "v7"}))
        );
        let many = (0..16).map(|n| (format!("k{n}"), json!("v")));
        own.inherit(&labels(&Value::Object(many.collect())));
        assert_eq!(own.iter().count(), MAX_LABELS);
    }

    #[test]
    fn sixteen_labels_are_accepted_and_seventeen_are_not() {
        let labels = |count: usize| -> Value {
            let labels = (0..count).map(|n| (format!("k{n}"), json!("v".repeat(256))));
            Value::Object(labels.collect())
        };
        assert!(pointers(&labels(16)).is_empty());
        assert_eq!(pointers(&labels(17)), ["/labels"]);
        assert_eq!(pointers(&json!("model")), ["/labels"]);
    }
}

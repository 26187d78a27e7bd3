//! Labels: what a team compares answers by, such as the model and the version of the prompt.
//!
//! | rule | value |
//! |---|---|
//! | labels of an event or a turn | at most 16 |
//! | key | 1 to 64 of `A`–`Z`, `a`–`z`, `0`–`9`, `_`, `.`, `-` |
//! | value | a string of 1 to 256 characters, none of them a control character |

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::identifier::Label;
use crate::parse::{Errors, Object, identifier};

/// Most labels of an event or a turn.
pub const MAX_LABELS: usize = 16;
/// Longest key, in characters.
pub const MAX_KEY: usize = 64;
/// The well-known key for the model that answered.
pub const MODEL: &str = "model";
/// The well-known key for the version of the prompt.
pub const PROMPT_VERSION: &str = "prompt_version";

/// The labels of an event or a turn, by their keys.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Labels(BTreeMap<String, Label>);

impl Labels {
    /// Reads the object that stands at the pointer `at`, and reports each label that breaks a rule.
    #[must_use]
    pub fn read(value: &Value, at: &str, errors: &mut Errors) -> Self {
        let object = Object::at(value, at, errors);
        let mut labels = BTreeMap::new();
        for (key, value) in object.members() {
            if !is_key(key) {
                errors.add(
                    object.pointer(key),
                    "the key must have 1 to 64 characters of A-Z, a-z, 0-9, _, . and -",
                );
            }
            match identifier(value) {
                Ok(value) => {
                    labels.insert(key.clone(), value);
                }
                Err(detail) => errors.add(object.pointer(key), detail),
            }
        }
        if object.members().count() > MAX_LABELS {
            errors.add(at, format!("must have at most {MAX_LABELS} labels"));
        }
        Self(labels)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each key with its value, by the keys' order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let labels = self.0.iter();
        labels.map(|(key, value)| (key.as_str(), value.as_str()))
    }
}

fn is_key(key: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    (1..=MAX_KEY).contains(&key.len()) && key.chars().all(allowed)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pointers(value: &Value) -> Vec<String> {
        let mut errors = Errors::default();
        let _ = Labels::read(value, "/labels", &mut errors);
        let errors = errors.into_vec().into_iter();
        errors.map(|error| error.pointer).collect()
    }

    #[test]
    fn each_label_that_breaks_a_rule_is_named() {
        let long = "k".repeat(MAX_KEY + 1);
        let value = json!({
            "": "x", "a b": "x", "a/b": "x", "é": "x", long.as_str(): "x",
            "empty": "", "long": "v".repeat(257), "number": 3, "nothing": null,
            "A-Z.a_z-09": "any text, é too"
        });
        let mut named = pointers(&value);
        named.sort();
        let mut expected: Vec<_> = ["", "a b", "a~1b", "é", "empty", "long", "nothing", "number"]
            .map(|key| format!("/labels/{key}"))
            .into();
        expected.push(format!("/labels/{long}"));
        expected.sort();
        assert_eq!(named, expected);
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

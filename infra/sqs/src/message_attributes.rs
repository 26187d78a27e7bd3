//! Message attributes: named, typed values that are sent with a body.

use std::collections::{BTreeMap, btree_map::Iter};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};

use crate::{characters::is_allowed, fault::Fault};

/// The maximum number of attributes of one message.
const MAX_ATTRIBUTES: usize = 10;
/// The longest name of an attribute or of a data type, in bytes.
const MAX_NAME: usize = 256;

/// An attribute on the wire, and in the store, where a map of them is one JSON text.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct WireAttribute {
    #[serde(default)]
    data_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    string_value: Option<String>,
    /// Base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    binary_value: Option<String>,
    #[serde(default, skip_serializing)]
    string_list_values: Option<Vec<String>>,
    #[serde(default, skip_serializing)]
    binary_list_values: Option<Vec<String>>,
}

/// A checked attribute.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Attribute {
    /// `String`, `Number` or `Binary`, with an optional `.label`.
    pub(crate) data_type: String,
    pub(crate) value: Value,
}

/// What an attribute holds; a `Number` is carried as its text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Text(String),
    Binary(Vec<u8>),
}

/// A message's attributes by name, in the order of names.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct MessageAttributes(BTreeMap<String, Attribute>);

impl MessageAttributes {
    pub(crate) fn parse(wire: BTreeMap<String, WireAttribute>) -> Result<Self, Fault> {
        if wire.len() > MAX_ATTRIBUTES {
            return Err(Fault::InvalidParameter(format!(
                "Number of message attributes [{}] exceeds the allowed maximum [{MAX_ATTRIBUTES}].",
                wire.len()
            )));
        }
        wire.into_iter()
            .map(|(name, value)| {
                check_name(&name)?;
                let attribute = Attribute::parse(&name, value)?;
                Ok((name, attribute))
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// The attributes a receiver asked for: by name, by `prefix.*`, or by `All` or `.*`.
    pub(crate) fn select(mut self, wanted: &[String]) -> Self {
        self.0
            .retain(|name, _| wanted.iter().any(|pattern| matches(pattern, name)));
        self
    }

    pub(crate) fn to_wire(&self) -> BTreeMap<String, WireAttribute> {
        self.iter()
            .map(|(name, attribute)| (name.clone(), attribute.to_wire()))
            .collect()
    }

    pub(crate) fn iter(&self) -> Iter<'_, String, Attribute> {
        self.0.iter()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Bytes of all names, types and values.
    pub(crate) fn size(&self) -> usize {
        let value = |value: &Value| match value {
            Value::Text(text) => text.len(),
            Value::Binary(bytes) => bytes.len(),
        };
        self.iter()
            .map(|(name, a)| name.len() + a.data_type.len() + value(&a.value))
            .sum()
    }
}

impl Attribute {
    fn parse(name: &str, wire: WireAttribute) -> Result<Self, Fault> {
        if wire.string_list_values.is_some_and(|list| !list.is_empty())
            || wire.binary_list_values.is_some_and(|list| !list.is_empty())
        {
            return Err(invalid(
                name,
                "list values in SendMessage operation are not supported",
            ));
        }
        let logical = wire.data_type.split('.').next().unwrap_or_default();
        let value = match (logical, wire.string_value, wire.binary_value) {
            ("String", Some(text), None) => Value::Text(text),
            ("Number", Some(text), None) if is_number(&text) => Value::Text(text),
            ("Number", Some(_), None) => return Err(invalid(name, "value is not a number")),
            ("Binary", None, Some(encoded)) => Value::Binary(
                STANDARD
                    .decode(encoded)
                    .map_err(|_| invalid(name, "value is not Base64"))?,
            ),
            ("String" | "Number" | "Binary", ..) => {
                return Err(invalid(
                    name,
                    "must have exactly the value that its type asks for",
                ));
            }
            _ => {
                return Err(invalid(
                    name,
                    "type must begin with String, Number or Binary",
                ));
            }
        };
        match &value {
            Value::Text(text) if !text.chars().all(is_allowed) => {
                return Err(Fault::InvalidMessageContents);
            }
            Value::Text(text) if text.is_empty() => return Err(invalid(name, "value is empty")),
            Value::Binary(bytes) if bytes.is_empty() => {
                return Err(invalid(name, "value is empty"));
            }
            Value::Text(_) | Value::Binary(_) => {}
        }
        if wire.data_type.len() > MAX_NAME {
            return Err(invalid(name, "type is longer than 256 bytes"));
        }
        Ok(Self {
            data_type: wire.data_type,
            value,
        })
    }

    fn to_wire(&self) -> WireAttribute {
        let (string_value, binary_value) = match &self.value {
            Value::Text(text) => (Some(text.clone()), None),
            Value::Binary(bytes) => (None, Some(STANDARD.encode(bytes))),
        };
        WireAttribute {
            data_type: self.data_type.clone(),
            string_value,
            binary_value,
            ..WireAttribute::default()
        }
    }
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix(".*") {
        Some(prefix) => prefix.is_empty() || name.starts_with(prefix),
        None => pattern == "All" || pattern == name,
    }
}

fn check_name(name: &str) -> Result<(), Fault> {
    let lower = name.to_ascii_lowercase();
    let valid = (1..=MAX_NAME).contains(&name.len())
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
        && !name.starts_with('.')
        && !name.ends_with('.')
        && !name.contains("..")
        && !lower.starts_with("aws.")
        && !lower.starts_with("amazon.");
    if valid {
        Ok(())
    } else {
        Err(invalid(name, "name is not allowed"))
    }
}

fn is_number(text: &str) -> bool {
    text.parse::<f64>().is_ok_and(f64::is_finite)
}

fn invalid(name: &str, reason: &str) -> Fault {
    Fault::InvalidParameter(format!(
        "The message attribute '{name}' is invalid: {reason}."
    ))
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_pattern_selects_all_one_name_or_a_prefix() {
        assert!(matches("All", "trace.id") && matches(".*", "trace.id"));
        assert!(matches("trace.*", "trace.id") && matches("trace.id", "trace.id"));
        assert!(!matches("trace", "trace.id") && !matches("span.*", "trace.id"));
    }
}

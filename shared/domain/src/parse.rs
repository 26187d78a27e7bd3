//! Parse, don't validate: a JSON object is read once, field by field, into domain values, and
//! everything that is wrong with it is reported together, each by its JSON Pointer (RFC 6901).

use chrono::{DateTime, Datelike, SubsecRound, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One thing that is wrong with an input, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldError {
    /// JSON Pointer of the member, for example `/data/rating`.
    pub pointer: String,
    /// What is expected there, as a sentence part: `must be an integer from 1 to 5`.
    pub detail: String,
}

/// Collects what is wrong while an input is read to its end.
#[derive(Debug, Default)]
pub struct Errors(Vec<FieldError>);

impl Errors {
    /// Notes one error.
    pub fn add(&mut self, pointer: impl Into<String>, detail: impl Into<String>) {
        self.0.push(FieldError {
            pointer: pointer.into(),
            detail: detail.into(),
        });
    }

    /// Whether nothing was wrong so far.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What was wrong, in the order in which it was found.
    #[must_use]
    pub fn into_vec(self) -> Vec<FieldError> {
        self.0
    }
}

/// A JSON object that is being read: its members, and where it stands in the document.
#[derive(Debug, Clone, Copy)]
pub struct Object<'a> {
    members: Option<&'a Map<String, Value>>,
    at: &'a str,
}

impl<'a> Object<'a> {
    /// The object at the root of a document.
    #[must_use]
    pub fn root(value: &'a Value, errors: &mut Errors) -> Self {
        Self::at(value, "", errors)
    }

    /// The object that stands at the pointer `at`.
    #[must_use]
    pub fn at(value: &'a Value, at: &'a str, errors: &mut Errors) -> Self {
        let members = value.as_object();
        if members.is_none() {
            errors.add(at, "must be an object");
        }
        Self { members, at }
    }

    /// The JSON Pointer of a member.
    #[must_use]
    pub fn pointer(&self, name: &str) -> String {
        format!("{}/{}", self.at, escape(name))
    }

    /// The member as it stands, if it is there.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'a Value> {
        self.members?.get(name)
    }

    /// Reports every member that is not one of these.
    pub fn known_only(&self, known: &[&str], errors: &mut Errors) {
        for (name, _) in self.members() {
            if !known.contains(&name.as_str()) {
                errors.add(self.pointer(name), "is not a known member");
            }
        }
    }

    /// A member that may be left out or be `null`.
    pub fn nullable<T, E: ToString>(
        &self,
        name: &str,
        errors: &mut Errors,
        read: impl FnOnce(&'a Value) -> Result<T, E>,
    ) -> Option<T> {
        self.get(name).filter(|value| !value.is_null())?;
        self.optional(name, errors, read)
    }

    /// All members.
    pub fn members(&self) -> impl Iterator<Item = (&'a String, &'a Value)> {
        self.members.into_iter().flatten()
    }

    /// A member that may be left out: `read` turns it into a value or says what is expected.
    pub fn optional<T, E: ToString>(
        &self,
        name: &str,
        errors: &mut Errors,
        read: impl FnOnce(&'a Value) -> Result<T, E>,
    ) -> Option<T> {
        read(self.get(name)?)
            .map_err(|detail| errors.add(self.pointer(name), detail.to_string()))
            .ok()
    }

    /// A member that must be there.
    pub fn required<T, E: ToString>(
        &self,
        name: &str,
        errors: &mut Errors,
        read: impl FnOnce(&'a Value) -> Result<T, E>,
    ) -> Option<T> {
        if self.members.is_some() && self.get(name).is_none() {
            errors.add(self.pointer(name), "is required");
        }
        self.optional(name, errors, read)
    }
}

/// Escapes a member's name for a JSON Pointer.
fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Reads a string.
pub fn string(value: &Value) -> Result<&str, String> {
    value.as_str().ok_or_else(|| "must be a string".to_owned())
}

/// Reads a string of at most `limit` characters.
pub fn text(limit: usize) -> impl FnOnce(&Value) -> Result<String, String> {
    move |value| {
        let text = string(value)?;
        if text.chars().count() > limit {
            return Err(format!("must have at most {limit} characters"));
        }
        Ok(text.to_owned())
    }
}

/// Reads an identifier of any kind.
pub fn identifier<'a, T>(value: &'a Value) -> Result<T, String>
where
    T: TryFrom<&'a str>,
    T::Error: ToString,
{
    T::try_from(string(value)?).map_err(|error| error.to_string())
}

/// Reads `true` or `false`.
pub fn boolean(value: &Value) -> Result<bool, String> {
    value
        .as_bool()
        .ok_or_else(|| "must be true or false".to_owned())
}

/// Reads a whole number; `4.0` is one, as in JSON Schema.
pub fn integer(value: &Value) -> Result<i64, String> {
    let whole = value.as_i64().or_else(|| {
        let number = value.as_f64().filter(|number| number.fract() == 0.0)?;
        // Only what JSON wrote with a point comes here; its text is the exact way to an integer.
        format!("{number:.0}").parse().ok()
    });
    whole.ok_or_else(|| "must be an integer".to_owned())
}

/// Reads a whole number from `low` to `high`.
pub fn integer_in(low: i64, high: i64) -> impl FnOnce(&Value) -> Result<i64, String> {
    move |value| match integer(value) {
        Ok(number) if (low..=high).contains(&number) => Ok(number),
        _ => Err(format!("must be an integer from {low} to {high}")),
    }
}

/// Reads a number from `low` to `high`.
pub fn number_in(low: f64, high: f64) -> impl FnOnce(&Value) -> Result<f64, String> {
    move |value| {
        value
            .as_f64()
            .filter(|number| (low..=high).contains(number))
            .ok_or_else(|| format!("must be a number from {low} to {high}"))
    }
}

/// Reads an RFC 3339 time, in any offset. In UTC it must have a year of four digits too: another
/// could not be answered as RFC 3339.
pub fn date_time(value: &Value) -> Result<DateTime<Utc>, &'static str> {
    value
        .as_str()
        .and_then(|text| DateTime::parse_from_rfc3339(text).ok())
        .map(|time| time.to_utc())
        .filter(|time| (0..=9999).contains(&time.year()))
        .ok_or("must be an RFC 3339 date and time with an offset")
}

/// A time to the microsecond, which is what is stored and compared.
#[must_use]
pub fn to_instant(time: DateTime<Utc>) -> DateTime<Utc> {
    time.trunc_subsecs(6)
}

/// Reads a list of strings.
pub fn strings(value: &Value) -> Result<Vec<String>, String> {
    value
        .as_array()
        .and_then(|items| {
            items
                .iter()
                .map(|item| item.as_str().map(str::to_owned))
                .collect()
        })
        .ok_or_else(|| "must be an array of strings".to_owned())
}

/// Reads one value of a closed set by its wire name.
pub fn one_of<T: Copy>(
    names: &'static [(&'static str, T)],
) -> impl Fn(&Value) -> Result<T, String> {
    move |value| {
        value
            .as_str()
            .and_then(|given| names.iter().find(|(name, _)| *name == given))
            .map(|(_, member)| *member)
            .ok_or_else(|| {
                let names: Vec<_> = names.iter().map(|(name, _)| *name).collect();
                format!("must be one of {}", names.join(", "))
            })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_wrong_member_is_reported_by_its_pointer() {
        let document = json!({"a/b": 1, "n": 9});
        let mut errors = Errors::default();
        let root = Object::root(&document, &mut errors);
        root.required("missing", &mut errors, string);
        root.optional("a/b", &mut errors, string);
        root.optional("n", &mut errors, integer_in(1, 5));
        let pointers: Vec<_> = errors.into_vec().into_iter().map(|e| e.pointer).collect();
        assert_eq!(pointers, ["/missing", "/a~1b", "/n"]);
    }

    #[test]
    fn a_number_with_a_zero_fraction_is_an_integer() {
        assert_eq!(integer(&json!(4.0)), Ok(4));
        assert_eq!(integer(&json!(-3)), Ok(-3));
        assert!(integer(&json!(4.5)).is_err());
        assert!(integer(&json!(1e300)).is_err());
    }

    #[test]
    fn what_is_no_object_is_one_error_and_not_one_for_each_member() {
        let document = json!([1]);
        let mut errors = Errors::default();
        let root = Object::root(&document, &mut errors);
        root.required("userId", &mut errors, string);
        assert_eq!(errors.into_vec().len(), 1);
    }
}

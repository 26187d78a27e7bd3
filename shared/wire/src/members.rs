//! The members of a JSON object.

use serde_json::{Map, Value};

use crate::errors::Errors;
use crate::from_json::FromJson;
use crate::pointer::Pointer;

/// The members of an object, with its pointer.
#[derive(Debug, Clone, Copy)]
pub struct Members<'a> {
    members: &'a Map<String, Value>,
    at: Pointer<'a>,
}

/// A change of one value, as a JSON merge patch (RFC 7396) expresses it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Change<T> {
    /// Left out: the current value is kept.
    #[default]
    Keep,
    /// `null`: the current value is removed.
    Clear,
    /// Given: the current value is replaced.
    Set(T),
}

impl<T> Change<T> {
    /// The same change of another value.
    pub fn map<U>(self, map: impl FnOnce(T) -> U) -> Change<U> {
        match self {
            Self::Keep => Change::Keep,
            Self::Clear => Change::Clear,
            Self::Set(value) => Change::Set(map(value)),
        }
    }

    /// Changes a value that may be missing.
    pub fn apply(self, to: &mut Option<T>) {
        match self {
            Self::Keep => {}
            Self::Clear => *to = None,
            Self::Set(value) => *to = Some(value),
        }
    }

    /// Changes a value; clearing sets it to `default`.
    pub fn apply_or(self, to: &mut T, default: T) {
        match self {
            Self::Keep => {}
            Self::Clear => *to = default,
            Self::Set(value) => *to = value,
        }
    }
}

impl<'a> Members<'a> {
    /// The members of a value, which must be an object.
    pub fn of(value: &'a Value, at: Pointer<'a>, errors: &mut Errors) -> Option<Self> {
        let members = value.as_object();
        if members.is_none() {
            errors.add(at, "must be an object");
        }
        Some(Self {
            members: members?,
            at,
        })
    }

    /// Adds an error for every member that is not one of these.
    pub fn only(&self, known: &[&str], errors: &mut Errors) {
        for name in self.members.keys() {
            if !known.contains(&name.as_str()) {
                errors.add(self.at.member(name), "is not a known member");
            }
        }
    }

    /// A required member.
    pub fn required<T: FromJson>(&self, name: &str, errors: &mut Errors) -> Option<T> {
        let Some(value) = self.members.get(name) else {
            errors.add(self.at.member(name), "is required");
            return None;
        };
        T::read(value, self.at.member(name), errors)
    }

    /// A member that may be left out.
    pub fn optional<T: FromJson>(&self, name: &str, errors: &mut Errors) -> Option<Option<T>> {
        match self.members.get(name) {
            None => Some(None),
            Some(value) => T::read(value, self.at.member(name), errors).map(Some),
        }
    }

    /// An object that may be left out: then it is read as an empty one.
    pub fn group<T: FromJson>(&self, name: &str, errors: &mut Errors) -> Option<T> {
        let empty = Value::Object(Map::new());
        let value = self.members.get(name).unwrap_or(&empty);
        T::read(value, self.at.member(name), errors)
    }

    /// A member that may be left out or be `null`.
    pub fn nullable<T: FromJson>(&self, name: &str, errors: &mut Errors) -> Option<Option<T>> {
        match self.members.get(name) {
            None | Some(Value::Null) => Some(None),
            Some(value) => T::read(value, self.at.member(name), errors).map(Some),
        }
    }

    /// A member, if it is present and valid.
    #[must_use]
    pub fn peek<T: FromJson>(&self, name: &str) -> Option<T> {
        let value = self.members.get(name)?;
        T::read(value, Pointer::ROOT, &mut Errors::default())
    }

    /// Whether a member is present, even if it is `null`.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.members.contains_key(name)
    }

    /// A member that changes the current value.
    pub fn changed<T: FromJson>(&self, name: &str, errors: &mut Errors) -> Option<Change<T>> {
        match self.members.get(name) {
            None => Some(Change::Keep),
            Some(Value::Null) => Some(Change::Clear),
            Some(value) => T::read(value, self.at.member(name), errors).map(Change::Set),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::{Change, Number, Text, from_json, request};

    request! {
        /// A part.
        struct Part, closed {
            /// A number.
            "n" => n: required Number<1, 5>,
        }
    }

    request! {
        /// A whole.
        struct Whole, open {
            /// A part.
            "part" => part: required Part,
            /// A text.
            "a/b" => text: optional Text<3>,
            /// A change.
            "change" => change: changed bool,
        }
    }

    fn pointers(value: &serde_json::Value) -> Vec<String> {
        let errors = from_json::<Whole>(value).unwrap_err();
        errors.into_iter().map(|error| error.pointer).collect()
    }

    #[test]
    fn every_wrong_member_is_reported_by_its_pointer() {
        assert_eq!(
            pointers(&json!({"a/b": 1, "change": 3})),
            ["/part", "/a~1b", "/change"]
        );
        assert_eq!(
            pointers(&json!({"part": {"n": 9, "m": 1}})),
            ["/part/m", "/part/n"]
        );
    }

    #[test]
    fn a_value_that_is_not_an_object_is_one_error() {
        assert_eq!(pointers(&json!([1])), [""]);
        assert_eq!(pointers(&json!({"part": 3})), ["/part"]);
    }

    #[test]
    fn a_change_distinguishes_null_from_a_missing_member() {
        let change = |value| from_json::<Whole>(&value).unwrap().change;
        assert_eq!(change(json!({"part": {"n": 1}})), Change::Keep);
        assert_eq!(
            change(json!({"part": {"n": 1}, "change": null})),
            Change::Clear
        );
        assert_eq!(
            change(json!({"part": {"n": 1}, "change": true})),
            Change::Set(true)
        );
    }
}

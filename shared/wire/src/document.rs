//! Whole documents and queries.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::errors::{Errors, FieldError};
use crate::from_json::FromJson;
use crate::members::Members;
use crate::pointer::Pointer;

/// Reads a whole document, all errors at once.
pub fn from_json<T: FromJson>(value: &Value) -> Result<T, Vec<FieldError>> {
    from_json_with(value, |_, _| {})
}

/// Reads a whole document and checks `rules` that a schema cannot state, all errors at once: the rules are checked
/// for an object with errors, too.
pub fn from_json_with<T: FromJson>(
    value: &Value,
    rules: impl FnOnce(Members<'_>, &mut Errors),
) -> Result<T, Vec<FieldError>> {
    let mut errors = Errors::default();
    let read = T::read(value, Pointer::ROOT, &mut errors);
    if let Some(members) = Members::of(value, Pointer::ROOT, &mut Errors::default()) {
        rules(members, &mut errors);
    }
    read.filter(|_| errors.is_empty())
        .ok_or_else(|| errors.into_vec())
}

/// A request that is read from the parameters of a query. Parameters that are not declared are ignored.
pub trait FromQuery: FromJson {
    /// The JSON value of a parameter; `None` if it is not declared.
    fn value_of(parameter: &str, text: &str) -> Option<Value>;
}

/// Reads the parameters of a query, all errors at once.
pub fn from_query<T: FromQuery>(given: &BTreeMap<String, String>) -> Result<T, Vec<FieldError>> {
    let members = given.iter().filter_map(|(name, text)| {
        let value = T::value_of(name, text)?;
        Some((name.clone(), value))
    });
    from_json(&Value::Object(members.collect()))
}

//! Descriptions of members and parameters, for [`request!`](crate::request!).

use serde_json::Value;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::openapi::{RefOr, Required};

use crate::from_json::FromJson;
use crate::names::WireNames;
use crate::values::{Integer, List, Number, Text};

/// The lines of a doc comment as one text.
#[must_use]
pub fn text(lines: &[&str]) -> String {
    let lines = lines
        .iter()
        .map(|line| line.strip_prefix(' ').unwrap_or(line));
    lines.collect::<Vec<_>>().join("\n")
}

/// The schema of a member: that of its value, with the description and default of the member.
#[must_use]
pub fn member(schema: RefOr<Schema>, about: &[&str], default: Option<Value>) -> RefOr<Schema> {
    let about = text(about);
    match schema {
        RefOr::Ref(mut reference) => {
            reference.description = about;
            reference.default = default;
            RefOr::Ref(reference)
        }
        RefOr::T(mut schema) => {
            let (description, default_of) = match &mut schema {
                Schema::Object(object) => (&mut object.description, &mut object.default),
                Schema::Array(array) => (&mut array.description, &mut array.default),
                Schema::OneOf(one_of) => (&mut one_of.description, &mut one_of.default),
                _ => return RefOr::T(schema),
            };
            *description = Some(about);
            *default_of = default;
            RefOr::T(schema)
        }
    }
}

/// A query parameter that is read as a `T`.
#[must_use]
pub fn query_parameter<T: FromJson>(
    name: &str,
    about: &[&str],
    default: Option<Value>,
    required: bool,
) -> Parameter {
    let required = if required {
        Required::True
    } else {
        Required::False
    };
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Query)
        .required(required)
        .description(Some(text(about)))
        .schema(Some(with_default(inline::<T>(), default)))
        .build()
}

/// A parameter of a path.
#[must_use]
pub fn path_parameter<T: FromJson>(name: &str, about: &str) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .description(Some(about))
        .schema(Some(inline::<T>()))
        .build()
}

/// An optional header whose value matches this pattern.
#[must_use]
pub fn optional_header(name: &str, about: &str, pattern: &str) -> Parameter {
    let text = ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(Some(pattern));
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(about))
        .schema(Some(text))
        .build()
}

/// A schema without references, because a document's named schemas do not include those that only parameters use.
fn inline<T: FromJson>() -> RefOr<Schema> {
    let mut named = Vec::new();
    T::add_schemas(&mut named);
    let schema = named.into_iter().next();
    schema.map_or_else(T::schema, |(_, schema)| schema)
}

fn with_default(schema: RefOr<Schema>, default: Option<Value>) -> RefOr<Schema> {
    match schema {
        RefOr::T(Schema::Object(mut object)) => {
            object.default = default;
            RefOr::T(Schema::Object(object))
        }
        other => other,
    }
}

/// A default value, as the schema shows it.
pub trait Default {
    /// The value as JSON.
    fn as_json(&self) -> Value;
}

impl Default for bool {
    fn as_json(&self) -> Value {
        Value::from(*self)
    }
}

impl<const MOST: usize> Default for Text<MOST> {
    fn as_json(&self) -> Value {
        Value::from(self.0.as_str())
    }
}

impl<T, const LEAST: usize, const MOST: usize> Default for List<T, LEAST, MOST> {
    /// A default list is empty.
    fn as_json(&self) -> Value {
        Value::Array(Vec::new())
    }
}

impl<T: WireNames + PartialEq> Default for T {
    fn as_json(&self) -> Value {
        let name = T::NAMES.iter().find(|(_, member)| member == self);
        Value::from(name.map(|(name, _)| *name))
    }
}

impl<const LOW: i64, const HIGH: i64> Default for Integer<LOW, HIGH> {
    fn as_json(&self) -> Value {
        Value::from(self.0)
    }
}

impl<const LOW: i32, const HIGH: i32> Default for Number<LOW, HIGH> {
    fn as_json(&self) -> Value {
        Value::from(self.0)
    }
}

//! The values that requests are made of: texts, numbers, times, lists and maps.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::ops::Deref;

use chrono::{DateTime, NaiveDate, Utc};
use serde_json::{Map, Value};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{
    ArrayBuilder, KnownFormat, ObjectBuilder, OneOfBuilder, Schema, SchemaFormat, SchemaType, Type,
};
use uuid::Uuid;

use crate::errors::Errors;
use crate::from_json::{FromJson, Schemas, noted};
use crate::parse;
use crate::pointer::Pointer;

fn of_type(kind: Type) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(kind)
}

impl FromJson for bool {
    fn read(value: &Value, at: Pointer<'_>, errors: &mut Errors) -> Option<Self> {
        noted(parse::boolean(value), at, errors)
    }

    fn schema() -> RefOr<Schema> {
        of_type(Type::Boolean).into()
    }

    fn of_query(text: &str) -> Value {
        text.parse::<bool>().map_or(Value::from(text), Value::from)
    }
}

impl FromJson for String {
    fn read(value: &Value, at: Pointer<'_>, errors: &mut Errors) -> Option<Self> {
        noted(parse::string(value).map(str::to_owned), at, errors)
    }

    fn schema() -> RefOr<Schema> {
        of_type(Type::String).into()
    }
}

/// A text of at most `MOST` characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text<const MOST: usize>(pub String);

impl<const MOST: usize> FromJson for Text<MOST> {
    fn read(value: &Value, at: Pointer<'_>, errors: &mut Errors) -> Option<Self> {
        noted(parse::text(MOST)(value).map(Self), at, errors)
    }

    fn schema() -> RefOr<Schema> {
        of_type(Type::String).max_length(Some(MOST)).into()
    }
}

impl<const MOST: usize> Deref for Text<MOST> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl FromJson for i64 {
    fn read(value: &Value, at: Pointer<'_>, errors: &mut Errors) -> Option<Self> {
        noted(parse::integer(value), at, errors)
    }

    fn schema() -> RefOr<Schema> {
        let integer = of_type(Type::Integer);
        integer
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
            .into()
    }

    fn of_query(text: &str) -> Value {
        text.parse::<Self>().map_or(Value::from(text), Value::from)
    }
}

/// A whole number from `LOW` to `HIGH`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Integer<const LOW: i64, const HIGH: i64>(pub i64);

impl<const LOW: i64, const HIGH: i64> Integer<LOW, HIGH> {
    /// Converts the number to a type that has all numbers of the range.
    #[must_use]
    pub fn to<T: TryFrom<i64> + Default>(self) -> T {
        T::try_from(self.0).unwrap_or_default()
    }
}

impl<const LOW: i64, const HIGH: i64> FromJson for Integer<LOW, HIGH> {
    fn read(value: &Value, at: Pointer<'_>, errors: &mut Errors) -> Option<Self> {
        let read = if HIGH == i64::MAX {
            let number = parse::integer(value).ok().filter(|number| *number >= LOW);
            number.ok_or_else(|| format!("must be an integer of at least {LOW}"))
        } else {
            parse::integer_in(LOW, HIGH)(value)
        };
        noted(read.map(Self), at, errors)
    }

    fn schema() -> RefOr<Schema> {
        of_type(Type::Integer)
            .minimum(Some(LOW))
            .maximum(Some(HIGH))
            .into()
    }

    fn of_query(text: &str) -> Value {
        i64::of_query(text)
    }
}

/// A number from `LOW` to `HIGH`, both included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Number<const LOW: i32, const HIGH: i32>(pub f64);

impl<const LOW: i32, const HIGH: i32> FromJson for Number<LOW, HIGH> {
    fn read(value: &Value, at: Pointer<'_>, errors: &mut Errors) -> Option<Self> {
        let read = parse::number_in(f64::from(LOW), f64::from(HIGH))(value);
        noted(read.map(Self), at, errors)
    }

    fn schema() -> RefOr<Schema> {
        let number = of_type(Type::Number);
        number.minimum(Some(LOW)).maximum(Some(HIGH)).into()
    }

    fn of_query(text: &str) -> Value {
        text.parse::<f64>().map_or(Value::from(text), Value::from)
    }
}

/// An RFC 3339 time with an offset, to the microsecond.
impl FromJson for DateTime<Utc> {
    fn read(value: &Value, at: Pointer<'_>, errors: &mut Errors) -> Option<Self> {
        noted(parse::instant(value), at, errors)
    }

    fn schema() -> RefOr<Schema> {
        let text = of_type(Type::String);
        text.format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
            .into()
    }
}

/// A day, as `2025-11-06`.
impl FromJson for NaiveDate {
    fn read(value: &Value, at: Pointer<'_>, errors: &mut Errors) -> Option<Self> {
        noted(parse::date(value), at, errors)
    }

    fn schema() -> RefOr<Schema> {
        let text = of_type(Type::String);
        text.format(Some(SchemaFormat::KnownFormat(KnownFormat::Date)))
            .into()
    }
}

/// An RFC 9562 UUID in its hyphenated form.
impl FromJson for Uuid {
    fn read(value: &Value, at: Pointer<'_>, errors: &mut Errors) -> Option<Self> {
        let uuid = value
            .as_str()
            .filter(|text| text.len() == uuid::fmt::Hyphenated::LENGTH)
            .and_then(|text| Self::try_parse(text).ok());
        noted(uuid.ok_or("must be a UUID"), at, errors)
    }

    fn schema() -> RefOr<Schema> {
        let text = of_type(Type::String);
        text.format(Some(SchemaFormat::KnownFormat(KnownFormat::Uuid)))
            .into()
    }
}

/// A part of a document that is read later: its schema is that of a `T`, and any value is accepted.
#[derive(Debug, Clone, PartialEq)]
pub struct Unread<T> {
    value: Value,
    kind: PhantomData<T>,
}

impl<T> Unread<T> {
    /// The value.
    #[must_use]
    pub fn into_value(self) -> Value {
        self.value
    }
}

impl<T: FromJson> FromJson for Unread<T> {
    fn read(value: &Value, _: Pointer<'_>, _: &mut Errors) -> Option<Self> {
        Some(Self {
            value: value.clone(),
            kind: PhantomData,
        })
    }

    fn schema() -> RefOr<Schema> {
        T::schema()
    }

    fn add_schemas(schemas: &mut Schemas) {
        T::add_schemas(schemas);
    }
}

/// A value or `null`.
impl<T: FromJson> FromJson for Option<T> {
    fn read(value: &Value, at: Pointer<'_>, errors: &mut Errors) -> Option<Self> {
        if value.is_null() {
            return Some(None);
        }
        T::read(value, at, errors).map(Some)
    }

    fn schema() -> RefOr<Schema> {
        or_null(T::schema())
    }

    fn add_schemas(schemas: &mut Schemas) {
        T::add_schemas(schemas);
    }
}

/// An object with any members.
impl FromJson for Map<String, Value> {
    fn read(value: &Value, at: Pointer<'_>, errors: &mut Errors) -> Option<Self> {
        noted(
            value.as_object().cloned().ok_or("must be an object"),
            at,
            errors,
        )
    }

    fn schema() -> RefOr<Schema> {
        of_type(Type::Object).into()
    }
}

/// `LEAST` to `MOST` entries. Their number is checked before any of them is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List<T, const LEAST: usize, const MOST: usize>(pub Vec<T>);

impl<T, const LEAST: usize, const MOST: usize> Deref for List<T, LEAST, MOST> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T: FromJson, const LEAST: usize, const MOST: usize> FromJson for List<T, LEAST, MOST> {
    fn read(value: &Value, at: Pointer<'_>, errors: &mut Errors) -> Option<Self> {
        let entries = noted(entries(value, LEAST, MOST), at, errors)?;
        read_entries(entries, at, errors).map(Self)
    }

    fn schema() -> RefOr<Schema> {
        let least = (LEAST > 0).then_some(LEAST);
        let list = ArrayBuilder::new().items(T::schema());
        list.min_items(least).max_items(Some(MOST)).into()
    }

    fn add_schemas(schemas: &mut Schemas) {
        T::add_schemas(schemas);
    }
}

impl<T: FromJson> FromJson for Vec<T> {
    fn read(value: &Value, at: Pointer<'_>, errors: &mut Errors) -> Option<Self> {
        let entries = noted(value.as_array().ok_or("must be an array"), at, errors)?;
        read_entries(entries, at, errors)
    }

    fn schema() -> RefOr<Schema> {
        ArrayBuilder::new().items(T::schema()).into()
    }

    fn add_schemas(schemas: &mut Schemas) {
        T::add_schemas(schemas);
    }
}

/// The entries of an array, if their number is allowed.
pub fn entries(value: &Value, least: usize, most: usize) -> Result<&[Value], String> {
    let entries = value.as_array().ok_or("must be an array")?;
    match entries.len() {
        length if length > most => Err(format!("must have at most {most} entries")),
        length if length < least => Err(format!("must have at least {least} entries")),
        _ => Ok(entries),
    }
}

fn read_entries<T: FromJson>(
    entries: &[Value],
    at: Pointer<'_>,
    errors: &mut Errors,
) -> Option<Vec<T>> {
    let mut read = Vec::with_capacity(entries.len());
    for (index, entry) in entries.iter().enumerate() {
        read.extend(T::read(entry, at.entry(index), errors));
    }
    // With an error, the list is not used.
    (read.len() == entries.len()).then_some(read)
}

/// An object whose members have names that callers choose.
impl<K, T> FromJson for BTreeMap<K, T>
where
    K: FromJson + for<'a> TryFrom<&'a str, Error: ToString> + Ord,
    T: FromJson,
{
    fn read(value: &Value, at: Pointer<'_>, errors: &mut Errors) -> Option<Self> {
        let members = noted(value.as_object().ok_or("must be an object"), at, errors)?;
        let mut read = Self::new();
        for (name, value) in members {
            let at = at.member(name);
            let value = T::read(value, at, errors);
            match (K::try_from(name), value) {
                (Ok(key), Some(value)) => {
                    read.insert(key, value);
                }
                (Ok(_), None) => {}
                (Err(detail), _) => errors.add(at, format!("the name {}", detail.to_string())),
            }
        }
        Some(read)
    }

    fn schema() -> RefOr<Schema> {
        let mut object = of_type(Type::Object).additional_properties(Some(T::schema()));
        if let RefOr::T(name) = K::schema() {
            object = object.property_names(Some(name));
        }
        object.into()
    }

    fn add_schemas(schemas: &mut Schemas) {
        T::add_schemas(schemas);
    }
}

/// A schema that also allows `null`.
fn or_null(schema: RefOr<Schema>) -> RefOr<Schema> {
    let null = || ObjectBuilder::new().schema_type(Type::Null);
    match schema {
        RefOr::T(Schema::Object(mut object)) if object.enum_values.is_none() => {
            object.schema_type = with_null(object.schema_type);
            RefOr::T(Schema::Object(object))
        }
        RefOr::T(Schema::Array(mut array)) => {
            array.schema_type = with_null(array.schema_type);
            RefOr::T(Schema::Array(array))
        }
        other => OneOfBuilder::new().item(null()).item(other).into(),
    }
}

fn with_null(types: SchemaType) -> SchemaType {
    match types {
        SchemaType::Type(one) => SchemaType::Array(vec![one, Type::Null]),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn entries_of_a_list_that_is_too_long_are_not_read() {
        let mut errors = Errors::default();
        let read = List::<bool, 0, 2>::read(&json!([1, 1, 1]), Pointer::ROOT, &mut errors);
        assert_eq!(read, None);
        let errors = errors.into_vec();
        let errors: Vec<_> = errors.iter().map(|error| error.detail.as_str()).collect();
        assert_eq!(errors, ["must have at most 2 entries"]);
    }
}

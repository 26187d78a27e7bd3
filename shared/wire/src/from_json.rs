//! Values of requests: each type reads itself from JSON and describes itself as JSON Schema.

use serde_json::Value;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;

use crate::errors::Errors;
use crate::pointer::Pointer;

/// Named schemas that other schemas reference.
pub type Schemas = Vec<(String, RefOr<Schema>)>;

/// A value that a request may have.
///
/// [`read`](Self::read) accepts what [`schema`](Self::schema) allows: both are declared once, by
/// [`request!`](crate::request!) for objects, and here for the types of members.
pub trait FromJson: Sized {
    /// The value, or `None` after adding each error at its pointer. No error quotes a value.
    fn read(value: &Value, at: Pointer<'_>, errors: &mut Errors) -> Option<Self>;

    /// The schema of the accepted JSON.
    fn schema() -> RefOr<Schema>;

    /// Adds the named schemas that [`schema`](Self::schema) refers to.
    fn add_schemas(_schemas: &mut Schemas) {}

    /// The JSON value of a query parameter.
    #[must_use]
    fn of_query(text: &str) -> Value {
        Value::from(text)
    }
}

/// Adds the error of a parser at a position.
pub fn noted<T, E: ToString>(
    read: Result<T, E>,
    at: Pointer<'_>,
    errors: &mut Errors,
) -> Option<T> {
    read.map_err(|detail| errors.add(at, detail.to_string()))
        .ok()
}

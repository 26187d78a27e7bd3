//! Requests as JSON: declared once, read with all errors at once, and described as JSON Schema.
//!
//! | to change | look in |
//! |---|---|
//! | how an object of a request is declared | [`request!`] |
//! | what a text, a number or a list may be | [`FromJson`] and the types in its module |
//! | how errors are collected and limited | [`Errors`] |
//!
//! It has no rules of feedback.
//!
//! Imports none of our crates.

pub mod describe;
mod document;
mod errors;
mod from_json;
mod members;
pub mod names;
pub mod parse;
mod pointer;
mod request;
mod values;

pub use document::{FromQuery, from_json, from_json_with, from_query};
pub use errors::{Errors, FieldError, MAX_ERRORS, MAX_POINTER};
pub use from_json::{FromJson, Schemas, noted};
pub use members::{Change, Members};
pub use names::{Known, WireNames};
pub use pointer::Pointer;
pub use values::{Integer, List, Number, Text, Unread, entries};

/// What the macros of this crate expand to.
#[doc(hidden)]
pub mod __private {
    pub use serde_json::{Value, json};
    pub use utoipa::openapi::RefOr;
    pub use utoipa::openapi::path::{Parameter, ParameterIn};
    pub use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, Ref, Schema};
    pub use utoipa::{IntoParams, PartialSchema, ToSchema};
}

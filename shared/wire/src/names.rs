//! Closed sets whose members have a name on the wire.

use serde_json::Value;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{Ref, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::errors::Errors;
use crate::from_json::{FromJson, Schemas, noted};
use crate::parse;
use crate::pointer::Pointer;

/// A closed set. Implemented by [`wire_names!`](crate::wire_names!).
pub trait WireNames: Copy + 'static {
    /// Every member of the set with its name on the wire.
    const NAMES: &'static [(&'static str, Self)];
}

/// Implements [`WireNames`](crate::WireNames) and `as_str` for an enum.
#[macro_export]
macro_rules! wire_names {
    ($type:ident { $($variant:ident = $name:literal),+ $(,)? }) => {
        impl $type {
            /// Every member of the set with its name on the wire.
            pub const NAMES: &'static [(&'static str, Self)] = &[$(($name, Self::$variant)),+];

            /// The name on the wire.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }

        impl $crate::WireNames for $type {
            const NAMES: &'static [(&'static str, Self)] = Self::NAMES;
        }
    };
}

impl<T: WireNames + ToSchema> FromJson for T {
    fn read(value: &Value, at: Pointer<'_>, errors: &mut Errors) -> Option<Self> {
        noted(parse::one_of(T::NAMES)(value), at, errors)
    }

    fn schema() -> RefOr<Schema> {
        Ref::from_schema_name(T::name()).into()
    }

    fn add_schemas(schemas: &mut Schemas) {
        schemas.push((T::name().into_owned(), <T as PartialSchema>::schema()));
    }
}

/// A member of a closed set that may grow: an unknown string is a different error than a value that
/// is not a string ([`Errors::add_unknown`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known<T>(pub T);

impl<T: WireNames + ToSchema> FromJson for Known<T> {
    fn read(value: &Value, at: Pointer<'_>, errors: &mut Errors) -> Option<Self> {
        noted(parse::string(value), at, errors)?;
        match parse::one_of(T::NAMES)(value) {
            Ok(member) => Some(Self(member)),
            Err(detail) => {
                errors.add_unknown(at, detail);
                None
            }
        }
    }

    fn schema() -> RefOr<Schema> {
        <T as FromJson>::schema()
    }

    fn add_schemas(schemas: &mut Schemas) {
        T::add_schemas(schemas);
    }
}

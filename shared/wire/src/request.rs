//! One declaration of a request: its reader and its schema.

/// Declares objects of requests. Each becomes a struct that reads itself, with all errors at once, and describes
/// itself as JSON Schema, so that the two cannot differ.
///
/// ```
/// use hearback_wire::{Number, Text, from_json, request};
/// use serde_json::json;
///
/// request! {
///     /// What is searched for.
///     pub struct Search, closed {
///         /// The words.
///         "query" => query: required Text<100>,
///         /// How similar a match must be at least.
///         "min_similarity" => min_similarity: nullable Number<0, 1> = Number(0.2),
///         /// Where to look.
///         "within" => within: optional String,
///     }
/// }
///
/// let search: Search = from_json(&json!({"query": "laptops", "min_similarity": null})).unwrap();
/// assert_eq!(search.min_similarity, Number(0.2));
/// let errors = from_json::<Search>(&json!({"within": null, "limit": 3})).unwrap_err();
/// let pointers: Vec<_> = errors.iter().map(|error| error.pointer.as_str()).collect();
/// assert_eq!(pointers, ["/limit", "/query", "/within"]);
/// ```
///
/// - `closed` rejects members that are not declared, `open` ignores them. `query` declares the parameters of a query
///   ([`FromQuery`](crate::FromQuery)) and ignores others.
/// - A `required` member must be present; an `optional` one may be left out; a `nullable` one may be left out or be
///   `null`; for a `changed` one, the two differ ([`Change`](crate::Change)). A `group` is an object that may be left
///   out with all its members: then it is read as an empty one.
/// - `= value` is the default of an optional or nullable member.
/// - `struct Name as "SchemaName"` gives the schema another name; `example { … }` after the members an example.
#[macro_export]
macro_rules! request {
    ($(
        $(#[doc = $about:literal])+
        $vis:vis struct $name:ident $(as $schema:literal)?, $others:ident {
            $(
                $(#[doc = $doc:literal])+
                $member:literal => $field:ident: $presence:ident $type:ty $(= $default:expr)?
            ),+ $(,)?
        }
        $(example $example:tt)*
    )+) => {$(
        $(#[doc = $about])+
        #[derive(Debug, Clone, PartialEq)]
        $vis struct $name {
            $(
                $(#[doc = $doc])+
                pub $field: $crate::member!(type $presence $type $(= $default)?),
            )+
        }

        impl $name {
            /// The names of its members.
            #[allow(dead_code, reason = "not every object is read from a query")]
            pub const MEMBERS: &'static [&'static str] = &[$($member),+];
        }

        impl $crate::FromJson for $name {
            fn read(
                value: &$crate::__private::Value,
                at: $crate::Pointer<'_>,
                errors: &mut $crate::Errors,
            ) -> Option<Self> {
                let object = $crate::Members::of(value, at, errors)?;
                $crate::member!(others $others object Self::MEMBERS, errors);
                $(
                    let $field = $crate::member!(read $presence $type, $member, object, errors $(= $default)?);
                )+
                Some(Self { $($field: $field?),+ })
            }

            fn schema() -> $crate::__private::RefOr<$crate::__private::Schema> {
                $crate::__private::Ref::from_schema_name(<Self as $crate::__private::ToSchema>::name()).into()
            }

            fn add_schemas(schemas: &mut $crate::Schemas) {
                let name = <Self as $crate::__private::ToSchema>::name().into_owned();
                if schemas.iter().all(|(known, _)| *known != name) {
                    schemas.push((name, <Self as $crate::__private::PartialSchema>::schema()));
                    <Self as $crate::__private::ToSchema>::schemas(schemas);
                }
            }
        }

        $crate::query!($others $name {
            $($presence $member [$($doc),+] $type $(= $default)?),+
        });

        impl $crate::__private::PartialSchema for $name {
            fn schema() -> $crate::__private::RefOr<$crate::__private::Schema> {
                let object = $crate::__private::ObjectBuilder::new()
                    .description(Some($crate::describe::text(&[$($about),+])));
                $(
                    let object = object.property(
                        $member,
                        $crate::describe::member(
                            $crate::member!(schema $presence $type),
                            &[$($doc),+],
                            $crate::member!(default $type $(= $default)?),
                        ),
                    );
                    let object = $crate::member!(require $presence object, $member);
                )+
                let examples: &[$crate::__private::Value] = &[$($crate::__private::json!($example)),*];
                let object = object.examples(examples.iter().cloned());
                $crate::member!(additional $others object).into()
            }
        }

        impl $crate::__private::ToSchema for $name {
            fn name() -> std::borrow::Cow<'static, str> {
                $crate::member!(name $name $($schema)?).into()
            }

            fn schemas(schemas: &mut $crate::Schemas) {
                $(<$type as $crate::FromJson>::add_schemas(schemas);)+
            }
        }
    )+};
}

/// The additional implementations for a request that is read from a query.
#[doc(hidden)]
#[macro_export]
macro_rules! query {
    (query $name:ident {
        $($presence:ident $member:literal [$($doc:literal),+] $type:ty $(= $default:expr)?),+
    }) => {
        impl $crate::FromQuery for $name {
            fn value_of(parameter: &str, text: &str) -> Option<$crate::__private::Value> {
                match parameter {
                    $($member => Some(<$type as $crate::FromJson>::of_query(text)),)+
                    _ => None,
                }
            }
        }

        impl $crate::__private::IntoParams for $name {
            fn into_params(
                _: impl Fn() -> Option<$crate::__private::ParameterIn>,
            ) -> Vec<$crate::__private::Parameter> {
                vec![$($crate::describe::query_parameter::<$type>(
                    $member,
                    &[$($doc),+],
                    $crate::member!(default $type $(= $default)?),
                    $crate::member!(is_required $presence),
                )),+]
            }
        }
    };
    ($others:ident $name:ident $members:tt) => {};
}

/// The parts of [`request!`] that depend on how a member is declared.
#[doc(hidden)]
#[macro_export]
macro_rules! member {
    (type required $type:ty) => { $type };
    (type changed $type:ty) => { $crate::Change<$type> };
    (type group $type:ty) => { $type };
    (type $presence:ident $type:ty = $default:expr) => { $type };
    (type $presence:ident $type:ty) => { Option<$type> };

    (others closed $object:ident $known:expr, $errors:ident) => { $object.only($known, $errors) };
    (others $others:ident $object:ident $known:expr, $errors:ident) => {};

    (read required $type:ty, $member:literal, $object:ident, $errors:ident) => {
        $object.required::<$type>($member, $errors)
    };
    (read group $type:ty, $member:literal, $object:ident, $errors:ident) => {
        $object.group::<$type>($member, $errors)
    };
    (read changed $type:ty, $member:literal, $object:ident, $errors:ident) => {
        $object.changed::<$type>($member, $errors)
    };
    (read optional $type:ty, $member:literal, $object:ident, $errors:ident) => {
        $object.optional::<$type>($member, $errors)
    };
    (read nullable $type:ty, $member:literal, $object:ident, $errors:ident) => {
        $object.nullable::<$type>($member, $errors)
    };
    (read optional $type:ty, $member:literal, $object:ident, $errors:ident = $default:expr) => {
        $object.optional::<$type>($member, $errors).map(|given| given.unwrap_or($default))
    };
    (read nullable $type:ty, $member:literal, $object:ident, $errors:ident = $default:expr) => {
        $object.nullable::<$type>($member, $errors).map(|given| given.unwrap_or($default))
    };

    (schema required $type:ty) => { <$type as $crate::FromJson>::schema() };
    (schema group $type:ty) => { <$type as $crate::FromJson>::schema() };
    (schema optional $type:ty) => { <$type as $crate::FromJson>::schema() };
    (schema $presence:ident $type:ty) => { <Option<$type> as $crate::FromJson>::schema() };

    (default $type:ty) => { None };
    (default $type:ty = $default:expr) => {
        Some(<$type as $crate::describe::Default>::as_json(&$default))
    };

    (is_required required) => { true };
    (is_required $presence:ident) => { false };

    (require required $object:ident, $member:literal) => { $object.required($member) };
    (require $presence:ident $object:ident, $member:literal) => { $object };

    (additional closed $object:ident) => {
        $object.additional_properties(Some($crate::__private::AdditionalProperties::FreeForm(false)))
    };
    (additional $others:ident $object:ident) => { $object };

    (name $name:ident) => { stringify!($name) };
    (name $name:ident $schema:literal) => { $schema };
}

//! Identifiers in paths and queries.

use std::collections::BTreeMap;

use axum::extract::{FromRequestParts, Path, Query};
use axum::http::request::Parts;
use hearback_domain::identifier::NotAnIdentifier;
use hearback_domain::parse::FieldError;

use crate::Problem;

/// The single identifier of a path, for example the user of `/v1/preferences/{userId}`.
#[derive(Debug, Clone)]
pub struct PathId<T>(pub T);

impl<T, S> FromRequestParts<S> for PathId<T>
where
    T: TryFrom<String, Error = NotAnIdentifier>,
    S: Send + Sync,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        // A path that does not decode names nothing.
        let Path(path) = Path::<BTreeMap<String, String>>::from_request_parts(parts, state)
            .await
            .map_err(|_| Problem::not_found())?;
        let (name, value) = path.into_iter().next().ok_or_else(Problem::not_found)?;
        T::try_from(value)
            .map(Self)
            .map_err(|error| invalid(&name, error.to_string()))
    }
}

/// The parameters of a query, read one by one.
#[derive(Debug, Clone)]
pub struct Params(BTreeMap<String, String>);

impl<S: Send + Sync> FromRequestParts<S> for Params {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Query(params) = Query::from_request_parts(parts, state)
            .await
            .map_err(|_| invalid("", "the query cannot be read"))?;
        Ok(Self(params))
    }
}

impl Params {
    /// A parameter that may be left out.
    pub fn optional<T>(&self, name: &str) -> Result<Option<T>, Problem>
    where
        T: TryFrom<String, Error = NotAnIdentifier>,
    {
        self.0
            .get(name)
            .map(|value| {
                T::try_from(value.clone()).map_err(|error| invalid(name, error.to_string()))
            })
            .transpose()
    }

    /// A whole number from `low` to `high` that may be left out.
    pub fn number(&self, name: &str, low: u64, high: u64) -> Result<Option<u64>, Problem> {
        let Some(text) = self.0.get(name) else {
            return Ok(None);
        };
        text.parse()
            .ok()
            .filter(|number| (low..=high).contains(number))
            .map(Some)
            .ok_or_else(|| invalid(name, format!("must be an integer from {low} to {high}")))
    }
}

fn invalid(name: &str, detail: impl Into<String>) -> Problem {
    Problem::invalid(vec![FieldError {
        pointer: format!("/{name}"),
        detail: detail.into(),
    }])
}

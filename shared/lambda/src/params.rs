//! Identifiers in paths and queries.

use std::collections::BTreeMap;

use axum::extract::{FromRequestParts, Path, Query};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use hearback_domain::caller::Caller as DomainCaller;
use hearback_domain::identifier::{NotAnIdentifier, ProjectId, TenantId};
use hearback_domain::parse::FieldError;
use hearback_domain::turn::{ConversationRef, TurnRef};

use crate::Problem;
use crate::caller::Caller;

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

/// The conversation of a path below `/conversations/{tenant}/{project}`, which the token holds.
#[derive(Debug, Clone)]
pub struct InConversation {
    /// Where it is.
    pub at: ConversationRef,
    /// Who calls.
    pub caller: DomainCaller,
}

/// The turn of such a path.
#[derive(Debug, Clone)]
pub struct InTurn {
    /// Where it is.
    pub at: TurnRef,
    /// Who calls.
    pub caller: DomainCaller,
}

/// The project of such a path.
#[derive(Debug, Clone)]
pub struct InProject {
    /// Its tenant.
    pub tenant: TenantId,
    /// The project.
    pub project: ProjectId,
    /// Who calls.
    pub caller: DomainCaller,
}

/// The parameters of a path by their names.
struct Named(BTreeMap<String, String>, Vec<FieldError>);

impl Named {
    async fn read<S: Send + Sync>(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        // A path that does not decode names nothing.
        let Path(path) = Path::<BTreeMap<String, String>>::from_request_parts(parts, state)
            .await
            .map_err(|_| Problem::not_found())?;
        Ok(Self(path, Vec::new()))
    }

    fn take<T: TryFrom<String, Error = NotAnIdentifier>>(&mut self, name: &str) -> Option<T> {
        let value = self.0.remove(name).unwrap_or_default();
        T::try_from(value)
            .map_err(|error| {
                self.1.push(FieldError {
                    pointer: format!("/{name}"),
                    detail: error.to_string(),
                });
            })
            .ok()
    }
}

impl<S: Send + Sync> FromRequestParts<S> for InProject {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let Caller(caller) = Caller::from_request_parts(parts, state)
            .await
            .map_err(IntoResponse::into_response)?;
        let mut path = Named::read(parts, state)
            .await
            .map_err(IntoResponse::into_response)?;
        let (tenant, project) = (path.take("tenant"), path.take("project"));
        let (Some(tenant), Some(project)) = (tenant, project) else {
            return Err(Problem::invalid(path.1).into_response());
        };
        // Decided here, so that no handler can read anything before.
        caller
            .enter(&tenant, &project)
            .map_err(|forbidden| Problem::from(forbidden).into_response())?;
        Ok(Self {
            tenant,
            project,
            caller,
        })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for InConversation {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let within = InProject::from_request_parts(parts, state).await?;
        let mut path = Named::read(parts, state)
            .await
            .map_err(IntoResponse::into_response)?;
        let Some(conversation) = path.take("conversation_id") else {
            return Err(Problem::invalid(path.1).into_response());
        };
        Ok(Self {
            at: ConversationRef {
                tenant: within.tenant,
                project: within.project,
                conversation,
            },
            caller: within.caller,
        })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for InTurn {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let InConversation { at, caller } =
            InConversation::from_request_parts(parts, state).await?;
        let mut path = Named::read(parts, state)
            .await
            .map_err(IntoResponse::into_response)?;
        let Some(turn) = path.take("turn_id") else {
            return Err(Problem::invalid(path.1).into_response());
        };
        Ok(Self {
            at: TurnRef { within: at, turn },
            caller,
        })
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

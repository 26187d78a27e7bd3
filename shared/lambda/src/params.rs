//! Identifiers in paths and queries.

use std::collections::BTreeMap;

use axum::extract::{FromRequestParts, Path, Query};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use hearback_domain::caller::Caller as DomainCaller;
use hearback_domain::identifier::{NotAnIdentifier, ProjectId, TenantId};
use hearback_domain::parse::{FieldError, date_time, one_of, to_instant};
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
        let path = decoded(parts, state).await?;
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

async fn decoded<S: Send + Sync>(
    parts: &mut Parts,
    state: &S,
) -> Result<BTreeMap<String, String>, Problem> {
    let path = Path::from_request_parts(parts, state).await;
    path.map(|Path(path)| path)
        .map_err(|_| invalid("", "the path cannot be read"))
}

/// The parameters of a path by their names.
struct Named(BTreeMap<String, String>, Vec<FieldError>);

impl Named {
    async fn read<S: Send + Sync>(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Ok(Self(decoded(parts, state).await?, Vec::new()))
    }

    fn take<T: TryFrom<String, Error = NotAnIdentifier>>(&mut self, name: &str) -> Option<T> {
        let value = self.0.remove(name).unwrap_or_default();
        T::try_from(value)
            .map_err(|error| {
                self.1.push(self::error(name, error.to_string()));
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

/// The parameters of a query, read one by one; what is wrong with them is told together.
#[derive(Debug, Clone)]
pub struct Params {
    given: BTreeMap<String, String>,
    errors: Vec<FieldError>,
}

impl<S: Send + Sync> FromRequestParts<S> for Params {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Query(given) = Query::from_request_parts(parts, state)
            .await
            .map_err(|_| invalid("", "the query cannot be read"))?;
        Ok(Self {
            given,
            errors: Vec::new(),
        })
    }
}

impl Params {
    /// A parameter that may be left out.
    pub fn optional<T>(&mut self, name: &str) -> Option<T>
    where
        T: TryFrom<String, Error = NotAnIdentifier>,
    {
        self.read(name, |text| {
            T::try_from(text.to_owned()).map_err(|error| error.to_string())
        })
    }

    /// The caller in whose view the request is answered: with `user_id` that user. Checks what was
    /// read so far, too.
    pub fn on_behalf(&mut self, caller: DomainCaller) -> Result<DomainCaller, Problem> {
        let user = self.optional("user_id");
        self.check()?;
        Ok(caller.on_behalf_of(user)?)
    }

    /// A whole number from `low` to `high` that may be left out.
    pub fn number(&mut self, name: &str, low: u64, high: u64) -> Option<u64> {
        self.read(name, |text| {
            let number = text.parse().ok();
            number
                .filter(|number| (low..=high).contains(number))
                .ok_or_else(|| format!("must be an integer from {low} to {high}"))
        })
    }

    /// One value of a closed set, by its name on the wire, that may be left out.
    pub fn one_of<T: Copy>(
        &mut self,
        name: &str,
        names: &'static [(&'static str, T)],
    ) -> Option<T> {
        self.read(name, |text| one_of(names)(&text.into()))
    }

    /// An RFC 3339 time that may be left out.
    pub fn time(&mut self, name: &str) -> Option<DateTime<Utc>> {
        self.read(name, |text| {
            let time = date_time(&text.into()).map(to_instant);
            time.map_err(ToOwned::to_owned)
        })
    }

    /// A text of any kind that may be left out.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.given.get(name).map(String::as_str)
    }

    /// Notes what must be there and is not.
    pub fn require(&mut self, names: &[&str]) {
        for name in names {
            if !self.given.contains_key(*name) {
                self.note(name, "is required");
            }
        }
    }

    /// Whether nothing was wrong with what was read.
    pub fn check(&self) -> Result<(), Problem> {
        if self.errors.is_empty() {
            Ok(())
        } else {
            Err(self.problem())
        }
    }

    /// What was wrong.
    #[must_use]
    pub fn problem(&self) -> Problem {
        Problem::invalid(self.errors.clone())
    }

    fn read<T>(&mut self, name: &str, read: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        let value = read(self.given.get(name)?);
        value.map_err(|detail| self.note(name, detail)).ok()
    }

    fn note(&mut self, name: &str, detail: impl Into<String>) {
        self.errors.push(error(name, detail));
    }
}

fn error(name: &str, detail: impl Into<String>) -> FieldError {
    FieldError {
        pointer: format!("/{name}"),
        detail: detail.into(),
    }
}

fn invalid(name: &str, detail: impl Into<String>) -> Problem {
    Problem::invalid(vec![error(name, detail)])
}

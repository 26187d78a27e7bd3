//! Identifiers in paths and queries.

use std::collections::BTreeMap;

use axum::extract::{FromRequestParts, Path, Query};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use hearback_domain::identity::caller::Caller;
use hearback_domain::identity::identifier::{
    ConversationId, InvalidIdentifier, ProjectId, TenantId, TurnId, UserId, WebhookName,
};
use hearback_domain::turns::turn::{ConversationRef, TurnRef};
use hearback_wire::describe::path_parameter;
use hearback_wire::{FieldError, FromQuery, from_query};
use utoipa::IntoParams;
use utoipa::openapi::path::{Parameter, ParameterIn};

use crate::Problem;
use crate::caller::VerifiedCaller;

/// The only identifier in a path, for example the user in `/v1/preferences/{userId}`.
#[derive(Debug, Clone)]
pub struct PathId<T>(pub T);

impl<T, S> FromRequestParts<S> for PathId<T>
where
    T: TryFrom<String, Error = InvalidIdentifier>,
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

/// The conversation of a path under `/conversations/{tenant}/{project}`, to which the token gives
/// access.
#[derive(Debug, Clone)]
pub struct InConversation {
    /// The conversation.
    pub at: ConversationRef,
    /// The caller.
    pub caller: Caller,
}

/// The turn of such a path.
#[derive(Debug, Clone)]
pub struct InTurn {
    /// The turn.
    pub at: TurnRef,
    /// The caller.
    pub caller: Caller,
}

/// The project of such a path.
#[derive(Debug, Clone)]
pub struct InProject {
    /// Its tenant.
    pub tenant: TenantId,
    /// The project.
    pub project: ProjectId,
    /// The caller.
    pub caller: Caller,
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
struct PathParams(BTreeMap<String, String>, Vec<FieldError>);

impl PathParams {
    async fn read<S: Send + Sync>(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Ok(Self(decoded(parts, state).await?, Vec::new()))
    }

    fn take<T: TryFrom<String, Error = InvalidIdentifier>>(&mut self, name: &str) -> Option<T> {
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
        let VerifiedCaller(caller) = VerifiedCaller::from_request_parts(parts, state)
            .await
            .map_err(IntoResponse::into_response)?;
        let mut path = PathParams::read(parts, state)
            .await
            .map_err(IntoResponse::into_response)?;
        let (tenant, project) = (path.take("tenant"), path.take("project"));
        let (Some(tenant), Some(project)) = (tenant, project) else {
            return Err(Problem::invalid(path.1).into_response());
        };
        // Checked here, so that no handler reads data before the check.
        caller
            .require_project(&tenant, &project)
            .map_err(|forbidden| Problem::from(forbidden).into_response())?;
        Ok(Self {
            tenant,
            project,
            caller,
        })
    }
}

/// The project of a path under `/v1/projects/{projectId}`, in the token's tenant.
#[derive(Debug, Clone)]
pub struct OfProject {
    /// The project.
    pub project: ProjectId,
    /// The caller.
    pub caller: Caller,
}

impl<S: Send + Sync> FromRequestParts<S> for OfProject {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let VerifiedCaller(caller) = VerifiedCaller::from_request_parts(parts, state)
            .await
            .map_err(IntoResponse::into_response)?;
        let PathId(project) = PathId::<ProjectId>::from_request_parts(parts, state)
            .await
            .map_err(IntoResponse::into_response)?;
        // Checked here, so that no handler reads data before the check.
        caller
            .require_project(&caller.tenant, &project)
            .map_err(|forbidden| Problem::from(forbidden).into_response())?;
        Ok(Self { project, caller })
    }
}

impl IntoParams for OfProject {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        vec![path_parameter::<ProjectId>(
            "projectId",
            "A project of the token.",
        )]
    }
}

impl<S: Send + Sync> FromRequestParts<S> for InConversation {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let within = InProject::from_request_parts(parts, state).await?;
        let mut path = PathParams::read(parts, state)
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
        let mut path = PathParams::read(parts, state)
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

/// The parameters of a query, whose errors are reported together.
#[derive(Debug, Clone)]
pub struct Parameters<T>(pub T);

impl<S: Send + Sync, T: FromQuery> FromRequestParts<S> for Parameters<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Query(parameters) = Query::from_request_parts(parts, state)
            .await
            .map_err(|_| invalid("", "the query cannot be read"))?;
        from_query(&parameters).map(Self).map_err(Problem::invalid)
    }
}

impl IntoParams for InProject {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        vec![
            path_parameter::<TenantId>("tenant", "The token's tenant."),
            path_parameter::<ProjectId>("project", "A project of the token."),
        ]
    }
}

impl IntoParams for InConversation {
    fn into_params(within: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let mut parameters = InProject::into_params(within);
        parameters.push(path_parameter::<ConversationId>(
            "conversation_id",
            "The conversation.",
        ));
        parameters
    }
}

impl IntoParams for InTurn {
    fn into_params(within: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let mut parameters = InConversation::into_params(within);
        parameters.push(path_parameter::<TurnId>("turn_id", "The turn."));
        parameters
    }
}

/// The user of a path.
#[derive(Debug)]
pub struct OfUser;

impl IntoParams for OfUser {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        vec![path_parameter::<UserId>("userId", "The user.")]
    }
}

/// The webhook of a path.
#[derive(Debug)]
pub struct OfWebhook;

impl IntoParams for OfWebhook {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        vec![path_parameter::<WebhookName>("name", "The webhook.")]
    }
}

fn invalid(name: &str, detail: impl Into<String>) -> Problem {
    Problem::invalid_member(format!("/{name}"), detail)
}

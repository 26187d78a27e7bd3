//! The request to erase somebody's data, and what became of it.

use axum::Json;
use axum::extract::{FromRef, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, TimeDelta, Utc};
use hearback_domain::erasure::{Erasure, Removed};
use hearback_domain::identifier::UserId;
use hearback_lambda::caller::Caller;
use hearback_lambda::event_path::segment;
use hearback_lambda::params::PathId;
use hearback_lambda::problem::ProblemDocument;
use hearback_lambda::routes::Routes;
use hearback_lambda::{App, BadSetting, FromEnv, Problem, routes};
use hearback_storage::erasures::Owner;
use hearback_storage::preferences::Freshness;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::queue::{Erasures, Task};

/// When an erasure is open for so long, its message may be lost, and another is sent.
const FORGOTTEN: TimeDelta = TimeDelta::days(1);

/// What the handlers work with: the table, and the queue.
#[derive(Debug, Clone)]
pub struct Requests {
    app: App,
    erasures: Erasures,
}

/// The erasure of somebody's data.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ErasureDocument {
    /// Its name.
    erasure_id: Uuid,
    /// Whose data.
    user_id: String,
    /// How far it is.
    status: Status,
    /// When it was asked for.
    requested_at: DateTime<Utc>,
    /// When it was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    finished_at: Option<DateTime<Utc>>,
    /// What was removed so far.
    removed: Removed,
}

/// How far an erasure is.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = ErasureStatus)]
enum Status {
    /// Something may be there still.
    Pending,
    /// Nothing is there any more of what was received until `finishedAt`.
    Done,
}

/// Every route of this function.
pub fn routes() -> Routes<Requests> {
    routes!(Requests => erase, erasure)
}

/// Erase a user's data
///
/// Everything that was received of the user until the erasure is done is removed: events and what came
/// of them, turns and their logs, reactions and their mirrors, signals, preferences, rows of exports.
/// Until it is done, what the user writes is refused or removed too. Asked for again while it is open, it
/// is the same.
#[utoipa::path(
    delete,
    path = "/v1/users/{userId}/data",
    tag = "users",
    params(("userId" = String, Path, description = "The user")),
    responses(
        (status = 202, description = "It will be erased; `Location` tells how far it is", body = ErasureDocument),
        (status = 400, description = "The user is no identifier", body = ProblemDocument),
        (status = 401, description = "No valid token", body = ProblemDocument),
        (status = 403, description = "Another user's, without `feedback:admin`", body = ProblemDocument),
        (status = 409, description = "The user's pseudonym is being erased by itself", body = ProblemDocument),
        (status = 503, description = "The store could not be reached; try again", body = ProblemDocument),
    ),
    security(("bearer" = []))
)]
async fn erase(
    State(requests): State<Requests>,
    Caller(caller): Caller,
    PathId(user): PathId<UserId>,
) -> Result<Response, Problem> {
    caller.administer(&user)?;
    let tenant = &caller.tenant;
    let open = requests.open((tenant, &user)).await?;
    let document = ErasureDocument::of(&user, &open);
    let location = segment(user.as_str());
    let location = format!("/v1/users/{location}/data/erasure");
    let headers = [(header::LOCATION, location)];
    Ok((StatusCode::ACCEPTED, headers, Json(document)).into_response())
}

/// How far an erasure is
///
/// What was removed so far. It is kept for 90 days after it was done.
#[utoipa::path(
    get,
    path = "/v1/users/{userId}/data/erasure",
    tag = "users",
    params(("userId" = String, Path, description = "The user")),
    responses(
        (status = 200, description = "How far it is", body = ErasureDocument),
        (status = 400, description = "The user is no identifier", body = ProblemDocument),
        (status = 401, description = "No valid token", body = ProblemDocument),
        (status = 403, description = "Another user's, without `feedback:admin`", body = ProblemDocument),
        (status = 404, description = "None was asked for", body = ProblemDocument),
        (status = 503, description = "The store could not be reached; try again", body = ProblemDocument),
    ),
    security(("bearer" = []))
)]
async fn erasure(
    State(requests): State<Requests>,
    Caller(caller): Caller,
    PathId(user): PathId<UserId>,
) -> Result<Json<ErasureDocument>, Problem> {
    caller.administer(&user)?;
    let tenant = &caller.tenant;
    let pseudonym = requests.pseudonym((tenant, &user))?;
    let standing = requests.standing((tenant, &user), &pseudonym).await?;
    let standing = standing.ok_or_else(Problem::not_found)?;
    Ok(Json(ErasureDocument::of(&user, &standing)))
}

impl Requests {
    /// Requests on this table, for this queue.
    #[must_use]
    pub fn new(app: App, erasures: Erasures) -> Self {
        Self { app, erasures }
    }

    /// Under which what a user sent to be anonymous is kept. Nobody else can tell whose it is.
    fn pseudonym(&self, (tenant, user): Owner<'_>) -> Result<UserId, Problem> {
        let pseudonym = self.app.pseudonyms.user(tenant, user);
        pseudonym.map_err(|_| Problem::of_status(StatusCode::INTERNAL_SERVER_ERROR))
    }

    /// The erasure that was asked for last, if one was, with what was removed under either name.
    async fn standing(
        &self,
        owner: Owner<'_>,
        pseudonym: &UserId,
    ) -> Result<Option<Erasure>, Problem> {
        let store = &self.app.store;
        let Some(mut own) = store.erasure(owner, Freshness::Latest).await? else {
            return Ok(None);
        };
        let hidden = (owner.0, own.pseudonym.as_ref().unwrap_or(pseudonym));
        let hidden = store.erasure(hidden, Freshness::Latest).await?;
        if let Some(hidden) = hidden.filter(|hidden| hidden.id == own.id) {
            own.removed = own.removed.and(hidden.removed);
        }
        Ok(Some(own))
    }

    /// Opens an erasure, or answers the one that is open.
    async fn open(&self, owner: Owner<'_>) -> Result<Erasure, Problem> {
        let now = self.app.clock.now();
        let pseudonym = self.pseudonym(owner)?;
        let open = self.standing(owner, &pseudonym).await?;
        let open = open.filter(Erasure::is_open);
        // What is kept under this name as somebody's pseudonym is erased with what is theirs.
        if let Some(open) = &open
            && (now < open.requested_at + FORGOTTEN || open.pseudonym.is_none())
        {
            return Ok(open.clone());
        }
        let id = open.as_ref().map_or_else(Uuid::new_v4, |open| open.id);
        // The message first: an erasure that is open and that nobody works on would lock the user out.
        let (tenant, user) = owner;
        let task = Task::new(tenant.clone(), user.clone(), id);
        let sent = self.erasures.send(&task, self.erasures.settle()).await;
        sent.map_err(|error| {
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable")
                .detail("The request could not be stored. Try again.")
                .cause(error.to_string())
        })?;
        if let Some(open) = open {
            return Ok(open);
        }
        let opened = self.app.store.open_erasure(owner, &pseudonym, id, now);
        if let Some(opened) = opened.await? {
            return Ok(opened);
        }
        // By somebody else at the same moment, or by this call, whose first answer was lost.
        let open = self.standing(owner, &pseudonym).await?;
        let open = open.filter(Erasure::is_open);
        open.ok_or_else(|| {
            Problem::new(StatusCode::CONFLICT, "erasure_in_progress").detail(
                "The user's pseudonym is being erased by itself. Try again when that is done.",
            )
        })
    }
}

impl ErasureDocument {
    fn of(user: &UserId, erasure: &Erasure) -> Self {
        Self {
            erasure_id: erasure.id,
            user_id: user.to_string(),
            status: if erasure.is_open() {
                Status::Pending
            } else {
                Status::Done
            },
            requested_at: erasure.requested_at,
            finished_at: erasure.until,
            removed: erasure.removed,
        }
    }
}

impl FromEnv for Requests {
    fn from_env() -> Result<Self, BadSetting> {
        Ok(Self::new(App::from_env()?, Erasures::from_env()?))
    }
}

impl FromRef<Requests> for App {
    fn from_ref(requests: &Requests) -> Self {
        requests.app.clone()
    }
}

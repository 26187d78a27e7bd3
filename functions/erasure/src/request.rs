//! The request to erase a person's data, and its progress.

use axum::Json;
use axum::extract::{FromRef, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, TimeDelta, Utc};
use hearback_domain::export::erasure::{Erasure, RemovedCounts};
use hearback_domain::identity::identifier::{UserId, UserIdOrPseudonym, UserRef};
use hearback_lambda::caller::VerifiedCaller;
use hearback_lambda::event_path::segment;
use hearback_lambda::params::{OfUser, PathId};
use hearback_lambda::problem::ProblemDocument;
use hearback_lambda::rejections::{ForbiddenRejection, Rejections};
use hearback_lambda::routes::Routes;
use hearback_lambda::{App, BadSetting, FromEnv, Problem, routes};
use hearback_storage::preferences::Freshness;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::queue::{Erasures, Task};

/// After this time the message of an open erasure may be lost, and a repeated request sends another.
const RESEND_AFTER: TimeDelta = TimeDelta::days(1);

/// The state of the handlers: the table and the queue.
#[derive(Debug, Clone)]
pub struct Requests {
    app: App,
    erasures: Erasures,
}

/// The erasure of a person's data.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ErasureDocument {
    /// The id of the erasure.
    erasure_id: Uuid,
    /// The user whose data is erased.
    user_id: String,
    /// The status.
    status: Status,
    /// When it was requested.
    requested_at: DateTime<Utc>,
    /// When it was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    finished_at: Option<DateTime<Utc>>,
    /// How many items are removed so far.
    removed: RemovedCounts,
}

/// The status of an erasure.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = ErasureStatus)]
enum Status {
    /// Data may still exist.
    Pending,
    /// Everything that was received until `finishedAt` is removed.
    Done,
}

/// Every route of this function.
pub fn routes() -> Routes<Requests> {
    routes!(Requests => erase_user_data, get_erasure)
}

/// Erase a user's data
///
/// Removes everything that was received from the user until the erasure is done: events and their outcomes, turns and
/// their logs, reactions and their mirrors, signals, preferences, and rows of exports. Until then, new data of the user
/// is rejected or removed. A repeated request while the erasure is open has no further effect.
#[utoipa::path(
    delete,
    path = "/v1/users/{userId}/data",
    tag = "users",
    params(OfUser),
    responses(
        (status = 202, description = "The data will be erased; `Location` has the progress", body = ErasureDocument),
        (status = 409, description = "The user's pseudonym is being erased separately", body = ProblemDocument),
        Rejections,
        ForbiddenRejection,
    ),
    security(("bearer" = []))
)]
async fn erase_user_data(
    State(requests): State<Requests>,
    VerifiedCaller(caller): VerifiedCaller,
    PathId(UserIdOrPseudonym(user)): PathId<UserIdOrPseudonym>,
) -> Result<Response, Problem> {
    caller.require_erasure_of(&user)?;
    let owner = UserRef::new(&caller.tenant, &user);
    let open = requests.open(owner).await?;
    let document = ErasureDocument::of(&user, &open);
    let location = segment(user.as_str());
    let location = format!("/v1/users/{location}/data/erasure");
    let headers = [(header::LOCATION, location)];
    Ok((StatusCode::ACCEPTED, headers, Json(document)).into_response())
}

/// Progress of an erasure
///
/// Includes the number of items removed so far. The record is kept for 90 days after the erasure is done.
#[utoipa::path(
    get,
    path = "/v1/users/{userId}/data/erasure",
    tag = "users",
    params(OfUser),
    responses(
        (status = 200, description = "The progress", body = ErasureDocument),
        (status = 404, description = "No erasure was requested", body = ProblemDocument),
        Rejections,
        ForbiddenRejection,
    ),
    security(("bearer" = []))
)]
async fn get_erasure(
    State(requests): State<Requests>,
    VerifiedCaller(caller): VerifiedCaller,
    PathId(UserIdOrPseudonym(user)): PathId<UserIdOrPseudonym>,
) -> Result<Json<ErasureDocument>, Problem> {
    caller.require_erasure_of(&user)?;
    let owner = UserRef::new(&caller.tenant, &user);
    let pseudonym = requests.pseudonym(owner)?;
    let latest = requests.latest(owner, &pseudonym).await?;
    let latest = latest.ok_or_else(Problem::not_found)?;
    Ok(Json(ErasureDocument::of(&user, &latest)))
}

impl Requests {
    /// Requests on this table, for this queue.
    #[must_use]
    pub fn new(app: App, erasures: Erasures) -> Self {
        Self { app, erasures }
    }

    /// The pseudonym under which a user's anonymous events are stored.
    fn pseudonym(&self, UserRef { tenant, user }: UserRef<'_>) -> Result<UserId, Problem> {
        let pseudonym = self.app.pseudonyms.user(tenant, user);
        pseudonym.map_err(|_| Problem::of_status(StatusCode::INTERNAL_SERVER_ERROR))
    }

    /// The latest erasure of a user, with what was removed under their id and their pseudonym.
    async fn latest(
        &self,
        owner: UserRef<'_>,
        pseudonym: &UserId,
    ) -> Result<Option<Erasure>, Problem> {
        let store = &self.app.store;
        let Some(mut erasure) = store.erasure(owner, Freshness::Latest).await? else {
            return Ok(None);
        };
        let anonymous = UserRef {
            user: erasure.pseudonym.as_ref().unwrap_or(pseudonym),
            ..owner
        };
        let anonymous = store.erasure(anonymous, Freshness::Latest).await?;
        if let Some(anonymous) = anonymous.filter(|other| other.id == erasure.id) {
            erasure.removed = erasure.removed.and(anonymous.removed);
        }
        Ok(Some(erasure))
    }

    /// Opens an erasure, or returns the open one.
    async fn open(&self, owner: UserRef<'_>) -> Result<Erasure, Problem> {
        let now = self.app.clock.now();
        let pseudonym = self.pseudonym(owner)?;
        let open = self.latest(owner, &pseudonym).await?;
        // One that cannot be read is replaced.
        let open = open.filter(|erasure| erasure.is_open() && !erasure.is_unreadable());
        // An erasure without a pseudonym is that of a pseudonym. The message for its user covers it.
        if let Some(open) = &open
            && (now < open.requested_at + RESEND_AFTER || open.pseudonym.is_none())
        {
            return Ok(open.clone());
        }
        let id = open.as_ref().map_or_else(Uuid::new_v4, |open| open.id);
        // The message is sent first: an open erasure without a message would reject the user's writes forever.
        let UserRef { tenant, user } = owner;
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
        // Opened by a concurrent request, or by an earlier attempt whose response was lost.
        let open = self.latest(owner, &pseudonym).await?;
        let open = open.filter(Erasure::is_open);
        open.ok_or_else(|| {
            Problem::new(StatusCode::CONFLICT, "erasure_in_progress").detail(
                "The user's pseudonym is being erased separately. Try again when that is done.",
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

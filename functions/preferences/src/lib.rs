//! Versioned preferences: read, change, reset, list versions, and resolve for one request.
//!
//! Every change appends a version, on the condition that its number is new. So the versions are both the optimistic
//! lock and the history. Learning from feedback is not here: the signal generator (`functions/signals`) appends
//! versions too, by the rules in `shared/domain/src/learning/preferences`.
//!
//! | start with | for |
//! |---|---|
//! | `routes` and the handlers below it | a route |
//! | `lock.rs` | the expected version in a body or in `If-Match`, and conflicts |
//! | `wire.rs` | responses |

mod lock;
mod wire;

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use backon::{BackoffBuilder, ExponentialBuilder};
use hearback_domain::identity::caller::Caller;
use hearback_domain::identity::identifier::{Label, UserId, UserRef};
use hearback_domain::learning::preferences::{
    Cause, MAX_BYTES, NewestVersion, PreferenceContext, PreferencesPatch, Profile, Version, resolve,
};
use hearback_domain::text::page::{DEFAULT_LIMIT, PageLimit};
use hearback_domain::text::payload::{self, escaped_json_size};
use hearback_lambda::body::JsonBody;
use hearback_lambda::caller::VerifiedCaller;
use hearback_lambda::params::{OfUser, Parameters, PathId};
use hearback_lambda::problem::ProblemDocument;
use hearback_lambda::rejections::{BodyRejections, ForbiddenRejection, Rejections};
use hearback_lambda::routes::Routes;
use hearback_lambda::{App, Problem, routes};
use hearback_storage::Written;
use hearback_storage::preferences::{Freshness, StoredVersion, VersionRange};

use hearback_wire::{Integer, request};
use lock::{IfMatch, Tagged, conflict, expected_version};
use wire::{
    PreferencesHistory, PreferencesUpdated, PreferencesVersion, ResolvedPreferences,
    UserPreferences,
};

/// Largest change, in bytes.
pub const MAX_BODY: usize = 256 * 1024;
/// The pauses before a reset is repeated after a conflict.
const PAUSES: ExponentialBuilder = ExponentialBuilder::new()
    .with_min_delay(Duration::from_millis(10))
    .with_max_delay(Duration::from_millis(320))
    .with_max_times(19)
    .with_jitter();

/// Every route of this function.
pub fn routes() -> Routes<App> {
    routes!(App =>
        get_preferences,
        update_preferences,
        reset_preferences,
        list_preference_versions,
        resolve_preferences,
    )
}

request! {
    /// Whose preferences are read.
    struct PreferencesQuery, query {
        /// `true`: the preferences that were learned from the caller's own anonymous events, under their pseudonym.
        "anonymous" => anonymous: optional bool = false,
    }

    /// Which versions are listed.
    struct HistoryQuery, query {
        /// The maximum number of versions on the page.
        "limit" => limit: optional PageLimit = DEFAULT_LIMIT,
        /// Only versions before this one: `next` of the previous page.
        "before" => before: optional Integer<1, { i64::MAX }>,
        /// `true`: the history of what was learned from the caller's own anonymous events.
        "anonymous" => anonymous: optional bool = false,
    }

    /// What preferences are resolved for.
    struct ResolveQuery, query {
        /// The kind of artifact that will be made.
        "artifactType" => artifact_type: optional Label,
        /// The kind of task.
        "taskType" => task_type: optional Label,
        /// The project, which precedes the task type.
        "projectId" => project_id: optional Label,
        /// `true`: with what was learned from the caller's own anonymous events.
        "anonymous" => anonymous: optional bool = false,
    }
}

/// Preferences of a user
#[utoipa::path(
    get,
    path = "/v1/preferences/{userId}",
    tag = "preferences",
    params(
        OfUser,
        PreferencesQuery,
    ),
    responses(
        (status = 200, description = "The newest version, with its ETag", body = UserPreferences),
        (status = 404, description = "The user has none", body = ProblemDocument),
        Rejections,
        ForbiddenRejection,
    ),
    security(("bearer" = []))
)]
async fn get_preferences(
    State(app): State<App>,
    VerifiedCaller(caller): VerifiedCaller,
    PathId(user): PathId<UserId>,
    Parameters(PreferencesQuery { anonymous }): Parameters<PreferencesQuery>,
) -> Result<Tagged<UserPreferences>, Problem> {
    caller.act_as(&user)?;
    let id = storage_id(&app, &caller, &user, anonymous)?;
    let NewestVersion { number, version } =
        newest_of(&app, UserRef::new(&caller.tenant, &id)).await?;
    let version = version.ok_or_else(Problem::not_found)?;
    Ok(Tagged(
        number,
        UserPreferences::of(user, number, &version, anonymous),
    ))
}

/// Change preferences
///
/// A JSON merge patch (RFC 7396) to the version in the body or `If-Match`; version 0 is that of a user without
/// preferences.
#[utoipa::path(
    put,
    path = "/v1/preferences/{userId}",
    tag = "preferences",
    params(
        OfUser,
        IfMatch,
    ),
    request_body = PreferencesPatch,
    responses(
        (status = 200, description = "The new version", body = PreferencesUpdated),
        (status = 409, description = "Another version is the newest: `currentVersion`; or the user's data is being erased", body = ProblemDocument),
        BodyRejections,
        ForbiddenRejection,
    ),
    security(("bearer" = []))
)]
async fn update_preferences(
    State(app): State<App>,
    VerifiedCaller(caller): VerifiedCaller,
    PathId(user): PathId<UserId>,
    headers: HeaderMap,
    JsonBody(body): JsonBody<MAX_BODY>,
) -> Result<Tagged<PreferencesUpdated>, Problem> {
    caller.act_as(&user)?;
    let patch = PreferencesPatch::parse(&body, user.as_str()).map_err(Problem::invalid)?;
    let expected = expected_version(patch.on_version.map(Integer::to), &headers)?;
    let owner = UserRef::new(&caller.tenant, &user);
    let erasure = app.reject_during_erasure(owner);
    let (newest, erasure) = futures::join!(newest_of(&app, owner), erasure);
    erasure?;
    let newest = newest?;
    if newest.number != expected {
        return Err(conflict(expected, newest.number));
    }
    let changed = patch
        .apply(&newest.profile())
        .map_err(|too_large| Problem::too_large(MAX_BYTES, too_large.measured))?;
    let version = newest.next(changed, Cause::Update, app.clock.now());
    match app.store.put_version(owner, &version).await? {
        Written::New => Ok(PreferencesUpdated::of(user, &version)),
        Written::AlreadyExists => {
            let newest = newest_of(&app, owner).await?;
            Err(conflict(expected, newest.number))
        }
    }
}

/// Reset preferences to the defaults
///
/// Appends a version with the defaults and nothing learned; earlier versions stay in the history. `learningMode` does
/// not change. Without `If-Match` the reset is repeated after a conflict.
#[utoipa::path(
    post,
    path = "/v1/preferences/{userId}/reset",
    tag = "preferences",
    params(
        OfUser,
        IfMatch,
    ),
    responses(
        (status = 200, description = "The new version", body = PreferencesUpdated),
        (status = 404, description = "The user has none", body = ProblemDocument),
        (status = 409, description = "Another version than that of `If-Match` is the newest, or the user's data is being erased", body = ProblemDocument),
        Rejections,
        ForbiddenRejection,
    ),
    security(("bearer" = []))
)]
async fn reset_preferences(
    State(app): State<App>,
    VerifiedCaller(caller): VerifiedCaller,
    PathId(user): PathId<UserId>,
    headers: HeaderMap,
) -> Result<Tagged<PreferencesUpdated>, Problem> {
    caller.act_as(&user)?;
    let expected = lock::if_match(&headers)?;
    let owner = UserRef::new(&caller.tenant, &user);
    app.reject_during_erasure(owner).await?;
    let mut pauses = PAUSES.build();
    loop {
        let newest = newest_of(&app, owner).await?;
        let current = newest.number;
        if current == 0 {
            return Err(Problem::not_found());
        }
        if let Some(expected) = expected.filter(|expected| *expected != current) {
            return Err(conflict(expected, current));
        }
        let now = app.clock.now();
        let profile = Profile {
            preferences: newest.profile().preferences.reset(),
            ..Profile::default()
        };
        let version = newest.next(profile, Cause::Reset, now);
        match app.store.put_version(owner, &version).await? {
            Written::New => return Ok(PreferencesUpdated::of(user, &version)),
            Written::AlreadyExists => {
                let pause = pauses.next().ok_or_else(|| {
                    Problem::contended("The preferences were changed too often at once. Try again.")
                })?;
                tokio::time::sleep(pause).await;
            }
        }
    }
}

/// History of preferences
///
/// Every version that can be read, the newest first, with its cause.
#[utoipa::path(
    get,
    path = "/v1/preferences/{userId}/history",
    tag = "preferences",
    params(
        OfUser,
        HistoryQuery,
    ),
    responses(
        (status = 200, description = "A page of versions", body = PreferencesHistory),
        (status = 404, description = "The user has none", body = ProblemDocument),
        Rejections,
        ForbiddenRejection,
    ),
    security(("bearer" = []))
)]
async fn list_preference_versions(
    State(app): State<App>,
    VerifiedCaller(caller): VerifiedCaller,
    PathId(user): PathId<UserId>,
    Parameters(query): Parameters<HistoryQuery>,
) -> Result<Json<PreferencesHistory>, Problem> {
    caller.act_as(&user)?;
    let before = query.before.map(Integer::to);
    let id = storage_id(&app, &caller, &user, query.anonymous)?;
    let range = VersionRange {
        after: 0,
        before,
        limit: Some(query.limit.to()),
        freshness: Freshness::Latest,
    };
    let owner = UserRef::new(&caller.tenant, &id);
    let versions = app.store.versions(owner, range).await?;
    if versions.is_empty() && before.is_none() {
        return Err(Problem::not_found());
    }
    let own = user == caller.user;
    let entry_of = |mut version: Version| {
        if !own {
            version.cause = version.cause.redacted();
        }
        PreferencesVersion::from(version)
    };
    let (mut entries, mut next, mut bytes) = (Vec::new(), None, 0);
    for StoredVersion { number, version } in versions {
        if let Some(entry) = version.map(entry_of) {
            bytes += escaped_json_size(&entry);
            if !entries.is_empty() && bytes > payload::MAX_PAGE {
                break;
            }
            entries.push(entry);
        }
        // Versions have no gaps, so 1 is the oldest.
        next = Some(number).filter(|number| *number > 1);
    }
    Ok(Json(PreferencesHistory {
        user_id: user.to_string(),
        versions: entries,
        next,
    }))
}

/// Preferences that apply to one request
///
/// Defaults, then those of the artifact type, then of the context, then global; what the user set before what
/// was learned. `source` has the origin of each. Every user has a result, also one without preferences.
#[utoipa::path(
    get,
    path = "/v1/preferences/{userId}/resolved",
    tag = "preferences",
    params(
        OfUser,
        ResolveQuery,
    ),
    responses(
        (status = 200, description = "Every preference, with defaults", body = ResolvedPreferences),
        Rejections,
        ForbiddenRejection,
    ),
    security(("bearer" = []))
)]
async fn resolve_preferences(
    State(app): State<App>,
    VerifiedCaller(caller): VerifiedCaller,
    PathId(user): PathId<UserId>,
    Parameters(query): Parameters<ResolveQuery>,
) -> Result<Json<ResolvedPreferences>, Problem> {
    caller.act_as(&user)?;
    let id = storage_id(&app, &caller, &user, query.anonymous)?;
    let question = PreferenceContext {
        artifact_type: query.artifact_type,
        task_type: query.task_type,
        project_id: query.project_id,
    };
    let newest = newest_of(&app, UserRef::new(&caller.tenant, &id)).await?;
    Ok(Json(ResolvedPreferences {
        user_id: user.to_string(),
        preference_version: newest.number,
        resolved: resolve(&newest.profile(), &question),
    }))
}

/// The id under which preferences are stored: for those learned from anonymous events the pseudonym, which only the
/// user may read.
fn storage_id(
    app: &App,
    caller: &Caller,
    user: &UserId,
    anonymous: bool,
) -> Result<UserId, Problem> {
    if !anonymous {
        return Ok(user.clone());
    }
    if *user != caller.user {
        return Err(Problem::new(StatusCode::FORBIDDEN, "forbidden")
            .detail("Only the user's own token reads what anonymous events taught."));
    }
    let pseudonym = app.pseudonyms.user(&caller.tenant, user);
    pseudonym.map_err(|_| Problem::not_found())
}

/// The newest version of a user, read consistently.
async fn newest_of(app: &App, owner: UserRef<'_>) -> Result<NewestVersion, Problem> {
    Ok(app.store.newest_version(owner, Freshness::Latest).await?)
}

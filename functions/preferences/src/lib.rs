//! Versioned preferences: read, change, reset, look back, and resolve for one request.
//!
//! Every change appends a version under the condition that its number is new. That is the
//! optimistic lock, the history and the undo in one.

mod lock;
mod wire;

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use backon::{BackoffBuilder, ExponentialBuilder};
use hearback_domain::caller::Caller as DomainCaller;
use hearback_domain::identifier::UserId;
use hearback_domain::payload::{self, carried};
use hearback_domain::preferences::{Cause, MAX_BYTES, Patch, Profile, Question, Version, resolve};
use hearback_lambda::body::JsonBody;
use hearback_lambda::caller::Caller;
use hearback_lambda::params::{Params, PathId};
use hearback_lambda::problem::ProblemDocument;
use hearback_lambda::routes::Routes;
use hearback_lambda::{App, Problem, routes};
use hearback_storage::Written;
use hearback_storage::preferences::{Freshness, Page};

use lock::{Tagged, conflict, expected_version};
use wire::{Changed, Document, Entry, History, PreferencesPatch, ResolvedDocument};

/// Largest change, in bytes.
pub const MAX_BODY: usize = 256 * 1024;
/// Versions on a page of the history, unless the caller says otherwise.
const DEFAULT_PAGE: u64 = 100;
/// Versions on a page at most.
const MAX_PAGE: u64 = 500;
/// Greatest number of a version: that of the `int64` that the description calls it.
const MAX_VERSION: u64 = i64::MAX.unsigned_abs();
/// The pauses before a reset is tried again when others write too.
const PAUSES: ExponentialBuilder = ExponentialBuilder::new()
    .with_min_delay(Duration::from_millis(10))
    .with_max_delay(Duration::from_millis(320))
    .with_max_times(19)
    .with_jitter();

/// Every route of this function.
pub fn routes() -> Routes<App> {
    routes!(App => preferences, update, reset, history, resolved)
}

/// Preferences of a user
#[utoipa::path(
    get,
    path = "/v1/preferences/{userId}",
    tag = "preferences",
    params(
        ("userId" = String, Path, description = "The user"),
        ("anonymous" = Option<bool>, Query, description = "`true`: what was learned from the caller's own anonymous events, which lies under a pseudonym"),
    ),
    responses(
        (status = 200, description = "The newest version, with its ETag", body = Document),
        (status = 400, description = "The user is no identifier, or a parameter is out of its range", body = ProblemDocument),
        (status = 401, description = "No valid token", body = ProblemDocument),
        (status = 403, description = "Another user's", body = ProblemDocument),
        (status = 404, description = "The user has none", body = ProblemDocument),
        (status = 503, description = "The store could not be reached; try again", body = ProblemDocument),
    ),
    security(("bearer" = []))
)]
async fn preferences(
    State(app): State<App>,
    Caller(caller): Caller,
    PathId(user): PathId<UserId>,
    mut params: Params,
) -> Result<Tagged<Document>, Problem> {
    caller.act_as(&user)?;
    let anonymous = is_anonymous(&mut params);
    params.check()?;
    let name = name_of(&app, &caller, &user, anonymous)?;
    let version = newest_of(&app, &caller, &name)
        .await?
        .ok_or_else(Problem::not_found)?;
    Ok(Tagged(
        version.number,
        Document::of(user, &version, anonymous),
    ))
}

/// Change preferences
///
/// A JSON merge patch (RFC 7396) on the version that the body or `If-Match` names; version 0 is
/// that of a user who has none.
#[utoipa::path(
    put,
    path = "/v1/preferences/{userId}",
    tag = "preferences",
    params(
        ("userId" = String, Path, description = "The user"),
        ("If-Match" = Option<String>, Header, description = "The version as an ETag"),
    ),
    request_body = PreferencesPatch,
    responses(
        (status = 200, description = "The new version", body = Changed),
        (status = 400, description = "A value outside its set, or no version", body = ProblemDocument),
        (status = 401, description = "No valid token", body = ProblemDocument),
        (status = 403, description = "Another user's", body = ProblemDocument),
        (status = 409, description = "Another version is the newest: `currentVersion`; or the user's data is being erased", body = ProblemDocument),
        (status = 413, description = "The body has more than 256 KiB, or the preferences would have more than 100,000 bytes", body = ProblemDocument),
        (status = 503, description = "The store could not be reached; try again", body = ProblemDocument),
    ),
    security(("bearer" = []))
)]
async fn update(
    State(app): State<App>,
    Caller(caller): Caller,
    PathId(user): PathId<UserId>,
    headers: HeaderMap,
    JsonBody(body): JsonBody<MAX_BODY>,
) -> Result<Tagged<Changed>, Problem> {
    caller.act_as(&user)?;
    let patch = Patch::parse(&body, user.as_str()).map_err(Problem::invalid)?;
    let expected = expected_version(patch.on_version, &headers)?;
    let taken = app.refuse_while_erased(&caller.tenant, &user);
    let (newest, taken) = futures::join!(newest_of(&app, &caller, &user), taken);
    taken?;
    let newest = newest?;
    let current = newest.as_ref().map_or(0, |version| version.number);
    if current != expected {
        return Err(conflict(expected, current));
    }
    let base = newest.as_ref().map(Version::profile);
    let changed = patch
        .apply(&base.unwrap_or_default())
        .map_err(|large| Problem::too_large(MAX_BYTES, large.measured))?;
    let version = Version::after(newest.as_ref(), changed, Cause::Update, app.clock.now());
    match app
        .store
        .put_version(&caller.tenant, &user, &version)
        .await?
    {
        Written::New => Ok(Changed::of(user, &version)),
        Written::Known => {
            let newest = newest_of(&app, &caller, &user).await?;
            let current = newest.map_or(0, |version| version.number);
            Err(conflict(expected, current))
        }
    }
}

/// Reset preferences to the defaults
///
/// Appends a version with the defaults, and forgets what was learned; the versions before stay in the history.
/// `learningMode` stays as it is. Without `If-Match` it is tried again when somebody else is faster.
#[utoipa::path(
    post,
    path = "/v1/preferences/{userId}/reset",
    tag = "preferences",
    params(
        ("userId" = String, Path, description = "The user"),
        ("If-Match" = Option<String>, Header, description = "Reset only this version"),
    ),
    responses(
        (status = 200, description = "The new version", body = Changed),
        (status = 400, description = "If-Match is no ETag", body = ProblemDocument),
        (status = 401, description = "No valid token", body = ProblemDocument),
        (status = 403, description = "Another user's", body = ProblemDocument),
        (status = 404, description = "The user has none", body = ProblemDocument),
        (status = 409, description = "Another version than that of `If-Match` is the newest, or the user's data is being erased", body = ProblemDocument),
        (status = 503, description = "The store could not be reached; try again", body = ProblemDocument),
    ),
    security(("bearer" = []))
)]
async fn reset(
    State(app): State<App>,
    Caller(caller): Caller,
    PathId(user): PathId<UserId>,
    headers: HeaderMap,
) -> Result<Tagged<Changed>, Problem> {
    caller.act_as(&user)?;
    let expected = lock::if_match(&headers)?;
    app.refuse_while_erased(&caller.tenant, &user).await?;
    let mut pauses = PAUSES.build();
    loop {
        let newest = newest_of(&app, &caller, &user)
            .await?
            .ok_or_else(Problem::not_found)?;
        let current = newest.number;
        if let Some(expected) = expected.filter(|expected| *expected != current) {
            return Err(conflict(expected, current));
        }
        let now = app.clock.now();
        let profile = Profile {
            preferences: newest.preferences.reset(),
            ..Profile::default()
        };
        let version = Version::after(Some(&newest), profile, Cause::Reset, now);
        match app
            .store
            .put_version(&caller.tenant, &user, &version)
            .await?
        {
            Written::New => return Ok(Changed::of(user, &version)),
            Written::Known => {
                let pause = pauses.next().ok_or_else(|| {
                    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable")
                        .detail("The preferences were changed too often at once. Try again.")
                })?;
                tokio::time::sleep(pause).await;
            }
        }
    }
}

/// History of preferences
///
/// Every version, the newest first, with its cause.
#[utoipa::path(
    get,
    path = "/v1/preferences/{userId}/history",
    tag = "preferences",
    params(
        ("userId" = String, Path, description = "The user"),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 500, description = "Versions on a page, 1 to 500; 100 if left out"),
        ("before" = Option<u64>, Query, minimum = 1, description = "Only versions before this one: `next` of the page before"),
        ("anonymous" = Option<bool>, Query, description = "`true`: of what was learned from the caller's own anonymous events"),
    ),
    responses(
        (status = 200, description = "A page of versions", body = History),
        (status = 400, description = "A parameter out of range", body = ProblemDocument),
        (status = 401, description = "No valid token", body = ProblemDocument),
        (status = 403, description = "Another user's", body = ProblemDocument),
        (status = 404, description = "The user has none", body = ProblemDocument),
        (status = 503, description = "The store could not be reached; try again", body = ProblemDocument),
    ),
    security(("bearer" = []))
)]
async fn history(
    State(app): State<App>,
    Caller(caller): Caller,
    PathId(user): PathId<UserId>,
    mut params: Params,
) -> Result<Json<History>, Problem> {
    caller.act_as(&user)?;
    let limit = params.number("limit", 1, MAX_PAGE).unwrap_or(DEFAULT_PAGE);
    let before = params.number("before", 1, MAX_VERSION);
    let anonymous = is_anonymous(&mut params);
    params.check()?;
    let name = name_of(&app, &caller, &user, anonymous)?;
    let page = Page {
        after: 0,
        before,
        limit: i32::try_from(limit).ok(),
        freshness: Freshness::Latest,
    };
    let versions = app.store.versions(&caller.tenant, &name, page).await?;
    if versions.is_empty() && before.is_none() {
        return Err(Problem::not_found());
    }
    let own = user == caller.user;
    let seen = |mut version: Version| {
        if !own {
            version.cause = version.cause.for_others();
        }
        Entry::from(version)
    };
    let (mut entries, mut next, mut bytes) = (Vec::new(), None, 0);
    for version in versions {
        let number = version.number;
        let entry = seen(version);
        bytes += carried(&entry);
        if !entries.is_empty() && bytes > payload::MAX_PAGE {
            break;
        }
        entries.push(entry);
        // Versions have no gaps, so what is older than 1 is nothing.
        next = Some(number).filter(|number| *number > 1);
    }
    Ok(Json(History {
        user_id: user.to_string(),
        versions: entries,
        next,
    }))
}

/// Preferences that apply to one request
///
/// Defaults, then those of the artifact type, then of the context, then global; what the user set before what
/// was learned. `source` tells which it is. Answers for every user, also one who has none.
#[utoipa::path(
    get,
    path = "/v1/preferences/{userId}/resolved",
    tag = "preferences",
    params(
        ("userId" = String, Path, description = "The user"),
        ("artifactType" = Option<String>, Query, description = "Kind of artifact that will be made"),
        ("taskType" = Option<String>, Query, description = "Kind of task"),
        ("projectId" = Option<String>, Query, description = "Project; wins over the task type"),
        ("anonymous" = Option<bool>, Query, description = "`true`: by what was learned from the caller's own anonymous events"),
    ),
    responses(
        (status = 200, description = "Every preference, with defaults", body = ResolvedDocument),
        (status = 400, description = "A parameter is no identifier", body = ProblemDocument),
        (status = 401, description = "No valid token", body = ProblemDocument),
        (status = 403, description = "Another user's", body = ProblemDocument),
        (status = 503, description = "The store could not be reached; try again", body = ProblemDocument),
    ),
    security(("bearer" = []))
)]
async fn resolved(
    State(app): State<App>,
    Caller(caller): Caller,
    PathId(user): PathId<UserId>,
    mut params: Params,
) -> Result<Json<ResolvedDocument>, Problem> {
    caller.act_as(&user)?;
    let question = Question {
        artifact_type: params.optional("artifactType"),
        task_type: params.optional("taskType"),
        project_id: params.optional("projectId"),
    };
    let anonymous = is_anonymous(&mut params);
    params.check()?;
    let name = name_of(&app, &caller, &user, anonymous)?;
    let newest = newest_of(&app, &caller, &name).await?;
    let number = newest.as_ref().map_or(0, |version| version.number);
    let profile = newest.as_ref().map(Version::profile).unwrap_or_default();
    Ok(Json(ResolvedDocument {
        user_id: user.to_string(),
        preference_version: number,
        resolved: resolve(&profile, &question),
    }))
}

/// Whether the caller asks for what lies under the pseudonym.
fn is_anonymous(params: &mut Params) -> bool {
    let names = &[("true", true), ("false", false)];
    params.one_of("anonymous", names).unwrap_or_default()
}

/// The name under which a user's preferences lie: for what anonymous events taught their pseudonym, which
/// nobody but they themselves may ask for.
fn name_of(
    app: &App,
    caller: &DomainCaller,
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

/// The newest version of a user, as fresh as a condition on it needs.
async fn newest_of(
    app: &App,
    caller: &DomainCaller,
    user: &UserId,
) -> Result<Option<Version>, Problem> {
    let newest = app
        .store
        .newest_version(&caller.tenant, user, Freshness::Latest)
        .await?;
    Ok(newest)
}

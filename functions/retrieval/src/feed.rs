//! The feed: what was published, the oldest first.

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, TimeDelta, Utc};
use hearback_domain::events::event::{Channel, FeedbackType};
use hearback_domain::events::retention::{LEDGER_DAYS, Retention};
use hearback_domain::identity::caller::Caller;
use hearback_domain::identity::identifier::{ProjectId, UserId};
use hearback_domain::identity::labels::Labels;
use hearback_domain::learning::publication::Action;
use hearback_domain::text::digest::digest;
use hearback_domain::text::page::{DEFAULT_LIMIT, PageLimit};
use hearback_domain::text::payload::MAX_PAGE;
use hearback_domain::views::feed::{
    FeedFilter, FeedPosition, FeedView, InvalidEventId, SETTLED_AFTER,
};
use hearback_lambda::caller::VerifiedCaller;
use hearback_lambda::params::Parameters;
use hearback_lambda::rejections::{ForbiddenRejection, Rejections};
use hearback_lambda::routes::Routes;
use hearback_lambda::{App, Problem, WithBlobs, routes};
use hearback_storage::feed::FeedReader;
use hearback_wire::{Errors, FieldError, FromJson, FromQuery, Pointer, request};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use utoipa::openapi::path::{Parameter, ParameterIn};
use utoipa::openapi::{RefOr, Schema};

/// Begins the name of a parameter that filters by a label.
const LABEL: &str = "label.";

request! {
    /// Which events are listed.
    struct FeedQuery, query {
        /// Events after this one: an `eventId`, or the `last_event_id` of an earlier page.
        "after" => after: optional String,
        /// Events from this time on, by `publishedAt` (RFC 3339). By default 90 days ago.
        "since" => since: optional DateTime<Utc>,
        /// Events up to this time, included.
        "until" => until: optional DateTime<Utc>,
        /// Feedback on this channel.
        "channel" => channel: optional Channel,
        /// Feedback of this type. Retractions are listed whatever the type of their event.
        "type" => feedback_type: optional FeedbackType,
        /// Feedback with this outcome. Retractions are listed whatever the outcome of their event.
        "outcome" => outcome: optional Action,
        /// Feedback in this project.
        "projectId" => project: optional ProjectId,
        /// Feedback of this user. Another user requires `feedback:on-behalf`, which lists message signals only in the
        /// projects of the token, or `feedback:report`, which lists none.
        "userId" => user: optional UserId,
        /// The maximum number of events on the page.
        "limit" => limit: optional PageLimit = DEFAULT_LIMIT,
        /// `next_cursor` of the previous page.
        "cursor" => cursor: optional String,
    }
}

/// The query with its filters by label: `label.<key>=<value>`.
struct FeedRequest {
    query: FeedQuery,
    labels: Labels,
}

impl FromJson for FeedRequest {
    fn read(value: &Value, at: Pointer<'_>, errors: &mut Errors) -> Option<Self> {
        let members = value.as_object().into_iter().flatten();
        let labels = members.filter_map(|(name, value)| {
            let key = name.strip_prefix(LABEL)?;
            Some((key.to_owned(), value.clone()))
        });
        let labels = Value::Object(labels.collect());
        let mut of_labels = Errors::default();
        let labels = Labels::read(&labels, Pointer::ROOT, &mut of_labels);
        for FieldError { pointer, detail } in of_labels.into_vec() {
            errors.add(
                format!("/{LABEL}{}", pointer.trim_start_matches('/')),
                detail,
            );
        }
        let query = FeedQuery::read(value, at, errors);
        Some(Self {
            query: query?,
            labels: labels?,
        })
    }

    fn schema() -> RefOr<Schema> {
        <FeedQuery as FromJson>::schema()
    }
}

impl FromQuery for FeedRequest {
    fn value_of(parameter: &str, text: &str) -> Option<Value> {
        if parameter.starts_with(LABEL) {
            return Some(text.into());
        }
        FeedQuery::value_of(parameter, text)
    }
}

impl utoipa::IntoParams for FeedRequest {
    fn into_params(within: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        FeedQuery::into_params(within)
    }
}

pub(crate) fn routes() -> Routes<WithBlobs> {
    routes!(WithBlobs => list_events)
}

/// A page of the feed.
#[derive(Debug, Serialize, ToSchema)]
struct FeedPage {
    /// The messages as they were published, the oldest first, each with its `eventId`.
    #[schema(value_type = Vec<Object>)]
    events: Vec<Value>,
    /// Where the next page begins; `null` at the end.
    #[schema(required = true)]
    next_cursor: Option<String>,
    /// The value of `after` with which to continue later. It never points into the last 15 seconds, because some events
    /// of that time may not be listed yet. Events of that time are listed again.
    last_event_id: String,
}

/// Feedback events
///
/// Lists published events, the oldest first: `feedback.processed`, `feedback.retracted` and
/// `learning.signal.generated`. A caller sees its own events. With `feedback:report` it also sees the tenant's events
/// in the projects of the token or without a project, except other users' message signals. `label.<key>=<value>`
/// filters by a label, up to 16 times. A page may end before `limit`; the list ends where `next_cursor` is `null`. To
/// follow the feed, read again with `last_event_id` as `after`, and skip events whose `eventId` you know.
#[utoipa::path(
    get,
    path = "/v1/feedback/events",
    tag = "feedback",
    params(
        FeedRequest,
    ),
    responses(
        (status = 200, description = "A page of the feed", body = FeedPage),
        Rejections,
        ForbiddenRejection,
    ),
    security(("bearer" = []))
)]
async fn list_events(
    State(app): State<App>,
    VerifiedCaller(caller): VerifiedCaller,
    Parameters(request): Parameters<FeedRequest>,
) -> Result<Json<FeedPage>, Problem> {
    let FeedRequest { query, labels } = request;
    let pseudonym = app.pseudonyms.user(&caller.tenant, &caller.user).ok();
    let view = FeedView::of(&caller, pseudonym, query.user)?;
    if let (Some(project), FeedView::Tenant { .. }) = (&query.project, &view) {
        caller.require_project(&caller.tenant, project)?;
    }
    let filter = FeedFilter {
        channels: query.channel.into_iter().collect(),
        types: query.feedback_type.into_iter().collect(),
        outcome: query.outcome,
        project: query.project,
        labels,
        ..FeedFilter::default()
    };
    let now = app.clock.now();
    let until = query.until.unwrap_or(DateTime::<Utc>::MAX_UTC);
    let after = query.after.map(|id| FeedPosition::from_event_id(&id));
    let after = after.transpose().map_err(|invalid: InvalidEventId| {
        Problem::invalid_member("/after", invalid.to_string())
    })?;
    let given = after.max(query.since.map(FeedPosition::before));
    let fingerprint = fingerprint(&caller, &view, &filter, given, until);
    let Position {
        at: from,
        incomplete,
    } = match query.cursor {
        Some(cursor) => {
            let opened = app.cursors.open(&fingerprint, &cursor);
            opened.map_err(Problem::cursor)?
        }
        None => Position {
            at: given.unwrap_or_else(|| FeedPosition::before(days_before(now, LEDGER_DAYS))),
            incomplete: None,
        },
    };
    let reader = FeedReader {
        store: &app.store,
        tenant: &caller.tenant,
        view: &view,
        filter: &filter,
        now,
        until,
        limit: query.limit.to(),
        room: MAX_PAGE,
    };
    // Nothing is kept for longer.
    let from_kept = from.max(FeedPosition::before(days_before(now, Retention::MAX_DAYS)));
    let part = reader.read(from_kept, &BTreeSet::new()).await?;
    let complete = FeedPosition::before(now - SETTLED_AFTER);
    let examined = if part.more || !part.events.is_empty() {
        part.reached.min(complete)
    } else {
        // Also if nothing was published for a long time, so that the next page does not search that time again.
        FeedPosition::before(until.min(now - SETTLED_AFTER)).max(from.min(complete))
    };
    // A period that was incomplete when an earlier page was read must be read again: `last_event_id` stays before it.
    let incomplete = incomplete
        .into_iter()
        .chain((part.examined > complete).then_some(complete))
        .min();
    let next = Position {
        at: part.reached,
        incomplete,
    };
    Ok(Json(FeedPage {
        next_cursor: part.more.then(|| app.cursors.seal(&fingerprint, &next)),
        last_event_id: incomplete
            .map_or(examined, |incomplete| examined.min(incomplete))
            .event_id(),
        events: part
            .events
            .into_iter()
            .map(|(_, message)| message)
            .collect(),
    }))
}

/// The position of a cursor.
#[derive(Serialize, Deserialize)]
struct Position {
    at: FeedPosition,
    /// The position up to which the feed was complete, if an earlier page read beyond it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    incomplete: Option<FeedPosition>,
}

fn days_before(now: DateTime<Utc>, days: impl Into<i64>) -> DateTime<Utc> {
    now - TimeDelta::days(days.into())
}

fn fingerprint(
    caller: &Caller,
    view: &FeedView,
    filter: &FeedFilter,
    from: Option<FeedPosition>,
    until: DateTime<Utc>,
) -> [u8; 32] {
    let from = from.map(|from| from.event_id()).unwrap_or_default();
    let until = until.timestamp_micros().to_string();
    let labels = filter.labels.iter().flat_map(|(key, value)| [key, value]);
    let (channel, feedback_type) = (filter.channels.first(), filter.types.first());
    let (kind, user) = match view {
        FeedView::Own(_) => ("own", Some(&caller.user)),
        FeedView::OnBehalf { user, .. } => ("on behalf", Some(user)),
        FeedView::Tenant { user, .. } => ("tenant", user.as_ref()),
    };
    let fixed = [
        "feed",
        caller.tenant.as_str(),
        kind,
        user.map_or("", UserId::as_str),
        channel.map_or("", |channel| channel.as_str()),
        feedback_type.map_or("", |kind| kind.as_str()),
        filter.outcome.map_or("", Action::as_str),
        filter.project.as_ref().map_or("", ProjectId::as_str),
        &from,
        &until,
    ];
    digest(fixed.into_iter().chain(labels))
}

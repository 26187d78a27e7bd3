//! The feed: what was published, the oldest first.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Days, NaiveTime, TimeDelta, Utc};
use hearback_domain::events::event::{Channel, FeedbackType};
use hearback_domain::events::retention::{LEDGER_DAYS, Retention};
use hearback_domain::identity::caller::{Caller, Forbidden, Scope};
use hearback_domain::identity::identifier::{ProjectId, TenantId, UserId, UserRef};
use hearback_domain::identity::labels::Labels;
use hearback_domain::learning::publication::Action;
use hearback_domain::text::digest::digest;
use hearback_domain::text::page::{DEFAULT_LIMIT, PageLimit};
use hearback_domain::text::payload::{MAX_PAGE, escaped_json_size};
use hearback_domain::views::feed::{
    FeedEntry, FeedFilter, FeedPosition, FeedView, InvalidEventId, SETTLED_AFTER,
};
use hearback_lambda::caller::VerifiedCaller;
use hearback_lambda::params::Parameters;
use hearback_lambda::rejections::{ForbiddenRejection, Rejections};
use hearback_lambda::routes::Routes;
use hearback_lambda::{App, Problem, WithBlobs, routes};
use hearback_storage::Error;
use hearback_storage::feed::FeedPartition;
use hearback_wire::{Errors, FieldError, FromJson, FromQuery, Pointer, request};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use utoipa::openapi::path::{Parameter, ParameterIn};
use utoipa::openapi::{RefOr, Schema};

/// Entries that one round examines: as many as one call reads.
const READ_AT_ONCE: usize = 100;
/// Rounds for a page, at most. If few entries are listed, the page ends early.
const MAX_ROUNDS: usize = 12;
/// Partitions that one round reads, at most: shards of days. Days without entries double their number.
const MAX_PARTITIONS: u64 = 128;
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
        /// Feedback of this user, with `feedback:on-behalf` or `feedback:report`; of private feedback, with the first
        /// only that in projects of the token, with the second none.
        "userId" => user: optional UserId,
        /// Most events on the page.
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
    next_cursor: Option<String>,
    /// Where to continue later, as `after`. It is up to 15 seconds old, because some of what was published since may
    /// not be listed yet; what was listed of that comes again.
    last_event_id: String,
}

/// Feedback events
///
/// What was published, the oldest first: `feedback.processed`, `feedback.retracted` and `learning.signal.generated`. The
/// caller's own, or with `feedback:report` those of the tenant, in the projects of the token and without message signals
/// of others. `label.<key>=<value>` filters by a label, up to 16 times. A page may end before `limit`; the list ends
/// where `next_cursor` is `null`. To follow the feed, read on with `last_event_id` as `after`, and skip events whose
/// `eventId` is known.
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
    let view = view_of(&app, &caller, query.user)?;
    if let (Some(project), FeedView::Tenant { .. }) = (&query.project, &view) {
        caller.require_project(&caller.tenant, project)?;
    }
    let filter = FeedFilter {
        channel: query.channel,
        feedback_type: query.feedback_type,
        outcome: query.outcome,
        project: query.project,
        labels,
    };
    let now = app.clock.now();
    let until = query.until.unwrap_or(DateTime::<Utc>::MAX_UTC);
    let after = query.after.map(|id| FeedPosition::from_event_id(&id));
    let after = after.transpose().map_err(|invalid: InvalidEventId| {
        Problem::invalid_member("/after", invalid.to_string())
    })?;
    let given = after.max(query.since.map(FeedPosition::before));
    let fingerprint = fingerprint(&caller, &view, &filter, (given, until));
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
    let mut reader = Reader {
        app: &app,
        tenant: &caller.tenant,
        view: &view,
        filter: &filter,
        now,
        // Nothing is published later than now, but for clocks that differ.
        until: until.min(now + SETTLED_AFTER),
        limit: query.limit.to(),
        events: Vec::new(),
        room: MAX_PAGE,
        // Nothing is kept for longer.
        at: from.max(FeedPosition::before(days_before(now, Retention::MAX_DAYS))),
        last: None,
    };
    let end = reader.read().await?;
    let complete = FeedPosition::before(now - SETTLED_AFTER);
    let examined = match end {
        // Also if nothing was published for a long time, so that the next page does not search that time again.
        End::OfFeed if reader.events.is_empty() => {
            FeedPosition::before(until.min(now - SETTLED_AFTER)).max(from.min(complete))
        }
        End::OfFeed | End::OfPage => reader.reached().min(complete),
    };
    // What was incomplete when an earlier page was read is read again by the next reader.
    let incomplete = incomplete
        .into_iter()
        .chain((reader.at > complete).then_some(complete))
        .min();
    let next = Position {
        at: reader.reached(),
        incomplete,
    };
    Ok(Json(FeedPage {
        next_cursor: (end == End::OfPage).then(|| app.cursors.seal(&fingerprint, &next)),
        last_event_id: incomplete
            .map_or(examined, |incomplete| examined.min(incomplete))
            .event_id(),
        events: reader.events,
    }))
}

/// The position of a cursor.
#[derive(Serialize, Deserialize)]
struct Position {
    at: FeedPosition,
    /// If earlier pages read beyond what was complete then: where that ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    incomplete: Option<FeedPosition>,
}

/// Why a page ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    OfFeed,
    /// There may be more.
    OfPage,
}

fn days_before(now: DateTime<Utc>, days: impl Into<i64>) -> DateTime<Utc> {
    now - TimeDelta::days(days.into())
}

fn view_of(app: &App, caller: &Caller, user: Option<UserId>) -> Result<FeedView, Problem> {
    let pseudonym = app.pseudonyms.user(&caller.tenant, &caller.user).ok();
    let own = std::iter::once(caller.user.clone())
        .chain(pseudonym)
        .collect();
    let reader = Box::new(caller.clone());
    Ok(match user {
        Some(user) if user == caller.user => FeedView::Own(own),
        // Not under the pseudonym, which names nobody to a back end.
        Some(user) if caller.has(Scope::OnBehalf) => FeedView::OnBehalf { user, reader },
        user if caller.has(Scope::Report) => FeedView::Tenant { user, reader, own },
        None => FeedView::Own(own),
        Some(_) => return Err(Forbidden::AnotherUsersFeedback.into()),
    })
}

fn fingerprint(
    caller: &Caller,
    view: &FeedView,
    filter: &FeedFilter,
    (from, until): (Option<FeedPosition>, DateTime<Utc>),
) -> [u8; 32] {
    let from = from.map(|from| from.event_id()).unwrap_or_default();
    let until = until.timestamp_micros().to_string();
    let labels = filter.labels.iter().flat_map(|(key, value)| [key, value]);
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
        filter.channel.map_or("", Channel::as_str),
        filter.feedback_type.map_or("", FeedbackType::as_str),
        filter.outcome.map_or("", Action::as_str),
        filter.project.as_ref().map_or("", ProjectId::as_str),
        &from,
        &until,
    ];
    digest(fixed.into_iter().chain(labels))
}

/// Reads a page.
struct Reader<'a> {
    app: &'a App,
    tenant: &'a TenantId,
    view: &'a FeedView,
    filter: &'a FeedFilter,
    now: DateTime<Utc>,
    until: DateTime<Utc>,
    limit: usize,
    events: Vec<Value>,
    /// Bytes that the page may still have.
    room: usize,
    /// Everything up to this position was examined.
    at: FeedPosition,
    /// The last event of the page.
    last: Option<FeedPosition>,
}

/// What one call of the store reads.
struct Round<'a> {
    partitions: Vec<FeedPartition<'a>>,
    /// The last index key.
    to: String,
    /// Where the next round begins if this one reads everything; `None` at the end.
    next: Option<FeedPosition>,
}

impl<'a> Reader<'a> {
    /// The position up to which everything was examined, without the id of an event that is not listed.
    fn reached(&self) -> FeedPosition {
        let instant = FeedPosition::before(self.at.at());
        self.last.map_or(instant, |last| last.max(instant))
    }

    /// Reads until the page is full or the feed ends.
    async fn read(&mut self) -> Result<End, Error> {
        let mut days = 1;
        for _ in 0..MAX_ROUNDS {
            let round = self.round(days);
            let from = self.at.entry_key();
            let span = (&*from, &*round.to);
            let store = &self.app.store;
            let page = store
                .feed(&round.partitions, span, READ_AT_ONCE, self.now)
                .await?;
            let is_empty = page.entries.is_empty() && page.rest.is_none();
            days = if is_empty { days * 2 } else { 1 };
            for entry in page.entries {
                if !self.add(&entry) {
                    return Ok(End::OfPage);
                }
            }
            self.at = match (page.rest, round.next) {
                (Some(end), _) => end,
                (None, Some(next)) => next,
                (None, None) => return Ok(End::OfFeed),
            };
        }
        Ok(End::OfPage)
    }

    /// Adds the messages of an entry; `false` if the page has no room for one.
    fn add(&mut self, entry: &FeedEntry) -> bool {
        if !self.filter.lists(self.view, entry) {
            return true;
        }
        for (position, message) in entry.messages() {
            if position <= self.at {
                continue;
            }
            let size = escaped_json_size(&message) + 1;
            if self.events.len() == self.limit || (size > self.room && !self.events.is_empty()) {
                return false;
            }
            self.room = self.room.saturating_sub(size);
            self.events.push(message);
            self.at = position;
            self.last = Some(position);
        }
        true
    }

    fn round(&self, days: u64) -> Round<'a> {
        let tenant = self.tenant;
        let users = match self.view {
            FeedView::Own(users) => Some(&**users),
            FeedView::OnBehalf { user, .. } => Some(std::slice::from_ref(user)),
            FeedView::Tenant { user, .. } => user.as_ref().map(std::slice::from_ref),
        };
        if let Some(users) = users {
            let users = users.iter();
            return Round {
                partitions: users
                    .map(|user| FeedPartition::User(UserRef { tenant, user }))
                    .collect(),
                to: FeedPosition::last_key(self.until),
                next: None,
            };
        }
        let shards = self.app.store.feed_shards();
        let most = (MAX_PARTITIONS / u64::from(shards)).max(1);
        let days = days.min(most);
        let first = self.at.at().date_naive();
        let next = first.checked_add_days(Days::new(days));
        let next = next.map(|day| day.and_time(NaiveTime::MIN).and_utc());
        let next = next.filter(|next| *next <= self.until);
        let to = next.map_or(self.until, |next| next - TimeDelta::microseconds(1));
        let days = first.iter_days().take_while(|day| *day <= to.date_naive());
        let partitions = days
            .flat_map(|day| (0..shards).map(move |shard| FeedPartition::Shard(tenant, day, shard)));
        Round {
            partitions: partitions.collect(),
            to: FeedPosition::last_key(to),
            next: next.map(FeedPosition::before),
        }
    }
}

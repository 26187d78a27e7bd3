//! What became of a feedback event.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use hearback_domain::caller::{Caller as DomainCaller, Scope};
use hearback_domain::event::{EventCore, FreeText};
use hearback_domain::identifier::Label;
use hearback_domain::publication::Outcome;
use hearback_domain::signal::LearningSignal;
use hearback_lambda::caller::Caller;
use hearback_lambda::params::PathId;
use hearback_lambda::problem::ProblemDocument;
use hearback_lambda::routes::Routes;
use hearback_lambda::{App, Problem, WithBlobs, routes};
use hearback_storage::events::StoredEvent;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::event::Event;

pub(crate) fn routes() -> Routes<WithBlobs> {
    routes!(WithBlobs => feedback)
}

/// Where an event is in processing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = FeedbackStatus)]
enum Status {
    /// Stored, not yet worked on.
    Queued,
    /// Worked off.
    Processed,
    /// Another event had said the same.
    Deduplicated,
    /// It no longer holds: replaced or taken back.
    Retracted,
}

/// What became of an event.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Feedback {
    /// The event.
    feedback_id: Uuid,
    /// The key under which only the first of several equal acts counts.
    dedupe_key: String,
    /// Where it is in processing.
    status: Status,
    /// When it was received.
    received_at: DateTime<Utc>,
    /// When it was worked off.
    #[serde(skip_serializing_if = "Option::is_none")]
    processed_at: Option<DateTime<Utc>>,
    /// For `deduplicated`: the event that was first.
    #[serde(skip_serializing_if = "Option::is_none")]
    duplicate_of: Option<Uuid>,
    /// For `retracted`: since when it no longer holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    retracted_at: Option<DateTime<Utc>>,
    /// For `retracted`: the event that took its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    replaced_by: Option<Uuid>,
    /// The learning signals that it gave.
    signals: Vec<LearningSignal>,
    /// The event itself, and what was written for its user alone.
    event: Event,
}

/// An event, and what became of it
///
/// Sees every event whose submission was answered. An event of somebody else is not found. What a user wrote is
/// answered to that user alone. `deduplicated` says that an event with the same dedupe key came first,
/// `duplicateOf`: the user acted alike on the same artifact within the same UTC hour.
#[utoipa::path(
    get,
    path = "/v1/feedback/{feedbackId}",
    tag = "feedback",
    params(("feedbackId" = Uuid, Path, description = "The event")),
    responses(
        (status = 200, description = "Its status and the signals it gave", body = Feedback),
        (status = 400, description = "The path is no identifier", body = ProblemDocument),
        (status = 401, description = "No valid token", body = ProblemDocument),
        (status = 404, description = "No such event, or not the caller's", body = ProblemDocument),
        (status = 503, description = "The store could not be reached; try again", body = ProblemDocument),
    ),
    security(("bearer" = []))
)]
async fn feedback(
    State(app): State<App>,
    Caller(caller): Caller,
    PathId(feedback_id): PathId<Label>,
) -> Result<Json<Feedback>, Problem> {
    let feedback_id =
        Uuid::try_parse(feedback_id.as_str()).map_err(|_| Problem::no_such("event"))?;
    let stored = app
        .store
        .event(&caller.tenant, feedback_id, app.clock.now())
        .await?
        .ok_or_else(|| Problem::no_such("event"))?;
    let own = is_own(&app, &caller, &stored.core);
    // A back end submits for users, but for what is private.
    if !own && (!caller.has(Scope::OnBehalf) || stored.core.private) {
        return Err(Problem::no_such("event"));
    }
    Ok(Json(Feedback::of(stored, own)))
}

impl Feedback {
    fn of(stored: StoredEvent, own: bool) -> Self {
        let (status, duplicate_of, signals) = match &stored.outcome {
            None => (Status::Queued, None, Vec::new()),
            Some(Outcome::Processed(processed)) => (Status::Processed, None, processed.signals()),
            Some(Outcome::Deduplicated { duplicate_of, .. }) => {
                (Status::Deduplicated, Some(*duplicate_of), Vec::new())
            }
        };
        let retraction = stored.retraction.as_ref();
        Self {
            feedback_id: stored.core.feedback_id,
            dedupe_key: stored.core.dedupe_key().to_string(),
            // What it taught is not undone: the signals stay, and subscribers are told.
            status: retraction.map_or(status, |_| Status::Retracted),
            received_at: stored.core.received_at,
            processed_at: stored.outcome.as_ref().map(Outcome::at),
            duplicate_of,
            retracted_at: retraction.map(|retraction| retraction.at),
            replaced_by: retraction.and_then(|retraction| retraction.replaced_by),
            signals,
            event: Event::of(
                &stored.core,
                if own {
                    stored.text
                } else {
                    FreeText::default()
                },
            ),
        }
    }
}

/// Whether an event is the caller's own, be it under the pseudonym.
fn is_own(app: &App, caller: &DomainCaller, event: &EventCore) -> bool {
    let pseudonym = app.pseudonyms.user(&caller.tenant, &caller.user);
    event.user_id == caller.user || pseudonym.is_ok_and(|name| event.user_id == name)
}

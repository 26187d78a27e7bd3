//! A feedback event and its outcome.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use hearback_domain::events::event::FreeText;
use hearback_domain::identity::identifier::Label;
use hearback_domain::learning::publication::Outcome;
use hearback_domain::learning::signal::LearningSignal;
use hearback_lambda::caller::VerifiedCaller;
use hearback_lambda::events::VisibleEvent;
use hearback_lambda::params::PathId;
use hearback_lambda::problem::ProblemDocument;
use hearback_lambda::rejections::Rejections;
use hearback_lambda::routes::Routes;
use hearback_lambda::{App, Problem, WithBlobs, routes};
use hearback_storage::events::StoredEvent;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::counted::Counted;
use crate::event::StoredFeedbackEvent;

pub(crate) fn routes() -> Routes<WithBlobs> {
    routes!(WithBlobs => get_feedback)
}

/// Where an event is in processing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum ProcessingStatus {
    /// Stored, not yet processed.
    Queued,
    /// Processed.
    Processed,
    /// An earlier event has the same dedupe key.
    Deduplicated,
    /// It no longer holds: replaced or withdrawn.
    Retracted,
}

/// An event and its outcome.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct FeedbackRecord {
    /// The event.
    feedback_id: Uuid,
    /// Of several events with this key the first counts.
    dedupe_key: String,
    /// Where it is in processing.
    status: ProcessingStatus,
    /// When it was received.
    received_at: DateTime<Utc>,
    /// When it was processed.
    #[serde(skip_serializing_if = "Option::is_none")]
    processed_at: Option<DateTime<Utc>>,
    /// For `deduplicated`: the event that was first.
    #[serde(skip_serializing_if = "Option::is_none")]
    duplicate_of: Option<Uuid>,
    /// For `retracted`, and for a duplicate that was processed before the first: since when it no longer holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    retracted_at: Option<DateTime<Utc>>,
    /// For `retracted`: the event that replaced it.
    #[serde(skip_serializing_if = "Option::is_none")]
    replaced_by: Option<Uuid>,
    /// As what it counts for the turn in its context; absent until it is processed, and without a turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    counted: Option<Counted>,
    /// Its learning signals.
    signals: Vec<LearningSignal>,
    /// The event itself, with its texts for its user only.
    event: StoredFeedbackEvent,
}

/// An event and its outcome
///
/// Reads every event whose submission was accepted. Another user's event is not found. Texts are returned to their user
/// only. `deduplicated` means that an event with the same dedupe key was first (`duplicateOf`): the user gave the same
/// type of feedback on the same artifact within the same UTC hour.
#[utoipa::path(
    get,
    path = "/v1/feedback/{feedbackId}",
    tag = "feedback",
    params(("feedbackId" = Uuid, Path, description = "The event")),
    responses(
        (status = 200, description = "Its status and the signals it gave", body = FeedbackRecord),
        (status = 404, description = "No such event, or not the caller's", body = ProblemDocument),
        Rejections,
    ),
    security(("bearer" = []))
)]
async fn get_feedback(
    State(app): State<App>,
    VerifiedCaller(caller): VerifiedCaller,
    PathId(feedback_id): PathId<Label>,
) -> Result<Json<FeedbackRecord>, Problem> {
    let VisibleEvent { stored, own } = app.visible_event(&caller, feedback_id.as_str()).await?;
    let counted = Counted::read(&app, &stored).await?;
    Ok(Json(FeedbackRecord::of(stored, counted, own)))
}

impl FeedbackRecord {
    fn of(stored: StoredEvent, counted: Option<Counted>, own: bool) -> Self {
        let (status, duplicate_of, signals) = match &stored.outcome {
            None => (ProcessingStatus::Queued, None, Vec::new()),
            Some(Outcome::Processed(processed)) => {
                (ProcessingStatus::Processed, None, processed.signals())
            }
            Some(Outcome::Deduplicated { duplicate_of, .. }) => (
                ProcessingStatus::Deduplicated,
                Some(*duplicate_of),
                Vec::new(),
            ),
        };
        let retraction = stored.retraction.as_ref();
        let preceded_by = stored.preceded_by();
        Self {
            feedback_id: stored.core.feedback_id,
            dedupe_key: stored.core.dedupe_key().to_string(),
            // Learning is not undone: the signals stay, and subscribers receive the retraction.
            status: match (retraction, preceded_by) {
                (_, Some(_)) => ProcessingStatus::Deduplicated,
                (Some(_), None) => ProcessingStatus::Retracted,
                (None, None) => status,
            },
            received_at: stored.core.received_at,
            processed_at: stored.outcome.as_ref().map(Outcome::at),
            duplicate_of: preceded_by.or(duplicate_of),
            retracted_at: retraction.map(|retraction| retraction.at),
            replaced_by: retraction
                .filter(|_| preceded_by.is_none())
                .and_then(|retraction| retraction.replaced_by),
            counted,
            signals,
            event: StoredFeedbackEvent::of(
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

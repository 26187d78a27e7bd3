//! Accepts what users submit: feedback events, reactions to turns, and signals on messages, and withdraws them.
//!
//! A handler parses the request, makes one conditional write of the feedback and responds. It does not learn, publish
//! or deduplicate: the signal generator (`functions/signals`) does, from the table's stream. Reads are in
//! `functions/retrieval`, many events at once in `functions/batch`.
//!
//! | start with | for |
//! |---|---|
//! | `routes`, `submit_feedback` | a feedback event, and its withdrawal (`withdrawal.rs`) |
//! | `reactions.rs` | a reaction to a turn |
//! | `message_signals.rs` | a signal on a message |
//! | `wire.rs` | responses |

mod message_signals;
mod reactions;
mod wire;
mod withdrawal;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use hearback_domain::events::submission::{Draft, FeedbackEventRequest};
use hearback_lambda::body::JsonBody;
use hearback_lambda::caller::VerifiedCaller;
use hearback_lambda::problem::ProblemDocument;
use hearback_lambda::rejections::{BodyRejections, ForbiddenRejection};
use hearback_lambda::routes::Routes;
use hearback_lambda::{App, Problem, anonymous, routes};
use hearback_storage::Written;

use wire::{QueuedFeedback, SubmissionStatus};

pub use reactions::MAX_BODY as MAX_REACTION_BODY;

/// Largest body of one event, in bytes.
pub const MAX_BODY: usize = 256 * 1024;

/// Every route of this function.
pub fn routes() -> Routes<App> {
    routes!(App => submit_feedback)
        .and(reactions::routes())
        .and(message_signals::routes())
        .and(withdrawal::routes())
}

/// Submit a feedback event
///
/// Responds once the event is stored; it is processed right after. The same `feedbackId` is accepted once. Of several
/// events with the same `dedupeKey`, that is, of the same user about the same artifact and of the same type within one
/// UTC hour, the first counts: a second rating within the hour is `deduplicated`, and changes nothing.
/// `GET /v1/feedback/{feedbackId}` then returns the first as `duplicateOf`.
#[utoipa::path(
    post,
    path = "/v1/feedback/submit",
    tag = "feedback",
    request_body = FeedbackEventRequest,
    responses(
        (status = 202, description = "Stored, and queued for processing", body = QueuedFeedback),
        (status = 409, description = "The feedbackId was submitted before", body = ProblemDocument),
        (status = 422, description = "Unknown channel or type", body = ProblemDocument),
        BodyRejections,
        ForbiddenRejection,
    ),
    security(("bearer" = []))
)]
async fn submit_feedback(
    State(app): State<App>,
    VerifiedCaller(caller): VerifiedCaller,
    JsonBody(body): JsonBody<MAX_BODY>,
) -> Result<Response, Problem> {
    let draft = Draft::read(&body, &caller, app.clock.now())?;
    let submission = anonymous::submission(draft, &app.pseudonyms).await;
    let submission = submission?;
    caller.may_submit(&submission.event.core)?;
    let feedback_id = submission.event.core.feedback_id;
    match app.store.put_event(&submission.event).await? {
        Written::New => {
            let queued = QueuedFeedback {
                feedback_id,
                dedupe_key: submission.dedupe_key,
                status: SubmissionStatus::Queued,
            };
            Ok((StatusCode::ACCEPTED, Json(queued)).into_response())
        }
        Written::AlreadyExists => Err(Problem::new(StatusCode::CONFLICT, "duplicate_feedback_id")
            .detail("This feedbackId was submitted before.")
            .member("feedbackId", feedback_id.to_string())),
    }
}

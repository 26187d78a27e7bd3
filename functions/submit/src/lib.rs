//! What a user says: feedback events, reactions on turns, and signals on messages.
//!
//! A handler parses, makes one conditional write and answers. Everything else follows from the
//! table's stream.

mod message_signals;
mod reactions;
mod wire;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use hearback_domain::submission::{Refused, Submission};
use hearback_lambda::body::JsonBody;
use hearback_lambda::caller::Caller;
use hearback_lambda::problem::ProblemDocument;
use hearback_lambda::routes::Routes;
use hearback_lambda::{App, Problem, routes};
use hearback_storage::Written;

use wire::{FeedbackEvent, Queued};

/// Largest body of one event, in bytes.
pub const MAX_BODY: usize = 256 * 1024;

/// Every route of this function.
pub fn routes() -> Routes<App> {
    routes!(App => submit)
        .and(reactions::routes())
        .and(message_signals::routes())
}

/// Submit a feedback event
///
/// Answers once the event is stored; what it teaches is worked out right after. The same
/// `feedbackId` is taken once. Of several events with the same `dedupeKey`, that is, of the same user about the same
/// artifact and of the same type within one UTC hour, the first counts: a second rating within the hour is
/// `deduplicated`, and changes nothing. `GET /v1/feedback/{feedbackId}` then names the first, `duplicateOf`.
#[utoipa::path(
    post,
    path = "/v1/feedback/submit",
    tag = "feedback",
    request_body = FeedbackEvent,
    responses(
        (status = 202, description = "Stored, and queued for processing", body = Queued),
        (status = 400, description = "The body is not JSON or breaks the schema", body = ProblemDocument),
        (status = 401, description = "No valid token", body = ProblemDocument),
        (status = 403, description = "Another user's feedback without `feedback:on-behalf`, or about a turn of a project that the token does not hold", body = ProblemDocument),
        (status = 409, description = "The feedbackId is known", body = ProblemDocument),
        (status = 413, description = "The body has more than 256 KiB", body = ProblemDocument),
        (status = 422, description = "Unknown channel or type", body = ProblemDocument),
        (status = 503, description = "The store could not be reached; try again", body = ProblemDocument),
    ),
    security(("bearer" = []))
)]
async fn submit(
    State(app): State<App>,
    Caller(caller): Caller,
    JsonBody(body): JsonBody<MAX_BODY>,
) -> Result<Response, Problem> {
    let submission =
        Submission::parse(&body, &caller, &app.pseudonyms, app.clock.now()).map_err(refused)?;
    caller.may_say(&submission.event.core)?;
    let feedback_id = submission.event.core.feedback_id;
    match app.store.put_event(&submission.event).await? {
        Written::New => {
            let queued = Queued {
                feedback_id,
                dedupe_key: submission.dedupe_key,
                status: wire::Status::Queued,
            };
            Ok((StatusCode::ACCEPTED, Json(queued)).into_response())
        }
        Written::Known => Err(Problem::new(StatusCode::CONFLICT, "duplicate_feedback_id")
            .detail("This feedbackId was submitted before.")
            .member("feedbackId", feedback_id.to_string())),
    }
}

fn refused(refused: Refused) -> Problem {
    match refused {
        Refused::Invalid(errors) => Problem::invalid(errors),
        Refused::Unprocessable(errors) => Problem::unprocessable(errors),
        Refused::Forbidden(forbidden) => forbidden.into(),
    }
}

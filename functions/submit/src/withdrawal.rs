//! The withdrawal of an event: one conditional write of its retraction. The signal generator receives the retraction
//! through the table's stream and stops counting the event for its turn.

use axum::extract::State;
use axum::http::StatusCode;
use hearback_domain::feedback::counted::turn_of;
use hearback_domain::identity::identifier::Label;
use hearback_domain::learning::ledger::retraction_of_event;
use hearback_lambda::caller::VerifiedCaller;
use hearback_lambda::events::VisibleEvent;
use hearback_lambda::params::PathId;
use hearback_lambda::problem::ProblemDocument;
use hearback_lambda::rejections::{ForbiddenRejection, Rejections};
use hearback_lambda::routes::Routes;
use hearback_lambda::{App, Problem, routes};
use hearback_storage::unless_unreadable;

/// The route of withdrawals.
pub(crate) fn routes() -> Routes<App> {
    routes!(App => withdraw_feedback)
}

/// Withdraw a feedback event
///
/// The event becomes `retracted`. It no longer counts for its turn, in reports or in training data, and the next event
/// with the same dedupe key counts. Preferences keep what they learned from the event, and its learning signals remain.
/// Subscribers receive `feedback.retracted`. Withdrawing an event again returns the same response.
#[utoipa::path(
    delete,
    path = "/v1/feedback/{feedbackId}",
    tag = "feedback",
    params(("feedbackId" = uuid::Uuid, Path, description = "The event")),
    responses(
        (status = 204, description = "The event is withdrawn"),
        (status = 404, description = "No such event, or not the caller's", body = ProblemDocument),
        (status = 409, description = "The event records a reaction or a message signal, which can be withdrawn itself; or the user's data is being erased", body = ProblemDocument),
        Rejections,
        ForbiddenRejection,
    ),
    security(("bearer" = []))
)]
async fn withdraw_feedback(
    State(app): State<App>,
    VerifiedCaller(caller): VerifiedCaller,
    PathId(feedback_id): PathId<Label>,
) -> Result<StatusCode, Problem> {
    let VisibleEvent { stored, own } = app.visible_event(&caller, feedback_id.as_str()).await?;
    let event = &stored.core;
    if !own {
        caller.may_submit(event)?;
    }
    if event.derived {
        return Err(Problem::new(StatusCode::CONFLICT, "not_withdrawable")
            .detail("It records a reaction or a message signal. Withdraw that instead."));
    }
    app.reject_during_erasure(event.owner()).await?;
    if stored.retraction.is_none() {
        let turn = match turn_of(event) {
            Some(at) => {
                let turn = app.store.turn(&at, app.clock.now()).await;
                unless_unreadable(turn, &event.tenant)?
            }
            None => None,
        };
        // Take the publication time last: readers of the feed wait only some seconds for late entries.
        let mut retraction = retraction_of_event(event, app.clock.now());
        // Subscribers receive it with what the event inherited.
        if let Some(turn) = turn {
            retraction = retraction.about(&turn.core);
        }
        app.store.put_withdrawal(&retraction, event).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}

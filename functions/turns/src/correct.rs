//! Corrects what was inferred about a turn.
//!
//! The status of the turn is updated first, and the correction stored for its list; then the machine's reactions that say something else are taken back, each
//! by a tombstone, whose event the signal generator retracts; last, what the message really says becomes a machine
//! reaction. Each step may be repeated, and a repeat of the request finishes what a crash left.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use hearback_detection::FeedbackStatus;
use hearback_domain::feedback::follow_up::UserFeedback;
use hearback_domain::feedback::reaction::{NewReaction, Reaction, StoredReaction};
use hearback_domain::turns::turn::TurnRef;
use hearback_lambda::body::Body;
use hearback_lambda::params::InTurn;
use hearback_lambda::problem::ProblemDocument;
use hearback_lambda::rejections::{BodyRejections, ForbiddenRejection};
use hearback_lambda::routes::Routes;
use hearback_lambda::{App, Problem, routes};
use hearback_storage::turn_rows::IndexRow;
use hearback_storage::{Attempt, Error, Versioned, unless_unreadable, update};
use hearback_wire::request;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{Registry, machine};

/// Largest body, in bytes.
const MAX_BODY: usize = 16 * 1024;
/// Attempts to take back one reaction. Only repeats of the message that it was inferred from write the same row.
const ATTEMPTS: usize = 20;

pub(crate) fn routes() -> Routes<Registry> {
    routes!(Registry => correct_inference)
}

request! {
    /// What the user's message really says about the turn.
    struct CorrectionRequest, closed {
        /// `neutral` if it says nothing about the turn.
        "feedback_type" => feedback_type: required FeedbackStatus,
        /// The `detected_at` of the inference that is corrected, so that another one, which arrived since, stays as it
        /// is; the current one if left out.
        "detected_at" => detected_at: nullable DateTime<Utc>,
    }
    example {"feedback_type": "neutral"}
}

/// A corrected inference.
#[derive(Serialize, ToSchema)]
struct CorrectedInference {
    conversation_id: String,
    turn_id: String,
    /// What is known now, with what was inferred first in `corrected`.
    user_feedback: UserFeedback,
    /// The event that says so: of the machine, with the confidence 1 unless it was inferred before; `null` if the
    /// message says nothing about the turn.
    #[schema(required = true)]
    feedback_id: Option<Uuid>,
    /// The events of the machine about this turn that were taken back, with earlier corrections.
    withdrawn: Vec<Uuid>,
}

/// Correct an inference
///
/// Says what the user's message really means for the turn, where the machine heard it wrong. The status of the turn
/// follows, the machine's events that say something else become `retracted`, and nothing that hears the same message
/// again changes it. Explicit feedback of the turn's user still outranks it. The turn's user may correct, and with
/// `feedback:on-behalf` everybody.
#[utoipa::path(
    put,
    path = "/conversations/{tenant}/{project}/{conversation_id}/turns/{turn_id}/inference",
    tag = "reactions",
    params(
        InTurn,
    ),
    request_body = CorrectionRequest,
    responses(
        (status = 200, description = "Corrected", body = CorrectedInference),
        (status = 404, description = "No such turn, or not the caller's", body = ProblemDocument),
        (status = 409, description = "Nothing was inferred about the turn, or something else since; or its user's data is being erased", body = ProblemDocument),
        BodyRejections,
        ForbiddenRejection,
    ),
    security(("bearer" = []))
)]
async fn correct_inference(
    State(app): State<App>,
    InTurn { at, caller }: InTurn,
    Body(request): Body<CorrectionRequest, MAX_BODY>,
) -> Result<Json<CorrectedInference>, Problem> {
    let now = app.clock.now();
    let turn = app.store.turn(&at, now).await?;
    let turn = turn.filter(|turn| caller.act_as(&turn.core.user_id).is_ok());
    let IndexRow { core, status, .. } = turn.ok_or_else(|| Problem::no_such("turn"))?;
    app.reject_during_erasure(core.owner()).await?;
    let inferred = status.inferred.ok_or_else(nothing_inferred)?;
    let detected_at = inferred.detected_at.timestamp_micros();
    if (request.detected_at).is_some_and(|seen| seen.timestamp_micros() != detected_at) {
        return Err(inference_changed());
    }
    let message = message(&app, &at, &inferred, now).await?;
    let is_repeat = inferred.corrected.is_some() && inferred.status == request.feedback_type;
    let feedback = if is_repeat {
        inferred
    } else {
        let said = message.as_ref().map(|message| message.summary.user.clone());
        let right = inferred
            .clone()
            .corrected_to(request.feedback_type, said, now);
        let corrected = app
            .store
            .correct_inference((&at, core.ts), &inferred, &right);
        if !corrected.await? {
            return Err(inference_changed());
        }
        right
    };
    app.store.put_correction(&core, &feedback).await?;
    let said_at = message.map_or(feedback.detected_at, |message| message.core.ts);
    let reactions = app.store.machine_reactions(&at, now).await?;
    let own = reactions.into_iter().filter(|one| one.value.core.own);
    let own: Vec<_> = own.collect();
    let right = NewReaction::corrected(&feedback, said_at);
    let right = right.map(|right| {
        let mirror = app.mirrors(&at.within);
        let right = right.on(&core, &caller, mirror, now);
        stored_or_new(right.with_keyed_id(&app.pseudonyms), &feedback, &own)
    });
    let verdict = right.as_ref().and_then(|right| right.core.reaction);
    let mut withdrawn = Vec::new();
    for reaction in own {
        let said = reaction.value.core.reaction;
        let agrees = said == Some(Reaction::Neutral) || (said.is_some() && said == verdict);
        if !agrees {
            withdrawn.push(reaction.value.core.id);
            take_back(&app, reaction, now).await?;
        }
    }
    if let Some(right) = &right {
        machine::put(&app, right).await?;
    }
    Ok(Json(CorrectedInference {
        conversation_id: at.within.conversation.into(),
        turn_id: at.turn.into(),
        user_feedback: feedback,
        feedback_id: right.map(|right| right.core.id),
        withdrawn,
    }))
}

/// The stored reaction with the verdict of `right`; without one `right` itself, with an id that no tombstone has.
fn stored_or_new(
    mut right: StoredReaction,
    feedback: &UserFeedback,
    stored: &[Versioned<StoredReaction>],
) -> StoredReaction {
    let same = |one: &&Versioned<StoredReaction>| one.value.core.reaction == right.core.reaction;
    if let Some(same) = stored.iter().find(same) {
        return same.value.clone();
    }
    right.core.follow_up = feedback.detected_in_turn.is_some();
    while stored.iter().any(|one| one.value.core.id == right.core.id) {
        right.core.id = Uuid::new_v5(&right.core.id, b"again");
    }
    right
}

/// Replaces a reaction of the machine by a tombstone, unless it is one.
async fn take_back(
    app: &App,
    reaction: Versioned<StoredReaction>,
    at: DateTime<Utc>,
) -> Result<(), Problem> {
    let taken_back = update(ATTEMPTS, Some(reaction), |current| async move {
        let live = current.filter(|current| current.value.core.reaction.is_some());
        let Some(current) = live else {
            return Ok(Attempt::Finished(()));
        };
        let tombstone = current.value.taken_back(at);
        let replaced = app.store.put_reaction(&tombstone, Some(&current)).await?;
        Ok::<_, Problem>(Attempt::of(replaced, ()))
    });
    let contended = || Problem::contended("Too many changes of this turn at once. Try again.");
    taken_back.await?.ok_or_else(contended)
}

fn inference_changed() -> Problem {
    Problem::new(StatusCode::CONFLICT, "inference_changed")
        .detail("Something else was inferred about this turn meanwhile. Read it again.")
}

fn nothing_inferred() -> Problem {
    Problem::new(StatusCode::CONFLICT, "nothing_inferred")
        .detail("Nothing was inferred about this turn, so there is nothing to correct.")
}

/// The turn whose message an inference was made from, if there is one that can be read.
async fn message(
    app: &App,
    at: &TurnRef,
    inferred: &UserFeedback,
    now: DateTime<Utc>,
) -> Result<Option<IndexRow>, Error> {
    let Some(turn) = inferred.detected_in_turn.clone() else {
        return Ok(None);
    };
    let at = TurnRef { turn, ..at.clone() };
    let found = app.store.turn(&at, now).await;
    unless_unreadable(found, &at.within.tenant)
}

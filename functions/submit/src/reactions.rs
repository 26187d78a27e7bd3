//! Reactions to turns: add, replace, withdraw.
//!
//! The turn is read first. Then the conversation is marked as active, and the reaction replaces the user's current one,
//! on the condition that that is still current; after a conflict the new current reaction is read and the request is
//! resolved again. The signal generator adds the event to the ledger and the mirror to the turn's log, from the table's
//! stream.

use axum::Json;
use axum::extract::State;
use hearback_domain::feedback::reaction::{
    NewReaction, Origin, Reaction, ReactionCore, ReactionRequest, ReactionUpdate, StoredReaction,
};
use hearback_domain::identity::identifier::UserRef;
use hearback_lambda::body::JsonBody;
use hearback_lambda::params::InTurn;
use hearback_lambda::problem::ProblemDocument;
use hearback_lambda::rejections::{BodyRejections, ForbiddenRejection};
use hearback_lambda::routes::Routes;
use hearback_lambda::{App, Problem, routes};
use hearback_storage::{Attempt, Versioned, update};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

/// Largest body of a reaction, in bytes.
pub const MAX_BODY: usize = 16 * 1024;
/// Attempts of one write among concurrent ones. Each that fails means that another writer succeeded.
const ATTEMPTS: usize = 200;

/// The routes of reactions.
pub(crate) fn routes() -> Routes<App> {
    routes!(App => react_to_turn)
}

/// The outcome of a reaction.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReactionResult {
    /// Always true.
    success: bool,
    turn_id: String,
    /// The current verdict.
    #[schema(required = true)]
    reaction: Option<Reaction>,
    /// The outcome, for people.
    message: &'static str,
    /// Whether a reaction was withdrawn.
    cleared: bool,
    /// Whether the reaction counts: `false` where a newer one of the same user does.
    applied: bool,
    /// The event of the current reaction, for `GET /v1/feedback/{feedbackId}`; after a clear, the event that was
    /// withdrawn. `null` if there was nothing to clear.
    #[schema(required = true)]
    feedback_id: Option<Uuid>,
    /// The reaction's artifact, a tombstone's too; `null` if there never was one.
    #[schema(required = true)]
    rn: Option<String>,
}

/// React to a turn
///
/// Each user has one current reaction to a turn: the latest by the earlier of `ts` and its receipt, and of two with the
/// same time the one that arrived last. Machine reactions are stored in addition, and set the status of the turn unless its user gave
/// explicit feedback. The body has at most 16 KiB.
#[utoipa::path(
    post,
    path = "/conversations/{tenant}/{project}/{conversation_id}/turns/{turn_id}/feedback",
    tag = "reactions",
    params(
        InTurn,
    ),
    request_body = ReactionRequest,
    responses(
        (status = 200, description = "The reaction is stored, or withdrawn", body = ReactionResult),
        (status = 404, description = "The turn is not registered", body = ProblemDocument),
        (status = 409, description = "The user's data is being erased", body = ProblemDocument),
        (status = 422, description = "The confidence is too low", body = ProblemDocument),
        BodyRejections,
        ForbiddenRejection,
    ),
    security(("bearer" = []))
)]
async fn react_to_turn(
    State(app): State<App>,
    InTurn { at, caller }: InTurn,
    JsonBody(body): JsonBody<MAX_BODY>,
) -> Result<Json<ReactionResult>, Problem> {
    let now = app.clock.now();
    let posted = NewReaction::parse(&body, &caller, now)?;
    // A machine reaction belongs to the turn's owner, who is not known yet; its conditional put detects a repeat.
    let author = posted.replaces_reaction_of(&caller).cloned();
    let found = async {
        let found = app.store.turn_and_reaction(&at, author.as_ref(), now);
        found.await?.ok_or_else(|| Problem::no_such("turn"))
    };
    let erasure = async {
        match &author {
            Some(user) => {
                let user = UserRef::new(&at.within.tenant, user);
                app.reject_during_erasure(user).await
            }
            None => Ok(None),
        }
    };
    // Both are awaited: the time of the response must not reveal whether the turn exists.
    let (found, erased) = futures::join!(found, erasure);
    let ((turn, current), mut erased) = (found?, erased?);
    let reaction = posted
        .on(&turn, &caller, app.mirrors(&at.within), now)
        .with_keyed_id(&app.pseudonyms);
    if author.is_none() {
        // The owner is known now.
        erased = app.reject_during_erasure(reaction.core.owner()).await?;
    }
    let stored = store_reaction(&app, &reaction, current, erased).await?;
    if stored.applied {
        // Of a machine reaction, this sets the status of the turn.
        app.store.note_machine(&reaction, None).await?;
    }
    Ok(Json(stored))
}

async fn store_reaction(
    app: &App,
    reaction: &StoredReaction,
    current: Option<Versioned<StoredReaction>>,
    erased: Option<Uuid>,
) -> Result<ReactionResult, Problem> {
    let stored = update(ATTEMPTS, current, |current| async move {
        let value = current.as_ref().map(|current| &current.value);
        let resolved = reaction.clone().resolve(value);
        let next = match resolved {
            ReactionUpdate::Write(next) => next,
            ReactionUpdate::Repeat(current) => {
                return Ok(Attempt::Finished(recorded(&current.core)));
            }
            ReactionUpdate::Superseded => {
                return Ok(Attempt::Finished(superseded(
                    &value.unwrap_or(reaction).core,
                )));
            }
            ReactionUpdate::NothingToWithdraw => {
                return Ok(Attempt::Finished(nothing_to_withdraw(&reaction.core)));
            }
        };
        if next.core.reaction.is_some() {
            // Before the reaction, so that no report misses it.
            app.store.mark_activity_once(&next.core, erased).await?;
        }
        let replaced = app.store.put_reaction(&next, current.as_ref()).await?;
        Ok::<_, Problem>(Attempt::of(replaced, recorded(&next.core)))
    });
    let contended = || Problem::contended("Too many reactions to this turn at once. Try again.");
    stored.await?.ok_or_else(contended)
}

fn recorded(core: &ReactionCore) -> ReactionResult {
    let cleared = core.reaction.is_none();
    ReactionResult {
        success: true,
        turn_id: core.at.turn.to_string(),
        reaction: core.reaction,
        message: if cleared {
            "Feedback cleared."
        } else {
            "Feedback recorded."
        },
        cleared,
        applied: true,
        // A reaction of an older system has no event.
        feedback_id: (core.reaction.map(|_| core.id))
            .or(core.replaces)
            .filter(|id| !id.is_nil()),
        rn: Some(core.rn()),
    }
}

fn superseded(current: &ReactionCore) -> ReactionResult {
    ReactionResult {
        message: match current.origin {
            Origin::User => "A newer reaction of the same user is current.",
            Origin::Machine => "This inference was corrected, and stays withdrawn.",
        },
        cleared: false,
        applied: false,
        ..recorded(current)
    }
}

fn nothing_to_withdraw(reaction: &ReactionCore) -> ReactionResult {
    ReactionResult {
        message: "There was nothing to clear.",
        cleared: false,
        feedback_id: None,
        rn: None,
        ..recorded(reaction)
    }
}

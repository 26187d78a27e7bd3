//! Reactions on turns: add, replace, clear.
//!
//! The turn is looked up before anything is written. Then the conversation is marked as active
//! and the reaction put where the user's last one stood, under the condition that it still stands
//! there; of two at once the one that loses looks at what it lost to and decides again. Its place
//! in the ledger and in the turn's log follow from the table's stream.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use hearback_domain::reaction::{Posted, ReactionCore, Refused, Step, StoredReaction};
use hearback_lambda::body::JsonBody;
use hearback_lambda::params::InTurn;
use hearback_lambda::problem::ProblemDocument;
use hearback_lambda::routes::Routes;
use hearback_lambda::{App, Problem, routes};
use hearback_storage::keys;
use hearback_storage::{Replaced, Standing};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

/// Largest body of a reaction, in bytes.
pub const MAX_BODY: usize = 16 * 1024;
/// How often a place is tried that others want too. Each loss means that somebody else got it.
const TRIES: usize = 200;

/// A reaction as callers post it.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({
    "reaction": "ok", "text": "Great explanation!", "ts": "2025-11-06T15:30:00Z"
}))]
pub(crate) struct ReactionBody {
    /// Must be there; `null` clears.
    #[schema(required = true)]
    reaction: Option<hearback_domain::reaction::Reaction>,
    /// Up to 1,000 characters.
    #[schema(max_length = 1000)]
    text: Option<String>,
    /// RFC 3339 with an offset, at most 5 minutes ahead; the time of receipt if left out.
    #[schema(format = DateTime)]
    ts: Option<String>,
    /// Another user than the caller, with `feedback:on-behalf`.
    #[schema(min_length = 1, max_length = 256)]
    user_id: Option<String>,
    /// `machine` needs `feedback:on-behalf`.
    origin: Option<hearback_domain::reaction::Origin>,
    /// Of the machine: at least 0.70.
    #[schema(minimum = 0, maximum = 1)]
    confidence: Option<f64>,
    /// Whether to write it into the turn's log too; as the project wants it if left out.
    mirror: Option<bool>,
}

/// The routes of reactions.
pub(crate) fn routes() -> Routes<App> {
    routes!(App => react)
}

/// What became of a reaction.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Reacted {
    /// Always true.
    success: bool,
    turn_id: String,
    /// What stands now.
    reaction: Option<hearback_domain::reaction::Reaction>,
    /// What happened, for a person.
    message: &'static str,
    /// Whether something was cleared.
    cleared: bool,
    /// Whether the reaction counts: `false` where a newer one of the same user does.
    applied: bool,
    /// The event of what is current, for `GET /v1/feedback/{feedbackId}`; after a clear, the event that
    /// it withdrew. `null` where there was nothing to clear.
    feedback_id: Option<Uuid>,
    /// The reaction's artifact, a tombstone's too; `null` if there never was one.
    rn: Option<String>,
}

/// React to a turn
///
/// One reaction of each user stands: the newest by `ts`, and of two with the same `ts` the one
/// that arrived last. What the machine infers is added beside, and sets how the turn was taken unless its
/// user says so on purpose.
#[utoipa::path(
    post,
    path = "/conversations/{tenant}/{project}/{conversation_id}/turns/{turn_id}/feedback",
    tag = "reactions",
    params(
        ("tenant" = String, Path, description = "The token's tenant"),
        ("project" = String, Path, description = "A project that the token holds"),
        ("conversation_id" = String, Path, description = "The conversation"),
        ("turn_id" = String, Path, description = "The turn"),
    ),
    request_body = ReactionBody,
    responses(
        (status = 200, description = "It stands, or was cleared", body = Reacted),
        (status = 400, description = "The body is not JSON or breaks the schema", body = ProblemDocument),
        (status = 401, description = "No valid token", body = ProblemDocument),
        (status = 403, description = "Not the token's tenant or project, or for another user or the machine without `feedback:on-behalf`", body = ProblemDocument),
        (status = 404, description = "The turn is not registered", body = ProblemDocument),
        (status = 409, description = "The user's data is being erased", body = ProblemDocument),
        (status = 413, description = "The body has more than 16 KiB", body = ProblemDocument),
        (status = 422, description = "The machine is not sure enough", body = ProblemDocument),
        (status = 503, description = "The store could not be reached; try again", body = ProblemDocument),
    ),
    security(("bearer" = []))
)]
async fn react(
    State(app): State<App>,
    InTurn { at, caller }: InTurn,
    JsonBody(body): JsonBody<MAX_BODY>,
) -> Result<Json<Reacted>, Problem> {
    let now = app.clock.now();
    let posted = Posted::parse(&body, &caller, now).map_err(refused)?;
    // What the machine says may be in the name of the turn's owner, who is not known yet; whether
    // it said so before, the conditional put tells.
    let place = posted
        .place(&caller)
        .map(|user| keys::user_reaction(&at.turn, user));
    let standing = async {
        let standing = app.store.turn_and_reaction(&at, place.as_deref(), now);
        standing.await?.ok_or_else(|| Problem::no_such("turn"))
    };
    let taken = async {
        match posted.place(&caller) {
            Some(user) => app.refuse_while_erased(&at.within.tenant, user).await,
            None => Ok(None),
        }
    };
    // Both to their end: an unknown turn costs what a known one does.
    let (standing, erased) = futures::join!(standing, taken);
    let ((turn, standing), mut erased) = (standing?, erased?);
    let reaction = posted
        .about(&turn, &caller, app.mirrors(&at.within), now)
        .named_by(&app.pseudonyms);
    if place.is_none() {
        // In whose name the machine speaks, the turn told.
        let user = &reaction.core.user_id;
        erased = app.refuse_while_erased(&at.within.tenant, user).await?;
        app.store.note_machine(&reaction, None).await?;
    }
    settle(&app, reaction, (standing, erased)).await.map(Json)
}

async fn settle(
    app: &App,
    reaction: StoredReaction,
    (mut standing, erased): (Option<Standing<StoredReaction>>, Option<Uuid>),
) -> Result<Reacted, Problem> {
    for _ in 0..TRIES {
        let step = reaction
            .clone()
            .over(standing.as_ref().map(|standing| &standing.held));
        let next = match step {
            Step::Write(next) => next,
            Step::Repeat(held) => return Ok(stands(&held.core)),
            Step::Superseded => return Ok(superseded(reaction.core, standing)),
            Step::NothingToClear => {
                return Ok(Reacted {
                    message: "There was nothing to clear.",
                    cleared: false,
                    feedback_id: None,
                    rn: None,
                    ..stands(&reaction.core)
                });
            }
        };
        if next.core.reaction.is_some() {
            // First, so that no report misses a reaction that stands.
            app.store.mark_activity_once(&next.core, erased).await?;
        }
        match app.store.put_reaction(&next, standing.as_ref()).await? {
            Replaced::Done => return Ok(stands(&next.core)),
            Replaced::Lost(now) => standing = now.map(|held| *held),
        }
    }
    Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable")
        .detail("Too many reactions to this turn at once. Try again."))
}

fn stands(core: &ReactionCore) -> Reacted {
    let cleared = core.reaction.is_none();
    Reacted {
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

/// Tells what stands instead.
fn superseded(posted: ReactionCore, standing: Option<Standing<StoredReaction>>) -> Reacted {
    Reacted {
        message: "A newer reaction of the same user stands.",
        cleared: false,
        applied: false,
        ..stands(&standing.map_or(posted, |standing| standing.held.core))
    }
}

fn refused(refused: Refused) -> Problem {
    match refused {
        Refused::Invalid(errors) => Problem::invalid(errors),
        Refused::Unsure => Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "low_confidence")
            .detail(Refused::Unsure.to_string()),
        Refused::Forbidden(forbidden) => forbidden.into(),
    }
}

//! Infers feedback from a message that names no turn, and stores it with the turn that the message is most likely
//! about.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use hearback_detection::{Detection, Exchange};
use hearback_domain::identity::identifier::{UserId, UserRef};
use hearback_domain::turns::target::{Compared, MIN_SIMILARITY, TOP_K, Target};
use hearback_domain::turns::turn::{Embedding, TurnRef};
use hearback_lambda::body::Body;
use hearback_lambda::params::InProject;
use hearback_lambda::problem::ProblemDocument;
use hearback_lambda::rejections::{BodyRejections, ForbiddenRejection};
use hearback_lambda::routes::Routes;
use hearback_lambda::{Problem, routes};
use hearback_storage::turn_rows::IndexRow;
use hearback_storage::vectors::TargetSearch;
use hearback_wire::request;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{Registry, machine};

/// Largest body, in bytes.
const MAX_BODY: usize = 256 * 1024;

pub(crate) fn routes() -> Routes<Registry> {
    routes!(Registry => infer_feedback)
}

request! {
    /// A message that may be about any of the caller's turns.
    struct InferRequest, closed {
        /// The user's message.
        "message" => message: required String,
        /// The language of the message, as `en` or `en-GB`; guessed if left out.
        "language" => language: nullable String,
        /// An embedding of the message, made by the same model as the turns' own. If left out, this deployment's
        /// embedder makes one.
        "embedding" => embedding: nullable Embedding,
        /// The user who wrote it and whose turns are searched, with `feedback:on-behalf`; the caller if left out.
        "user_id" => user_id: nullable UserId,
    }
    example {"message": "The laptops you showed me were wrong, I meant gaming laptops"}
}

/// The inferred feedback.
#[derive(Serialize, ToSchema)]
struct InferredFeedback {
    /// The feedback in the message.
    detection: Detection,
    /// The embedder of the compared vectors.
    embedder: String,
    /// The compared vectors.
    vectors: Compared,
    /// The turns that it may be about, the most likely first, at most five.
    targets: Vec<LikelyTurn>,
    /// The artifact of the machine reaction to the first of them; `null` if the confidence is too low, no turn is
    /// similar enough, or a person took the same reaction back.
    #[schema(required = true)]
    rn: Option<String>,
}

/// A turn that a message may be about.
#[derive(Serialize, ToSchema)]
struct LikelyTurn {
    conversation_id: String,
    turn_id: String,
    ts: DateTime<Utc>,
    /// The similarity to the message, −1 to 1.
    similarity: f64,
    /// 0.85 · similarity + 0.15 · recency.
    score: f64,
}

impl LikelyTurn {
    fn of(target: &Target<TurnRef>) -> Self {
        Self {
            conversation_id: target.turn.within.conversation.to_string(),
            turn_id: target.turn.turn.to_string(),
            ts: target.ts,
            similarity: target.similarity,
            score: target.score,
        }
    }
}

/// Infer feedback from a message
///
/// Detects feedback in the message, and searches the caller's own turns of the last 365 days for the one that it is
/// about. If the confidence (0.70) and the similarity of the most likely turn (0.20) are high enough, a machine
/// reaction is stored for that turn and sets its status. Repeating the same message about the same turn updates the
/// time of that reaction.
#[utoipa::path(
    post,
    path = "/conversations/{tenant}/{project}/feedback/infer",
    tag = "reactions",
    params(
        InProject,
    ),
    request_body = InferRequest,
    responses(
        (status = 200, description = "The inferred feedback", body = InferredFeedback),
        (status = 409, description = "The user's data is being erased", body = ProblemDocument),
        BodyRejections,
        ForbiddenRejection,
    ),
    security(("bearer" = []))
)]
async fn infer_feedback(
    State(registry): State<Registry>,
    within: InProject,
    Body(request): Body<InferRequest, MAX_BODY>,
) -> Result<Json<InferredFeedback>, Problem> {
    let app = &registry.app.app;
    let caller = within.caller.on_behalf_of(request.user_id)?;
    let now = app.clock.now();
    let detection = registry.detector.detect(&Exchange {
        message: &request.message,
        language: request.language.as_deref(),
        ..Exchange::default()
    });
    let owner = UserRef::new(&within.tenant, &caller.user);
    app.reject_during_erasure(owner).await?;
    let embedding = request.embedding.map(|embedding| embedding.0);
    let vector = (app.embeddings)
        .of(embedding.as_deref(), &request.message)
        .await;
    let turns = TargetSearch {
        owner,
        project: &within.project,
        about: &vector,
        now,
    };
    let mut targets = app.store.targets(&turns).await?;
    // The text of a turn is a question, and says nothing about its own answer.
    let is_question = |turn: &IndexRow| turn.summary.is_question(&request.message);
    targets.found.retain(|(_, turn)| !is_question(turn));
    let likely = (targets.found.first()).filter(|(target, _)| target.similarity >= MIN_SIMILARITY);
    let heard = (request.message.as_str(), &detection);
    let reaction = likely.and_then(|(_, turn)| machine::named(app, &caller, &turn.core, heard));
    let rn = match reaction {
        Some(reaction) => {
            let stored = machine::put(app, &reaction).await?;
            if stored.is_some() {
                let correction = detection.correction_type;
                app.store.note_machine(&reaction, correction).await?;
            }
            stored
        }
        None => None,
    };
    Ok(Json(InferredFeedback {
        detection,
        embedder: vector.embedder,
        vectors: targets.compared,
        targets: (targets.found.iter().take(TOP_K))
            .map(|(target, _)| LikelyTurn::of(target))
            .collect(),
        rn,
    }))
}

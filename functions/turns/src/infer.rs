//! What a message says of an answer that it does not name: detected, and attached to the turn that it is
//! most likely about.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use hearback_domain::detection::{Detection, Exchange};
use hearback_domain::identifier::UserId;
use hearback_domain::parse::{Errors, Object, identifier, string};
use hearback_domain::target::{Compared, LEAST_SIMILARITY, TOP_K, Target};
use hearback_domain::turn::{TurnRef, embedding};
use hearback_lambda::body::JsonBody;
use hearback_lambda::params::InProject;
use hearback_lambda::problem::ProblemDocument;
use hearback_lambda::routes::Routes;
use hearback_lambda::{Problem, routes};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::{Registry, machine};

/// Largest body, in bytes.
const MAX_BODY: usize = 256 * 1024;

pub(crate) fn routes() -> Routes<Registry> {
    routes!(Registry => infer)
}

/// A message that may be about any of the caller's turns.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({"message": "The laptops you showed me were wrong, I meant gaming laptops"}))]
struct InferRequest {
    /// What the user says.
    message: String,
    /// Its language, as `en` or `en-GB`; guessed if left out.
    language: Option<String>,
    /// Its embedding, by the maker of the turns' own; without it this deployment's embedder makes one.
    #[schema(min_items = 1, max_items = 4096)]
    embedding: Option<Vec<f32>>,
    /// The user who says it and among whose turns to look, with `feedback:on-behalf`; the caller without.
    #[schema(min_length = 1, max_length = 256)]
    user_id: Option<String>,
}

/// What was inferred.
#[derive(Serialize, ToSchema)]
struct Inferred {
    /// What the message says.
    detection: Detection,
    /// Who made the vectors that were compared.
    embedder: String,
    /// Which vectors were looked at.
    vectors: Compared,
    /// The turns that it may be about, the likeliest first, at most five.
    targets: Vec<Likely>,
    /// The artifact of the machine's reaction to the first of them; `null` if the detection is not
    /// sure enough, or no turn is like the message.
    rn: Option<String>,
}

/// A turn that a message may be about.
#[derive(Serialize, ToSchema)]
struct Likely {
    conversation_id: String,
    turn_id: String,
    ts: DateTime<Utc>,
    /// How like the message it is, −1 to 1.
    similarity: f64,
    /// 0.85 · similarity + 0.15 · recency.
    score: f64,
}

impl Likely {
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

struct Request<'a> {
    message: &'a str,
    language: Option<&'a str>,
    embedding: Option<Vec<f32>>,
    user_id: Option<UserId>,
}

/// Infer feedback from a message
///
/// Detects what it says, and looks among the caller's own turns of the last 365 days for the one that it
/// is about. If the detection is sure enough (0.70), and the likeliest turn is like the message (0.20),
/// the machine's reaction is written to that turn and sets its status; the same message about the same
/// turn changes nothing.
#[utoipa::path(
    post,
    path = "/conversations/{tenant}/{project}/feedback/infer",
    tag = "reactions",
    params(
        ("tenant" = String, Path, description = "The token's tenant"),
        ("project" = String, Path, description = "A project that the token holds"),
    ),
    request_body = InferRequest,
    responses(
        (status = 200, description = "What was inferred", body = Inferred),
        (status = 400, description = "The body is not JSON or breaks the schema", body = ProblemDocument),
        (status = 401, description = "No valid token", body = ProblemDocument),
        (status = 403, description = "Not the token's tenant or project, or for another user without `feedback:on-behalf`", body = ProblemDocument),
        (status = 409, description = "The user's data is being erased", body = ProblemDocument),
        (status = 413, description = "The body has more than 256 KiB", body = ProblemDocument),
        (status = 503, description = "The store could not be reached; try again", body = ProblemDocument),
    ),
    security(("bearer" = []))
)]
async fn infer(
    State(registry): State<Registry>,
    within: InProject,
    JsonBody(body): JsonBody<MAX_BODY>,
) -> Result<Json<Inferred>, Problem> {
    let app = &registry.app.app;
    let request = parse(&body)?;
    let caller = within.caller.on_behalf_of(request.user_id)?;
    let now = app.clock.now();
    let detection = registry.detector.detect(&Exchange {
        message: request.message,
        language: request.language,
        ..Exchange::default()
    });
    let owner = (&within.tenant, &caller.user);
    app.refuse_while_erased(&within.tenant, &caller.user)
        .await?;
    let about = (app.embeddings)
        .of(request.embedding.as_deref(), request.message)
        .await;
    let targets = app
        .store
        .targets(owner, &within.project, &about, now)
        .await?;
    let likely =
        (targets.found.first()).filter(|(target, _)| target.similarity >= LEAST_SIMILARITY);
    let said = (&detection, now);
    let reaction = likely.and_then(|(_, turn)| machine::reaction(app, &caller, &turn.core, said));
    let rn = match reaction {
        Some(reaction) => {
            let correction = detection.correction_type;
            app.store.note_machine(&reaction, correction).await?;
            Some(machine::put(app, &reaction).await?)
        }
        None => None,
    };
    Ok(Json(Inferred {
        detection,
        embedder: about.embedder,
        vectors: targets.compared,
        targets: (targets.found.iter().take(TOP_K))
            .map(|(target, _)| Likely::of(target))
            .collect(),
        rn,
    }))
}

fn parse(body: &Value) -> Result<Request<'_>, Problem> {
    let mut errors = Errors::default();
    let request = Object::root(body, &mut errors);
    request.known_only(
        &["message", "language", "embedding", "user_id"],
        &mut errors,
    );
    let message = request.required("message", &mut errors, string);
    let language = request.nullable("language", &mut errors, string);
    let embedding = request.nullable("embedding", &mut errors, embedding);
    let user_id = request.nullable("user_id", &mut errors, identifier);
    match message {
        Some(message) if errors.is_empty() => Ok(Request {
            message,
            language,
            embedding,
            user_id,
        }),
        _ => Err(Problem::invalid(errors.into_vec())),
    }
}

//! Strategies to use again: the caller's past turns that are like a query, as they were taken.

use std::cmp::Ordering;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use hearback_domain::detection::FeedbackType;
use hearback_domain::identifier::UserId;
use hearback_domain::parse::{Errors, Object, identifier, number_in, string};
use hearback_domain::satisfaction::{Rank, ValidationOutcome, satisfaction_score};
use hearback_domain::target::{Compared, LEAST_SIMILARITY, TOP_K, Target};
use hearback_domain::turn::{TurnRef, embedding};
use hearback_lambda::body::JsonBody;
use hearback_lambda::params::InProject;
use hearback_lambda::problem::ProblemDocument;
use hearback_lambda::routes::Routes;
use hearback_lambda::{App, Problem, WithBlobs, routes};
use hearback_storage::turns::IndexRow;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::MAX_BODY;

/// The quality of an answer that nobody judged.
const UNJUDGED: f64 = 0.5;

pub(crate) fn routes() -> Routes<WithBlobs> {
    routes!(WithBlobs => search)
}

/// What is looked for.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({"query": "gaming laptops under $1000"}))]
struct SearchRequest {
    /// What is to be answered.
    query: String,
    /// Its embedding, by the maker of the turns' own; without it this deployment's embedder makes one.
    #[schema(min_items = 1, max_items = 4096)]
    embedding: Option<Vec<f32>>,
    /// How like the query a turn must be at least.
    #[schema(minimum = 0, maximum = 1, default = 0.2)]
    min_similarity: Option<f64>,
    /// The user among whose turns to search, with `feedback:on-behalf`; the caller without.
    #[schema(min_length = 1, max_length = 256)]
    user_id: Option<String>,
}

/// Past turns whose strategies may be used again.
#[derive(Serialize, ToSchema)]
struct Strategies {
    /// Who made the vectors that were compared.
    embedder: String,
    /// Which vectors were looked at.
    vectors: Compared,
    /// The turns: accepted ones first, then those of which nothing is known, each by
    /// `ranking_score`, and of equal ones by `similarity`. Rejected ones are left out, and those that
    /// are less like the query than `min_similarity`.
    strategies: Vec<Strategy>,
}

/// A past turn.
#[derive(Serialize, ToSchema)]
struct Strategy {
    conversation_id: String,
    turn_id: String,
    ts: DateTime<Utc>,
    /// What its user had asked, in short.
    query: String,
    /// The strategy by which it was answered.
    strategy: Option<String>,
    /// How like the query it is, −1 to 1.
    similarity: f64,
    /// How it was taken.
    user_feedback_status: FeedbackType,
    /// How sure that is, 0 to 1.
    feedback_confidence: f64,
    /// As it was registered, 0 to 1.
    quality_score: Option<f64>,
    /// 0.6 · quality + 0.4 · what its user made of it; a turn without a quality counts as 0.5.
    ranking_score: f64,
    /// What a validation and its user made of it, −1 to 1.
    satisfaction_score: f64,
}

/// Search strategies
///
/// Of the caller's own turns of the last 365 days that were not rejected, the five that are most like
/// the query, as far as they are like it (0.20, or `min_similarity`).
#[utoipa::path(
    post,
    path = "/conversations/{tenant}/{project}/strategies/search",
    tag = "turns",
    params(
        ("tenant" = String, Path, description = "The token's tenant"),
        ("project" = String, Path, description = "A project that the token holds"),
    ),
    request_body = SearchRequest,
    responses(
        (status = 200, description = "The strategies, the first choice first", body = Strategies),
        (status = 400, description = "The body is not JSON or breaks the schema", body = ProblemDocument),
        (status = 401, description = "No valid token", body = ProblemDocument),
        (status = 403, description = "Not the token's tenant or project, or for another user without `feedback:on-behalf`", body = ProblemDocument),
        (status = 413, description = "The body has more than 1 MiB", body = ProblemDocument),
        (status = 503, description = "The store could not be reached; try again", body = ProblemDocument),
    ),
    security(("bearer" = []))
)]
async fn search(
    State(app): State<App>,
    within: InProject,
    JsonBody(body): JsonBody<MAX_BODY>,
) -> Result<Json<Strategies>, Problem> {
    let search = parse(&body)?;
    let caller = within.caller.on_behalf_of(search.user_id)?;
    let about = (app.embeddings)
        .of(search.embedding.as_deref(), search.query)
        .await;
    let owner = (&within.tenant, &caller.user);
    let now = app.clock.now();
    let targets = app
        .store
        .targets(owner, &within.project, &about, now)
        .await?;
    // The likeliest that were not rejected.
    let mut ranked: Vec<(Rank, Strategy)> = (targets.found.into_iter())
        .filter(|(target, _)| target.similarity >= search.min_similarity)
        .filter_map(|(target, row)| ranked(&target, row))
        .take(TOP_K)
        .collect();
    ranked.sort_by(|(one, _), (other, _)| -> Ordering { one.order(other) });
    Ok(Json(Strategies {
        embedder: about.embedder,
        vectors: targets.compared,
        strategies: ranked.into_iter().map(|(_, strategy)| strategy).collect(),
    }))
}

/// What is searched for, and among whose turns.
struct Search<'a> {
    query: &'a str,
    embedding: Option<Vec<f32>>,
    min_similarity: f64,
    user_id: Option<UserId>,
}

fn parse(body: &Value) -> Result<Search<'_>, Problem> {
    let mut errors = Errors::default();
    let request = Object::root(body, &mut errors);
    request.known_only(
        &["query", "embedding", "min_similarity", "user_id"],
        &mut errors,
    );
    let query = request.required("query", &mut errors, string);
    let embedding = request.nullable("embedding", &mut errors, embedding);
    let least = request.nullable("min_similarity", &mut errors, number_in(0.0, 1.0));
    let user_id = request.nullable("user_id", &mut errors, identifier);
    match query {
        Some(query) if errors.is_empty() => Ok(Search {
            query,
            embedding,
            min_similarity: least.unwrap_or(LEAST_SIMILARITY),
            user_id,
        }),
        _ => Err(Problem::invalid(errors.into_vec())),
    }
}

/// A turn with its place, unless it was rejected.
fn ranked(target: &Target<TurnRef>, row: IndexRow) -> Option<(Rank, Strategy)> {
    let status = row.status.status();
    let quality = row.core.quality_score.unwrap_or(UNJUDGED);
    let rank = Rank::of((quality, target.similarity), status)?;
    let outcome = row.core.validation_outcome.as_ref();
    let outcome = outcome.and_then(|outcome| ValidationOutcome::named(outcome.as_str()));
    let strategy = Strategy {
        conversation_id: row.core.at.within.conversation.into(),
        turn_id: row.core.at.turn.into(),
        ts: row.core.ts,
        query: row.summary.user,
        strategy: row.core.strategy.map(Into::into),
        similarity: rank.similarity,
        user_feedback_status: status,
        feedback_confidence: row.status.confidence(),
        quality_score: row.core.quality_score,
        ranking_score: rank.ranking_score,
        satisfaction_score: satisfaction_score(outcome, status),
    };
    Some((rank, strategy))
}

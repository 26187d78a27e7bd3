//! The strategy search: the caller's past turns that are similar to a query, with their status.

use std::cmp::Ordering;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use hearback_detection::FeedbackStatus;
use hearback_domain::feedback::satisfaction::{Rank, ValidationOutcome, satisfaction_score};
use hearback_domain::identity::identifier::{UserId, UserRef};
use hearback_domain::turns::target::{Compared, MIN_SIMILARITY, TOP_K, Target};
use hearback_domain::turns::turn::{Embedding, TurnRef};
use hearback_lambda::body::Body;
use hearback_lambda::params::InProject;
use hearback_lambda::rejections::{BodyRejections, ForbiddenRejection};
use hearback_lambda::routes::Routes;
use hearback_lambda::{App, Problem, WithBlobs, routes};
use hearback_storage::turn_rows::IndexRow;
use hearback_storage::vectors::TargetSearch;
use hearback_wire::{Number, request};
use serde::Serialize;
use utoipa::ToSchema;

use crate::MAX_BODY;

/// The quality of an answer without a `quality_score`.
const DEFAULT_QUALITY: f64 = 0.5;

pub(crate) fn routes() -> Routes<WithBlobs> {
    routes!(WithBlobs => search_strategies)
}

/// The minimum similarity if the request has none.
const DEFAULT_SIMILARITY: Number<0, 1> = Number(MIN_SIMILARITY);

request! {
    /// A query for past turns.
    struct StrategySearchRequest, closed {
        /// The query to answer.
        "query" => query: required String,
        /// An embedding of the query, made by the same model as the turns' own. If left out, this deployment's embedder
        /// makes one.
        "embedding" => embedding: nullable Embedding,
        /// The minimum similarity of a turn to the query.
        "min_similarity" => min_similarity: nullable Number<0, 1> = DEFAULT_SIMILARITY,
        /// The user among whose turns to search, with `feedback:on-behalf`; the caller if left out.
        "user_id" => user_id: nullable UserId,
    }
    example {"query": "gaming laptops under $1000"}
}

/// Past turns whose strategies may be used again.
#[derive(Serialize, ToSchema)]
struct Strategies {
    /// The embedder of the compared vectors.
    embedder: String,
    /// The compared vectors.
    vectors: Compared,
    /// The turns: accepted ones first, then neutral ones, each by `ranking_score` and then by `similarity`. Rejected
    /// turns, and those below `min_similarity`, are left out.
    strategies: Vec<Strategy>,
}

/// A past turn.
#[derive(Serialize, ToSchema)]
struct Strategy {
    conversation_id: String,
    turn_id: String,
    ts: DateTime<Utc>,
    /// The beginning of its user's message.
    query: String,
    /// The strategy of its answer.
    #[schema(required = true)]
    strategy: Option<String>,
    /// The similarity to the query, −1 to 1.
    similarity: f64,
    /// The user's verdict.
    user_feedback_status: FeedbackStatus,
    /// The confidence of the verdict, 0 to 1.
    feedback_confidence: f64,
    /// The quality as registered, 0 to 1.
    #[schema(required = true)]
    quality_score: Option<f64>,
    /// 0.6 · quality + 0.4 · the weight of its feedback; a turn without a quality counts as 0.5.
    ranking_score: f64,
    /// From its validation and its feedback, −1 to 1.
    satisfaction_score: f64,
}

/// Search strategies
///
/// The five of the caller's own turns of the last 365 days that are most similar to the query. Rejected turns, and
/// those below the minimum similarity (0.20, or `min_similarity`), are left out.
#[utoipa::path(
    post,
    path = "/conversations/{tenant}/{project}/strategies/search",
    tag = "turns",
    params(
        InProject,
    ),
    request_body = StrategySearchRequest,
    responses(
        (status = 200, description = "The strategies, the best first", body = Strategies),
        BodyRejections,
        ForbiddenRejection,
    ),
    security(("bearer" = []))
)]
async fn search_strategies(
    State(app): State<App>,
    within: InProject,
    Body(search): Body<StrategySearchRequest, MAX_BODY>,
) -> Result<Json<Strategies>, Problem> {
    let embedding = search.embedding.map(|embedding| embedding.0);
    let caller = within.caller.on_behalf_of(search.user_id)?;
    let vector = (app.embeddings)
        .of(embedding.as_deref(), &search.query)
        .await;
    let owner = UserRef::new(&within.tenant, &caller.user);
    let turns = TargetSearch {
        owner,
        project: &within.project,
        about: &vector,
        now: app.clock.now(),
    };
    let found = app
        .store
        .wanted_targets(&turns, search.min_similarity.0, TOP_K, ranked);
    let (mut ranked, compared) = found.await?;
    ranked.sort_by(|(one, _), (other, _)| -> Ordering { one.order(other) });
    Ok(Json(Strategies {
        embedder: vector.embedder,
        vectors: compared,
        strategies: ranked.into_iter().map(|(_, strategy)| strategy).collect(),
    }))
}

/// A turn with its rank, unless it was rejected.
fn ranked(target: &Target<TurnRef>, row: IndexRow) -> Option<(Rank, Strategy)> {
    let status = row.status.status();
    let quality = row.core.quality_score.unwrap_or(DEFAULT_QUALITY);
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

//! The routes.

use std::cmp::Reverse;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use futures::future::try_join_all;
use hearback_domain::identity::caller::Scope;
use hearback_lambda::caller::VerifiedCaller;
use hearback_lambda::params::Parameters;
use hearback_lambda::problem::ProblemDocument;
use hearback_lambda::rejections::{ForbiddenRejection, Rejections};
use hearback_lambda::routes::Routes;
use hearback_lambda::{Problem, routes};
use hearback_wire::{Integer, request};
use serde::Serialize;
use utoipa::ToSchema;

use crate::dead_letters::DeadLetterQueue;
use crate::queues::{Queues, Unavailable, WorkQueue, work_queues};

/// Dead letters that one request moves back at most.
pub const MOST: i64 = 100;

/// Every route of this function.
pub fn routes() -> Routes<Queues> {
    routes!(Queues => list_queues, redrive_dead_letters)
}

request! {
    /// How many dead letters are moved.
    struct RedriveQuery, query {
        /// The maximum number of dead letters that are moved.
        "most" => most: optional Integer<1, MOST> = Integer(MOST),
    }
}

/// The queues of the deployment.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct QueueList {
    /// The version of Hearback.
    version: &'static str,
    /// The queues from which functions and subscribers take their work.
    queues: Vec<QueueDocument>,
    /// The dead-letter queues.
    dead_letters: Vec<DeadLettersDocument>,
}

/// A queue. SQS counts its messages approximately.
#[derive(Serialize, ToSchema)]
struct QueueDocument {
    /// Its name, without the stack's name.
    name: String,
    /// What its messages are.
    holds: &'static str,
    /// Messages that wait, also those with a delay.
    waiting: u32,
    /// Messages that were received and are not done yet.
    processing: u32,
}

/// A dead-letter queue.
#[derive(Serialize, ToSchema)]
struct DeadLettersDocument {
    /// Its name, without the stack's name.
    queue: DeadLetterQueue,
    /// What its dead letters are.
    holds: &'static str,
    /// Its dead letters. SQS counts them approximately.
    count: u32,
    /// Whether they can be moved back with a request.
    redrivable: bool,
    /// Why up to ten of them failed, the most frequent reason first.
    reasons: Vec<DeadLetterReason>,
}

/// Why dead letters failed.
#[derive(Serialize, ToSchema)]
struct DeadLetterReason {
    /// The reason, without content of a message.
    reason: String,
    /// How many of those that were looked at have it.
    count: u32,
}

/// The outcome of moving dead letters back.
#[derive(Serialize, ToSchema)]
struct RedriveOutcome {
    /// Dead letters that were sent to where they came from.
    moved: u32,
    /// Dead letters that could not be moved: a call failed, or nothing says from which subject's queue they came.
    failed: u32,
    /// Dead letters that are left of those that were there before.
    remaining: u32,
}

/// The dead-letter queue of a path.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "it only describes the parameter")]
struct OfDeadLetters {
    /// The name of the dead-letter queue.
    queue: DeadLetterQueue,
}

/// List the queues
///
/// How many messages wait in each queue of the deployment, and its dead letters with the reasons why they failed. Needs
/// `feedback:operate`, and shows nothing of their content.
#[utoipa::path(
    get,
    path = "/v1/operations/queues",
    tag = "operations",
    responses(
        (status = 200, description = "The queues", body = QueueList),
        Rejections,
        ForbiddenRejection,
    ),
    security(("bearer" = []))
)]
async fn list_queues(
    State(queues): State<Queues>,
    VerifiedCaller(caller): VerifiedCaller,
) -> Result<Json<QueueList>, Problem> {
    caller.require(Scope::Operate)?;
    let work = try_join_all(work_queues().map(|queue| depth(&queues, queue)));
    let dead = try_join_all(DeadLetterQueue::all().map(|queue| dead_letters(&queues, queue)));
    let (work, dead) = futures::try_join!(work, dead)?;
    Ok(Json(QueueList {
        version: env!("CARGO_PKG_VERSION"),
        queues: work.into_iter().flatten().collect(),
        dead_letters: dead.into_iter().flatten().collect(),
    }))
}

async fn depth(
    queues: &Queues,
    WorkQueue { name, holds }: WorkQueue,
) -> Result<Option<QueueDocument>, Unavailable> {
    let depth = queues.depth(&name).await?;
    Ok(depth.map(|depth| QueueDocument {
        name,
        holds,
        waiting: depth.waiting,
        processing: depth.processing,
    }))
}

async fn dead_letters(
    queues: &Queues,
    queue: DeadLetterQueue,
) -> Result<Option<DeadLettersDocument>, Unavailable> {
    let Some(depth) = queues.depth(&queue.queue()).await? else {
        return Ok(None);
    };
    let mut reasons = Vec::new();
    if depth.waiting > 0 {
        let counted = queues.reasons(queue).await?.into_iter();
        reasons.extend(counted.map(|(reason, count)| DeadLetterReason { reason, count }));
        reasons.sort_by_key(|reason| Reverse(reason.count));
    }
    Ok(Some(DeadLettersDocument {
        queue,
        holds: queue.holds(),
        count: depth.all(),
        redrivable: queue.is_redrivable(),
        reasons,
    }))
}

/// Move dead letters back
///
/// Sends dead letters to where they came from, to be processed again. Repair the cause first: what fails again becomes a
/// new dead letter. Repeat the request until as many are moved as there were, or none is. Needs `feedback:operate`.
#[utoipa::path(
    post,
    path = "/v1/operations/dead-letters/{queue}/redrive",
    tag = "operations",
    params(OfDeadLetters, RedriveQuery),
    responses(
        (status = 200, description = "The outcome", body = RedriveOutcome),
        (status = 404, description = "The deployment has no such queue", body = ProblemDocument),
        (status = 409, description = "These dead letters are no messages of another queue", body = ProblemDocument),
        Rejections,
        ForbiddenRejection,
    ),
    security(("bearer" = []))
)]
async fn redrive_dead_letters(
    State(queues): State<Queues>,
    VerifiedCaller(caller): VerifiedCaller,
    Path(name): Path<String>,
    Parameters(RedriveQuery { most }): Parameters<RedriveQuery>,
) -> Result<Json<RedriveOutcome>, Problem> {
    caller.require(Scope::Operate)?;
    let unknown = || Problem::not_found().detail("This deployment has no such dead-letter queue.");
    let queue = DeadLetterQueue::named(&name).ok_or_else(unknown)?;
    if !queue.is_redrivable() {
        return Err(not_redrivable(queue));
    }
    // A message that fails again at once is a new dead letter, which must not be moved in this request.
    let before = queues.depth(&queue.queue()).await?.ok_or_else(unknown)?;
    let most = before.all().min(most.to());
    let moved = queues.redrive(queue, most).await?;
    tracing::info!(
        queue = queue.as_str(),
        moved = moved.moved,
        failed = moved.failed,
        "dead letters moved back"
    );
    Ok(Json(RedriveOutcome {
        moved: moved.moved,
        failed: moved.failed,
        remaining: before.all() - moved.moved,
    }))
}

fn not_redrivable(queue: DeadLetterQueue) -> Problem {
    let problem = Problem::new(StatusCode::CONFLICT, "not_redrivable");
    problem.detail(if queue == DeadLetterQueue::Stream {
        "They name records of the table's stream. Deliver these with `hearback redrive --queue stream`."
    } else {
        "They only announced that a connection has news, which it receives with the next message. Delete them."
    })
}

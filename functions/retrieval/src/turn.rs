//! One turn with its feedback.

use std::cmp::Reverse;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use hearback_detection::{Detection, FeedbackStatus};
use hearback_domain::feedback::follow_up::{FollowUp, UserFeedback};
use hearback_domain::feedback::mirror;
use hearback_domain::feedback::reaction::StoredReaction;
use hearback_domain::feedback::satisfaction::satisfaction_rate;
use hearback_domain::identity::caller::Caller;
use hearback_domain::identity::identifier::{TurnId, UserId};
use hearback_domain::identity::labels::Labels;
use hearback_domain::text::digest::digest;
use hearback_domain::text::payload::{MAX_PAGE, escaped_json_size};
use hearback_domain::turns::turn::{TurnCore, TurnLog, TurnRef, TurnState};
use hearback_domain::views::turn_report::ReactionArtifact;
use hearback_lambda::params::{InTurn, Parameters};
use hearback_lambda::problem::ProblemDocument;
use hearback_lambda::rejections::{ForbiddenRejection, Rejections};
use hearback_lambda::routes::Routes;
use hearback_lambda::{Problem, WithBlobs, routes};
use hearback_storage::Error;
use hearback_storage::reactions::ReactionRow;
use hearback_storage::turn_rows::IndexRow;
use hearback_wire::request;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::part::{Part, UpTo};
use crate::visible;

pub(crate) fn routes() -> Routes<WithBlobs> {
    routes!(WithBlobs => get_turn)
}

/// A turn with its feedback.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TurnWithFeedback {
    turn_id: String,
    /// The application's log of the turn, with the mirrored feedback.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    turn_log: Option<Map<String, Value>>,
    /// The answer; left out of an open turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    assistant: Option<Value>,
    /// The user's message.
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<Value>,
    /// `turn_log.feedbacks[]`: the mirrors; empty without a log.
    feedbacks: Vec<Value>,
    /// The reactions themselves, as artifacts.
    pub(crate) reactions: Vec<ReactionArtifact>,
    /// ok ÷ (ok + `not_ok` + neutral), 0 to 1, where each user counts once; `null` without reactions.
    #[schema(required = true)]
    satisfaction_rate: Option<f64>,
}

impl TurnWithFeedback {
    /// A turn with its log and those of its reactions after `after` that fit into `room` bytes together with the log;
    /// and the last of these reactions, if there are more.
    pub(crate) fn of(
        turn: &TurnId,
        log: Option<TurnLog>,
        reactions: Vec<StoredReaction>,
        caller: &Caller,
        after: Option<&UpTo>,
        room: usize,
    ) -> (Self, Option<UpTo>) {
        let mut turn = Self {
            turn_id: turn.to_string(),
            turn_log: None,
            assistant: None,
            user: None,
            feedbacks: Vec::new(),
            reactions: Vec::new(),
            satisfaction_rate: satisfaction_rate(&reactions, caller),
        };
        if let Some(log) = log {
            let feedbacks = log.turn_log.get("feedbacks").and_then(Value::as_array);
            turn.feedbacks = feedbacks.cloned().unwrap_or_default();
            turn.turn_log = Some(log.turn_log);
            turn.assistant = log.assistant;
            turn.user = Some(log.user);
        }
        let room = room.saturating_sub(escaped_json_size(&turn));
        let artifact = |reaction: &StoredReaction| ReactionArtifact::of(reaction, caller);
        let size = |reaction: &StoredReaction| escaped_json_size(&artifact(reaction)) + 1;
        let mut part = Part::of(reactions, after, room, size);
        latest_first(&mut part.reactions);
        turn.reactions = part.reactions.iter().map(artifact).collect();
        (turn, part.rest)
    }
}

/// One turn.
#[derive(Debug, Serialize, ToSchema)]
struct TurnDetail {
    /// Whose turn it is.
    user_id: String,
    conversation_id: String,
    /// `open` until it has an answer.
    status: TurnState,
    /// The time of the turn.
    ts: DateTime<Utc>,
    /// Tags of the turn.
    tags: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    span_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    track_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bundle_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifact_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    strategy: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    validation_outcome: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    quality_score: Option<f64>,
    /// The language of the user's message.
    #[serde(skip_serializing_if = "Option::is_none")]
    language: Option<String>,
    /// Labels by which a team compares answers.
    #[serde(skip_serializing_if = "Labels::is_empty")]
    #[schema(value_type = BTreeMap<String, String>)]
    labels: Labels,
    /// The verdict: from the user's feedback, or else from their next message.
    user_feedback_status: FeedbackStatus,
    /// The confidence of the verdict, 0 to 1; 0.5 without feedback.
    feedback_confidence: f64,
    /// The turn that rejected it.
    #[schema(required = true)]
    rejection_detected_in: Option<String>,
    /// What its user's next message implied.
    #[schema(required = true)]
    user_feedback: Option<UserFeedback>,
    /// What its own message was heard to say about the turn before it; `null` if it follows none.
    #[schema(required = true)]
    detection: Option<HeardFeedback>,
    #[serde(flatten)]
    turn: TurnWithFeedback,
    /// The cursor for the rest of its feedback, if there is more than a response can have.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

impl TurnDetail {
    fn of(row: IndexRow, turn: TurnWithFeedback) -> Self {
        let IndexRow {
            core,
            status,
            follow_up,
            ..
        } = row;
        let tags = core.tags();
        Self {
            user_id: core.user_id.into(),
            conversation_id: core.at.within.conversation.into(),
            status: TurnState::of(core.open),
            ts: core.ts,
            tags,
            trace_id: core.trace_id.map(Into::into),
            span_id: core.span_id.map(Into::into),
            track_id: core.track_id.map(Into::into),
            bundle_id: core.bundle_id.map(Into::into),
            user_type: core.user_type.map(Into::into),
            artifact_type: core.artifact_type.map(Into::into),
            task_type: core.task_type.map(Into::into),
            agent_id: core.agent_id.map(Into::into),
            strategy: core.strategy.map(Into::into),
            validation_outcome: core.validation_outcome.map(Into::into),
            quality_score: core.quality_score,
            language: core.language.map(Into::into),
            labels: core.labels,
            user_feedback_status: status.status(),
            feedback_confidence: status.confidence(),
            rejection_detected_in: status.rejection_detected_in().map(ToString::to_string),
            user_feedback: status.inferred,
            detection: follow_up.map(Into::into),
            turn,
            next_cursor: None,
        }
    }
}

/// What a message says about the turn before it, without the number of rejections in a row: that depends on message
/// signals, which are private.
#[derive(Debug, Serialize, ToSchema)]
struct HeardFeedback {
    /// The turn before it.
    previous_turn_id: String,
    #[serde(flatten)]
    detection: Detection,
}

impl From<FollowUp> for HeardFeedback {
    fn from(follow_up: FollowUp) -> Self {
        Self {
            previous_turn_id: follow_up.previous_turn_id.into(),
            detection: follow_up.detection,
        }
    }
}

request! {
    /// The view in which a turn is read, and the page.
    struct TurnQuery, query {
        /// The user in whose view the turn is read, with `feedback:on-behalf`; the caller if left out.
        "user_id" => user_id: optional UserId,
        /// `next_cursor` of the previous page.
        "cursor" => cursor: optional String,
    }
}

/// One turn
///
/// With its log and its feedback. Another user's turn is found with `feedback:report` only. If there is more feedback
/// than a response can have, the response has a `next_cursor`; later pages have no log.
#[utoipa::path(
    get,
    path = "/conversations/{tenant}/{project}/{conversation_id}/turns/{turn_id}",
    tag = "turns",
    params(
        InTurn,
        TurnQuery,
    ),
    responses(
        (status = 200, description = "The turn", body = TurnDetail),
        (status = 404, description = "No such turn, or not the caller's", body = ProblemDocument),
        Rejections,
        ForbiddenRejection,
    ),
    security(("bearer" = []))
)]
async fn get_turn(
    State(app): State<WithBlobs>,
    InTurn { at, caller }: InTurn,
    Parameters(view): Parameters<TurnQuery>,
) -> Result<Json<TurnDetail>, Problem> {
    let caller = caller.on_behalf_of(view.user_id)?;
    let names = [
        at.within.tenant.as_str(),
        at.within.project.as_str(),
        at.within.conversation.as_str(),
        at.turn.as_str(),
    ];
    let query = digest(["turn"].into_iter().chain(names).chain([caller.view()]));
    let cursors = &app.app.cursors;
    let after: Option<UpTo> = (view.cursor)
        .map(|cursor| cursors.open(&query, &cursor).map_err(Problem::cursor))
        .transpose()?;
    let (row, log) = turn_with_log(&app, &at, &caller)
        .await?
        .ok_or_else(|| Problem::no_such("turn"))?;
    let log = log.filter(|_| after.is_none());
    let reactions = app.app.store.reactions_of(&at, app.app.clock.now()).await?;
    let reactions = current_reactions(reactions, &caller);
    let (turn, rest) =
        TurnWithFeedback::of(&at.turn, log, reactions, &caller, after.as_ref(), MAX_PAGE);
    let mut turn = TurnDetail::of(row, turn);
    turn.next_cursor = rest.map(|rest| cursors.seal(&query, &rest));
    Ok(Json(turn))
}

/// A turn and its log, if the caller may see them. A log of an earlier version that is too large for a response is left
/// out.
pub(crate) async fn turn_with_log(
    app: &WithBlobs,
    at: &TurnRef,
    caller: &Caller,
) -> Result<Option<(IndexRow, Option<TurnLog>)>, Error> {
    let sees = |turn: &TurnCore| caller.sees(&turn.user_id);
    let now = app.app.clock.now();
    let found = app.blobs.turn_with_log(&app.app.store, at, now, sees);
    Ok(found.await?.map(|(row, mut log)| {
        let row = row.seen_by(&caller.user, now);
        mirror::hide(&mut log.turn_log, now, |user| caller.sees(user));
        let fits = log.fits();
        (row, Some(log).filter(|_| fits))
    }))
}

/// The current reactions that the caller may see, the latest first.
pub(crate) fn current_reactions(rows: Vec<ReactionRow>, caller: &Caller) -> Vec<StoredReaction> {
    let mut reactions = visible(rows, caller);
    reactions.retain(|reaction| reaction.core.reaction.is_some());
    latest_first(&mut reactions);
    reactions
}

fn latest_first(reactions: &mut [StoredReaction]) {
    reactions.sort_by_key(|reaction| Reverse(reaction.core.recency()));
}

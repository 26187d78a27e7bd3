//! Turns and what was thought of them: one turn, and the report of a conversation.

use std::cmp::Reverse;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use hearback_domain::caller::Caller;
use hearback_domain::detection::FeedbackType;
use hearback_domain::digest::digest;
use hearback_domain::follow_up::UserFeedback;
use hearback_domain::identifier::TurnId;
use hearback_domain::labels::Labels;
use hearback_domain::mirror;
use hearback_domain::payload::{MAX_PAGE, carried};
use hearback_domain::period::Counts;
use hearback_domain::reaction::StoredReaction;
use hearback_domain::turn::{Status, TurnCore, TurnLog, TurnRef};
use hearback_domain::turn_report::{Artifact, Request};
use hearback_domain::turn_status::TurnStatus;
use hearback_lambda::body::JsonBody;
use hearback_lambda::params::{InConversation, InTurn, Params};
use hearback_lambda::problem::ProblemDocument;
use hearback_lambda::routes::Routes;
use hearback_lambda::{Problem, WithBlobs, routes};
use hearback_storage::Error;
use hearback_storage::reactions::{Row, behind};
use hearback_storage::turns::IndexRow;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::part::{Part, UpTo};
use crate::{MAX_BODY, visible};

pub(crate) fn routes() -> Routes<WithBlobs> {
    routes!(WithBlobs => turn, turns_with_feedbacks)
}

/// A turn with its feedback.
#[derive(Debug, Serialize, ToSchema)]
struct Turn {
    turn_id: String,
    /// The caller's own log of the turn, with the feedback that was mirrored into it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    turn_log: Option<Map<String, Value>>,
    /// What was answered; left out of a turn that is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    assistant: Option<Value>,
    /// What the user said.
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<Value>,
    /// `turn_log.feedbacks[]`: what was mirrored; empty where the log was not read.
    feedbacks: Vec<Value>,
    /// The reactions themselves, as artifacts.
    reactions: Vec<Artifact>,
    /// ok ÷ (ok + `not_ok` + neutral), 0 to 1; `null` without reactions.
    satisfaction_rate: Option<f64>,
}

impl Turn {
    /// A turn with its log, and of its reactions those behind `after` that fit into `room` bytes beside
    /// that; and up to which these go, if there are more.
    fn of(
        turn: &TurnId,
        log: Option<TurnLog>,
        (reactions, caller): (Vec<StoredReaction>, &Caller),
        (after, room): (Option<&UpTo>, usize),
    ) -> (Self, Option<UpTo>) {
        let mut this = Self {
            turn_id: turn.to_string(),
            turn_log: None,
            assistant: None,
            user: None,
            feedbacks: Vec::new(),
            reactions: Vec::new(),
            satisfaction_rate: Counts::of(&reactions).satisfaction_rate(),
        };
        if let Some(log) = log {
            let feedbacks = log.turn_log.get("feedbacks").and_then(Value::as_array);
            this.feedbacks = feedbacks.cloned().unwrap_or_default();
            this.turn_log = Some(log.turn_log);
            this.assistant = log.assistant;
            this.user = Some(log.user);
        }
        let room = room.saturating_sub(carried(&this));
        let artifact = |reaction: &StoredReaction| Artifact::of(reaction, caller);
        let size = |reaction: &StoredReaction| carried(&artifact(reaction)) + 1;
        let mut part = Part::of(reactions, after, room, size);
        latest_first(&mut part.reactions);
        this.reactions = part.reactions.iter().map(artifact).collect();
        (this, part.rest)
    }
}

/// One turn.
#[derive(Debug, Serialize, ToSchema)]
struct OneTurn {
    /// Whose turn it is.
    user_id: String,
    conversation_id: String,
    /// `open` until it has an answer.
    status: Status,
    /// When it was.
    ts: DateTime<Utc>,
    /// How it is found.
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
    /// The language of what the user said.
    #[serde(skip_serializing_if = "Option::is_none")]
    language: Option<String>,
    /// What a team compares answers by.
    #[serde(skip_serializing_if = "Labels::is_empty")]
    #[schema(value_type = BTreeMap<String, String>)]
    labels: Labels,
    /// How it was taken: as its user said, or else as their next message implied.
    user_feedback_status: FeedbackType,
    /// How sure that is, 0 to 1; 0.5 where nothing is known.
    feedback_confidence: f64,
    /// The turn in which it was found to be rejected.
    rejection_detected_in: Option<String>,
    /// What its user's next message implied.
    user_feedback: Option<UserFeedback>,
    #[serde(flatten)]
    turn: Turn,
    /// Where its feedback goes on, if it is more than an answer holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

impl OneTurn {
    fn of(core: TurnCore, status: TurnStatus, turn: Turn) -> Self {
        let tags = core.tags();
        Self {
            user_id: core.user_id.into(),
            conversation_id: core.at.within.conversation.into(),
            status: Status::of(core.open),
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
            turn,
            next_cursor: None,
        }
    }
}

/// One turn
///
/// With its log and its feedback. Somebody else's turn is not found, but with `feedback:report`. Where
/// there is more feedback than an answer holds, there is a `next_cursor`; the pages behind it have no log.
#[utoipa::path(
    get,
    path = "/conversations/{tenant}/{project}/{conversation_id}/turns/{turn_id}",
    tag = "turns",
    params(
        ("tenant" = String, Path, description = "The token's tenant"),
        ("project" = String, Path, description = "A project that the token holds"),
        ("conversation_id" = String, Path, description = "The conversation"),
        ("turn_id" = String, Path, description = "The turn"),
        ("user_id" = Option<String>, Query, min_length = 1, max_length = 256, description = "The user in whose view, with `feedback:on-behalf`; the caller without"),
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before"),
    ),
    responses(
        (status = 200, description = "The turn", body = OneTurn),
        (status = 400, description = "The path names no turn, or the cursor is not of it", body = ProblemDocument),
        (status = 401, description = "No valid token", body = ProblemDocument),
        (status = 403, description = "Not the token's tenant or project, or for another user without `feedback:on-behalf`", body = ProblemDocument),
        (status = 404, description = "No such turn, or not the caller's", body = ProblemDocument),
        (status = 503, description = "The store could not be reached; try again", body = ProblemDocument),
    ),
    security(("bearer" = []))
)]
async fn turn(
    State(app): State<WithBlobs>,
    InTurn { at, caller }: InTurn,
    mut params: Params,
) -> Result<Json<OneTurn>, Problem> {
    let caller = params.on_behalf(caller)?;
    let names = [
        at.within.tenant.as_str(),
        at.within.project.as_str(),
        at.within.conversation.as_str(),
        at.turn.as_str(),
    ];
    let query = digest(["turn"].into_iter().chain(names).chain([caller.view()]));
    let cursors = &app.app.cursors;
    let after: Option<UpTo> = (params.text("cursor"))
        .map(|cursor| cursors.open(&query, cursor).map_err(Problem::cursor))
        .transpose()?;
    let (row, log) = materialized(&app, &at, &caller)
        .await?
        .ok_or_else(|| Problem::no_such("turn"))?;
    let log = log.filter(|_| after.is_none());
    let reactions = app.app.store.reactions_of(&at, app.app.clock.now()).await?;
    let reactions = seen(reactions, &caller);
    let room = (after.as_ref(), MAX_PAGE);
    let (turn, rest) = Turn::of(&at.turn, log, (reactions, &caller), room);
    let mut turn = OneTurn::of(row.core, row.status, turn);
    turn.next_cursor = rest.map(|rest| cursors.seal(&query, &rest));
    Ok(Json(turn))
}

/// A turn and its log, if the caller may see them; without a log of an earlier version that no answer
/// holds.
async fn materialized(
    app: &WithBlobs,
    at: &TurnRef,
    caller: &Caller,
) -> Result<Option<(IndexRow, Option<TurnLog>)>, Error> {
    let sees = |turn: &TurnCore| caller.sees(&turn.user_id);
    let now = app.app.clock.now();
    let found = app.blobs.turn_with_log(&app.app.store, (at, now), sees);
    Ok(found.await?.map(|(row, mut log)| {
        mirror::hide(&mut log.turn_log, now, |user| caller.sees(user));
        let fits = log.fits();
        (row, Some(log).filter(|_| fits))
    }))
}

/// The request as callers post it.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({"turn_ids": null, "days": 365}))]
struct TurnsRequest {
    /// These turns; all of the conversation without.
    turn_ids: Option<Vec<String>>,
    /// Feedback of the last days. Turns that are named have no such limit unless one is given.
    #[schema(minimum = 1, maximum = 3650, default = 365)]
    days: Option<u16>,
    /// Whether to read the turns' logs too.
    include_turn_logs: Option<bool>,
    /// Most turns on the page.
    #[schema(minimum = 1, maximum = 500, default = 100)]
    limit: Option<u16>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
    /// The user in whose view, with `feedback:on-behalf`; the caller without.
    #[schema(min_length = 1, max_length = 256)]
    user_id: Option<String>,
}

/// A page of the report.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TurnPage)]
struct Page {
    /// Who asks.
    user_id: String,
    conversation_id: String,
    /// The turns with feedback: by their ids, or in the order in which they were named.
    turns: Vec<Turn>,
    /// Where the next page begins; `null` at the end.
    next_cursor: Option<String>,
}

/// Turns with feedback
///
/// Those of a conversation, by their ids, or those that are named. With `feedback:report` with
/// everybody's feedback, without with the caller's own. A page may end before `limit`; the
/// report ends where `next_cursor` is `null`. A turn with more feedback than a page holds comes again
/// on the next one, with the rest of it and without its log.
#[utoipa::path(
    post,
    path = "/conversations/{tenant}/{project}/{conversation_id}/turns-with-feedbacks",
    tag = "reports",
    params(
        ("tenant" = String, Path, description = "The token's tenant"),
        ("project" = String, Path, description = "A project that the token holds"),
        ("conversation_id" = String, Path, description = "The conversation"),
    ),
    request_body = TurnsRequest,
    responses(
        (status = 200, description = "A page of the report", body = Page),
        (status = 400, description = "The body is not JSON or breaks the schema, or the cursor is not of this query", body = ProblemDocument),
        (status = 401, description = "No valid token", body = ProblemDocument),
        (status = 403, description = "Not the token's tenant or project, or for another user without `feedback:on-behalf`", body = ProblemDocument),
        (status = 413, description = "The body has more than 1 MiB", body = ProblemDocument),
        (status = 503, description = "The store could not be reached; try again", body = ProblemDocument),
    ),
    security(("bearer" = []))
)]
async fn turns_with_feedbacks(
    State(app): State<WithBlobs>,
    mut within: InConversation,
    JsonBody(body): JsonBody<MAX_BODY>,
) -> Result<Json<Page>, Problem> {
    let mut request = Request::parse(&body).map_err(Problem::invalid)?;
    within.caller = within.caller.on_behalf_of(request.user_id.take())?;
    let caller = &within.caller;
    let at = &within.at;
    let names = [
        at.tenant.as_str(),
        at.project.as_str(),
        at.conversation.as_str(),
    ];
    let query = request.fingerprint(names, caller.view());
    let cursors = &app.app.cursors;
    let now = app.app.clock.now();
    let place = match &request.cursor {
        None => Place {
            since: request.since(now),
            after: After::default(),
        },
        Some(cursor) => cursors.open(&query, cursor).map_err(Problem::cursor)?,
    };
    let mut report = Report {
        app: &app,
        within: &within,
        request: &request,
        now,
        place,
        bytes: 0,
        turns: Vec::new(),
    };
    let more = match &request.turn_ids {
        Some(turns) => report.named(turns).await?,
        None => report.all().await?,
    };
    Ok(Json(Page {
        user_id: caller.user.to_string(),
        conversation_id: at.conversation.to_string(),
        turns: report.turns,
        next_cursor: more.then(|| cursors.seal(&query, &report.place)),
    }))
}

/// Where a page begins: what a cursor says.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Place {
    /// Feedback before this is left out, on all pages alike.
    since: DateTime<Utc>,
    after: After,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct After {
    /// Of the turns that are named, so many were looked at.
    named: usize,
    /// Of all turns, those up to this key were.
    key: Option<String>,
    /// Of the turn behind these, its feedback up to this was listed.
    #[serde(default)]
    within: Option<UpTo>,
}

struct Report<'a> {
    app: &'a WithBlobs,
    within: &'a InConversation,
    request: &'a Request,
    now: DateTime<Utc>,
    place: Place,
    bytes: usize,
    turns: Vec<Turn>,
}

impl Report<'_> {
    /// Lists turns that are named, and answers whether there are more.
    async fn named(&mut self, turns: &[TurnId]) -> Result<bool, Error> {
        for turn in turns.iter().skip(self.place.after.named) {
            let rows = self
                .app
                .app
                .store
                .reactions_of(&self.at(turn), self.now)
                .await?;
            if !self.list(turn, rows).await? {
                return Ok(true);
            }
            self.place.after.named += 1;
        }
        Ok(false)
    }

    /// Lists the turns of the conversation, and answers whether there are more.
    async fn all(&mut self) -> Result<bool, Error> {
        loop {
            let store = &self.app.app.store;
            let after = self.place.after.key.clone();
            let (rows, next) = store
                .reactions_from(&self.within.at, after.as_deref(), self.now)
                .await?;
            let mut turns: Vec<(TurnId, Vec<Row>)> = Vec::new();
            for row in rows {
                let (Row::Reaction(reaction) | Row::Counted(reaction)) = &row else {
                    continue;
                };
                let turn = reaction.core.at.turn.clone();
                match turns.last_mut() {
                    Some((last, rows)) if *last == turn => rows.push(row),
                    _ => turns.push((turn, vec![row])),
                }
            }
            // The last one may be cut in two by the end of what was read.
            let cut = if next.is_some() { turns.pop() } else { None };
            let alone = turns.is_empty();
            for (turn, rows) in turns {
                if !self.list(&turn, rows).await? {
                    return Ok(true);
                }
                self.place.after.key = Some(behind(&turn));
            }
            match (cut, next) {
                (_, None) => return Ok(false),
                // Nothing but rows that this report cannot show.
                (None, next) => self.place.after.key = next,
                (Some((turn, _)), _) if alone => {
                    let rows = store.reactions_of(&self.at(&turn), self.now).await?;
                    if !self.list(&turn, rows).await? {
                        return Ok(true);
                    }
                    self.place.after.key = Some(behind(&turn));
                }
                (Some(_), _) => {}
            }
        }
    }

    fn at(&self, turn: &TurnId) -> TurnRef {
        TurnRef {
            within: self.within.at.clone(),
            turn: turn.clone(),
        }
    }

    /// Lists a turn if it has feedback that the caller may see; false if the page is full, also in the
    /// middle of the turn.
    async fn list(&mut self, turn: &TurnId, rows: Vec<Row>) -> Result<bool, Error> {
        let mut reactions = seen(rows, &self.within.caller);
        reactions.retain(|reaction| reaction.core.ts >= self.place.since);
        let after = self.place.after.within.take();
        let after = after.filter(|after| after.is_of(turn));
        if reactions.is_empty() {
            return Ok(true);
        }
        if self.turns.len() == self.request.limit {
            return Ok(false);
        }
        let log = if self.request.include_turn_logs && after.is_none() {
            materialized(self.app, &self.at(turn), &self.within.caller).await?
        } else {
            None
        };
        let log = log.and_then(|(_, log)| log);
        let reactions = (reactions, &self.within.caller);
        let (turn, rest) = Turn::of(turn, log, reactions, (after.as_ref(), MAX_PAGE));
        if turn.reactions.is_empty() {
            // What was left of it is gone.
            return Ok(true);
        }
        let size = carried(&turn) + 1;
        if !self.turns.is_empty() && (rest.is_some() || self.bytes + size > MAX_PAGE) {
            return Ok(false);
        }
        self.bytes += size;
        self.turns.push(turn);
        self.place.after.within = rest;
        Ok(self.place.after.within.is_none())
    }
}

/// The reactions that stand and that the caller may see, the latest first.
fn seen(rows: Vec<Row>, caller: &Caller) -> Vec<StoredReaction> {
    let mut seen = visible(rows, caller);
    seen.retain(|reaction| reaction.core.reaction.is_some());
    latest_first(&mut seen);
    seen
}

fn latest_first(reactions: &mut [StoredReaction]) {
    reactions.sort_by_key(|reaction| Reverse((reaction.core.ts, reaction.core.id)));
}

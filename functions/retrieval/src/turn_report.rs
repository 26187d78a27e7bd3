//! The report of a conversation: its turns with feedback.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use hearback_domain::identity::identifier::TurnId;
use hearback_domain::text::payload::{MAX_PAGE, escaped_json_size};
use hearback_domain::turns::turn::TurnRef;
use hearback_domain::views::turn_report::TurnReportRequest;
use hearback_lambda::body::Body;
use hearback_lambda::params::InConversation;
use hearback_lambda::rejections::{BodyRejections, ForbiddenRejection};
use hearback_lambda::routes::Routes;
use hearback_lambda::{Problem, WithBlobs, routes};
use hearback_storage::reactions::{ReactionRow, key_after_turn};
use hearback_storage::{Error, unless_unreadable};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::MAX_BODY;
use crate::part::UpTo;
use crate::turn::{TurnWithFeedback, current_reactions, turn_with_log};

pub(crate) fn routes() -> Routes<WithBlobs> {
    routes!(WithBlobs => list_turns_with_feedback)
}

/// A page of the report.
#[derive(Debug, Serialize, ToSchema)]
struct TurnReportPage {
    /// The caller, or the user on whose behalf it acts.
    user_id: String,
    conversation_id: String,
    /// The turns with feedback: by their ids, or in the order of the request.
    turns: Vec<TurnWithFeedback>,
    /// Where the next page begins; `null` at the end.
    #[schema(required = true)]
    next_cursor: Option<String>,
}

/// Turns with feedback
///
/// All turns of a conversation by their ids, or those in the request. With `feedback:report` the turns have the
/// feedback of all users, otherwise the caller's own. A page may end before `limit`; the report ends where
/// `next_cursor` is `null`. A turn with more feedback than a page can have is on the next page again, with the rest and
/// without its log.
#[utoipa::path(
    post,
    path = "/conversations/{tenant}/{project}/{conversation_id}/turns-with-feedbacks",
    tag = "reports",
    params(
        InConversation,
    ),
    request_body = TurnReportRequest,
    responses(
        (status = 200, description = "A page of the report", body = TurnReportPage),
        BodyRejections,
        ForbiddenRejection,
    ),
    security(("bearer" = []))
)]
async fn list_turns_with_feedback(
    State(app): State<WithBlobs>,
    mut within: InConversation,
    Body(mut request): Body<TurnReportRequest, MAX_BODY>,
) -> Result<Json<TurnReportPage>, Problem> {
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
    let position = match &request.cursor {
        None => TurnReportPosition {
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
        position,
        bytes: 0,
        turns: Vec::new(),
    };
    let more = match request.distinct_turn_ids() {
        Some(turns) => report.named(&turns).await?,
        None => report.all().await?,
    };
    Ok(Json(TurnReportPage {
        user_id: caller.user.to_string(),
        conversation_id: at.conversation.to_string(),
        turns: report.turns,
        next_cursor: more.then(|| cursors.seal(&query, &report.position)),
    }))
}

/// Where a page begins: the content of a cursor.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct TurnReportPosition {
    /// Feedback before this time is left out, on all pages.
    since: DateTime<Utc>,
    after: After,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct After {
    /// The number of turns in the request that are complete.
    named: usize,
    /// The key up to which all turns of the conversation are complete.
    key: Option<String>,
    /// The last listed reaction of the turn after these.
    #[serde(default)]
    within: Option<UpTo>,
}

struct Report<'a> {
    app: &'a WithBlobs,
    within: &'a InConversation,
    request: &'a TurnReportRequest,
    now: DateTime<Utc>,
    position: TurnReportPosition,
    bytes: usize,
    turns: Vec<TurnWithFeedback>,
}

impl Report<'_> {
    /// Lists the turns of the request, and returns whether there are more.
    async fn named(&mut self, turns: &[TurnId]) -> Result<bool, Error> {
        for turn in turns.iter().skip(self.position.after.named) {
            let rows = self
                .app
                .app
                .store
                .reactions_of(&self.at(turn), self.now)
                .await?;
            if !self.list(turn, rows).await? {
                return Ok(true);
            }
            self.position.after.named += 1;
        }
        Ok(false)
    }

    /// Lists the turns of the conversation, and returns whether there are more.
    async fn all(&mut self) -> Result<bool, Error> {
        loop {
            let store = &self.app.app.store;
            let after = self.position.after.key.clone();
            let (rows, next) = store
                .reactions_from(&self.within.at, after.as_deref(), self.now)
                .await?;
            let mut turns: Vec<(TurnId, Vec<ReactionRow>)> = Vec::new();
            for row in rows {
                let (ReactionRow::Reaction(reaction) | ReactionRow::Counted(reaction)) = &row
                else {
                    continue;
                };
                let turn = reaction.core.at.turn.clone();
                match turns.last_mut() {
                    Some((last, rows)) if *last == turn => rows.push(row),
                    _ => turns.push((turn, vec![row])),
                }
            }
            // The last turn may be incomplete.
            let incomplete = if next.is_some() { turns.pop() } else { None };
            let is_only_turn = turns.is_empty();
            for (turn, rows) in turns {
                if !self.list(&turn, rows).await? {
                    return Ok(true);
                }
                self.position.after.key = Some(key_after_turn(&turn));
            }
            match (incomplete, next) {
                (_, None) => return Ok(false),
                // Only rows that this report cannot show.
                (None, next) => self.position.after.key = next,
                (Some((turn, _)), _) if is_only_turn => {
                    let rows = store.reactions_of(&self.at(&turn), self.now).await?;
                    if !self.list(&turn, rows).await? {
                        return Ok(true);
                    }
                    self.position.after.key = Some(key_after_turn(&turn));
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

    /// Lists a turn if it has feedback that the caller may see. Returns `false` if the page is full, even within the
    /// turn.
    async fn list(&mut self, turn: &TurnId, rows: Vec<ReactionRow>) -> Result<bool, Error> {
        let mut reactions = current_reactions(rows, &self.within.caller);
        reactions.retain(|reaction| reaction.core.ts >= self.position.since);
        let after = self.position.after.within.take();
        let after = after.filter(|after| after.is_of(turn));
        if reactions.is_empty() {
            return Ok(true);
        }
        if self.turns.len() == self.request.limit.to::<usize>() {
            return Ok(false);
        }
        let log = if self.request.include_turn_logs && after.is_none() {
            let found = turn_with_log(self.app, &self.at(turn), &self.within.caller).await;
            unless_unreadable(found, &self.within.at.tenant)?
        } else {
            None
        };
        let log = log.and_then(|(_, log)| log);
        let caller = &self.within.caller;
        let (turn, rest) =
            TurnWithFeedback::of(turn, log, reactions, caller, after.as_ref(), MAX_PAGE);
        if turn.reactions.is_empty() {
            // The rest of its feedback was withdrawn.
            return Ok(true);
        }
        let size = escaped_json_size(&turn) + 1;
        if !self.turns.is_empty() && (rest.is_some() || self.bytes + size > MAX_PAGE) {
            return Ok(false);
        }
        self.bytes += size;
        self.turns.push(turn);
        self.position.after.within = rest;
        Ok(self.position.after.within.is_none())
    }
}

//! The report of a period: conversations with feedback, the most recent first.
//!
//! See docs/reference/reports.md. The report reads only reactions.
//!
//! Reactions arrive while the pages of a report are read. So that a conversation is on exactly one page, its *position*
//! is the time of its latest reaction in the window when the first page was read. Later reactions change the content of
//! the conversation, but not its page.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::feedback::reaction::{Origin, Reaction, ReactionCore, StoredReaction};
use crate::feedback::reported::ReportedFeedback;
use crate::feedback::satisfaction::satisfaction_rate;
use crate::identity::caller::Caller;
use crate::identity::identifier::{ConversationId, TurnId, UserId};
use crate::text::digest::digest;
use crate::text::page::{DEFAULT_LIMIT, PageLimit};
use hearback_wire::{FieldError, from_json_with, request};

/// The maximum duration of a write. The first page may not contain a reaction that was received this shortly before it
/// was read.
pub const IN_FLIGHT: TimeDelta = TimeDelta::seconds(30);

/// A period, including both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The start.
    pub start: DateTime<Utc>,
    /// The end.
    pub end: DateTime<Utc>,
}

impl Window {
    /// Whether an instant is in the period.
    #[must_use]
    pub fn contains(&self, instant: DateTime<Utc>) -> bool {
        (self.start..=self.end).contains(&instant)
    }
}

request! {
    /// A request for the report of a period.
    pub struct PeriodRequest, closed {
        /// The start of the period, RFC 3339 with an offset.
        "start" => start: required DateTime<Utc>,
        /// The end of the period, inclusive.
        "end" => end: required DateTime<Utc>,
        /// Whether to list the feedback of each turn.
        "include_turns" => include_turns: nullable bool = false,
        /// Maximum number of conversations on the page.
        "limit" => limit: nullable PageLimit = DEFAULT_LIMIT,
        /// `next_cursor` of the previous page.
        "cursor" => cursor: nullable String,
        /// The user in whose view the report is made, with `feedback:on-behalf`; the caller if left out.
        "user_id" => user_id: nullable UserId,
    }
    example {"start": "2025-11-01T00:00:00Z", "end": "2025-12-01T00:00:00Z", "include_turns": true}
}

impl PeriodRequest {
    /// Parses a request and reports all errors at once.
    pub fn parse(body: &Value) -> Result<Self, Vec<FieldError>> {
        from_json_with(body, |members, errors| {
            let ends = ["start", "end"].map(|name| members.peek::<DateTime<Utc>>(name));
            if let [Some(start), Some(end)] = ends
                && start > end
            {
                errors.add("/end", "must not be before start");
            }
        })
    }

    /// The period.
    #[must_use]
    pub fn window(&self) -> Window {
        Window {
            start: self.start,
            end: self.end,
        }
    }

    /// A digest that identifies the query. `whose` is the user whose feedback the caller sees.
    #[must_use]
    pub fn fingerprint(&self, tenant: &str, project: &str, whose: &str) -> [u8; 32] {
        let micros = |time: DateTime<Utc>| time.timestamp_micros().to_string();
        digest([
            "period",
            tenant,
            project,
            whose,
            micros(self.window().start).as_str(),
            micros(self.window().end).as_str(),
            if self.include_turns { "turns" } else { "" },
        ])
    }
}

/// The position of a conversation in a report when the report's first page was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConversationPosition {
    /// The time of the latest reaction. If it differs from `settled`, the reaction may have been in flight when earlier
    /// pages were read.
    pub latest: DateTime<Utc>,
    /// The time of the latest reaction that every page has seen; `None` if there was none.
    pub settled: Option<DateTime<Utc>>,
}

impl ConversationPosition {
    /// Whether an earlier page may have read another position.
    #[must_use]
    pub fn is_in_flight(&self) -> bool {
        self.settled != Some(self.latest)
    }
}

/// The position of a conversation at `as_of`; `None` if it had no reactions in the window.
#[must_use]
pub fn position(
    reactions: &[StoredReaction],
    window: Window,
    as_of: DateTime<Utc>,
) -> Option<ConversationPosition> {
    let latest_at = |moment| {
        let times = reactions
            .iter()
            .filter_map(|reaction| ts_at(&reaction.core, moment));
        times.filter(|ts| window.contains(*ts)).max()
    };
    Some(ConversationPosition {
        latest: latest_at(as_of)?,
        settled: latest_at(as_of - IN_FLIGHT),
    })
}

/// The time of the reaction that was current at `moment`; `None` if there was none, or a tombstone.
fn ts_at(core: &ReactionCore, moment: DateTime<Utc>) -> Option<DateTime<Utc>> {
    if core.received_at <= moment {
        return core.reaction.map(|_| core.ts);
    }
    let replaced = core
        .trail
        .iter()
        .find(|trace| trace.received_at <= moment)?;
    replaced.counts.then_some(replaced.ts)
}

/// A conversation with feedback.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ConversationFeedback {
    /// The conversation.
    #[schema(value_type = String)]
    pub conversation_id: ConversationId,
    /// The time of the latest feedback in the period.
    pub last_activity_at: DateTime<Utc>,
    /// Always `null`: this report reads only reactions.
    #[schema(required = true)]
    pub started_at: Option<DateTime<Utc>>,
    /// The counts of feedback.
    pub feedback_counts: FeedbackCounts,
    /// ok ÷ (ok + `not_ok` + neutral), 0 to 1, where each user counts once for a turn.
    #[schema(required = true)]
    pub satisfaction_rate: Option<f64>,
    /// The turns with feedback, the most recent first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<Vec<TurnFeedback>>,
}

/// Counts of feedback.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct FeedbackCounts {
    /// All feedback.
    pub total: u32,
    /// User reactions.
    pub user: u32,
    /// Machine reactions.
    pub machine: u32,
    /// The reaction `ok`.
    pub ok: u32,
    /// The reaction `not_ok`.
    pub not_ok: u32,
    /// The reaction `neutral`.
    pub neutral: u32,
}

/// A turn with feedback.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct TurnFeedback {
    /// The turn.
    #[schema(value_type = String)]
    pub turn_id: TurnId,
    /// The time of the latest feedback.
    pub ts: DateTime<Utc>,
    /// The feedback, the most recent first.
    pub feedbacks: Vec<ReportedFeedback>,
}

impl FeedbackCounts {
    fn add(&mut self, origin: Origin, reaction: Reaction) {
        self.total += 1;
        match origin {
            Origin::User => self.user += 1,
            Origin::Machine => self.machine += 1,
        }
        match reaction {
            Reaction::Ok => self.ok += 1,
            Reaction::NotOk => self.not_ok += 1,
            Reaction::Neutral => self.neutral += 1,
        }
    }
}

impl ConversationFeedback {
    /// A conversation in the report; `None` if it has no reactions in the period.
    #[must_use]
    pub fn of(
        conversation: &ConversationId,
        reactions: &[StoredReaction],
        request: &PeriodRequest,
        caller: &Caller,
    ) -> Option<Self> {
        let mut counts = FeedbackCounts::default();
        let mut latest = None;
        let mut turns: BTreeMap<&TurnId, Vec<&StoredReaction>> = BTreeMap::new();
        let in_window = |reaction: &&StoredReaction| request.window().contains(reaction.core.ts);
        let counted = reactions.iter().filter(in_window);
        for reaction in counted.clone() {
            let core = &reaction.core;
            let Some(verdict) = core.reaction else {
                continue;
            };
            counts.add(core.origin, verdict);
            latest = latest.max(Some(core.ts));
            turns.entry(&core.at.turn).or_default().push(reaction);
        }
        let turns = request.include_turns.then(|| by_turn(turns));
        Some(Self {
            conversation_id: conversation.clone(),
            last_activity_at: latest?,
            started_at: None,
            feedback_counts: counts,
            satisfaction_rate: satisfaction_rate(counted, caller),
            turns,
        })
    }
}

impl ConversationFeedback {
    /// The conversation with only the turns of these reactions: the part that is on a page.
    #[must_use]
    pub fn with_turns_of(self, part: &[StoredReaction]) -> Self {
        let mut turns: BTreeMap<&TurnId, Vec<&StoredReaction>> = BTreeMap::new();
        for reaction in part {
            let feedbacks = turns.entry(&reaction.core.at.turn).or_default();
            feedbacks.push(reaction);
        }
        Self {
            turns: Some(by_turn(turns)),
            ..self
        }
    }
}

impl PeriodRequest {
    /// Whether the report counts a reaction.
    #[must_use]
    pub fn counts(&self, core: &ReactionCore) -> bool {
        core.reaction.is_some() && self.window().contains(core.ts)
    }
}

/// Sorts the turns and the feedback of each turn, the most recent first.
fn by_turn(turns: BTreeMap<&TurnId, Vec<&StoredReaction>>) -> Vec<TurnFeedback> {
    let mut listed: Vec<_> = turns
        .into_iter()
        .filter_map(|(turn, mut reactions)| {
            reactions.sort_by_key(|reaction| Reverse(reaction.core.recency()));
            Some(TurnFeedback {
                turn_id: turn.clone(),
                ts: reactions.first()?.core.ts,
                feedbacks: reactions.into_iter().map(ReportedFeedback::of).collect(),
            })
        })
        .collect();
    listed.sort_by(|a, b| (b.ts, &a.turn_id).cmp(&(a.ts, &b.turn_id)));
    listed
}

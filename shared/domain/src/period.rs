//! The report of a period: conversations with feedback, the latest first.
//!
//! Source: `Feedback System` (v2.2), "Conversations With Feedbacks In Period"; product
//! specification, section 3. It counts reactions and reads nothing else.
//!
//! A report is read page by page while reactions arrive. So that a conversation is on one page
//! and on no second one, its *position* is taken as of the moment at which the first page was
//! read: the latest reaction that counted then and lay in the window. What came later changes
//! what the page says of the conversation, not on which page it is.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::digest::digest;
use crate::identifier::{ConversationId, TurnId, UserId};
use crate::parse::{
    Errors, FieldError, Object, boolean, date_time, identifier, integer_in, string, to_instant,
};
use crate::reaction::{Origin, Reaction, ReactionCore, StoredReaction};

/// Most conversations or turns on a page.
pub const MAX_LIMIT: i64 = 500;
/// Conversations or turns on a page, unless the request says otherwise.
pub const DEFAULT_LIMIT: usize = 100;
/// How long a write may be under way: a reaction that came this shortly before the first page
/// was read may not have been seen there.
const IN_FLIGHT: TimeDelta = TimeDelta::seconds(30);

/// From one instant to another, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The first instant.
    pub start: DateTime<Utc>,
    /// The last one.
    pub end: DateTime<Utc>,
}

impl Window {
    /// Whether an instant lies in it.
    #[must_use]
    pub fn contains(&self, instant: DateTime<Utc>) -> bool {
        (self.start..=self.end).contains(&instant)
    }
}

/// What a report is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The period.
    pub window: Window,
    /// Whether to list the feedback of each turn.
    pub include_turns: bool,
    /// Most conversations on the page.
    pub limit: usize,
    /// The user in whose view it is asked for; the caller without.
    pub user_id: Option<UserId>,
    /// Where the page begins; at the beginning without.
    pub cursor: Option<String>,
}

impl Request {
    /// Reads a request, all errors at once.
    pub fn parse(body: &Value) -> Result<Self, Vec<FieldError>> {
        let mut errors = Errors::default();
        let object = Object::root(body, &mut errors);
        object.known_only(
            &[
                "start",
                "end",
                "include_turns",
                "limit",
                "cursor",
                "user_id",
            ],
            &mut errors,
        );
        let start = object.required("start", &mut errors, date_time);
        let end = object.required("end", &mut errors, date_time);
        let include_turns = object.nullable("include_turns", &mut errors, boolean);
        let limit = limit(object, &mut errors);
        let cursor = cursor(object, &mut errors);
        let user_id = object.nullable("user_id", &mut errors, identifier);
        if let (Some(start), Some(end)) = (start, end)
            && start > end
        {
            errors.add("/end", "must not be before start");
        }
        match (start, end) {
            (Some(start), Some(end)) if errors.is_empty() => Ok(Self {
                window: Window {
                    start: to_instant(start),
                    end: to_instant(end),
                },
                include_turns: include_turns.unwrap_or(false),
                limit,
                cursor,
                user_id,
            }),
            _ => Err(errors.into_vec()),
        }
    }

    /// Tells this query from every other; `whose` says whose feedback the caller sees.
    #[must_use]
    pub fn fingerprint(&self, tenant: &str, project: &str, whose: &str) -> [u8; 32] {
        let micros = |time: DateTime<Utc>| time.timestamp_micros().to_string();
        digest([
            "period",
            tenant,
            project,
            whose,
            micros(self.window.start).as_str(),
            micros(self.window.end).as_str(),
            if self.include_turns { "turns" } else { "" },
        ])
    }
}

/// `limit`, 1 to 500.
pub(crate) fn limit(object: Object<'_>, errors: &mut Errors) -> usize {
    let limit = object.nullable("limit", errors, integer_in(1, MAX_LIMIT));
    limit
        .and_then(|limit| usize::try_from(limit).ok())
        .unwrap_or(DEFAULT_LIMIT)
}

/// `cursor`, which its signature tells more about.
pub(crate) fn cursor(object: Object<'_>, errors: &mut Errors) -> Option<String> {
    object.nullable("cursor", errors, |value| string(value).map(str::to_owned))
}

/// Where a conversation stood in a report when its first page was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Its latest reaction that counted. If that is not the settled one, it may have been under way
    /// just then, and not been seen on an earlier page.
    pub latest: DateTime<Utc>,
    /// The latest of those that every page has seen; `None` if there was none.
    pub settled: Option<DateTime<Utc>>,
}

impl Position {
    /// Whether an earlier page may have seen another position.
    #[must_use]
    pub fn is_in_flight(&self) -> bool {
        self.settled != Some(self.latest)
    }
}

/// The position of a conversation by its reactions; `None` if it had none then.
#[must_use]
pub fn position(
    reactions: &[StoredReaction],
    window: Window,
    as_of: DateTime<Utc>,
) -> Option<Position> {
    let at = |moment| {
        let standing = reactions
            .iter()
            .filter_map(|reaction| stood(&reaction.core, moment));
        standing.filter(|ts| window.contains(*ts)).max()
    };
    Some(Position {
        latest: at(as_of)?,
        settled: at(as_of - IN_FLIGHT),
    })
}

/// When the reaction was that stood in this place at a moment, if one that counts did.
fn stood(core: &ReactionCore, moment: DateTime<Utc>) -> Option<DateTime<Utc>> {
    if core.received_at <= moment {
        return core.reaction.map(|_| core.ts);
    }
    let before = core
        .trail
        .iter()
        .find(|trace| trace.received_at <= moment)?;
    before.counts.then_some(before.ts)
}

/// A conversation with feedback.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Item {
    /// The conversation.
    #[schema(value_type = String)]
    pub conversation_id: ConversationId,
    /// The latest feedback in the period.
    pub last_activity_at: DateTime<Utc>,
    /// Not known to this report, which reads reactions only.
    pub started_at: Option<DateTime<Utc>>,
    /// How much feedback of which kind.
    pub feedback_counts: Counts,
    /// ok ÷ (ok + `not_ok` + neutral), 0 to 1.
    pub satisfaction_rate: Option<f64>,
    /// Its turns with feedback, the latest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<Vec<TurnFeedback>>,
}

/// How much feedback of which kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct Counts {
    /// All of it.
    pub total: u32,
    /// Given by users.
    pub user: u32,
    /// Inferred by the machine.
    pub machine: u32,
    /// Of the reaction `ok`.
    pub ok: u32,
    /// Of the reaction `not_ok`.
    pub not_ok: u32,
    /// Of the reaction `neutral`.
    pub neutral: u32,
}

/// A turn with feedback.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct TurnFeedback {
    /// The turn.
    #[schema(value_type = String)]
    pub turn_id: TurnId,
    /// Its latest feedback.
    pub ts: DateTime<Utc>,
    /// Its feedback, the latest first.
    pub feedbacks: Vec<Feedback>,
}

/// One reaction as reports show it.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = ReportedFeedback)]
pub struct Feedback {
    /// The turn.
    #[schema(value_type = String)]
    pub turn_id: TurnId,
    /// When it was.
    pub ts: DateTime<Utc>,
    /// What was written.
    pub text: String,
    /// The verdict.
    pub reaction: Option<Reaction>,
    /// How sure it is, 0 to 1.
    pub confidence: f64,
    /// Who said so.
    pub origin: Origin,
    /// Name of the reaction's artifact.
    pub rn: String,
}

impl Feedback {
    /// How reports show a reaction.
    #[must_use]
    pub fn of(reaction: &StoredReaction) -> Self {
        let core = &reaction.core;
        Self {
            turn_id: core.at.turn.clone(),
            ts: core.ts,
            text: reaction.text.clone(),
            reaction: core.reaction,
            confidence: core.confidence,
            origin: core.origin,
            rn: core.rn(),
        }
    }
}

impl Counts {
    /// The counts of reactions; tombstones count nowhere.
    #[must_use]
    pub fn of(reactions: &[StoredReaction]) -> Self {
        let mut counts = Self::default();
        for reaction in reactions {
            if let Some(verdict) = reaction.core.reaction {
                counts.add(reaction.core.origin, verdict);
            }
        }
        counts
    }

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

    /// The satisfaction rate; `None` where there is nothing to divide by.
    #[must_use]
    pub fn satisfaction_rate(self) -> Option<f64> {
        let all = self.ok + self.not_ok + self.neutral;
        (all > 0).then(|| f64::from(self.ok) / f64::from(all))
    }
}

impl Item {
    /// What the report says of a conversation; `None` if no reaction in the period counts.
    #[must_use]
    pub fn of(
        conversation: &ConversationId,
        reactions: &[StoredReaction],
        request: &Request,
    ) -> Option<Self> {
        let mut counts = Counts::default();
        let mut latest = None;
        let mut turns: BTreeMap<&TurnId, Vec<Feedback>> = BTreeMap::new();
        for reaction in reactions {
            let core = &reaction.core;
            let Some(verdict) = core.reaction.filter(|_| request.window.contains(core.ts)) else {
                continue;
            };
            counts.add(core.origin, verdict);
            latest = latest.max(Some(core.ts));
            turns
                .entry(&core.at.turn)
                .or_default()
                .push(Feedback::of(reaction));
        }
        let turns = request.include_turns.then(|| by_turn(turns));
        Some(Self {
            conversation_id: conversation.clone(),
            last_activity_at: latest?,
            started_at: None,
            feedback_counts: counts,
            satisfaction_rate: counts.satisfaction_rate(),
            turns,
        })
    }
}

impl Item {
    /// The same conversation with the turns of these of its reactions alone: the part of it that is on a
    /// page.
    #[must_use]
    pub fn with_turns_of(self, part: &[StoredReaction]) -> Self {
        let mut turns: BTreeMap<&TurnId, Vec<Feedback>> = BTreeMap::new();
        for reaction in part {
            let feedbacks = turns.entry(&reaction.core.at.turn).or_default();
            feedbacks.push(Feedback::of(reaction));
        }
        Self {
            turns: Some(by_turn(turns)),
            ..self
        }
    }
}

impl Request {
    /// Whether the report counts a reaction.
    #[must_use]
    pub fn counts(&self, core: &ReactionCore) -> bool {
        core.reaction.is_some() && self.window.contains(core.ts)
    }
}

/// The latest first, among turns and in each of them.
fn by_turn(turns: BTreeMap<&TurnId, Vec<Feedback>>) -> Vec<TurnFeedback> {
    let mut listed: Vec<_> = turns
        .into_iter()
        .filter_map(|(turn, mut feedbacks)| {
            feedbacks.sort_by(|a, b| (b.ts, &b.rn).cmp(&(a.ts, &a.rn)));
            Some(TurnFeedback {
                turn_id: turn.clone(),
                ts: feedbacks.first()?.ts,
                feedbacks,
            })
        })
        .collect();
    listed.sort_by(|a, b| (b.ts, &a.turn_id).cmp(&(a.ts, &b.turn_id)));
    listed
}

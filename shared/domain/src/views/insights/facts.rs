//! What insights count of an event.

use serde::{Deserialize, Serialize};

use crate::events::event::{Channel, FeedbackType, Rating, Reason};
use crate::feedback::reaction::Origin;
use crate::identity::identifier::{Label, TenantId};
use crate::identity::labels::Labels;
use crate::learning::publication::{Action, Processed};
use crate::turns::turn::TurnCore;
use crate::views::insights::dimension::Dimension;
use crate::views::insights::user_verdicts::UserHash;
use crate::views::insights::verdict::Verdict;

/// The only value of [`Dimension::All`].
pub(super) const ALL: &str = "all";

/// What insights count of a processed event. It is stored with the event's outcome and copied into the index by hour, so
/// its names are short; it has no free text and no user id.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// The user, as a hash.
    #[serde(rename = "u")]
    pub user: UserHash,
    /// The channel.
    #[serde(rename = "c")]
    pub channel: Channel,
    /// The type.
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    pub feedback_type: Option<FeedbackType>,
    /// What the user did.
    #[serde(rename = "o")]
    pub outcome: Action,
    /// Whether it is a neutral reaction.
    #[serde(
        rename = "n",
        default,
        skip_serializing_if = "crate::events::event::is_false"
    )]
    pub is_neutral: bool,
    /// What is wrong with the answer.
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// The rating.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    pub rating: Option<Rating>,
    /// The value of its reward, in millionths.
    #[serde(rename = "m", default, skip_serializing_if = "Option::is_none")]
    pub reward_millionths: Option<i64>,
    /// The answer.
    #[serde(rename = "a", default, skip_serializing_if = "AnswerFacts::is_empty")]
    pub answer: AnswerFacts,
}

/// By what an answer is grouped. It is stored with its turn, and with each event about it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AnswerFacts {
    /// The kind of artifact.
    #[serde(rename = "af", default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<Label>,
    /// The kind of task.
    #[serde(rename = "tk", default, skip_serializing_if = "Option::is_none")]
    pub task_type: Option<Label>,
    /// The agent that answered.
    #[serde(rename = "ag", default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<Label>,
    /// The strategy of the agent.
    #[serde(rename = "st", default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Label>,
    /// The labels.
    #[serde(rename = "l", default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
}

impl AnswerFacts {
    /// The facts of a registered turn.
    #[must_use]
    pub fn of_turn(turn: &TurnCore) -> Self {
        Self {
            artifact_type: turn.artifact_type.clone(),
            task_type: turn.task_type.clone(),
            agent_id: turn.agent_id.clone(),
            strategy: turn.strategy.clone(),
            labels: turn.labels.clone(),
        }
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The dimensions in which the answer has a value, each with that.
    pub fn values(&self) -> impl Iterator<Item = (Dimension, &str)> {
        let named = [
            (Dimension::ArtifactType, &self.artifact_type),
            (Dimension::TaskType, &self.task_type),
            (Dimension::AgentId, &self.agent_id),
            (Dimension::Strategy, &self.strategy),
        ];
        let named = named
            .into_iter()
            .filter_map(|(dimension, value)| Some((dimension, value.as_ref()?.as_str())));
        let labels = self.labels.iter();
        named.chain(labels.map(|(key, value)| (Dimension::Label(key.to_owned()), value)))
    }
}

impl Facts {
    /// The facts of a processed event.
    #[must_use]
    pub fn of(event: &Processed) -> Self {
        let context = event.context();
        Self {
            user: UserHash::of(event.tenant().map_or("", TenantId::as_str), event.user_id()),
            channel: event.channel(),
            feedback_type: event.feedback_type(),
            outcome: event.action(),
            is_neutral: event.is_neutral_reaction(),
            reason: event.reason(),
            rating: event.rating(),
            reward_millionths: event.reward().map(millionths),
            answer: AnswerFacts {
                artifact_type: context.artifact_type.clone(),
                task_type: context.task_type.clone(),
                agent_id: context.agent_id.clone(),
                strategy: context.strategy.clone(),
                labels: context.labels.clone(),
            },
        }
    }

    /// Whether a user gave it, or it was inferred.
    #[must_use]
    pub fn origin(&self) -> Origin {
        match self.channel {
            Channel::Explicit | Channel::Correction => Origin::User,
            Channel::Implicit => Origin::Machine,
        }
    }

    /// Whether a user gave it.
    #[must_use]
    pub fn is_given(&self) -> bool {
        self.origin() == Origin::User
    }

    /// What the event says about the answer, as in [`crate::feedback::counted`]; `None` if it does not judge it.
    #[must_use]
    pub fn verdict(&self) -> Option<Verdict> {
        match (self.outcome, self.rating) {
            (Action::Accepted, _) => Some(Verdict::Accepted),
            (Action::Rejected, _) => Some(Verdict::Rejected),
            (Action::Rated, Some(rating)) if rating >= Rating::HIGH => Some(Verdict::Accepted),
            (Action::Rated, Some(rating)) if rating <= Rating::LOW => Some(Verdict::Rejected),
            (Action::Rated, Some(_)) => Some(Verdict::Neutral),
            (Action::Rated, None)
            | (Action::Modified | Action::Commented | Action::Observed, _) => {
                self.is_neutral.then_some(Verdict::Neutral)
            }
        }
    }

    /// The dimensions in which the event has a value, each with that.
    pub fn values(&self) -> impl Iterator<Item = (Dimension, &str)> {
        let origin = match self.origin() {
            Origin::User => "user",
            Origin::Machine => "machine",
        };
        let closed = [
            (Dimension::All, Some(ALL)),
            (Dimension::Channel, Some(self.channel.as_str())),
            (
                Dimension::Type,
                self.feedback_type.map(FeedbackType::as_str),
            ),
            (Dimension::Outcome, Some(self.outcome.as_str())),
            (Dimension::Origin, Some(origin)),
            (Dimension::Reason, self.reason.map(Reason::as_str)),
        ];
        closed
            .into_iter()
            .filter_map(|(dimension, value)| Some((dimension, value?)))
            .chain(self.answer.values())
    }
}

/// A reward, −1 to 1, in millionths.
#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "a reward is between -1 and 1"
)]
fn millionths(reward: f64) -> i64 {
    (reward * 1e6).round() as i64
}

//! The rules that derive learning signals from feedback events.
//!
//! For example, an acceptance with a rating of 4, two modified elements, a comment and a time spent gives a reward of
//! 0.85 with a confidence of 0.92.
//!
//! | event | reward | policy update |
//! |---|---|---|
//! | acceptance, `accepted: true` | +0.5 to +1.0 | with a rating of 4 or 5 `weight_boost`, of 1 or 2 `weight_decay` |
//! | acceptance, `accepted: false`; rejection | −0.5 to −1.0 | `weight_decay` |
//! | rating 5, 4 | +0.8, +0.3 | `weight_boost` |
//! | rating 2, 1 | −0.3, −0.8 | `weight_decay` |
//! | modification that corrects content or accuracy | | `feature_remove` |
//! | any other modification | | `feature_add` |
//!
//! An acceptance rate that rises above 0.90 gives an exploration hint. An event with `excludeFromTraining` gives no
//! signal.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use hearback_wire::wire_names;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::events::event::{
    Channel, CorrectionType, EventContext, EventCore, FeedbackType, IMPLICIT_CONFIDENCE, Rating,
};
use crate::identity::identifier::{Label, TenantId};
use crate::learning::preferences::Crossing;
use crate::text::digest::uuid;

/// The discount factor of a reward per step of its age.
pub const DECAY: f64 = 0.99;

/// Ids of messages are derived in this namespace.
const NAMESPACE: Uuid = Uuid::from_u128(0x3a9e_71c4_0b5d_4f28_9c46_e8d2_17f3_5ab0);

/// The model that policy updates are for.
pub const TARGET_MODEL: &str = "recommendation";

/// The kind of a learning signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SignalType {
    /// How good the artifact was.
    Reward,
    /// A suggested adjustment of weights or features.
    PolicyUpdate,
    /// A hint to explore less.
    ExplorationHint,
}

wire_names!(SignalType {
    Reward = "reward",
    PolicyUpdate = "policy_update",
    ExplorationHint = "exploration_hint",
});

/// How good an artifact was for its user.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Reward {
    /// −1 (worst) to 1 (best).
    #[schema(minimum = -1, maximum = 1)]
    pub value: f64,
    /// The confidence, 0 to 1.
    #[schema(minimum = 0, maximum = 1)]
    pub confidence: f64,
    /// The discount factor per step of age.
    pub decay: f64,
}

/// How a policy update adjusts features.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AdjustmentType {
    /// Increase their weights.
    WeightBoost,
    /// Decrease their weights.
    WeightDecay,
    /// Add the features.
    FeatureAdd,
    /// Remove the features.
    FeatureRemove,
}

/// A suggested adjustment of a policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyUpdate {
    /// The model to adjust.
    pub target_model: String,
    /// How to adjust it.
    pub adjustment_type: AdjustmentType,
    /// Features as `name=value` with their magnitude, 0 to 1.
    pub feature_vector: BTreeMap<String, f64>,
}

/// A hint for the balance of exploration and exploitation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExplorationHint {
    /// Whether to explore less.
    pub decrease_exploration: bool,
    /// The reason, in words.
    pub reason: String,
}

/// The event that a signal comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SourceEvent {
    /// The event's id.
    pub feedback_id: Uuid,
    /// Its channel.
    pub feedback_channel: Channel,
    /// Its type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback_type: Option<FeedbackType>,
}

/// The user and the artifact that a signal is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignalContext {
    /// The user, or the pseudonym.
    pub user_id: String,
    /// The kind of artifact.
    pub artifact_type: String,
    /// The kind of task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_type: Option<String>,
}

/// A learning signal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LearningSignal {
    /// The id, derived from the event and the kind, by which subscribers recognise duplicates.
    pub signal_id: Uuid,
    /// The kind of the signal: which of the members below is present.
    pub signal_type: SignalType,
    /// The event that it comes from.
    pub source_event: SourceEvent,
    /// For `reward`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reward: Option<Reward>,
    /// For `reward`: the features `artifactType`, `taskType`, `agentId` and `label.<key>`, each with its value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub features: BTreeMap<String, String>,
    /// For `policy_update`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_update: Option<PolicyUpdate>,
    /// For `exploration_hint`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exploration_hint: Option<ExplorationHint>,
    /// The user and the artifact.
    pub context: SignalContext,
    /// When the signal was generated.
    pub timestamp: DateTime<Utc>,
}

/// A policy update as it is stored, without the features, which are those of the event.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Adjustment {
    /// How to adjust.
    pub adjustment_type: AdjustmentType,
    /// How much, 0 to 1.
    #[serde(default)]
    pub magnitude: f64,
    /// What a modification corrects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correction_type: Option<CorrectionType>,
}

impl Adjustment {
    /// The policy update as it is published. `feature_remove` removes the agent and the labels of the answer, but not
    /// the artifact type and the task type, which the update is about.
    #[must_use]
    pub fn published(self, context: &EventContext) -> PolicyUpdate {
        let is_removable = |name: &str| name != ARTIFACT_TYPE && name != TASK_TYPE;
        let removes = self.adjustment_type == AdjustmentType::FeatureRemove;
        let features = features(context).into_iter();
        let features = features.filter(|(name, _)| !removes || is_removable(name));
        let correction = self.correction_type;
        let correction =
            correction.map(|kind| ("correctionType".to_owned(), kind.as_str().to_owned()));
        PolicyUpdate {
            target_model: TARGET_MODEL.to_owned(),
            adjustment_type: self.adjustment_type,
            feature_vector: features
                .chain(correction)
                .map(|(name, value)| (format!("{name}={value}"), self.magnitude))
                .collect(),
        }
    }
}

/// The learning signals of an event: at most one of each kind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Signals {
    /// The reward.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reward: Option<Reward>,
    /// The policy update.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_update: Option<Adjustment>,
    /// The exploration hint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exploration_hint: Option<ExplorationHint>,
}

/// The learning signals of an event. `crossing` is the crossing that the event caused, if any.
#[must_use]
pub fn signals_for(event: &EventCore, crossing: Option<&Crossing>) -> Signals {
    if event.privacy.exclude_from_training {
        return Signals::default();
    }
    Signals {
        reward: reward(event),
        policy_update: policy_update(event),
        exploration_hint: crossing.map(exploration_hint),
    }
}

impl LearningSignal {
    /// The id of a signal: always the same for an event and a kind.
    #[must_use]
    pub fn id(tenant: Option<&TenantId>, event: Uuid, signal_type: SignalType) -> Uuid {
        message_id(tenant, event, signal_type.as_str())
    }
}

/// The id of a message about an event: always the same for a tenant, an event and a kind. The tenant is `None` for
/// outcomes that were stored before they had a tenant.
pub(crate) fn message_id(tenant: Option<&TenantId>, event: Uuid, kind: &str) -> Uuid {
    let tenant = tenant.map_or("", |tenant| tenant.as_str());
    uuid(NAMESPACE, [tenant, event.to_string().as_str(), kind])
}

/// The reward of an event, if it gives one.
#[must_use]
pub fn reward(event: &EventCore) -> Option<Reward> {
    Some(Reward {
        value: reward_value(event)?.to_f64(),
        confidence: confidence(event).to_f64(),
        decay: DECAY,
    })
}

fn reward_value(event: &EventCore) -> Option<Decimal> {
    Some(match (event.feedback_type?, event.verdict()) {
        (FeedbackType::ArtifactAcceptance, Some(true)) => acceptance(event),
        (FeedbackType::ArtifactAcceptance | FeedbackType::Rejection, Some(false)) => {
            rejection(event)
        }
        (FeedbackType::Rating, _) => rating_reward(event.rating?)?,
        (
            FeedbackType::ArtifactAcceptance
            | FeedbackType::Rejection
            | FeedbackType::Comment
            | FeedbackType::Modification
            | FeedbackType::DwellTime
            | FeedbackType::ScrollDepth,
            _,
        ) => return None,
    })
}

/// A decimal fraction in ten-thousandths. Sums of binary fractions would have rounding errors such as
/// 0.8500000000000001.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Decimal(i32);

impl Decimal {
    const ONE: Self = Self(10_000);
    const HALF: Self = Self(5_000);

    /// The nearest decimal to a number from 0 to 1.
    fn of(value: f64) -> Self {
        // Formatting and parsing avoids a lossy conversion between number types.
        let text = format!("{:.0}", value.clamp(0.0, 1.0) * 10_000.0);
        Self(text.parse().unwrap_or_default())
    }

    fn to_f64(self) -> f64 {
        f64::from(self.0) / 10_000.0
    }
}

/// The strength without a rating.
const UNRATED: Decimal = Decimal::HALF;
/// Subtracted from the strength for each modified element: 0.025.
const MODIFIED_ELEMENT: i32 = 250;
/// Maximum number of modified elements that are counted.
pub const MODIFIED_ELEMENTS_COUNTED: usize = 10;

/// 0.5 + 0.5·strength; strength = (rating − 1)/4, less 0.025 for each modified element, clamped to 0..1.
fn acceptance(event: &EventCore) -> Decimal {
    let rated = event.rating.map_or(UNRATED, |rating| {
        Decimal(2_500 * i32::from(rating.get() - Rating::MIN.get()))
    });
    let modified = event.modified_elements.min(MODIFIED_ELEMENTS_COUNTED);
    let modified = i32::try_from(modified).unwrap_or_default() * MODIFIED_ELEMENT;
    let strength = (rated.0 - modified).clamp(0, Decimal::ONE.0);
    Decimal(Decimal::HALF.0 + strength / 2)
}

/// −(0.5 + 0.5·strength); strength = (5 − rating)/4.
fn rejection(event: &EventCore) -> Decimal {
    let strength = event.rating.map_or(UNRATED, |rating| {
        Decimal(2_500 * i32::from(Rating::MAX.get() - rating.get()))
    });
    Decimal(-(Decimal::HALF.0 + strength.0 / 2))
}

/// The reward of a rating without a verdict; `None` for 3.
fn rating_reward(rating: Rating) -> Option<Decimal> {
    match rating.get() {
        1 => Some(Decimal(-8_000)),
        2 => Some(Decimal(-3_000)),
        4 => Some(Decimal(3_000)),
        5 => Some(Decimal(8_000)),
        _ => None,
    }
}

/// A base by channel, or the confidence of the detection, plus 0.04 for each of rating, comment and time spent. The
/// maximum is 1.
fn confidence(event: &EventCore) -> Decimal {
    let base = match (event.channel, event.confidence) {
        (Channel::Explicit, _) => Decimal(8_000),
        (Channel::Correction, _) => Decimal(9_000),
        (Channel::Implicit, detected) => Decimal::of(detected.unwrap_or(IMPLICIT_CONFIDENCE)),
    };
    let evidence = [
        event.rating.is_some(),
        event.commented,
        event.time_spent.is_some(),
    ];
    let present: i32 = evidence.into_iter().map(i32::from).sum();
    Decimal(base.0 + 400 * present).min(Decimal::ONE)
}

/// A rating increases or decreases the weights of the event's features, and a rejection decreases them. A modification
/// adds or removes features.
fn policy_update(event: &EventCore) -> Option<Adjustment> {
    let adjustment_type = match (event.feedback_type?, event.verdict()) {
        (FeedbackType::ArtifactAcceptance | FeedbackType::Rejection, Some(false)) => {
            AdjustmentType::WeightDecay
        }
        (FeedbackType::ArtifactAcceptance, Some(true)) | (FeedbackType::Rating, _) => {
            let rating = event.rating?;
            if rating >= Rating::HIGH {
                AdjustmentType::WeightBoost
            } else if rating <= Rating::LOW {
                AdjustmentType::WeightDecay
            } else {
                return None;
            }
        }
        (FeedbackType::Modification, _) => match event.correction_type {
            Some(CorrectionType::Content | CorrectionType::Accuracy) => {
                AdjustmentType::FeatureRemove
            }
            Some(CorrectionType::Format | CorrectionType::Completeness) | None => {
                AdjustmentType::FeatureAdd
            }
        },
        (
            FeedbackType::ArtifactAcceptance
            | FeedbackType::Rejection
            | FeedbackType::Comment
            | FeedbackType::DwellTime
            | FeedbackType::ScrollDepth,
            _,
        ) => return None,
    };
    let modified = event.feedback_type == Some(FeedbackType::Modification);
    Some(Adjustment {
        adjustment_type,
        magnitude: magnitude(event)?.to_f64(),
        correction_type: event.correction_type.filter(|_| modified),
    })
}

/// The magnitude of the adjustment: that of the reward, multiplied by the confidence for an implicit event. A
/// modification has no reward, and uses its confidence.
fn magnitude(event: &EventCore) -> Option<Decimal> {
    let confidence = confidence(event);
    if event.feedback_type == Some(FeedbackType::Modification) {
        return Some(confidence);
    }
    let value = Decimal(reward_value(event)?.0.abs());
    Some(match event.channel {
        Channel::Explicit | Channel::Correction => value,
        Channel::Implicit => Decimal(value.0 * confidence.0 / Decimal::ONE.0),
    })
}

const ARTIFACT_TYPE: &str = "artifactType";
const TASK_TYPE: &str = "taskType";

/// The features of an event, with their values.
#[must_use]
pub fn features(context: &EventContext) -> BTreeMap<String, String> {
    let artifact_type = context.artifact_type.clone();
    let named = [
        (
            ARTIFACT_TYPE,
            Some(artifact_type.unwrap_or_else(Label::unknown)),
        ),
        (TASK_TYPE, context.task_type.clone()),
        ("agentId", context.agent_id.clone()),
    ];
    let named = named.into_iter();
    let named = named.filter_map(|(name, value)| Some((name.to_owned(), value?.into())));
    let labels = context.labels.iter();
    let labels = labels.map(|(key, value)| (format!("label.{key}"), value.to_owned()));
    named.chain(labels).collect()
}

fn exploration_hint(crossing: &Crossing) -> ExplorationHint {
    let Crossing {
        artifact_type,
        acceptance_rate,
        sample_count,
    } = crossing;
    ExplorationHint {
        decrease_exploration: true,
        reason: format!(
            "acceptance rate {acceptance_rate:.2} over {sample_count} samples of {artifact_type}"
        ),
    }
}

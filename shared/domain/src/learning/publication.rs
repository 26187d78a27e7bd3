//! The outcome of an event, and the messages that subscribers receive.
//!
//! Messages are published at least once. Each has a stable `id`, unique across tenants, by which subscribers recognise
//! duplicates. Messages contain the user, the time and the references of the event, so that subscribers do not need to
//! read the table.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use hearback_wire::wire_names;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::events::event::{
    Channel, EventContext, EventCore, FeedbackType, Rating, Reason, is_false,
};
use crate::identity::identifier::{Label, TenantId};
use crate::learning::ledger::Retraction;
use crate::learning::preferences::Crossing;
use crate::learning::signal::{
    LearningSignal, SignalContext, SignalType, Signals, SourceEvent, features, message_id,
    signals_for,
};

/// The subject of a published message.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
pub enum Subject {
    /// Processed events and retractions.
    #[serde(rename = "feedback.processed")]
    FeedbackProcessed,
    /// Rewards.
    #[serde(rename = "learning.signals.reward")]
    Reward,
    /// Policy updates.
    #[serde(rename = "learning.signals.policy")]
    Policy,
    /// Exploration hints.
    #[serde(rename = "learning.signals.exploration")]
    Exploration,
}

wire_names!(Subject {
    FeedbackProcessed = "feedback.processed",
    Reward = "learning.signals.reward",
    Policy = "learning.signals.policy",
    Exploration = "learning.signals.exploration",
});

impl Subject {
    /// The name of its queue, without the stack's name.
    #[must_use]
    pub fn queue(self) -> String {
        self.as_str().replace('.', "-")
    }
}

impl From<SignalType> for Subject {
    fn from(signal: SignalType) -> Self {
        match signal {
            SignalType::Reward => Self::Reward,
            SignalType::PolicyUpdate => Self::Policy,
            SignalType::ExplorationHint => Self::Exploration,
        }
    }
}

/// What the user did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Accepted the artifact.
    Accepted,
    /// Rejected the artifact.
    Rejected,
    /// Changed the artifact.
    Modified,
    /// Rated the artifact.
    Rated,
    /// Commented on the artifact.
    Commented,
    /// Only behaviour was observed.
    Observed,
}

wire_names!(Action {
    Accepted = "accepted",
    Rejected = "rejected",
    Modified = "modified",
    Rated = "rated",
    Commented = "commented",
    Observed = "observed",
});

impl Action {
    fn of(event: &EventCore) -> Self {
        match (event.verdict(), event.feedback_type) {
            (Some(true), _) => Self::Accepted,
            (Some(false), _) => Self::Rejected,
            (None, Some(FeedbackType::Modification)) => Self::Modified,
            (None, Some(FeedbackType::Rating)) => Self::Rated,
            (None, Some(FeedbackType::Comment)) => Self::Commented,
            (
                None,
                Some(
                    FeedbackType::DwellTime
                    | FeedbackType::ScrollDepth
                    | FeedbackType::ArtifactAcceptance
                    | FeedbackType::Rejection,
                )
                | None,
            ) => Self::Observed,
        }
    }
}

/// The outcome of a processed event: everything that is published, without free text. It is stored in this form and
/// kept small, because writes are billed by the kilobyte; the messages are built when they are published.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Processed {
    /// `None` for outcomes that were stored before the tenant was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tenant: Option<TenantId>,
    feedback_id: Uuid,
    /// `None` if the dedupe key is the event's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dedupe_key: Option<String>,
    user_id: String,
    channel: Channel,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    feedback_type: Option<FeedbackType>,
    #[serde(rename = "act")]
    action: Action,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    score: Option<Rating>,
    /// For insights; it is not published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<Reason>,
    #[serde(flatten)]
    context: EventContext,
    #[serde(default, skip_serializing_if = "is_false")]
    anonymize: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    exclude_from_training: bool,
    /// Whether HTTP responses contain the event only for its own user.
    #[serde(default, skip_serializing_if = "is_false")]
    private: bool,
    /// The time of the feedback, by the caller's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    occurred_at: Option<DateTime<Utc>>,
    /// When the event was processed, by the server's clock.
    at: DateTime<Utc>,
    #[serde(flatten)]
    signals: Signals,
}

/// The outcome of an event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "status")]
pub enum Outcome {
    /// The event was processed.
    Processed(Box<Processed>),
    /// Another event with the same dedupe key counts.
    #[serde(rename_all = "camelCase")]
    Deduplicated {
        /// When the duplicate was detected.
        at: DateTime<Utc>,
        /// The event that counts.
        duplicate_of: Uuid,
    },
}

impl Outcome {
    /// The time of the outcome.
    #[must_use]
    pub fn at(&self) -> DateTime<Utc> {
        match self {
            Self::Processed(processed) => processed.at,
            Self::Deduplicated { at, .. } => *at,
        }
    }
}

impl Processed {
    /// The outcome of `event`.
    #[must_use]
    pub fn of(event: &EventCore, crossing: Option<&Crossing>, at: DateTime<Utc>) -> Self {
        Self {
            tenant: Some(event.tenant.clone()),
            feedback_id: event.feedback_id,
            dedupe_key: (!event.derived).then(|| event.dedupe_key().to_string()),
            user_id: event.user_id.to_string(),
            channel: event.channel,
            feedback_type: event.feedback_type,
            action: Action::of(event),
            score: event.rating,
            reason: event.reason(),
            context: event.context.clone(),
            anonymize: event.privacy.anonymize,
            exclude_from_training: event.privacy.exclude_from_training,
            private: event.private,
            occurred_at: Some(event.timestamp),
            at,
            signals: signals_for(event, crossing),
        }
    }

    /// The event.
    #[must_use]
    pub fn feedback_id(&self) -> Uuid {
        self.feedback_id
    }

    /// When the event was processed.
    #[must_use]
    pub fn at(&self) -> DateTime<Utc> {
        self.at
    }

    /// The tenant whose event it is; `None` for outcomes that were stored before the tenant was.
    #[must_use]
    pub fn tenant(&self) -> Option<&TenantId> {
        self.tenant.as_ref()
    }

    /// The user of the event.
    #[must_use]
    pub fn user_id(&self) -> &str {
        &self.user_id
    }

    /// Whether HTTP responses contain the event only for its own user.
    #[must_use]
    pub fn is_private(&self) -> bool {
        self.private
    }

    /// The channel of the event.
    #[must_use]
    pub fn channel(&self) -> Channel {
        self.channel
    }

    /// The type of the event.
    #[must_use]
    pub fn feedback_type(&self) -> Option<FeedbackType> {
        self.feedback_type
    }

    /// What the user did.
    #[must_use]
    pub fn action(&self) -> Action {
        self.action
    }

    /// The rating.
    #[must_use]
    pub fn rating(&self) -> Option<Rating> {
        self.score
    }

    /// What is wrong with the answer, if the event says so.
    #[must_use]
    pub fn reason(&self) -> Option<Reason> {
        self.reason
    }

    /// The value of its reward, −1 to 1, if it gave one.
    #[must_use]
    pub fn reward(&self) -> Option<f64> {
        self.signals.reward.as_ref().map(|reward| reward.value)
    }

    /// Whether it is a neutral reaction: the comment of a feedback act, whose dedupe key is its id.
    #[must_use]
    pub fn is_neutral_reaction(&self) -> bool {
        self.feedback_type == Some(FeedbackType::Comment) && self.dedupe_key.is_none()
    }

    /// When the feedback was given, by the caller's clock.
    #[must_use]
    pub fn occurred_at(&self) -> DateTime<Utc> {
        self.occurred_at.unwrap_or(self.at)
    }

    /// The context of the event, with what its turn says.
    #[must_use]
    pub fn context(&self) -> &EventContext {
        &self.context
    }

    /// The learning signals that the event gave, in their published shape.
    #[must_use]
    pub fn signals(&self) -> Vec<LearningSignal> {
        let Signals {
            reward,
            policy_update,
            exploration_hint,
        } = self.signals.clone();
        let reward = reward.map(|reward| LearningSignal {
            reward: Some(reward),
            features: features(&self.context),
            ..self.signal(SignalType::Reward)
        });
        let policy = policy_update.map(|update| LearningSignal {
            policy_update: Some(update.published(&self.context)),
            ..self.signal(SignalType::PolicyUpdate)
        });
        let exploration = exploration_hint.map(|hint| LearningSignal {
            exploration_hint: Some(hint),
            ..self.signal(SignalType::ExplorationHint)
        });
        [reward, policy, exploration]
            .into_iter()
            .flatten()
            .collect()
    }

    fn signal(&self, signal_type: SignalType) -> LearningSignal {
        LearningSignal {
            signal_id: LearningSignal::id(self.tenant.as_ref(), self.feedback_id, signal_type),
            signal_type,
            source_event: SourceEvent {
                feedback_id: self.feedback_id,
                feedback_channel: self.channel,
                feedback_type: self.feedback_type,
            },
            reward: None,
            features: BTreeMap::new(),
            policy_update: None,
            exploration_hint: None,
            context: SignalContext {
                user_id: self.user_id.clone(),
                artifact_type: self.artifact_type().into(),
                task_type: self.context.task_type.as_ref().map(ToString::to_string),
            },
            timestamp: self.at,
        }
    }

    /// The messages to publish, with their subjects.
    #[must_use]
    pub fn messages(&self) -> Vec<(Subject, Value)> {
        let signals = self.signals().into_iter();
        let signals = signals.map(|signal| {
            let kind = signal.signal_type;
            let message = self
                .common_members(kind.as_str())
                .with_members(message_of(&signal));
            (Subject::from(kind), message)
        });
        let processed = self.common_members(PROCESSED).with_members(self.message());
        std::iter::once((Subject::FeedbackProcessed, processed))
            .chain(signals)
            .collect()
    }

    fn common_members(&self, kind: &'static str) -> CommonMembers<'_> {
        CommonMembers {
            tenant: self.tenant.as_ref(),
            event: self.feedback_id,
            kind,
            context: &self.context,
            private: self.private,
            occurred_at: self.occurred_at(),
            published_at: self.at,
        }
    }

    fn artifact_type(&self) -> Label {
        let artifact_type = self.context.artifact_type.clone();
        artifact_type.unwrap_or_else(Label::unknown)
    }

    /// The message `feedback.processed`, without the common members.
    fn message(&self) -> Value {
        let context = &self.context;
        let id = self.feedback_id.to_string();
        json!({
            "eventType": PROCESSED,
            "feedbackId": id,
            "dedupeKey": self.dedupe_key.as_ref().unwrap_or(&id),
            "userId": self.user_id,
            "artifactType": self.artifact_type(),
            "feedbackChannel": self.channel,
            "outcome": self.action,
            "score": self.score,
            "features": {
                "taskType": context.task_type,
                "artifactComplexity": context.artifact_complexity,
                "userExperience": context.user_experience,
            },
            "privacyFlags": {
                "anonymize": self.anonymize,
                "excludeFromTraining": self.exclude_from_training,
            },
        })
    }
}

/// Tells insights that an event was erased; `None` for one without a tenant or a project, which they do not count.
/// Nobody else receives it.
#[must_use]
pub fn erased(event: &Processed) -> Option<Value> {
    Some(json!({
        "eventType": ERASED,
        "tenant": event.tenant.as_ref()?,
        "projectId": event.context.project_id.as_ref()?,
        "feedbackId": event.feedback_id,
        "occurredAt": event.occurred_at(),
    }))
}

const PROCESSED: &str = "feedback.processed";
const ERASED: &str = "feedback.erased";
const RETRACTED: &str = "feedback.retracted";

/// The members that all messages have.
struct CommonMembers<'a> {
    tenant: Option<&'a TenantId>,
    event: Uuid,
    kind: &'static str,
    context: &'a EventContext,
    private: bool,
    occurred_at: DateTime<Utc>,
    published_at: DateTime<Utc>,
}

impl CommonMembers<'_> {
    /// The complete message, without members that are `null`.
    fn with_members(&self, members: Value) -> Value {
        let context = self.context;
        let labels = Some(&context.labels).filter(|labels| !labels.is_empty());
        let mut message = json!({
            "id": message_id(self.tenant, self.event, self.kind),
            "tenant": self.tenant,
            "projectId": context.project_id,
            "conversationId": context.conversation_id,
            "turnId": context.turn_id,
            "traceId": context.trace_id,
            "spanId": context.span_id,
            "labels": labels,
            "private": self.private.then_some(true),
            "occurredAt": self.occurred_at,
            "publishedAt": self.published_at,
        });
        if let (Value::Object(message), Value::Object(members)) = (&mut message, members) {
            message.extend(members);
        }
        drop_nulls(&mut message);
        message
    }
}

/// The message `feedback.retracted`, on the same subject as `feedback.processed`.
#[must_use]
pub fn retracted(retraction: &Retraction) -> (Subject, Value) {
    let message = json!({
        "eventType": RETRACTED,
        "feedbackId": retraction.feedback_id,
        "feedbackChannel": retraction.channel,
        "userId": retraction.user_id,
        "reason": retraction.reason,
        "replacedBy": retraction.replaced_by,
        "timestamp": retraction.at,
    });
    let common = CommonMembers {
        tenant: Some(&retraction.tenant),
        event: retraction.feedback_id,
        kind: RETRACTED,
        context: &retraction.context,
        private: retraction.private,
        occurred_at: retraction.occurred_at.unwrap_or(retraction.at),
        published_at: retraction.published_at.unwrap_or(retraction.at),
    };
    (Subject::FeedbackProcessed, common.with_members(message))
}

/// The message `learning.signal.generated`, without the common members.
fn message_of(signal: &LearningSignal) -> Value {
    let mut message = json!(signal);
    if let Value::Object(members) = &mut message {
        members.insert("eventType".to_owned(), json!("learning.signal.generated"));
    }
    message
}

fn drop_nulls(value: &mut Value) {
    if let Value::Object(members) = value {
        members.retain(|_, member| !member.is_null());
        members.values_mut().for_each(drop_nulls);
    }
}

//! What came of an event, and the messages by which subscribers hear of it.
//!
//! Messages are published at least once. Each has an `id` that is stable and differs between tenants, so that
//! a repetition is recognised, and says whose it is, when the act was and what it is about, so that no
//! subscriber has to read the table.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::event::{Channel, EventContext, EventCore, FeedbackType, Rating, is_false, wire_names};
use crate::identifier::{Label, TenantId};
use crate::ledger::Retraction;
use crate::preferences::Crossing;
use crate::signal::{
    LearningSignal, SignalContext, SignalType, Signals, SourceEvent, features, message_id,
    signals_for,
};

/// Where a message is published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Subject {
    /// Every event that was processed, and every one that was withdrawn.
    FeedbackProcessed,
    /// Rewards for training.
    Reward,
    /// Suggested adjustments of a policy.
    Policy,
    /// Hints to explore less.
    Exploration,
}

wire_names!(Subject {
    FeedbackProcessed = "feedback.processed",
    Reward = "learning.signals.reward",
    Policy = "learning.signals.policy",
    Exploration = "learning.signals.exploration",
});

impl From<SignalType> for Subject {
    fn from(signal: SignalType) -> Self {
        match signal {
            SignalType::Reward => Self::Reward,
            SignalType::PolicyUpdate => Self::Policy,
            SignalType::ExplorationHint => Self::Exploration,
        }
    }
}

/// What the user did, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Act {
    /// Accepted the artifact.
    Accepted,
    /// Rejected it.
    Rejected,
    /// Changed it.
    Modified,
    /// Rated it.
    Rated,
    /// Wrote about it.
    Commented,
    /// Was seen to look at it.
    Observed,
}

impl Act {
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

/// An event that was processed: all that is published of it, and no free text. It is stored as
/// it stands here, and small, since a kilobyte is the unit that a write costs; the messages are
/// made of it when they are published.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Processed {
    /// Outcomes of before it was kept have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tenant: Option<TenantId>,
    feedback_id: Uuid,
    /// Left out where it is the event's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dedupe_key: Option<String>,
    user_id: String,
    channel: Channel,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    feedback_type: Option<FeedbackType>,
    act: Act,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    score: Option<Rating>,
    #[serde(flatten)]
    context: EventContext,
    #[serde(default, skip_serializing_if = "is_false")]
    anonymize: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    exclude_from_training: bool,
    /// Whether over HTTP it is its user's alone.
    #[serde(default, skip_serializing_if = "is_false")]
    private: bool,
    /// When the act was, by the caller's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    occurred_at: Option<DateTime<Utc>>,
    /// When it was processed, by ours.
    at: DateTime<Utc>,
    #[serde(flatten)]
    signals: Signals,
}

/// What came of an event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "status")]
pub enum Outcome {
    /// It was processed.
    Processed(Box<Processed>),
    /// Another event had said the same already.
    #[serde(rename_all = "camelCase")]
    Deduplicated {
        /// When this was found.
        at: DateTime<Utc>,
        /// The event that was first.
        duplicate_of: Uuid,
    },
}

impl Outcome {
    /// When it came.
    #[must_use]
    pub fn at(&self) -> DateTime<Utc> {
        match self {
            Self::Processed(processed) => processed.at,
            Self::Deduplicated { at, .. } => *at,
        }
    }
}

impl Processed {
    /// What came of `event`.
    #[must_use]
    pub fn of(event: &EventCore, crossing: Option<&Crossing>, at: DateTime<Utc>) -> Self {
        Self {
            tenant: Some(event.tenant.clone()),
            feedback_id: event.feedback_id,
            dedupe_key: (!event.derived).then(|| event.dedupe_key().to_string()),
            user_id: event.user_id.to_string(),
            channel: event.channel,
            feedback_type: event.feedback_type,
            act: Act::of(event),
            score: event.rating,
            context: event.context.clone(),
            anonymize: event.privacy.anonymize,
            exclude_from_training: event.privacy.exclude_from_training,
            private: event.private,
            occurred_at: Some(event.timestamp),
            at,
            signals: signals_for(event, crossing),
        }
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

    /// Every message to publish, with its subject.
    #[must_use]
    pub fn messages(&self) -> Vec<(Subject, Value)> {
        let signals = self.signals().into_iter();
        let signals = signals.map(|signal| {
            let kind = signal.signal_type;
            let message = self.head(kind.as_str()).on(message_of(&signal));
            (Subject::from(kind), message)
        });
        let processed = self.head(PROCESSED).on(self.message());
        std::iter::once((Subject::FeedbackProcessed, processed))
            .chain(signals)
            .collect()
    }

    fn head(&self, kind: &'static str) -> Head<'_> {
        Head {
            tenant: self.tenant.as_ref(),
            event: self.feedback_id,
            kind,
            context: &self.context,
            occurred_at: self.occurred_at.unwrap_or(self.at),
            published_at: self.at,
        }
    }

    fn artifact_type(&self) -> Label {
        let artifact_type = self.context.artifact_type.clone();
        artifact_type.unwrap_or_else(Label::unknown)
    }

    /// `feedback.processed`; what is not known is left out.
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
            "outcome": self.act,
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

const PROCESSED: &str = "feedback.processed";
const RETRACTED: &str = "feedback.retracted";

/// What every message says.
struct Head<'a> {
    tenant: Option<&'a TenantId>,
    event: Uuid,
    kind: &'static str,
    context: &'a EventContext,
    occurred_at: DateTime<Utc>,
    published_at: DateTime<Utc>,
}

impl Head<'_> {
    /// The message with it; what is not known is left out.
    fn on(&self, message: Value) -> Value {
        let context = self.context;
        let labels = Some(&context.labels).filter(|labels| !labels.is_empty());
        let mut whole = json!({
            "id": message_id(self.tenant, self.event, self.kind),
            "tenant": self.tenant,
            "projectId": context.project_id,
            "conversationId": context.conversation_id,
            "turnId": context.turn_id,
            "traceId": context.trace_id,
            "spanId": context.span_id,
            "labels": labels,
            "occurredAt": self.occurred_at,
            "publishedAt": self.published_at,
        });
        if let (Value::Object(whole), Value::Object(message)) = (&mut whole, message) {
            whole.extend(message);
        }
        drop_nulls(&mut whole);
        whole
    }
}

/// `feedback.retracted`, for those who heard that the event was processed.
#[must_use]
pub fn retracted(retraction: &Retraction) -> (Subject, Value) {
    let message = json!({
        "eventType": RETRACTED,
        "feedbackId": retraction.feedback_id,
        "userId": retraction.user_id,
        "reason": retraction.reason,
        "replacedBy": retraction.replaced_by,
        "timestamp": retraction.at,
    });
    let head = Head {
        tenant: Some(&retraction.tenant),
        event: retraction.feedback_id,
        kind: RETRACTED,
        context: &retraction.context,
        occurred_at: retraction.occurred_at.unwrap_or(retraction.at),
        published_at: retraction.published_at.unwrap_or(retraction.at),
    };
    (Subject::FeedbackProcessed, head.on(message))
}

/// `learning.signal.generated`: the signal with its event type.
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

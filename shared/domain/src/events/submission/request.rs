//! The request that submits a feedback event.

use chrono::{DateTime, Utc};
use hearback_wire::{Integer, Known, Number, Text, request};
use uuid::Uuid;

use super::MAX_COMMENT;
use crate::events::event::{
    Channel, CorrectionType, EventContext, EventCore, FeedbackEvent, FeedbackType, FreeText,
    PrivacyFlags, Rating,
};
use crate::events::retention::Retention;
use crate::identity::caller::Caller;
use crate::identity::identifier::{ArtifactId, ConversationId, Label, SessionId, TurnId, UserId};
use crate::identity::labels::Labels;

request! {
    /// A feedback event.
    pub struct FeedbackEventRequest as "FeedbackEvent", open {
        /// The id of the event, chosen by the caller. An event whose id exists is rejected with 409.
        "feedbackId" => feedback_id: required Uuid,
        /// The user: the caller, or with the scope `feedback:on-behalf` any user.
        "userId" => user_id: required UserId,
        /// The session, for correlation.
        "sessionId" => session_id: required SessionId,
        /// What the feedback is about.
        "artifactId" => artifact_id: optional ArtifactId,
        /// How the feedback was captured.
        "feedbackChannel" => channel: required Known<Channel>,
        /// The kind of feedback.
        "feedbackType" => feedback_type: optional Known<FeedbackType>,
        /// What the user submitted.
        "data" => data: group FeedbackData,
        /// What the user corrected.
        "correctionData" => correction: group CorrectionData,
        /// Privacy settings.
        "privacyFlags" => privacy: group PrivacyFlagsRequest,
        /// What the user was doing.
        "context" => context: group FeedbackEventContext,
        /// RFC 3339 with an offset, at most 5 minutes in the future; the time of receipt if left out.
        "timestamp" => timestamp: optional DateTime<Utc>,
    }
    example {
        "feedbackId": "f47ac10b-58cc-4372-a567-0e02b2c3d479",
        "userId": "user-123",
        "sessionId": "session-abc",
        "artifactId": "artifact-456",
        "feedbackChannel": "explicit",
        "feedbackType": "artifact-acceptance",
        "data": {
            "accepted": true,
            "modifiedElements": ["checkbox-1", "text-field-2"],
            "timeSpent": 45,
            "rating": 4,
            "comment": "Very helpful checklist"
        },
        "context": {"taskType": "code-review", "projectId": "order-service"}
    }

    /// What the user submitted.
    pub struct FeedbackData, open {
        /// Whether the artifact was accepted.
        "accepted" => accepted: optional bool,
        /// 1 (worst) to 5 (best).
        "rating" => rating: optional Rating,
        /// Free text.
        "comment" => comment: optional Text<MAX_COMMENT>,
        /// Names of the elements that the user changed.
        "modifiedElements" => modified_elements: optional Vec<String>,
        /// Time spent, in seconds.
        "timeSpent" => time_spent: optional i64,
        /// How far the artifact was read, in percent.
        "scrollPercentage" => scroll_percentage: optional Number<0, 100>,
    }

    /// What the user corrected.
    pub struct CorrectionData, open {
        /// The original text.
        "originalValue" => original_value: optional String,
        /// The corrected text.
        "correctedValue" => corrected_value: optional String,
        /// The kind of correction.
        "correctionType" => correction_type: optional CorrectionType,
    }

    /// Privacy settings.
    pub struct PrivacyFlagsRequest as "PrivacyFlags", open {
        /// Whether the user and the session are replaced by pseudonyms, and personal data in free text by
        /// placeholders, before the event is stored.
        "anonymize" => anonymize: optional bool = false,
        /// Days until the event and its outcome expire.
        "retentionDays" => retention_days: optional Integer<1, { Retention::MAX_DAYS }>
            = Integer(PrivacyFlags::DEFAULT_RETENTION_DAYS.into()),
        /// Whether the event is excluded from training.
        "excludeFromTraining" => exclude_from_training: optional bool = false,
    }

    /// What the user was doing.
    pub struct FeedbackEventContext, open {
        /// The kind of task, for example `code-review`.
        "taskType" => task_type: optional Label,
        /// The project.
        "projectId" => project_id: optional Label,
        /// The agent that answered.
        "agentId" => agent_id: optional Label,
        /// The strategy of the agent.
        "strategy" => strategy: optional Label,
        /// The kind of artifact, for example `checklist`; `unknown` if left out.
        "artifactType" => artifact_type: optional Label,
        /// The complexity of the artifact. Preferences learn from `simple`, `moderate` and `detailed`; any other value
        /// is stored and published.
        "artifactComplexity" => artifact_complexity: optional Label,
        /// The format of the artifact. Preferences learn from `bullet-list`, `prose`, `table`, `code` and `mixed`.
        "artifactFormat" => artifact_format: optional Label,
        /// The length of the answer. Preferences learn from `concise`, `balanced` and `verbose`.
        "responseLength" => response_length: optional Label,
        /// The style of the code. Preferences learn from `minimal`, `documented` and `verbose`.
        "codeStyle" => code_style: optional Label,
        /// The experience of the user.
        "userExperience" => user_experience: optional Label,
        /// The conversation of the turn that the feedback is about.
        "conversationId" => conversation_id: optional ConversationId,
        /// The turn that the feedback is about, in `projectId` and `conversationId`.
        "turnId" => turn_id: optional TurnId,
        /// Labels by which you compare answers: up to 16 keys of 1 to 64 characters (`A-Z`, `a-z`, `0-9`, `_`, `.`,
        /// `-`), each with a string of 1 to 256 characters. `model` and `prompt_version` are the well-known keys.
        "labels" => labels: optional Labels,
    }
}

impl FeedbackEventRequest {
    /// The event of `caller`. `now` is the time of receipt, and the default of `timestamp`.
    pub(super) fn event(self, caller: &Caller, now: DateTime<Utc>) -> FeedbackEvent {
        let (data, correction) = (self.data, self.correction);
        let text = FreeText {
            comment: data.comment.map(|comment| comment.0),
            modified_elements: data.modified_elements.unwrap_or_default(),
            original_value: correction.original_value,
            corrected_value: correction.corrected_value,
        };
        let core = EventCore {
            tenant: caller.tenant.clone(),
            feedback_id: self.feedback_id,
            user_id: self.user_id,
            session_id: self.session_id,
            artifact_id: self.artifact_id,
            channel: self.channel.0,
            feedback_type: self.feedback_type.map(|known| known.0),
            accepted: data.accepted,
            rating: data.rating,
            modified_elements: text.modified_elements.len(),
            commented: text.comment.is_some(),
            time_spent: data.time_spent,
            scroll_percentage: data.scroll_percentage.map(|percentage| percentage.0),
            correction_type: correction.correction_type,
            rejection: None,
            confidence: None,
            derived: false,
            private: false,
            second_to: None,
            position: None,
            privacy: self.privacy.into(),
            context: self.context.into(),
            timestamp: self.timestamp.unwrap_or(now),
            received_at: now,
        };
        FeedbackEvent { core, text }
    }
}

impl From<PrivacyFlagsRequest> for PrivacyFlags {
    fn from(flags: PrivacyFlagsRequest) -> Self {
        Self {
            anonymize: flags.anonymize,
            retention_days: flags.retention_days.to(),
            exclude_from_training: flags.exclude_from_training,
        }
    }
}

impl From<FeedbackEventContext> for EventContext {
    fn from(context: FeedbackEventContext) -> Self {
        Self {
            task_type: context.task_type,
            project_id: context.project_id,
            agent_id: context.agent_id,
            strategy: context.strategy,
            artifact_type: context.artifact_type,
            artifact_complexity: context.artifact_complexity,
            artifact_format: context.artifact_format,
            response_length: context.response_length,
            code_style: context.code_style,
            user_experience: context.user_experience,
            conversation_id: context.conversation_id,
            turn_id: context.turn_id,
            trace_id: None,
            span_id: None,
            labels: context.labels.unwrap_or_default(),
        }
    }
}

//! A feedback event in the response of `GET /v1/feedback/{feedbackId}`, in the format in which it was submitted.

use chrono::{DateTime, Utc};
use hearback_domain::events::event::{
    Channel, CorrectionType, EventContext, EventCore, FeedbackType, FreeText, PrivacyFlags,
};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

/// A stored event.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StoredFeedbackEvent {
    feedback_id: Uuid,
    /// The user, or the pseudonym of an anonymous event.
    user_id: String,
    /// The session, or its pseudonym.
    session_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifact_id: Option<String>,
    feedback_channel: Channel,
    #[serde(skip_serializing_if = "Option::is_none")]
    feedback_type: Option<FeedbackType>,
    /// The feedback itself.
    data: EventData,
    /// What the user corrected.
    #[serde(skip_serializing_if = "Option::is_none")]
    correction_data: Option<EventCorrection>,
    /// What the event may be used for, and how long it is stored.
    privacy_flags: EventPrivacy,
    /// What the user was doing.
    context: EventContext,
    /// When the user acted.
    timestamp: DateTime<Utc>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct EventData {
    #[serde(skip_serializing_if = "Option::is_none")]
    accepted: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 5)]
    rating: Option<u8>,
    /// For the event's user alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    comment: Option<String>,
    /// For the event's user alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    modified_elements: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time_spent: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 100)]
    scroll_percentage: Option<f64>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct EventCorrection {
    /// For the event's user alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    original_value: Option<String>,
    /// For the event's user alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    corrected_value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    correction_type: Option<CorrectionType>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct EventPrivacy {
    anonymize: bool,
    #[schema(minimum = 1, maximum = 3650)]
    retention_days: u16,
    exclude_from_training: bool,
}

impl StoredFeedbackEvent {
    /// The event, with `text` if the caller may read it.
    pub(crate) fn of(core: &EventCore, text: FreeText) -> Self {
        let PrivacyFlags {
            anonymize,
            retention_days,
            exclude_from_training,
        } = core.privacy;
        let correction = EventCorrection {
            original_value: text.original_value,
            corrected_value: text.corrected_value,
            correction_type: core.correction_type,
        };
        let corrects = correction.original_value.is_some()
            || correction.corrected_value.is_some()
            || correction.correction_type.is_some();
        Self {
            feedback_id: core.feedback_id,
            user_id: core.user_id.to_string(),
            session_id: core.session_id.to_string(),
            artifact_id: core.artifact_id.as_ref().map(ToString::to_string),
            feedback_channel: core.channel,
            feedback_type: core.feedback_type,
            data: EventData {
                accepted: core.accepted,
                rating: core.rating.map(Into::into),
                comment: text.comment,
                modified_elements: text.modified_elements,
                time_spent: core.time_spent,
                scroll_percentage: core.scroll_percentage,
            },
            correction_data: corrects.then_some(correction),
            privacy_flags: EventPrivacy {
                anonymize,
                retention_days,
                exclude_from_training,
            },
            context: core.context.clone(),
            timestamp: core.timestamp,
        }
    }
}

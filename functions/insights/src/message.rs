//! The messages of the queue.

use chrono::{DateTime, Utc};
use hearback_domain::identity::identifier::{ConversationId, Label, ProjectId, TenantId, TurnId};
use hearback_storage::insights::TurnDigest;
use serde::Deserialize;
use uuid::Uuid;

/// A message of the queue.
#[derive(Debug, Deserialize)]
#[serde(tag = "eventType")]
pub(crate) enum Message {
    /// An event was processed.
    #[serde(rename = "feedback.processed", rename_all = "camelCase")]
    Processed {
        tenant: TenantId,
        #[serde(default)]
        project_id: Option<Label>,
        feedback_id: Uuid,
        occurred_at: DateTime<Utc>,
    },
    /// An event was retracted.
    #[serde(rename = "feedback.retracted", rename_all = "camelCase")]
    Retracted { tenant: TenantId, feedback_id: Uuid },
    /// An event was erased.
    #[serde(rename = "feedback.erased", rename_all = "camelCase")]
    Erased {
        tenant: TenantId,
        project_id: Label,
        feedback_id: Uuid,
        occurred_at: DateTime<Utc>,
    },
    /// What is counted of a turn changed.
    #[serde(rename = "turn.changed", rename_all = "camelCase")]
    TurnChanged {
        tenant: TenantId,
        project_id: ProjectId,
        conversation_id: ConversationId,
        turn_id: TurnId,
        hour: DateTime<Utc>,
        position: String,
        state: Option<TurnDigest>,
    },
}

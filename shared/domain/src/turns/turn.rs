//! Turns: a user's message and its answer.

use chrono::{DateTime, Utc};
use hearback_text::GAP;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::events::event::{EventContext, is_false};
use crate::identity::identifier::{
    ConversationId, Label, MessageId, ProjectId, TenantId, TurnId, UserId, UserRef,
};
use crate::identity::labels::Labels;
use crate::text::digest::digest;
use crate::text::language::Language;
use crate::text::member_digests::MemberDigests;
use crate::text::payload::escaped_json_size;

mod request;

pub use request::{ENDING, Embedding, MAX_DIMENSIONS, QUERY, SUMMARY, TurnRejected, TurnRequest};

/// A reference to a conversation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ConversationRef {
    /// The tenant.
    pub tenant: TenantId,
    /// The project.
    pub project: ProjectId,
    /// The conversation.
    #[serde(rename = "conversation_id")]
    pub conversation: ConversationId,
}

/// A reference to a turn.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TurnRef {
    /// The conversation.
    #[serde(flatten)]
    pub within: ConversationRef,
    /// The turn.
    #[serde(rename = "turn_id")]
    pub turn: TurnId,
}

/// Whether a turn is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = TurnStatus)]
pub enum TurnState {
    /// The turn has no answer yet.
    Open,
    /// The turn has an answer.
    Complete,
}

impl TurnState {
    /// The status of a turn.
    #[must_use]
    pub fn of(open: bool) -> Self {
        if open { Self::Open } else { Self::Complete }
    }
}

/// A turn without its texts, as stored in the index row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnCore {
    /// The reference of the turn.
    #[serde(flatten)]
    pub at: TurnRef,
    /// The owner.
    pub user_id: UserId,
    /// The time of the turn.
    pub ts: DateTime<Utc>,
    /// Whether the turn has no answer yet.
    #[serde(default, skip_serializing_if = "is_false")]
    pub open: bool,
    /// The message id of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
    /// The trace of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<Label>,
    /// The span of the answer within its trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span_id: Option<Label>,
    /// The track of the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub track_id: Option<Label>,
    /// The bundle that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle_id: Option<Label>,
    /// The kind of user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_type: Option<Label>,
    /// The artifact type of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<Label>,
    /// The kind of task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_type: Option<Label>,
    /// The agent that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<Label>,
    /// The strategy of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Label>,
    /// The result of a validation of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation_outcome: Option<Label>,
    /// The quality of the answer, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quality_score: Option<f64>,
    /// The language of the user's message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<Language>,
    /// Labels by which answers are compared. Feedback on the turn inherits them.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// A digest of the body that registered the turn, by which a repeat is recognised.
    pub fingerprint: String,
    /// The fingerprint of the body that completed an open turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_by: Option<String>,
    /// When the turn and its feedback expire; `None` means never. A separate attribute of the row.
    #[serde(skip)]
    pub expires_at: Option<DateTime<Utc>>,
}

impl TurnCore {
    /// The owner of the turn.
    #[must_use]
    pub fn owner(&self) -> UserRef<'_> {
        UserRef::new(&self.at.within.tenant, &self.user_id)
    }

    /// The tags of the index row.
    #[must_use]
    pub fn tags(&self) -> Vec<String> {
        let mut tags = vec![
            "artifact:turn.log".to_owned(),
            format!("turn:{}", self.at.turn),
        ];
        tags.extend(self.track_id.iter().map(|track| format!("track:{track}")));
        tags
    }

    /// The context of an event about this turn.
    #[must_use]
    pub fn context(&self) -> EventContext {
        EventContext {
            task_type: self.task_type.clone(),
            project_id: Label::try_from(self.at.within.project.as_str()).ok(),
            agent_id: self.agent_id.clone(),
            strategy: self.strategy.clone(),
            artifact_type: self.artifact_type.clone(),
            trace_id: self.trace_id.clone(),
            span_id: self.span_id.clone(),
            labels: self.labels.clone(),
            ..EventContext::default()
        }
    }
}

/// A turn's log in the bucket: the messages, and the application's own log, into which feedback may be mirrored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnLog {
    /// The user's message: `{text}` and further members.
    pub user: Value,
    /// The answer: `{text, message_id?}` and further members; `None` for an open turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assistant: Option<Value>,
    /// The application's log, or an empty one.
    pub turn_log: Map<String, Value>,
    /// Digests of the members of the registration; empty for logs from before they were stored.
    #[serde(default, skip_serializing_if = "MemberDigests::is_empty")]
    pub given: MemberDigests,
}

impl TurnLog {
    /// Maximum size of a log, in bytes [as escaped by Lambda](crate::text::payload): a response contains the whole log, and
    /// feedback.
    pub const MAX: usize = 5_000_000;

    /// Whether the log fits into a response, which contains its `feedbacks` twice.
    #[must_use]
    pub fn fits(&self) -> bool {
        let listed = self.turn_log.get("feedbacks");
        escaped_json_size(self) + listed.map_or(0, escaped_json_size) <= Self::MAX
    }
}

/// A digest of a message by which it is recognised again.
pub(crate) fn message_digest(message: &str) -> String {
    let half: Vec<u8> = digest([message.trim()]).into_iter().take(16).collect();
    hex::encode(half)
}

/// Excerpts of the texts of a turn.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// The beginning of the user's message.
    pub user: String,
    /// A digest of the user's message, if it is longer than `user`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_digest: Option<String>,
    /// The beginning of the answer.
    pub assistant: String,
    /// The end of the answer, if it is longer than `assistant`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub assistant_end: String,
}

impl Summary {
    /// Whether a message is the user's message, word for word.
    #[must_use]
    pub fn is_question(&self, message: &str) -> bool {
        match &self.user_digest {
            Some(digest) => message_digest(message) == *digest,
            None => message.trim() == self.user.trim(),
        }
    }

    /// The answer, if the excerpts are all of it.
    #[must_use]
    pub fn whole_answer(&self) -> Option<String> {
        let end = &self.assistant_end;
        (end.chars().count() < ENDING).then(|| format!("{}{end}", self.assistant))
    }

    /// The answer, or its excerpts with [`GAP`] between them.
    #[must_use]
    pub fn answer(&self) -> String {
        self.whole_answer()
            .unwrap_or_else(|| format!("{}{GAP}{}", self.assistant, self.assistant_end))
    }
}

/// A turn to be registered.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// The index row.
    pub core: TurnCore,
    /// Excerpts for the index row.
    pub summary: Summary,
    /// The embedding of the turn, if the caller made one.
    pub embedding: Option<Vec<f32>>,
    /// The turn's time, if the caller gave one.
    pub given_ts: Option<DateTime<Utc>>,
    /// The log for the bucket.
    pub log: TurnLog,
}

impl Turn {
    /// The user's message.
    #[must_use]
    pub fn query(&self) -> &str {
        text_of(&self.log.user)
    }

    /// The user's message, and the answer if there is one.
    #[must_use]
    pub fn texts(&self) -> String {
        match &self.log.assistant {
            Some(assistant) => format!("{}\n{}", self.query(), text_of(assistant)),
            None => self.query().to_owned(),
        }
    }
}

/// The text of a message.
fn text_of(message: &Value) -> &str {
    let text = message.get("text").and_then(Value::as_str);
    text.unwrap_or_default()
}

/// The stored form of an embedding: a scale, and a signed byte for each number.
///
/// The largest magnitude becomes 127, so the error of the cosine of two vectors is in the third decimal at most.
#[must_use]
pub fn quantized(embedding: &[f32]) -> Vec<u8> {
    let largest = embedding.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
    let scale = if largest > 0.0 { largest / 127.0 } else { 1.0 };
    let mut bytes = scale.to_le_bytes().to_vec();
    bytes.extend(embedding.iter().map(|x| {
        #[expect(
            clippy::as_conversions,
            clippy::cast_possible_truncation,
            reason = "clamped to −127..127"
        )]
        let byte = (x / scale).round().clamp(-127.0, 127.0) as i8;
        byte.to_le_bytes()[0]
    }));
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_its_excerpts_contain_has_no_gap() {
        let summary = |end: usize| Summary {
            assistant: "a".to_owned(),
            assistant_end: "e".repeat(end),
            ..Summary::default()
        };
        assert_eq!(summary(0).answer(), "a");
        assert_eq!(summary(2).answer(), "aee");
        assert!(summary(ENDING).answer().starts_with("a\n…\ne"));
    }

    #[test]
    fn a_quantized_embedding_keeps_its_direction() {
        let embedding: Vec<f32> = (0..64_u8).map(|n| (f32::from(n) * 0.7).sin()).collect();
        let bytes = quantized(&embedding);
        assert_eq!(bytes.len(), 68);
        let restored: Vec<f32> = bytes[4..]
            .iter()
            .map(|b| f32::from(b.cast_signed()))
            .collect();
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        let cosine = dot(&embedding, &restored)
            / (dot(&embedding, &embedding) * dot(&restored, &restored)).sqrt();
        assert!(cosine > 0.999, "{cosine}");
    }
}

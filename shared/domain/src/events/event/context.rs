//! The context of an event, and what it inherits from a turn.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::identity::identifier::{ConversationId, Label, TurnId};
use crate::identity::labels::Labels;

/// What the user was doing, in terms that the application chooses.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventContext {
    /// The kind of task, for example `code-review`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub task_type: Option<Label>,
    /// The project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub project_id: Option<Label>,
    /// The agent that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub agent_id: Option<Label>,
    /// The strategy of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub strategy: Option<Label>,
    /// The kind of artifact, for example `checklist`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub artifact_type: Option<Label>,
    /// The complexity of the artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub artifact_complexity: Option<Label>,
    /// The format of the artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub artifact_format: Option<Label>,
    /// The length of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub response_length: Option<Label>,
    /// The style of the code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub code_style: Option<Label>,
    /// The experience of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub user_experience: Option<Label>,
    /// The conversation of the turn that the feedback is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub conversation_id: Option<ConversationId>,
    /// The turn that the feedback is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub turn_id: Option<TurnId>,
    /// The trace of that turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub trace_id: Option<Label>,
    /// The span within the trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub span_id: Option<Label>,
    /// Labels by which answers are compared.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    #[schema(value_type = BTreeMap<String, String>)]
    pub labels: Labels,
}

impl EventContext {
    /// Adds what the context of the turn says and this one does not. The trace is the turn's.
    pub fn inherit(&mut self, turn: &Self) {
        let inherited = [
            (&mut self.task_type, &turn.task_type),
            (&mut self.agent_id, &turn.agent_id),
            (&mut self.strategy, &turn.strategy),
            (&mut self.artifact_type, &turn.artifact_type),
            (&mut self.trace_id, &turn.trace_id),
            (&mut self.span_id, &turn.span_id),
        ];
        for (own, turns) in inherited {
            if own.is_none() {
                own.clone_from(turns);
            }
        }
        self.labels.inherit(&turn.labels);
    }
}

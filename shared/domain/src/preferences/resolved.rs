//! The preferences that apply to one request: defaults, then artifact, then context, then global.
//!
//! Source: `SDS-009`, "Preference Application Flow". Where a task type and a project both have a
//! preference, the project's wins: it is the narrower place.

use serde::Serialize;
use utoipa::ToSchema;

use super::{
    CodeStyle, CommunicationStyle, Complexity, DetailLevel, Format, Preferences, ResponseLength,
};
use crate::identifier::Label;

/// What a request is about. All parts are optional.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Question {
    /// The kind of artifact that will be made.
    pub artifact_type: Option<Label>,
    /// The kind of task.
    pub task_type: Option<Label>,
    /// The project.
    pub project_id: Option<Label>,
}

/// Every preference, with the default where the user has none.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Resolved {
    /// Complexity; `moderate` by default.
    pub preferred_complexity: Complexity,
    /// Format; `mixed` by default.
    pub preferred_format: Format,
    /// Length; `balanced` by default.
    pub preferred_response_length: ResponseLength,
    /// Style of code; `documented` by default.
    pub preferred_code_style: CodeStyle,
    /// Agents to ask first; none by default.
    pub preferred_agents: Vec<String>,
    /// Tone; `technical` by default.
    pub communication_style: CommunicationStyle,
    /// Depth; `standard` by default.
    pub detail_level: DetailLevel,
    /// Whether preferences learn; `true` by default.
    pub learning_mode: bool,
}

/// Applies a user's preferences to a request.
#[must_use]
pub fn resolve(preferences: &Preferences, question: &Question) -> Resolved {
    let global = preferences.global_preferences;
    let mut resolved = Resolved {
        preferred_complexity: Complexity::Moderate,
        preferred_format: Format::Mixed,
        preferred_response_length: ResponseLength::Balanced,
        preferred_code_style: CodeStyle::Documented,
        preferred_agents: Vec::new(),
        communication_style: global.communication_style,
        detail_level: global.detail_level,
        learning_mode: global.learning_mode,
    };
    let artifact = question
        .artifact_type
        .as_ref()
        .and_then(|label| preferences.artifact_preferences.get(label));
    if let Some(artifact) = artifact {
        set(
            &mut resolved.preferred_complexity,
            artifact.preferred_complexity,
        );
        set(&mut resolved.preferred_format, artifact.preferred_format);
    }
    for label in [&question.task_type, &question.project_id]
        .into_iter()
        .flatten()
    {
        if let Some(context) = preferences.context_preferences.get(label) {
            set(
                &mut resolved.preferred_response_length,
                context.preferred_response_length,
            );
            set(
                &mut resolved.preferred_code_style,
                context.preferred_code_style,
            );
            set(
                &mut resolved.preferred_agents,
                context.preferred_agents.clone(),
            );
        }
    }
    resolved
}

fn set<T>(to: &mut T, preferred: Option<T>) {
    if let Some(preferred) = preferred {
        *to = preferred;
    }
}

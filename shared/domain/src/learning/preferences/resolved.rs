//! Resolves the preferences that apply to a request. Values that the user set take precedence over learned values, and
//! those over defaults.
//!
//! If both the task type and the project have a value, that of the project is used.

use serde::Serialize;
use utoipa::ToSchema;

use super::{
    ArtifactPreference, CodeStyle, CommunicationStyle, Complexity, ContextPreference, DetailLevel,
    Format, GlobalPreferences, Preferences, Profile, ResponseLength,
};
use crate::identity::identifier::Label;

/// What preferences are resolved for. All parts are optional.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PreferenceContext {
    /// The type of the artifact.
    pub artifact_type: Option<Label>,
    /// The kind of task.
    pub task_type: Option<Label>,
    /// The project.
    pub project_id: Option<Label>,
}

/// The source of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = Source)]
pub enum PreferenceSource {
    /// The user set it.
    User,
    /// Learned from feedback.
    Learned,
    /// The default.
    Default,
}

/// All preferences, with defaults for those that the user does not have.
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
    /// Preferred agents; none by default.
    pub preferred_agents: Vec<String>,
    /// Tone; `technical` by default.
    pub communication_style: CommunicationStyle,
    /// Level of detail; `standard` by default.
    pub detail_level: DetailLevel,
    /// Whether preferences are updated from feedback; `true` by default.
    pub learning_mode: bool,
    /// The source of each value.
    pub source: Sources,
}

/// The source of each value of [`Resolved`]. A global preference with its default value is `default`, even if the user
/// set it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Sources {
    /// Source of the complexity.
    pub preferred_complexity: PreferenceSource,
    /// Source of the format.
    pub preferred_format: PreferenceSource,
    /// Source of the length.
    pub preferred_response_length: PreferenceSource,
    /// Source of the style of code.
    pub preferred_code_style: PreferenceSource,
    /// Source of the agents.
    pub preferred_agents: PreferenceSource,
    /// Source of the tone.
    pub communication_style: PreferenceSource,
    /// Source of the level of detail.
    pub detail_level: PreferenceSource,
    /// Source of the learning mode.
    pub learning_mode: PreferenceSource,
}

/// Unsets a value that was not set before and equals the learned one.
fn unset_if_learned<T: PartialEq>(value: &mut Option<T>, before: Option<&T>, learned: Option<&T>) {
    if before.is_none() && value.as_ref() == learned {
        *value = None;
    }
}

impl Profile {
    /// The preferences with learned values where the user set none.
    #[must_use]
    pub fn shown(&self) -> Preferences {
        let mut shown = self.preferences.clone();
        for (label, artifact) in &mut shown.artifact_preferences {
            let learned = self.learned_artifact(label);
            artifact.preferred_complexity = artifact
                .preferred_complexity
                .or(learned.preferred_complexity);
            artifact.preferred_format = artifact.preferred_format.or(learned.preferred_format);
        }
        for label in self.learning.contexts.keys() {
            let learned = self.learned_context(label);
            if learned == ContextPreference::default() {
                continue;
            }
            let context = shown.context_preferences.entry(label.clone());
            let context = context.or_default();
            context.preferred_agents = context.preferred_agents.take().or(learned.preferred_agents);
            context.preferred_response_length = context
                .preferred_response_length
                .or(learned.preferred_response_length);
            context.preferred_code_style = context
                .preferred_code_style
                .or(learned.preferred_code_style);
        }
        shown
    }

    /// Removes values from `changed` that the user did not set before and that equal the learned ones: a client that
    /// reads the preferences, changes one and puts all back sends them unchanged.
    pub(super) fn keep_learned(&self, changed: &mut Preferences) {
        for (label, artifact) in &mut changed.artifact_preferences {
            let before = self.preferences.artifact_preferences.get(label);
            let before = before.cloned().unwrap_or_default();
            let learned = self.learned_artifact(label);
            unset_if_learned(
                &mut artifact.preferred_complexity,
                before.preferred_complexity.as_ref(),
                learned.preferred_complexity.as_ref(),
            );
            unset_if_learned(
                &mut artifact.preferred_format,
                before.preferred_format.as_ref(),
                learned.preferred_format.as_ref(),
            );
        }
        for (label, context) in &mut changed.context_preferences {
            let before = self.preferences.context_preferences.get(label);
            let before = before.cloned().unwrap_or_default();
            let learned = self.learned_context(label);
            unset_if_learned(
                &mut context.preferred_agents,
                before.preferred_agents.as_ref(),
                learned.preferred_agents.as_ref(),
            );
            unset_if_learned(
                &mut context.preferred_response_length,
                before.preferred_response_length.as_ref(),
                learned.preferred_response_length.as_ref(),
            );
            unset_if_learned(
                &mut context.preferred_code_style,
                before.preferred_code_style.as_ref(),
                learned.preferred_code_style.as_ref(),
            );
        }
    }

    /// The learned preferences for an artifact type.
    fn learned_artifact(&self, label: &Label) -> ArtifactPreference {
        let learning = self.learning.artifacts.get(label);
        ArtifactPreference {
            preferred_complexity: learning.and_then(|l| l.complexity.preferred().copied()),
            preferred_format: learning.and_then(|l| l.format.preferred().copied()),
            ..ArtifactPreference::default()
        }
    }

    /// The learned preferences for a context.
    fn learned_context(&self, label: &Label) -> ContextPreference {
        let learning = self.learning.contexts.get(label);
        let agent = learning.and_then(|l| l.agents.preferred());
        ContextPreference {
            preferred_agents: agent.map(|agent| vec![agent.to_string()]),
            preferred_response_length: learning
                .and_then(|l| l.response_length.preferred().copied()),
            preferred_code_style: learning.and_then(|l| l.code_style.preferred().copied()),
        }
    }
}

/// Resolves a user's preferences for a request.
#[must_use]
pub fn resolve(profile: &Profile, context: &PreferenceContext) -> Resolved {
    let preferences = &profile.preferences;
    let artifact_type = context.artifact_type.as_ref();
    let set = artifact_type.and_then(|label| preferences.artifact_preferences.get(label));
    let set = set.cloned().unwrap_or_default();
    let learned = artifact_type.map(|label| profile.learned_artifact(label));
    let learned = learned.unwrap_or_default();
    // The project takes precedence.
    let contexts = || {
        [&context.project_id, &context.task_type]
            .into_iter()
            .flatten()
    };
    let by_context = &preferences.context_preferences;
    let set_in_context = contexts().filter_map(|label| by_context.get(label));
    let set_in_context = first_of(set_in_context.cloned());
    let learned_in_context = first_of(contexts().map(|label| profile.learned_context(label)));

    let (preferred_complexity, complexity) = pick(
        set.preferred_complexity,
        learned.preferred_complexity,
        Complexity::Moderate,
    );
    let (preferred_format, format) = pick(
        set.preferred_format,
        learned.preferred_format,
        Format::Mixed,
    );
    let (preferred_response_length, response_length) = pick(
        set_in_context.preferred_response_length,
        learned_in_context.preferred_response_length,
        ResponseLength::Balanced,
    );
    let (preferred_code_style, code_style) = pick(
        set_in_context.preferred_code_style,
        learned_in_context.preferred_code_style,
        CodeStyle::Documented,
    );
    let (preferred_agents, agents) = pick(
        set_in_context.preferred_agents,
        learned_in_context.preferred_agents,
        Vec::new(),
    );
    let (global, default) = (preferences.global_preferences, GlobalPreferences::default());
    Resolved {
        preferred_complexity,
        preferred_format,
        preferred_response_length,
        preferred_code_style,
        preferred_agents,
        communication_style: global.communication_style,
        detail_level: global.detail_level,
        learning_mode: global.learning_mode,
        source: Sources {
            preferred_complexity: complexity,
            preferred_format: format,
            preferred_response_length: response_length,
            preferred_code_style: code_style,
            preferred_agents: agents,
            communication_style: user_if_changed(
                global.communication_style != default.communication_style,
            ),
            detail_level: user_if_changed(global.detail_level != default.detail_level),
            learning_mode: user_if_changed(global.learning_mode != default.learning_mode),
        },
    }
}

/// Merges contexts: of each preference the first value.
fn first_of(contexts: impl Iterator<Item = ContextPreference>) -> ContextPreference {
    contexts.fold(ContextPreference::default(), |first, next| {
        ContextPreference {
            preferred_agents: first.preferred_agents.or(next.preferred_agents),
            preferred_response_length: first
                .preferred_response_length
                .or(next.preferred_response_length),
            preferred_code_style: first.preferred_code_style.or(next.preferred_code_style),
        }
    })
}

fn pick<T>(set: Option<T>, learned: Option<T>, default: T) -> (T, PreferenceSource) {
    match (set, learned) {
        (Some(set), _) => (set, PreferenceSource::User),
        (None, Some(learned)) => (learned, PreferenceSource::Learned),
        (None, None) => (default, PreferenceSource::Default),
    }
}

fn user_if_changed(changed: bool) -> PreferenceSource {
    if changed {
        PreferenceSource::User
    } else {
        PreferenceSource::Default
    }
}

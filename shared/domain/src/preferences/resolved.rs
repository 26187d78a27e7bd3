//! The preferences that apply to one request: defaults, then artifact, then context, then global; what the
//! user set before what was learned.
//!
//! Where a task type and a project both have a preference, the project's wins: it is the narrower place.

use serde::Serialize;
use utoipa::ToSchema;

use super::{
    ArtifactPreference, CodeStyle, CommunicationStyle, Complexity, ContextPreference, DetailLevel,
    Format, GlobalPreferences, Preferences, Profile, ResponseLength,
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

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The user set it.
    User,
    /// Feedback taught it.
    Learned,
    /// Neither.
    Default,
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
    /// Where each value comes from.
    pub source: Sources,
}

/// Where each value of [`Resolved`] comes from. A global preference that has its default is `default`, be it
/// that the user set it so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Sources {
    /// Of the complexity.
    pub preferred_complexity: Source,
    /// Of the format.
    pub preferred_format: Source,
    /// Of the length.
    pub preferred_response_length: Source,
    /// Of the style of code.
    pub preferred_code_style: Source,
    /// Of the agents.
    pub preferred_agents: Source,
    /// Of the tone.
    pub communication_style: Source,
    /// Of the depth.
    pub detail_level: Source,
    /// Of the learning mode.
    pub learning_mode: Source,
}

impl Profile {
    /// The preferences as they are shown: what was learned stands where the user set nothing.
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

    /// What feedback taught of a kind of artifact.
    fn learned_artifact(&self, label: &Label) -> ArtifactPreference {
        let learning = self.learning.artifacts.get(label);
        ArtifactPreference {
            preferred_complexity: learning.and_then(|l| l.complexity.preferred().copied()),
            preferred_format: learning.and_then(|l| l.format.preferred().copied()),
            ..ArtifactPreference::default()
        }
    }

    /// What feedback taught of a context.
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

/// Applies a user's preferences to a request.
#[must_use]
pub fn resolve(profile: &Profile, question: &Question) -> Resolved {
    let preferences = &profile.preferences;
    let asked = question.artifact_type.as_ref();
    let set = asked.and_then(|label| preferences.artifact_preferences.get(label));
    let set = set.cloned().unwrap_or_default();
    let learned = asked.map(|label| profile.learned_artifact(label));
    let learned = learned.unwrap_or_default();
    // The narrower place first.
    let contexts = || {
        [&question.project_id, &question.task_type]
            .into_iter()
            .flatten()
    };
    let known = &preferences.context_preferences;
    let set_in = contexts().filter_map(|label| known.get(label));
    let set_in = first_of(set_in.cloned());
    let learned_in = first_of(contexts().map(|label| profile.learned_context(label)));

    let (preferred_complexity, complexity) = pick(
        (set.preferred_complexity, learned.preferred_complexity),
        Complexity::Moderate,
    );
    let (preferred_format, format) = pick(
        (set.preferred_format, learned.preferred_format),
        Format::Mixed,
    );
    let (preferred_response_length, response_length) = pick(
        (
            set_in.preferred_response_length,
            learned_in.preferred_response_length,
        ),
        ResponseLength::Balanced,
    );
    let (preferred_code_style, code_style) = pick(
        (set_in.preferred_code_style, learned_in.preferred_code_style),
        CodeStyle::Documented,
    );
    let (preferred_agents, agents) = pick(
        (set_in.preferred_agents, learned_in.preferred_agents),
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
            communication_style: changed(global.communication_style != default.communication_style),
            detail_level: changed(global.detail_level != default.detail_level),
            learning_mode: changed(global.learning_mode != default.learning_mode),
        },
    }
}

/// What is preferred over several contexts: of each kind the first that there is.
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

fn pick<T>((set, learned): (Option<T>, Option<T>), default: T) -> (T, Source) {
    match (set, learned) {
        (Some(set), _) => (set, Source::User),
        (None, Some(learned)) => (learned, Source::Learned),
        (None, None) => (default, Source::Default),
    }
}

fn changed(changed: bool) -> Source {
    if changed {
        Source::User
    } else {
        Source::Default
    }
}

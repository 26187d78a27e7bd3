//! Updates preferences from feedback: weighted moving averages, and the options that a user accepts.
//!
//! Averages are updated by `new = (old × weight + sample × c) / (weight + c)`, with `weight = min(samples, 100)`. `c`
//! is 1, or the confidence of implicit feedback, which counts as that fraction of a sample. Ratings and acceptances
//! have separate sample counts
//! ([decision](../../../../docs/decisions/0026-ratings-and-acceptances-are-counted-apart.md)).

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::choices::Choices;
use super::{
    ArtifactPreference, CodeStyle, Complexity, Format, Preferences, Profile, ResponseLength,
};
use crate::events::event::{EventCore, Rating};
use crate::identity::identifier::Label;

/// Maximum weight of the previous average, in samples.
pub const MAX_WEIGHT: f64 = 100.0;
/// An acceptance rate above this value gives an exploration hint.
pub const HIGH_ACCEPTANCE: f64 = 0.9;
/// Minimum number of acceptances and rejections for an exploration hint.
pub const MIN_SAMPLES: f64 = 20.0;
/// Maximum number of artifact types. Further types are learned together as `unknown`, because the size of an item in
/// the table is limited.
pub const MAX_ARTIFACT_TYPES: usize = 200;
/// Maximum number of contexts. Further contexts are ignored.
pub const MAX_CONTEXTS: usize = 200;
/// Maximum number of agents in a context. A further agent replaces the one with the fewest samples.
pub const MAX_AGENTS: usize = 8;
/// Maximum size of all these names together, in bytes. It keeps a version below 300 KB.
pub const MAX_NAMES: usize = 32 * 1024;

/// What preferences learn from an event: a rating, a verdict, or both.
#[derive(Debug, Clone, PartialEq)]
pub struct Lesson {
    event: Uuid,
    /// Whether the event is excluded from training.
    excluded: bool,
    artifact_type: Label,
    rating: Option<Rating>,
    accepted: Option<bool>,
    /// 1, or the confidence of implicit feedback.
    confidence: f64,
    complexity: Option<Complexity>,
    format: Option<Format>,
    contexts: BTreeSet<Label>,
    choice: ContextChoice,
}

/// The options in an event that are learned by context.
#[derive(Debug, Clone, PartialEq)]
struct ContextChoice {
    response_length: Option<ResponseLength>,
    code_style: Option<CodeStyle>,
    agent: Option<Label>,
}

impl ContextChoice {
    fn is_empty(&self) -> bool {
        self.response_length.is_none() && self.code_style.is_none() && self.agent.is_none()
    }
}

impl Lesson {
    /// The lesson of an event; `None` without a rating and a verdict.
    #[must_use]
    pub fn of(event: &EventCore) -> Option<Self> {
        let context = &event.context;
        let contexts = [&context.task_type, &context.project_id];
        let lesson = Self {
            event: event.feedback_id,
            excluded: event.privacy.exclude_from_training,
            artifact_type: event.artifact_type(),
            rating: event.rating,
            accepted: event.verdict(),
            confidence: event.certainty(),
            complexity: named(context.artifact_complexity.as_ref(), Complexity::NAMES),
            format: named(context.artifact_format.as_ref(), Format::NAMES),
            contexts: contexts.into_iter().flatten().cloned().collect(),
            choice: ContextChoice {
                response_length: named(context.response_length.as_ref(), ResponseLength::NAMES),
                code_style: named(context.code_style.as_ref(), CodeStyle::NAMES),
                agent: context.agent_id.clone(),
            },
        };
        (lesson.rating.is_some() || lesson.accepted.is_some()).then_some(lesson)
    }
}

/// The value with a name; `None` for an unknown name.
fn named<T: Copy>(name: Option<&Label>, names: &[(&str, T)]) -> Option<T> {
    let name = name?.as_str();
    let found = names.iter().find(|(known, _)| *known == name);
    found.map(|(_, member)| *member)
}

/// What is learned about a user in addition to the averages in [`Preferences`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Learning {
    /// By artifact type.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) artifacts: BTreeMap<Label, ArtifactLearning>,
    /// By task type or project.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) contexts: BTreeMap<Label, ContextLearning>,
}

impl Learning {
    /// Whether nothing was learned.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.artifacts.is_empty() && self.contexts.is_empty()
    }
}

/// What is learned about an artifact type.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ArtifactLearning {
    /// Number of ratings in the average.
    ratings: u64,
    /// How much less implicit ratings count than full samples: the sum of 1 − confidence.
    #[serde(default, skip_serializing_if = "is_zero")]
    rating_uncertainty: f64,
    /// Number of acceptances and rejections in the acceptance rate.
    acceptances: u64,
    /// How much less implicit acceptances and rejections count than full samples: the sum of 1 − confidence.
    #[serde(default, skip_serializing_if = "is_zero")]
    uncertainty: f64,
    /// Whether the rate crossed the threshold and no hint was published yet.
    #[serde(
        default,
        rename = "untold",
        skip_serializing_if = "crate::events::event::is_false"
    )]
    hint_pending: bool,
    #[serde(default, skip_serializing_if = "Choices::is_empty")]
    pub(super) complexity: Choices<Complexity>,
    #[serde(default, skip_serializing_if = "Choices::is_empty")]
    pub(super) format: Choices<Format>,
}

impl ArtifactLearning {
    /// The number of acceptances and rejections, weighted by confidence.
    fn certain(&self) -> f64 {
        (float(self.acceptances) - self.uncertainty).max(0.0)
    }

    /// The number of ratings, weighted by confidence.
    fn certain_ratings(&self) -> f64 {
        (float(self.ratings) - self.rating_uncertainty).max(0.0)
    }

    /// Initial counts for averages without counts: averages that the user set, and those of versions from before counts
    /// were stored. Such a sample may be a rating, an acceptance, or both.
    fn after(artifact: &ArtifactPreference) -> Self {
        let samples = artifact.sample_count.unwrap_or_default();
        let count = |average: Option<f64>| average.map_or(0, |_| samples);
        Self {
            ratings: count(artifact.average_rating),
            acceptances: count(artifact.acceptance_rate),
            ..Self::default()
        }
    }
}

/// What is learned about a context.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ContextLearning {
    #[serde(default, skip_serializing_if = "Choices::is_empty")]
    pub(super) response_length: Choices<ResponseLength>,
    #[serde(default, skip_serializing_if = "Choices::is_empty")]
    pub(super) code_style: Choices<CodeStyle>,
    #[serde(default, skip_serializing_if = "Choices::is_empty")]
    pub(super) agents: Choices<Label>,
}

/// An acceptance rate that rose above the threshold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Crossing {
    /// The kind of artifact.
    #[schema(value_type = String)]
    pub artifact_type: Label,
    /// The rate after the event, 0 to 1.
    pub acceptance_rate: f64,
    /// The number of acceptances and rejections.
    pub sample_count: u64,
}

/// Names that were dropped because of the limits.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Overflow {
    /// Artifact types that were learned as `unknown`.
    #[schema(value_type = Vec<String>)]
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub artifact_types: BTreeSet<Label>,
    /// Task types and projects that were ignored.
    #[schema(value_type = Vec<String>)]
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub contexts: BTreeSet<Label>,
}

impl Overflow {
    /// Whether no names were dropped.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.artifact_types.is_empty() && self.contexts.is_empty()
    }
}

/// The outcome of learning.
#[derive(Debug, Clone, PartialEq)]
pub struct Learned {
    /// The profile after learning.
    pub profile: Profile,
    /// The events that were learned from, in order.
    pub events: Vec<Uuid>,
    /// The crossings to publish, by the event that gives the hint.
    pub crossings: BTreeMap<Uuid, Crossing>,
    /// Names that were dropped because of the limits.
    pub overflow: Overflow,
}

/// Applies lessons to a profile, in order. `None` without lessons, or if the learning mode is off.
#[must_use]
pub fn learn(profile: &Profile, lessons: &[Lesson]) -> Option<Learned> {
    if lessons.is_empty() || !profile.preferences.global_preferences.learning_mode {
        return None;
    }
    let mut learned = Learned {
        profile: profile.clone(),
        events: lessons.iter().map(|lesson| lesson.event).collect(),
        crossings: BTreeMap::new(),
        overflow: Overflow::default(),
    };
    for lesson in lessons {
        learned.learn_artifact(lesson);
        learned.learn_contexts(lesson);
    }
    Some(learned)
}

impl Learned {
    fn learn_artifact(&mut self, lesson: &Lesson) {
        let known = &self.profile.preferences.artifact_preferences;
        let has_room = known.contains_key(&lesson.artifact_type)
            || known.len() < MAX_ARTIFACT_TYPES && self.profile.has_room(&lesson.artifact_type);
        let artifact_type = if has_room {
            lesson.artifact_type.clone()
        } else {
            let merged = &mut self.overflow.artifact_types;
            merged.insert(lesson.artifact_type.clone());
            Label::unknown()
        };
        let Preferences {
            artifact_preferences,
            ..
        } = &mut self.profile.preferences;
        let artifact = artifact_preferences
            .entry(artifact_type.clone())
            .or_default();
        let learning = &mut self.profile.learning.artifacts;
        let learning = learning
            .entry(artifact_type.clone())
            .or_insert_with(|| ArtifactLearning::after(artifact));
        let was_high = is_high(artifact, learning);
        apply(artifact, learning, lesson);
        let is_high = is_high(artifact, learning);
        // A crossing by an event that is excluded from training is published with the next event that is not.
        learning.hint_pending = is_high && (learning.hint_pending || !was_high);
        if learning.hint_pending && !lesson.excluded {
            learning.hint_pending = false;
            let crossing = Crossing {
                artifact_type,
                acceptance_rate: artifact.acceptance_rate.unwrap_or_default(),
                sample_count: learning.acceptances,
            };
            self.crossings.insert(lesson.event, crossing);
        }
    }

    fn learn_contexts(&mut self, lesson: &Lesson) {
        let Some(accepted) = lesson.accepted else {
            return;
        };
        if lesson.choice.is_empty() {
            return;
        }
        for context in &lesson.contexts {
            let known = &self.profile.learning.contexts;
            let has_room = known.contains_key(context)
                || known.len() < MAX_CONTEXTS && self.profile.has_room(context);
            if !has_room {
                self.overflow.contexts.insert(context.clone());
                continue;
            }
            let agent = lesson.choice.agent.clone();
            let agent = agent.filter(|agent| self.profile.has_room(agent));
            let learning = &mut self.profile.learning.contexts;
            let learning = learning.entry(context.clone()).or_default();
            let ContextChoice {
                response_length,
                code_style,
                ..
            } = lesson.choice;
            count(
                &mut learning.response_length,
                response_length,
                accepted,
                lesson.confidence,
            );
            count(
                &mut learning.code_style,
                code_style,
                accepted,
                lesson.confidence,
            );
            count(&mut learning.agents, agent, accepted, lesson.confidence);
        }
    }
}

fn count<T: Ord + Clone>(
    choices: &mut Choices<T>,
    option: Option<T>,
    accepted: bool,
    confidence: f64,
) {
    if let Some(option) = option {
        choices.count(option, accepted, confidence, MAX_AGENTS);
    }
}

impl Profile {
    /// Whether another name fits into [`MAX_NAMES`].
    fn has_room(&self, name: &Label) -> bool {
        let artifacts = self.preferences.artifact_preferences.keys();
        let contexts = self.learning.contexts.iter();
        let contexts = contexts.flat_map(|(context, learning)| {
            std::iter::once(context).chain(learning.agents.options())
        });
        let names = artifacts.chain(contexts).chain([name]);
        names.map(|name| name.as_str().len()).sum::<usize>() <= MAX_NAMES
    }
}

fn is_high(artifact: &ArtifactPreference, learning: &ArtifactLearning) -> bool {
    let rate = artifact.acceptance_rate;
    learning.certain() >= MIN_SAMPLES && rate.is_some_and(|rate| rate > HIGH_ACCEPTANCE)
}

fn apply(artifact: &mut ArtifactPreference, learning: &mut ArtifactLearning, lesson: &Lesson) {
    if let Some(rating) = lesson.rating {
        let sample = f64::from(rating.get());
        let average = artifact.average_rating;
        let average = moving_average(
            average,
            learning.certain_ratings(),
            sample,
            lesson.confidence,
        );
        artifact.average_rating = Some(average);
        learning.ratings = learning.ratings.saturating_add(1);
        learning.rating_uncertainty += 1.0 - lesson.confidence;
    }
    if let Some(accepted) = lesson.accepted {
        let sample = f64::from(u8::from(accepted));
        let rate = artifact.acceptance_rate;
        let rate = moving_average(rate, learning.certain(), sample, lesson.confidence);
        artifact.acceptance_rate = Some(rate);
        learning.acceptances = learning.acceptances.saturating_add(1);
        learning.uncertainty += 1.0 - lesson.confidence;
        count(
            &mut learning.complexity,
            lesson.complexity,
            accepted,
            lesson.confidence,
        );
        count(
            &mut learning.format,
            lesson.format,
            accepted,
            lesson.confidence,
        );
    }
    let samples = artifact.sample_count.unwrap_or_default();
    artifact.sample_count = Some(samples.saturating_add(1));
}

/// The moving average after another sample, weighted by its confidence. Without an average, it is the sample.
fn moving_average(old: Option<f64>, samples: f64, sample: f64, confidence: f64) -> f64 {
    let Some(old) = old else { return sample };
    let weight = samples.min(MAX_WEIGHT);
    if weight + confidence <= 0.0 {
        return old;
    }
    (old * weight + sample * confidence) / (weight + confidence)
}

/// A number of samples as a float.
fn float(samples: u64) -> f64 {
    f64::from(u32::try_from(samples).unwrap_or(u32::MAX))
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(number: &f64) -> bool {
    *number == 0.0
}

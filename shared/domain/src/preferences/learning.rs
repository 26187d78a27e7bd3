//! Preferences learn from feedback by weighted moving averages.
//!
//! Source: `SDS-009`, "Preference Update Algorithm":
//! `new = (old × weight + sample) / (weight + 1)`, `weight = min(sampleCount, 100)`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{ArtifactPreference, Preferences};
use crate::event::{EventCore, Rating};
use crate::identifier::Label;

/// Old samples weigh no more than this many (`SDS-009`, "Preference Update Algorithm").
const MAX_WEIGHT: u32 = 100;
/// An acceptance rate above this asks to explore less (`SDS-009`, "Signal Generation Rules").
const HIGH_ACCEPTANCE: f64 = 0.9;
/// Kinds of artifacts that are told apart. What a caller may name is without end, and an item of
/// the table is not: kinds beyond these are learned together, as `unknown`.
const MAX_ARTIFACT_TYPES: usize = 200;
/// Samples before an acceptance rate says anything (product specification, section 7).
const MIN_SAMPLES: u64 = 20;

/// What one event can teach preferences: a rating, a verdict, or both.
#[derive(Debug, Clone, PartialEq)]
pub struct Lesson {
    event: Uuid,
    artifact_type: Label,
    rating: Option<Rating>,
    accepted: Option<bool>,
}

impl Lesson {
    /// The lesson of an event, if it has one.
    #[must_use]
    pub fn of(event: &EventCore) -> Option<Self> {
        let lesson = Self {
            event: event.feedback_id,
            artifact_type: event.artifact_type(),
            rating: event.rating,
            accepted: event.verdict(),
        };
        (lesson.rating.is_some() || lesson.accepted.is_some()).then_some(lesson)
    }
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
    /// The samples that it is over.
    pub sample_count: u64,
}

/// What came of learning.
#[derive(Debug, Clone, PartialEq)]
pub struct Learned {
    /// The preferences afterwards.
    pub preferences: Preferences,
    /// The events that were learned from, in order.
    pub events: Vec<Uuid>,
    /// What crossed the threshold, by the event that made it.
    pub crossings: BTreeMap<Uuid, Crossing>,
}

/// Folds lessons into preferences, in order. `None` if there is nothing to learn or the user
/// does not want to be learned from (`SDS-009`, "Learning Mode Respect").
#[must_use]
pub fn learn(preferences: &Preferences, lessons: &[Lesson]) -> Option<Learned> {
    if lessons.is_empty() || !preferences.global_preferences.learning_mode {
        return None;
    }
    let mut preferences = preferences.clone();
    let mut crossings = BTreeMap::new();
    for lesson in lessons {
        let known = &mut preferences.artifact_preferences;
        let has_room = known.len() < MAX_ARTIFACT_TYPES;
        let artifact_type = if has_room || known.contains_key(&lesson.artifact_type) {
            lesson.artifact_type.clone()
        } else {
            Label::unknown()
        };
        let artifact = known.entry(artifact_type.clone()).or_default();
        let was_high = is_high(artifact);
        take(artifact, lesson);
        if is_high(artifact) && !was_high {
            crossings.insert(
                lesson.event,
                Crossing {
                    artifact_type,
                    acceptance_rate: artifact.acceptance_rate.unwrap_or_default(),
                    sample_count: artifact.sample_count.unwrap_or_default(),
                },
            );
        }
    }
    Some(Learned {
        preferences,
        events: lessons.iter().map(|lesson| lesson.event).collect(),
        crossings,
    })
}

fn is_high(artifact: &ArtifactPreference) -> bool {
    artifact.sample_count.unwrap_or_default() >= MIN_SAMPLES
        && artifact
            .acceptance_rate
            .is_some_and(|rate| rate > HIGH_ACCEPTANCE)
}

fn take(artifact: &mut ArtifactPreference, lesson: &Lesson) {
    let samples = artifact.sample_count.unwrap_or_default();
    let weight = u32::try_from(samples).unwrap_or(MAX_WEIGHT).min(MAX_WEIGHT);
    if let Some(rating) = lesson.rating {
        let sample = f64::from(rating.get());
        artifact.average_rating = Some(moved(artifact.average_rating, weight, sample));
    }
    if let Some(accepted) = lesson.accepted {
        let sample = f64::from(u8::from(accepted));
        artifact.acceptance_rate = Some(moved(artifact.acceptance_rate, weight, sample));
    }
    artifact.sample_count = Some(samples.saturating_add(1));
}

/// The first sample of an average is the average, whatever else was sampled before.
fn moved(old: Option<f64>, weight: u32, sample: f64) -> f64 {
    let Some(old) = old else { return sample };
    let weight = f64::from(weight);
    (old * weight + sample) / (weight + 1.0)
}

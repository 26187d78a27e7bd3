//! The counts of one dimension, by value.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use crate::views::insights::counts::Counts;
use crate::views::insights::facts::Facts;
use crate::views::insights::voices::{MAX_VOICES, UserHash, Voices};

/// Maximum number of values of a dimension that are counted apart: those with the most events.
pub const MAX_VALUES: usize = 100;

/// Maximum number of values, and of voices, that are kept while events are counted.
const MAX_WHILE_COUNTING: usize = 10_000;

/// The events with one value, or with the values that are not counted apart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// The counts.
    #[serde(flatten)]
    pub counts: Counts,
    /// What each user gave as a verdict.
    #[serde(rename = "v", default, skip_serializing_if = "Voices::is_empty")]
    pub voices: Voices,
}

impl AddAssign<&Self> for Group {
    fn add_assign(&mut self, other: &Self) {
        self.counts += &other.counts;
        self.voices += &other.voices;
    }
}

/// The counts of one dimension in a period.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Breakdown {
    /// By value.
    #[serde(rename = "by")]
    pub groups: BTreeMap<String, Group>,
    /// The values that are not counted apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other: Option<Box<Group>>,
    /// If voices are a sample: of the users with hashes below this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampled_below: Option<UserHash>,
}

impl Breakdown {
    /// Counts an event with a value.
    pub(super) fn add(&mut self, value: &str, facts: &Facts, is_retracted: bool, has_voices: bool) {
        if self.groups.len() < MAX_WHILE_COUNTING && !self.groups.contains_key(value) {
            self.groups.insert(value.to_owned(), Group::default());
        }
        let is_sampled = self.sampled_below.is_none_or(|limit| facts.user < limit);
        let other = &mut self.other;
        let group = self.groups.get_mut(value);
        let group = group.unwrap_or_else(|| other.get_or_insert_default());
        group.counts.add(facts, is_retracted);
        let has_voice = has_voices && !is_retracted && is_sampled && facts.is_given();
        if let Some(verdict) = facts.verdict().filter(|_| has_voice) {
            group.voices.0.entry(facts.user).or_default().add(verdict);
        }
    }

    /// The events of `all` that have no value here.
    #[must_use]
    pub fn without_value(&self, all: &Group) -> Group {
        let mut listed = Group::default();
        for group in self.groups.values().chain(self.other.as_deref()) {
            listed += group;
        }
        let mut voices = all.voices.without(&listed.voices);
        if let Some(limit) = self.sampled_below {
            voices.limit(limit);
        }
        Group {
            counts: all.counts.without(&listed.counts),
            voices,
        }
    }

    /// Only these values apart, and all others together.
    pub(super) fn keep(&mut self, values: &BTreeSet<String>) {
        let groups = std::mem::take(&mut self.groups);
        let (kept, rest): (BTreeMap<_, _>, BTreeMap<_, _>) = groups
            .into_iter()
            .partition(|(value, _)| values.contains(value));
        self.groups = kept;
        for group in rest.values() {
            **self.other.get_or_insert_default() += group;
        }
    }

    fn all_groups(&mut self) -> impl Iterator<Item = &mut Group> {
        self.groups.values_mut().chain(self.other.as_deref_mut())
    }

    pub(super) fn sample_below(&mut self, limit: Option<UserHash>) {
        let Some(limit) = limit else { return };
        self.all_groups()
            .for_each(|group| group.voices.limit(limit));
        self.sampled_below = Some(limit);
    }

    /// Keeps what is stored of it: at most [`MAX_VALUES`] values and [`MAX_VOICES`] voices.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        if self.groups.len() > MAX_VALUES {
            let mut groups: Vec<_> = std::mem::take(&mut self.groups).into_iter().collect();
            groups
                .sort_by_cached_key(|(value, group)| (Reverse(group.counts.events), value.clone()));
            let rest = groups.split_off(MAX_VALUES);
            let other = self.other.get_or_insert_default();
            for (_, group) in &rest {
                **other += group;
            }
            self.groups = groups.into_iter().collect();
        }
        self.sample(MAX_VOICES);
        self
    }

    /// Keeps what can be held while events are counted.
    pub(super) fn trim(&mut self) {
        self.sample(MAX_WHILE_COUNTING);
    }

    /// Keeps at most so many voices: those of the users with the lowest hashes.
    fn sample(&mut self, most: usize) {
        let mut hashes: Vec<_> = self
            .all_groups()
            .flat_map(|group| group.voices.0.keys().copied())
            .collect();
        if hashes.len() > most {
            hashes.sort_unstable();
            self.sample_below(hashes.get(most).copied());
        }
    }

    /// The only group of [`Dimension::All`](super::Dimension::All).
    #[must_use]
    pub fn only_group(&self) -> Group {
        self.groups.values().next().cloned().unwrap_or_default()
    }

    /// How many events are counted.
    #[must_use]
    pub fn events(&self) -> u64 {
        let groups = self.groups.values().chain(self.other.as_deref());
        groups.map(|group| group.counts.events).sum()
    }

    /// Whether nothing is counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty() && self.other.is_none()
    }
}

impl AddAssign<&Self> for Breakdown {
    fn add_assign(&mut self, other: &Self) {
        for (value, group) in &other.groups {
            *self.groups.entry(value.clone()).or_default() += group;
        }
        if let Some(rest) = &other.other {
            **self.other.get_or_insert_default() += rest;
        }
        let limits = [self.sampled_below, other.sampled_below];
        self.sample_below(limits.into_iter().flatten().min());
    }
}

//! The counts of one dimension, by value.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use crate::views::insights::counts::{Counts, TurnFeedback};
use crate::views::insights::facts::Facts;
use crate::views::insights::user_verdicts::{MAX_SAMPLED_USERS, UserHash, UserVerdicts};

/// Maximum number of values of a dimension that are counted apart: those with the most events.
pub const MAX_VALUES: usize = 100;

/// Maximum number of values, and of users, that are kept while events are counted.
const MAX_WHILE_COUNTING: usize = 10_000;

/// The events with one value, or with the values that are not counted apart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// The counts.
    #[serde(flatten)]
    pub counts: Counts,
    /// What each user gave as a verdict.
    #[serde(rename = "v", default, skip_serializing_if = "UserVerdicts::is_empty")]
    pub users: UserVerdicts,
}

impl AddAssign<&Self> for Group {
    fn add_assign(&mut self, other: &Self) {
        self.counts += &other.counts;
        self.users += &other.users;
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
    /// If the users are a sample: those with hashes below this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampled_below: Option<UserHash>,
}

impl Breakdown {
    /// Counts an event with a value.
    pub(super) fn add(
        &mut self,
        value: &str,
        facts: &Facts,
        is_retracted: bool,
        has_user_verdicts: bool,
    ) {
        let is_sampled = self.sampled_below.is_none_or(|limit| facts.user < limit);
        let group = self.group(value);
        group.counts.add(facts, is_retracted);
        let has_verdict = has_user_verdicts && !is_retracted && is_sampled && facts.is_given();
        if let Some(verdict) = facts.verdict().filter(|_| has_verdict) {
            group.users.0.entry(facts.user).or_default().add(verdict);
        }
    }

    /// Counts a turn with a value.
    pub(super) fn add_turn(&mut self, value: &str, feedback: TurnFeedback) {
        self.group(value).counts.turns.add(feedback);
    }

    /// The group of a value, or of all others if there are too many.
    fn group(&mut self, value: &str) -> &mut Group {
        if self.groups.len() < MAX_WHILE_COUNTING && !self.groups.contains_key(value) {
            self.groups.insert(value.to_owned(), Group::default());
        }
        let other = &mut self.other;
        let group = self.groups.get_mut(value);
        group.unwrap_or_else(|| other.get_or_insert_default())
    }

    /// What has no value here: the events and turns of `all` without those of each value.
    #[must_use]
    pub fn without_value(&self, all: &Group) -> Group {
        let mut listed = Group::default();
        for group in self.groups.values().chain(self.other.as_deref()) {
            listed += group;
        }
        let mut users = all.users.without(&listed.users);
        if let Some(limit) = self.sampled_below {
            users.limit(limit);
        }
        Group {
            counts: all.counts.without(&listed.counts),
            users,
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
        self.all_groups().for_each(|group| group.users.limit(limit));
        self.sampled_below = Some(limit);
    }

    /// Keeps what is stored of it: at most [`MAX_VALUES`] values and [`MAX_SAMPLED_USERS`] users.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        if self.groups.len() > MAX_VALUES {
            let mut groups: Vec<_> = std::mem::take(&mut self.groups).into_iter().collect();
            groups
                .sort_by_cached_key(|(value, group)| (Reverse(group.counts.size()), value.clone()));
            let rest = groups.split_off(MAX_VALUES);
            let other = self.other.get_or_insert_default();
            for (_, group) in &rest {
                **other += group;
            }
            self.groups = groups.into_iter().collect();
        }
        self.sample(MAX_SAMPLED_USERS);
        self
    }

    /// Keeps what can be held while events are counted.
    pub(super) fn trim(&mut self) {
        self.sample(MAX_WHILE_COUNTING);
    }

    /// Keeps at most so many users: those with the lowest hashes.
    fn sample(&mut self, most: usize) {
        let mut hashes: Vec<_> = self
            .all_groups()
            .flat_map(|group| group.users.0.keys().copied())
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

    /// How many events and turns are counted.
    #[must_use]
    pub fn size(&self) -> (u64, u64) {
        let groups = self.groups.values().chain(self.other.as_deref());
        let sizes = groups.map(|group| group.counts.size());
        sizes.fold((0, 0), |sum, size| (sum.0 + size.0, sum.1 + size.1))
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

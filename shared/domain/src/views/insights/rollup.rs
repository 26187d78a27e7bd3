//! The counts of a period in all dimensions.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::AddAssign;

use crate::views::insights::breakdown::Breakdown;
use crate::views::insights::counts::TurnFeedback;
use crate::views::insights::dimension::Dimension;
use crate::views::insights::facts::{ALL, AnswerFacts, Facts};

/// Maximum number of label keys of an hour or a day that are counted: those with the most events.
pub const MAX_LABEL_KEYS: usize = 64;

/// The counts of a period.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rollup {
    /// By dimension. A dimension in which no event has a value is left out.
    pub breakdowns: BTreeMap<Dimension, Breakdown>,
    /// How many label keys are left out.
    pub label_keys_left_out: usize,
}

impl Rollup {
    /// Counts an event.
    pub fn add(&mut self, facts: &Facts, is_retracted: bool) {
        for (dimension, value) in facts.values() {
            let has_user_verdicts = dimension.has_user_verdicts();
            let breakdown = self.breakdowns.entry(dimension).or_default();
            breakdown.add(value, facts, is_retracted, has_user_verdicts);
        }
    }

    /// Counts a turn.
    pub fn add_turn(&mut self, answer: &AnswerFacts, feedback: TurnFeedback) {
        for (dimension, value) in std::iter::once((Dimension::All, ALL)).chain(answer.values()) {
            let breakdown = self.breakdowns.entry(dimension).or_default();
            breakdown.add_turn(value, feedback);
        }
    }

    /// Keeps what can be held while events are counted. To be called after some thousands of events.
    pub fn trim(&mut self) {
        self.breakdowns.values_mut().for_each(Breakdown::trim);
    }

    /// Keeps what is stored of it: at most [`MAX_LABEL_KEYS`] label keys, and of each dimension what
    /// [`Breakdown::bounded`] keeps.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        let labels = self.breakdowns.iter();
        let mut labels: Vec<_> = labels
            .filter(|(dimension, _)| matches!(dimension, Dimension::Label(_)))
            .map(|(dimension, breakdown)| (Reverse(breakdown.size()), dimension.clone()))
            .collect();
        if labels.len() > MAX_LABEL_KEYS {
            labels.sort();
            for (_, dimension) in labels.split_off(MAX_LABEL_KEYS) {
                self.breakdowns.remove(&dimension);
                self.label_keys_left_out += 1;
            }
        }
        let breakdowns = self.breakdowns.into_iter();
        Self {
            breakdowns: breakdowns
                .map(|(dimension, breakdown)| (dimension, breakdown.bounded()))
                .collect(),
            ..self
        }
    }
}

impl AddAssign<&Self> for Rollup {
    fn add_assign(&mut self, other: &Self) {
        for (dimension, breakdown) in &other.breakdowns {
            *self.breakdowns.entry(dimension.clone()).or_default() += breakdown;
        }
        // Which keys they were is not known, so this is a lower bound.
        self.label_keys_left_out = self.label_keys_left_out.max(other.label_keys_left_out);
    }
}

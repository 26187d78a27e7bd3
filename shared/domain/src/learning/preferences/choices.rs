//! Learns which of several options a user prefers, from how often each was accepted.
//!
//! An option is preferred if it has at least [`MIN_SAMPLES`] samples and its acceptance rate is significantly higher
//! than that of every other option: its 95 % Wilson interval is above theirs. Without other options, its interval must
//! be above one half.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Minimum number of samples of a preferred option (`docs/reference/rules.md`, "Preference learning").
pub const MIN_SAMPLES: f64 = 10.0;
/// Number of samples at which the counts of an option are halved, so that recent feedback has more weight.
pub const MAX_SAMPLES: f64 = 200.0;
/// The acceptance rate that an option without alternatives must exceed.
pub const EVEN: f64 = 0.5;
/// The standard normal quantile of a two-sided interval of 95 %.
pub const Z: f64 = 1.96;

/// How often an option occurred, and was accepted. Inferred feedback counts as much as its confidence. Stored as an array
/// of two numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "(f64, f64)", into = "(f64, f64)")]
struct Tally {
    accepted: f64,
    samples: f64,
}

impl From<(f64, f64)> for Tally {
    fn from((accepted, samples): (f64, f64)) -> Self {
        Self { accepted, samples }
    }
}

impl From<Tally> for (f64, f64) {
    fn from(tally: Tally) -> Self {
        (tally.accepted, tally.samples)
    }
}

impl Tally {
    fn count(&mut self, accepted: bool, confidence: f64) {
        if accepted {
            self.accepted += confidence;
        }
        self.samples += confidence;
        if self.samples >= MAX_SAMPLES {
            self.accepted /= 2.0;
            self.samples /= 2.0;
        }
    }

    /// The 95 % Wilson interval of the acceptance rate.
    fn interval(self) -> (f64, f64) {
        let n = self.samples.max(1.0);
        let rate = self.accepted / n;
        let center = rate + Z * Z / (2.0 * n);
        let half = Z * (rate * (1.0 - rate) / n + Z * Z / (4.0 * n * n)).sqrt();
        let scale = 1.0 + Z * Z / n;
        ((center - half) / scale, (center + half) / scale)
    }
}

/// The counts of each option.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Choices<T: Ord>(BTreeMap<T, Tally>);

impl<T: Ord> Default for Choices<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: Ord + Clone> Choices<T> {
    /// Counts a sample of an option. A new option beyond `max_options` replaces the one with the fewest samples.
    pub(super) fn count(&mut self, option: T, accepted: bool, confidence: f64, max_options: usize) {
        if !self.0.contains_key(&option) && self.0.len() >= max_options {
            let rarest = (self.0.iter()).min_by(|(_, a), (_, b)| a.samples.total_cmp(&b.samples));
            let rarest = rarest.map(|(option, _)| option.clone());
            rarest.and_then(|option| self.0.remove(&option));
        }
        self.0
            .entry(option)
            .or_default()
            .count(accepted, confidence);
    }

    /// The preferred option, if the difference is significant.
    pub(super) fn preferred(&self) -> Option<&T> {
        let lower = |tally: &Tally| tally.interval().0;
        let candidates = self.0.iter();
        let candidates = candidates.filter(|(_, tally)| tally.samples >= MIN_SAMPLES);
        let (best, tally) = candidates.max_by(|(_, a), (_, b)| lower(a).total_cmp(&lower(b)))?;
        let others = self.0.iter().filter(|(option, _)| *option != best);
        let threshold = others
            .map(|(_, other)| other.interval().1)
            .max_by(f64::total_cmp);
        (lower(tally) > threshold.unwrap_or(EVEN)).then_some(best)
    }

    /// Whether there are no options.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All options.
    pub(super) fn options(&self) -> impl Iterator<Item = &T> {
        self.0.keys()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Options `a`, `b`, … with how often each was accepted and rejected.
    fn choices(counts: &[(u32, u32)]) -> Choices<char> {
        let mut choices = Choices::default();
        for (option, (accepted, rejected)) in ('a'..).zip(counts) {
            (0..*accepted).for_each(|_| choices.count(option, true, 1.0, 9));
            (0..*rejected).for_each(|_| choices.count(option, false, 1.0, 9));
        }
        choices
    }

    fn preferred(counts: &[(u32, u32)]) -> Option<char> {
        choices(counts).preferred().copied()
    }

    #[test]
    fn an_option_needs_ten_samples() {
        assert_eq!(preferred(&[(9, 0), (0, 9)]), None);
        assert_eq!(preferred(&[(10, 0), (0, 10)]), Some('a'));
        assert_eq!(preferred(&[(0, 10), (12, 1), (0, 3)]), Some('b'));
    }

    #[test]
    fn an_insignificant_difference_gives_no_preference() {
        assert_eq!(preferred(&[(10, 0), (9, 1)]), None);
        assert_eq!(preferred(&[(30, 10), (25, 15)]), None);
        assert_eq!(preferred(&[(90, 10), (50, 50)]), Some('a'));
    }

    #[test]
    fn an_option_without_alternatives_must_be_accepted_more_often_than_not() {
        assert_eq!(preferred(&[(10, 0)]), Some('a'));
        assert_eq!(preferred(&[(6, 4)]), None);
        assert_eq!(preferred(&[(0, 30)]), None);
        assert_eq!(preferred(&[]), None);
    }

    #[test]
    fn the_wilson_interval_is_correct() {
        let tally = Tally {
            accepted: 8.0,
            samples: 10.0,
        };
        let (low, high) = tally.interval();
        assert!((low - 0.4902).abs() < 1e-4, "{low}");
        assert!((high - 0.9433).abs() < 1e-4, "{high}");
    }

    #[test]
    fn recent_feedback_outweighs_older_feedback() {
        let mut choices = choices(&[(1_000, 0), (0, 50)]);
        for _ in 0..400 {
            choices.count('a', false, 1.0, 9);
            choices.count('b', true, 1.0, 9);
        }
        assert_eq!(choices.preferred(), Some(&'b'));
    }

    #[test]
    fn the_option_with_the_fewest_samples_is_replaced() {
        let mut choices = Choices::default();
        for option in ['a', 'a', 'b', 'b', 'c', 'd'] {
            choices.count(option, true, 1.0, 3);
        }
        let options: Vec<_> = choices.options().copied().collect();
        assert_eq!(options, ['a', 'b', 'd']);
    }
}

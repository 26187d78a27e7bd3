//! Which of several options a user prefers: the acceptance of each, and what that proves.
//!
//! An option is preferred once it has [`MIN_SAMPLES`] samples and its acceptance is better than that of
//! every other option by more than chance: its 95 % Wilson interval lies above theirs. With no other option
//! seen, its interval must lie above one half.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Samples of an option before it can be preferred (`docs/api.md`, "What preferences learn").
const MIN_SAMPLES: u32 = 10;
/// Samples of one option that are kept apart. At that number an option's counts are halved, so that what a
/// user liked long ago gives way.
const MAX_SAMPLES: u32 = 200;
/// What an option without a rival has to be better than.
const EVEN: f64 = 0.5;
/// The standard normal quantile of a two-sided interval of 95 %.
const Z: f64 = 1.96;

/// How often an option was met, and accepted. Stored as two members of an array.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u32, u32)", into = "(u32, u32)")]
struct Tally {
    accepted: u32,
    samples: u32,
}

impl From<(u32, u32)> for Tally {
    fn from((accepted, samples): (u32, u32)) -> Self {
        Self { accepted, samples }
    }
}

impl From<Tally> for (u32, u32) {
    fn from(tally: Tally) -> Self {
        (tally.accepted, tally.samples)
    }
}

impl Tally {
    fn count(&mut self, accepted: bool) {
        self.accepted += u32::from(accepted);
        self.samples += 1;
        if self.samples >= MAX_SAMPLES {
            self.accepted /= 2;
            self.samples /= 2;
        }
    }

    /// The 95 % Wilson interval of the acceptance rate.
    fn interval(self) -> (f64, f64) {
        let n = f64::from(self.samples.max(1));
        let rate = f64::from(self.accepted) / n;
        let center = rate + Z * Z / (2.0 * n);
        let half = Z * (rate * (1.0 - rate) / n + Z * Z / (4.0 * n * n)).sqrt();
        let scale = 1.0 + Z * Z / n;
        ((center - half) / scale, (center + half) / scale)
    }
}

/// The acceptance of each option that was met.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Choices<T: Ord>(BTreeMap<T, Tally>);

impl<T: Ord> Default for Choices<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: Ord + Clone> Choices<T> {
    /// Counts a sample of an option. Of more than `most` options those with the fewest samples give way.
    pub(super) fn count(&mut self, option: T, accepted: bool, most: usize) {
        if !self.0.contains_key(&option) && self.0.len() >= most {
            let rarest = self.0.iter().min_by_key(|(_, tally)| tally.samples);
            let rarest = rarest.map(|(option, _)| option.clone());
            rarest.and_then(|option| self.0.remove(&option));
        }
        self.0.entry(option).or_default().count(accepted);
    }

    /// The option that is preferred, if that is certain.
    pub(super) fn preferred(&self) -> Option<&T> {
        let lower = |tally: &Tally| tally.interval().0;
        let known = self.0.iter();
        let known = known.filter(|(_, tally)| tally.samples >= MIN_SAMPLES);
        let (best, tally) = known.max_by(|(_, a), (_, b)| lower(a).total_cmp(&lower(b)))?;
        let rivals = self.0.iter().filter(|(option, _)| *option != best);
        let to_beat = rivals
            .map(|(_, rival)| rival.interval().1)
            .max_by(f64::total_cmp);
        (lower(tally) > to_beat.unwrap_or(EVEN)).then_some(best)
    }

    /// Whether no option was met.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The options that were met.
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
            (0..*accepted).for_each(|_| choices.count(option, true, 9));
            (0..*rejected).for_each(|_| choices.count(option, false, 9));
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
    fn what_may_be_chance_proves_nothing() {
        assert_eq!(preferred(&[(10, 0), (9, 1)]), None);
        assert_eq!(preferred(&[(30, 10), (25, 15)]), None);
        assert_eq!(preferred(&[(90, 10), (50, 50)]), Some('a'));
    }

    #[test]
    fn an_option_without_a_rival_is_accepted_more_often_than_not() {
        assert_eq!(preferred(&[(10, 0)]), Some('a'));
        assert_eq!(preferred(&[(6, 4)]), None);
        assert_eq!(preferred(&[(0, 30)]), None);
        assert_eq!(preferred(&[]), None);
    }

    #[test]
    fn the_interval_is_that_of_wilson() {
        let tally = Tally {
            accepted: 8,
            samples: 10,
        };
        let (low, high) = tally.interval();
        assert!((low - 0.4902).abs() < 1e-4, "{low}");
        assert!((high - 0.9433).abs() < 1e-4, "{high}");
    }

    #[test]
    fn a_new_taste_overcomes_an_old_one() {
        let mut choices = choices(&[(1_000, 0), (0, 50)]);
        for _ in 0..400 {
            choices.count('a', false, 9);
            choices.count('b', true, 9);
        }
        assert_eq!(choices.preferred(), Some(&'b'));
    }

    #[test]
    fn the_rarest_option_gives_way() {
        let mut choices = Choices::default();
        for option in ['a', 'a', 'b', 'b', 'c', 'd'] {
            choices.count(option, true, 3);
        }
        let options: Vec<_> = choices.options().copied().collect();
        assert_eq!(options, ['a', 'b', 'd']);
    }
}

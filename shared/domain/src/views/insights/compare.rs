//! Whether feedback on the answers with one value is better than on those with another.
//!
//! Each user counts once: a user's verdicts depend on each other, and those of different users do not. The interval of
//! the difference is *anytime-valid*: with a probability of 95 % it contains the true difference at every time at which
//! somebody looks, so that looking every day and stopping at the first verdict is no mistake. It is the mixture of
//! normal distributions of Robbins (1970, "Statistical methods related to the law of the iterated logarithm") with the
//! estimated variance, as in Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (2024, "Time-uniform central limit theory and
//! asymptotic confidence sequences").

use serde::Serialize;
use utoipa::ToSchema;

use crate::views::insights::user_verdicts::UserVerdicts;

/// The probability that the interval ever misses the true difference.
const ALPHA: f64 = 0.05;
/// With fewer users of a value there is no verdict: the estimate of their variance is too uncertain.
pub const MIN_USERS: f64 = 20.0;
/// Users with rates of 0, and as many of 1, that are added for the estimate of the variance, so that it is never 0.
const PRIOR: f64 = 1.0;

/// The satisfaction of the users who gave feedback on answers with one value.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sample {
    /// How many users there are.
    pub users: f64,
    /// The sum of their rates.
    pub sum: f64,
    /// The sum of the squares of their rates.
    pub squares: f64,
}

impl Sample {
    /// The sample of these users.
    #[must_use]
    pub fn of(users: &UserVerdicts) -> Self {
        let mut sample = Self::default();
        for verdicts in users.0.values() {
            sample.add(verdicts.satisfaction());
        }
        sample
    }

    /// Adds a user.
    pub fn add(&mut self, rate: f64) {
        self.users += 1.0;
        self.sum += rate;
        self.squares += rate * rate;
    }

    /// The mean of the users' rates; `None` without users.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.users > 0.0).then(|| self.sum / self.users)
    }

    /// The variance of the users' rates.
    fn variance(&self) -> f64 {
        let n = self.users + 2.0 * PRIOR;
        let mean = (self.sum + PRIOR) / n;
        ((self.squares + PRIOR) / n - mean * mean).max(0.0)
    }
}

/// What a comparison says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ComparisonVerdict {
    /// B is better than A.
    Better,
    /// B is worse than A.
    Worse,
    /// B is neither better nor worse by the difference that was asked about.
    NoDifferenceFound,
    /// There is too little feedback to tell.
    CannotTellYet,
}

/// The difference of the satisfaction of two groups of users.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Comparison {
    /// The verdict.
    pub verdict: ComparisonVerdict,
    /// The rate of B less that of A, by user, −1 to 1; `null` if one of them has no users.
    #[schema(required = true, minimum = -1, maximum = 1)]
    pub difference: Option<f64>,
    /// The lower end of its 95 % interval, which is valid however often somebody looks.
    #[schema(required = true, minimum = -1, maximum = 1)]
    pub difference_low: Option<f64>,
    /// The upper end of its interval.
    #[schema(required = true, minimum = -1, maximum = 1)]
    pub difference_high: Option<f64>,
    /// If it cannot be told yet: about how many more users of each value are needed, if their feedback is like that so
    /// far.
    #[schema(required = true)]
    pub more_users: Option<u64>,
}

/// Half of the interval of a difference that is estimated with this variance. Differences of twice the one that was asked
/// about are mixed: the interval is narrow where that one is about to be found.
fn half_width(variance: f64, asked: f64) -> f64 {
    let mixed = 4.0 * asked * asked;
    let both = variance + mixed;
    let tails = 2.0 * (1.0 / ALPHA).ln() + (both / variance).ln();
    (variance * both / mixed * tails).sqrt()
}

impl Comparison {
    /// Compares B with A. `asked` is the difference that matters, above 0.
    #[must_use]
    pub fn of(a: &Sample, b: &Sample, asked: f64) -> Self {
        let after = |more: f64| {
            half_width(
                a.variance() / (a.users + more) + b.variance() / (b.users + more),
                asked,
            )
        };
        let means = a.mean().zip(b.mean());
        let is_known = means.is_some();
        let difference = means.map_or(0.0, |(a, b)| b - a);
        let half = if is_known { after(0.0) } else { f64::INFINITY };
        let (low, high) = (difference - half, difference + half);
        let verdict = if a.users.min(b.users) < MIN_USERS {
            ComparisonVerdict::CannotTellYet
        } else if low > 0.0 {
            ComparisonVerdict::Better
        } else if high < 0.0 {
            ComparisonVerdict::Worse
        } else if low > -asked && high < asked {
            ComparisonVerdict::NoDifferenceFound
        } else {
            ComparisonVerdict::CannotTellYet
        };
        let is_open = verdict == ComparisonVerdict::CannotTellYet;
        Self {
            verdict,
            difference: is_known.then_some(difference),
            difference_low: is_known.then_some(low.max(-1.0)),
            difference_high: is_known.then_some(high.min(1.0)),
            more_users: is_open.then(|| {
                let fewest = (MIN_USERS - a.users.min(b.users)).max(0.0);
                // Then 0, or the difference that was asked about, is no longer in the interval.
                let distance = if is_known { difference.abs() } else { 0.0 };
                let enough = distance.max(asked - distance);
                users_until(|more| after(more) < enough).max(to_users(fewest))
            }),
        }
    }
}

/// The number of users from which on this holds.
fn users_until(holds: impl Fn(f64) -> bool) -> u64 {
    let mut most = 1.0;
    while !holds(most) {
        most *= 2.0;
    }
    let mut least = 0.0;
    while most - least > 1.0 {
        let middle = f64::midpoint(least, most).round();
        if holds(middle) {
            most = middle;
        } else {
            least = middle;
        }
    }
    to_users(most)
}

#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a number of users, 0 or more"
)]
fn to_users(users: f64) -> u64 {
    users.ceil() as u64
}

#[cfg(test)]
mod tests;

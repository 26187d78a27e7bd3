//! The response of insights: counts with rates, each with its interval.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::AddAssign;

use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use crate::views::insights::breakdown::{Breakdown, Group};
use crate::views::insights::compare::{Comparison, Sample};
use crate::views::insights::counts::{TurnCounts, Verdicts};
use crate::views::insights::dimension::Dimension;
use crate::views::insights::interval::Interval;
use crate::views::insights::query::{CompareQuery, InsightsQuery, Period};
use crate::views::insights::user_verdicts::{UserHash, UserVerdicts};

/// Maximum number of dimensions that are listed. Of an hour, 64 labels are counted.
const MAX_DIMENSIONS: usize = 256;

/// The 97.5 % quantile of the normal distribution, for intervals of 95 %.
const Z: f64 = 1.959_963_984_540_054;

/// Verdicts of one origin, with rates and means.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct VerdictInsight {
    /// Acceptances, and ratings of 4 and 5.
    pub accepted: u64,
    /// Rejections, and ratings of 1 and 2.
    pub rejected: u64,
    /// Neutral reactions, and ratings of 3.
    pub neutral: u64,
    /// How often each rating was given, by rating.
    #[schema(value_type = BTreeMap<String, u64>)]
    pub ratings: BTreeMap<u8, u64>,
    /// The mean rating, 1 to 5; `null` without a rating.
    #[schema(required = true, minimum = 1, maximum = 5)]
    pub mean_rating: Option<f64>,
    /// accepted ÷ (accepted + rejected + neutral).
    #[serde(flatten)]
    pub satisfaction: Satisfaction,
    /// The mean reward, −1 to 1; `null` without a reward.
    #[schema(required = true, minimum = -1, maximum = 1)]
    pub reward_mean: Option<f64>,
}

/// The satisfaction of users, each of whom counts once.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ByUser {
    /// How many users gave a verdict; an estimate if only a sample of them is known.
    pub users: u64,
    /// How many of them the rate is computed of.
    pub sampled: u64,
    /// The mean of the users' own rates.
    #[serde(flatten)]
    pub satisfaction: Satisfaction,
}

/// A rate of satisfaction.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Satisfaction {
    /// 0 to 1; `null` without a verdict.
    #[schema(required = true, minimum = 0, maximum = 1)]
    pub satisfaction_rate: Option<f64>,
    /// The lower end of its 95 % interval (Wilson).
    #[schema(required = true, minimum = 0, maximum = 1)]
    pub satisfaction_low: Option<f64>,
    /// The upper end of its 95 % interval (Wilson).
    #[schema(required = true, minimum = 0, maximum = 1)]
    pub satisfaction_high: Option<f64>,
}

impl Satisfaction {
    /// Of a rate of so many.
    fn of(rate: Option<f64>, n: f64) -> Self {
        let interval = rate.and_then(|rate| wilson(rate * n, n));
        Self {
            satisfaction_rate: rate,
            satisfaction_low: interval.map(|(low, _)| low),
            satisfaction_high: interval.map(|(_, high)| high),
        }
    }
}

/// The counts of a group in a period.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Insight {
    /// Events that hold.
    pub events: u64,
    /// Events that were withdrawn or replaced. They are in no other number.
    pub retracted: u64,
    /// Events that correct an answer.
    pub corrections: u64,
    /// What users gave.
    #[serde(flatten)]
    pub given: VerdictInsight,
    /// The same, each user counted once; left out where events are grouped by how feedback was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_user: Option<ByUser>,
    /// What was inferred. It is in no number of what users gave.
    pub inferred: VerdictInsight,
    /// The turns, and how many of them have feedback; left out where events are grouped by how feedback was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<TurnInsight>,
}

/// Turns, and the share of them that has feedback: the others' users may think differently.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnInsight {
    /// All turns.
    pub registered: u64,
    /// Those with explicit feedback of their user.
    pub explicit: u64,
    /// Those about which something was inferred.
    pub inferred: u64,
    /// Those with one of the two.
    pub any: u64,
    /// explicit ÷ registered, 0 to 1; `null` without a turn.
    #[schema(required = true, minimum = 0, maximum = 1)]
    pub explicit_share: Option<f64>,
    /// inferred ÷ registered, 0 to 1; `null` without a turn.
    #[schema(required = true, minimum = 0, maximum = 1)]
    pub inferred_share: Option<f64>,
    /// any ÷ registered, 0 to 1; `null` without a turn.
    #[schema(required = true, minimum = 0, maximum = 1)]
    pub any_share: Option<f64>,
}

/// The counts of an hour, a day or a week.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct IntervalInsight {
    /// When it begins.
    pub start: DateTime<Utc>,
    /// When it ends, exclusive.
    pub end: DateTime<Utc>,
    /// Its counts.
    #[serde(flatten)]
    pub insight: Insight,
}

/// The events with one value.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GroupInsight {
    /// The value; `null` for events without one, and for all other values together.
    #[schema(required = true)]
    pub value: Option<String>,
    /// Whether these are all values that are not listed.
    pub other: bool,
    /// The counts of the whole period.
    pub total: Insight,
    /// The counts of each interval with an event or a turn.
    pub intervals: Vec<IntervalInsight>,
}

/// The interval of Wilson for `successes` of `n`; `None` for none.
#[must_use]
pub fn wilson(successes: f64, n: f64) -> Option<(f64, f64)> {
    if n <= 0.0 {
        return None;
    }
    let (rate, square) = (successes / n, Z * Z);
    let center = rate + square / (2.0 * n);
    let spread = Z * (rate * (1.0 - rate) / n + square / (4.0 * n * n)).sqrt();
    let scale = 1.0 + square / n;
    let end = |end: f64| (end / scale).clamp(0.0, 1.0);
    Some((end(center - spread), end(center + spread)))
}

#[expect(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "counts are far below 2^53, and so are sums of rewards in millionths"
)]
impl VerdictInsight {
    fn of(verdicts: &Verdicts) -> Self {
        let mean = |sum: f64, n: u64| (n > 0).then(|| sum / n as f64);
        let ratings = (1..).zip(verdicts.ratings);
        let sum: u64 = ratings
            .clone()
            .map(|(rating, n)| u64::from(rating) * n)
            .sum();
        let n = verdicts.count();
        Self {
            accepted: verdicts.accepted,
            rejected: verdicts.rejected,
            neutral: verdicts.neutral,
            ratings: ratings.collect(),
            mean_rating: mean(sum as f64, verdicts.ratings.iter().sum()),
            satisfaction: Satisfaction::of(mean(verdicts.accepted as f64, n), n as f64),
            reward_mean: mean(verdicts.reward_millionths as f64 / 1e6, verdicts.rewards),
        }
    }
}

impl ByUser {
    /// Of all users, or of those with hashes below this limit of 2^64.
    #[expect(
        clippy::as_conversions,
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an estimate of a number of users"
    )]
    fn of(users: &UserVerdicts, sampled_below: Option<u64>) -> Self {
        let sample = Sample::of(users);
        let share = sampled_below.map_or(1.0, |limit| limit as f64 / 2f64.powi(64));
        Self {
            users: (sample.users / share.max(f64::MIN_POSITIVE)).round() as u64,
            sampled: users.0.len() as u64,
            satisfaction: Satisfaction::of(sample.mean(), sample.users),
        }
    }
}

impl TurnInsight {
    #[expect(
        clippy::as_conversions,
        clippy::cast_precision_loss,
        reason = "counts are far below 2^53"
    )]
    fn of(turns: TurnCounts) -> Self {
        let TurnCounts {
            registered,
            explicit,
            inferred,
            any,
        } = turns;
        let share = |part: u64| (registered > 0).then(|| part as f64 / registered as f64);
        Self {
            registered,
            explicit,
            inferred,
            any,
            explicit_share: share(explicit),
            inferred_share: share(inferred),
            any_share: share(any),
        }
    }
}

impl Insight {
    fn of(group: &Group, sampled_below: Option<UserHash>, has_user_verdicts: bool) -> Self {
        let limit = sampled_below.map(|limit| limit.0);
        Self {
            events: group.counts.events,
            retracted: group.counts.retracted,
            corrections: group.counts.corrections,
            given: VerdictInsight::of(&group.counts.given),
            by_user: has_user_verdicts.then(|| ByUser::of(&group.users, limit)),
            inferred: VerdictInsight::of(&group.counts.inferred),
            turns: has_user_verdicts.then(|| TurnInsight::of(group.counts.turns)),
        }
    }
}

/// The counts of an hour or a day: of all events, and of those with each value of a dimension.
#[derive(Debug, Clone, Default)]
pub struct Part {
    /// Of all events.
    pub all: Breakdown,
    /// By value.
    pub by: Breakdown,
}

impl Part {
    /// The counts of events. If the dimension is a label whose key is one of those that are not counted, it is unknown
    /// which of the events have it.
    #[must_use]
    pub fn new(all: Breakdown, by: Option<Breakdown>, is_left_out: bool) -> Self {
        let by = by.unwrap_or_else(|| Breakdown {
            other: is_left_out.then(|| Box::new(all.only_group())),
            sampled_below: all.sampled_below,
            ..Breakdown::default()
        });
        Self { all, by }
    }

    /// The limit of the sample of a group of the dimension.
    fn limit_of(&self, value: Option<&str>, is_other: bool) -> Option<UserHash> {
        // The users of events without a value are those of all others.
        let of_all = self
            .all
            .sampled_below
            .filter(|_| value.is_none() && !is_other);
        self.by.sampled_below.into_iter().chain(of_all).min()
    }

    /// Each group with its value, and whether it is all others. Turns have no value in dimensions of how feedback was
    /// given, those without verdicts by user.
    fn groups(&self, has_user_verdicts: bool) -> Vec<(Option<&str>, bool, Group)> {
        let mut all = self.all.only_group();
        if !has_user_verdicts {
            all.counts.turns = TurnCounts::default();
        }
        let none = self.by.without_value(&all);
        let named = self.by.groups.iter();
        let named = named.map(|(value, group)| (Some(value.as_str()), false, group.clone()));
        let other = self.by.other.iter();
        let other = other.map(|group| (None, true, (**group).clone()));
        let none = (!none.counts.is_empty()).then_some((None, false, none));
        named.chain(other).chain(none).collect()
    }
}

impl AddAssign<&Self> for Part {
    fn add_assign(&mut self, other: &Self) {
        self.all += &other.all;
        self.by += &other.by;
    }
}

/// Insights of a period, by interval and group.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InsightsReport {
    /// When the period begins: `from`, at the beginning of its interval.
    pub from: DateTime<Utc>,
    /// When it ends, exclusive: `to`, at the end of its interval.
    pub to: DateTime<Utc>,
    /// The latest time at which a part of it was counted; `null` if it has neither events nor turns.
    #[schema(required = true)]
    pub counted_at: Option<DateTime<Utc>>,
    /// What the answers of the period can be grouped and compared by, as `groupBy`: where they have a value, at most
    /// 256, by name.
    pub dimensions: Vec<String>,
    /// The counts of all events of the period.
    pub total: Insight,
    /// The counts of each interval with an event or a turn, the earliest first.
    pub intervals: Vec<IntervalInsight>,
    /// The events by value, those with the most events first, then all others together, then those without a value.
    /// Only with `groupBy`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups: Option<Vec<GroupInsight>>,
}

impl InsightsReport {
    /// The report of the parts that were counted in its period.
    #[must_use]
    pub fn of(
        query: &InsightsQuery,
        period: Period,
        parts: impl IntoIterator<Item = (Interval, Part)>,
        counted_at: Option<DateTime<Utc>>,
        dimensions: &BTreeSet<Dimension>,
    ) -> Self {
        // Labels are the last.
        let listed = dimensions.iter().take(MAX_DIMENSIONS);
        let mut dimensions: Vec<_> = listed.map(Dimension::to_string).collect();
        dimensions.sort_unstable();
        let mut total = Part::default();
        let mut intervals: BTreeMap<DateTime<Utc>, Part> = BTreeMap::new();
        for (interval, part) in parts {
            total += &part;
            let begin = query.interval.begin_of(interval.begin());
            *intervals.entry(begin).or_default() += &part;
        }
        let mut values: Vec<_> = total.by.groups.iter().collect();
        values.sort_by_key(|(value, group)| (Reverse(group.counts.size()), *value));
        let listed: usize = query.values.to();
        let values: Vec<_> = values.into_iter().map(|(value, _)| value.clone()).collect();
        let listed: BTreeSet<_> = values.iter().take(listed).cloned().collect();
        for part in intervals.values_mut().chain([&mut total]) {
            part.by.keep(&listed);
        }
        let of_all = |part: &Part| {
            let all = part.all.only_group();
            Insight::of(&all, part.all.sampled_below, true)
        };
        let interval_of = |begin: &DateTime<Utc>, insight| IntervalInsight {
            start: *begin,
            end: query.interval.end_of(*begin),
            insight,
        };
        let groups = query.group_by.as_ref().map(|by| {
            let has_user_verdicts = by.0.has_user_verdicts();
            let mut groups: BTreeMap<(Option<String>, bool), GroupInsight> = BTreeMap::new();
            for (value, other, group) in total.groups(has_user_verdicts) {
                let group = GroupInsight {
                    value: value.map(ToOwned::to_owned),
                    other,
                    total: Insight::of(&group, total.limit_of(value, other), has_user_verdicts),
                    intervals: Vec::new(),
                };
                groups.insert((group.value.clone(), other), group);
            }
            for (begin, part) in &intervals {
                for (value, other, group) in part.groups(has_user_verdicts) {
                    let of = (value.map(ToOwned::to_owned), other);
                    if let Some(listed) = groups.get_mut(&of) {
                        let limit = part.limit_of(value, other);
                        let insight = Insight::of(&group, limit, has_user_verdicts);
                        listed.intervals.push(interval_of(begin, insight));
                    }
                }
            }
            let mut groups: Vec<_> = groups.into_values().collect();
            groups.sort_by_key(|group| {
                let place = match (&group.value, group.other) {
                    (Some(_), _) => 0,
                    (None, true) => 1,
                    (None, false) => 2,
                };
                (place, Reverse(group.total.events), group.value.clone())
            });
            groups
        });
        Self {
            from: period.from,
            to: period.to,
            counted_at,
            dimensions,
            total: of_all(&total),
            intervals: intervals
                .iter()
                .map(|(begin, part)| interval_of(begin, of_all(part)))
                .collect(),
            groups,
        }
    }
}

/// One side of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ComparedValue {
    /// The value.
    pub value: String,
    /// The counts of the period.
    #[serde(flatten)]
    pub insight: Insight,
}

/// B compared with A.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComparisonReport {
    /// When the period begins.
    pub from: DateTime<Utc>,
    /// When it ends, exclusive.
    pub to: DateTime<Utc>,
    /// The latest time at which a part of it was counted; `null` if it has neither events nor turns.
    #[schema(required = true)]
    pub counted_at: Option<DateTime<Utc>>,
    /// What the values are of.
    pub by: String,
    /// The value to compare with.
    pub a: ComparedValue,
    /// The value that may be better or worse.
    pub b: ComparedValue,
    /// The difference that matters, in percentage points.
    pub points: i64,
    /// Their difference.
    #[serde(flatten)]
    pub comparison: Comparison,
    /// Whether feedback on one of the values may be missing, because it was not among the most frequent values of a day.
    pub incomplete: bool,
}

impl ComparisonReport {
    /// Compares the values of these counts.
    #[must_use]
    #[expect(
        clippy::as_conversions,
        clippy::cast_precision_loss,
        reason = "50 points at most"
    )]
    pub fn of(
        query: &CompareQuery,
        period: Period,
        parts: impl IntoIterator<Item = (Interval, Part)>,
        counted_at: Option<DateTime<Utc>>,
    ) -> Self {
        let values = [query.a.as_str(), query.b.as_str()];
        let (mut total, mut incomplete) = (Breakdown::default(), false);
        for (_, part) in parts {
            let other = part.by.other.as_ref().map(|other| &other.counts);
            incomplete |= other.is_some_and(|other| other.events + other.retracted > 0);
            total += &part.by;
        }
        let [a, b] = values.map(|value| total.groups.get(value).cloned().unwrap_or_default());
        let [of_a, of_b] = [&a, &b].map(|group| Sample::of(&group.users));
        let side = |value: &str, group| ComparedValue {
            value: value.to_owned(),
            insight: Insight::of(group, total.sampled_below, true),
        };
        Self {
            from: period.from,
            to: period.to,
            counted_at,
            by: query.by.0.0.to_string(),
            a: side(values[0], &a),
            b: side(values[1], &b),
            points: query.points.0,
            comparison: Comparison::of(&of_a, &of_b, query.points.0 as f64 / 100.0),
            incomplete,
        }
    }
}

//! Insights: counts of feedback by time and by what the feedback is about. See docs/reference/insights.md.
//!
//! An event is counted in the hour of its time. The counts of an hour are made anew from the [`Facts`] of all of its
//! events whenever one is added, retracted or erased, so that nothing is ever counted twice or left behind; the counts
//! of a day are the sum of its hours.

mod breakdown;
mod compare;
mod counts;
mod dimension;
mod facts;
mod interval;
mod query;
mod report;
mod rollup;
mod verdict;
mod voices;

pub use breakdown::{Breakdown, Group, MAX_VALUES};
pub use compare::{Comparison, ComparisonVerdict, Sample};
pub use counts::{Counts, Verdicts};
pub use dimension::Dimension;
pub use facts::Facts;
pub use interval::Interval;
pub use query::{CompareBy, CompareQuery, GroupBy, InsightsQuery, IntervalLength, Period};
pub use report::{ComparisonReport, InsightsReport, Part, wilson};
pub use rollup::{MAX_LABEL_KEYS, Rollup};
pub use voices::{Ballot, MAX_VOICES, UserHash, Voices};

#[cfg(test)]
mod tests;

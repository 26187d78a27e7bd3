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
mod user_verdicts;
mod verdict;

pub use breakdown::{Breakdown, Group, MAX_VALUES};
pub use compare::{Comparison, ComparisonVerdict, MIN_USERS, Sample};
pub use counts::{Counts, TurnCounts, TurnFeedback, Verdicts};
pub use dimension::Dimension;
pub use facts::{AnswerFacts, Facts};
pub use interval::Interval;
pub use query::{
    CompareBy, CompareQuery, DEFAULT_DAYS, DEFAULT_POINTS, DEFAULT_VALUES, GroupBy, InsightsQuery,
    IntervalLength, MAX_COUNTS, MAX_DAYS, MAX_LISTED, Period,
};
pub use report::{ComparisonReport, InsightsReport, Part, TurnInsight, wilson};
pub use rollup::{MAX_LABEL_KEYS, Rollup};
pub use user_verdicts::{MAX_SAMPLED_USERS, UserHash, UserVerdicts, VerdictCounts};

#[cfg(test)]
mod tests;

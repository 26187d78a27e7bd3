//! Verdicts on answers.

/// What an event says about the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The answer was good.
    Accepted,
    /// The answer was not good.
    Rejected,
    /// Neither.
    Neutral,
}

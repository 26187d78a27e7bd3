//! The function `insights`: counts the feedback of projects by hour and day. See docs/reference/insights.md.
//!
//! Each message says that an event was processed, retracted or erased, or that a turn has changed. Its hour is counted
//! anew, and then its day; so a message that is delivered twice, late, or again after a crash changes nothing. A message
//! is done only when a count has seen what it says: the index by hour lags behind the table.

mod counter;
mod message;

pub use counter::{Counter, INSIGHTS_DEAD_LETTERS_URL};

//! Splits texts into words, folds and compares them, and recognises the language. Has no notion of feedback.
//!
//! Imports none of our crates.

pub mod hash;
pub mod language;
mod quoted;
pub mod similarity;
mod words;

pub use words::{Break, Text, Word, is_emoji};

/// What is between two excerpts of a text.
pub const GAP: &str = "\n…\n";

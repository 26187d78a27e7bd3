//! Splits texts into words, folds and compares these, and guesses the language. Knows nothing about feedback.
//!
//! Imports none of our crates.

pub mod hash;
pub mod language;
mod quoted;
pub mod similarity;
mod words;

pub use words::{Break, Text, Word};

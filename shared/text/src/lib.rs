//! Texts as words: split, folded, compared, and told apart by language. Knows nothing of feedback.

pub mod hash;
pub mod language;
mod quoted;
pub mod similarity;
mod words;

pub use words::{Break, Text, Word};

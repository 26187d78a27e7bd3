//! Implicit feedback: what a follow-up message says about the answer before it.
//!
//! The rules are in docs/reference/rules.md, "Detection". Detection is pure and explainable: a detection names its cue
//! and where the cue is.
//!
//! | to change | look in |
//! |---|---|
//! | which words are a cue | `phrases/` |
//! | the confidence of a cue | `cue` |
//! | what a cue means with other cues, and after which answer | `verdict`, `reply` |
//! | whether a complaint is about the answer | `about` |
//! | whether a question asks the same again | `rephrase` |
//! | whether a question refers to the answer | `refers` |
//! | how a phrase is written and found | `pattern`, `matching` |
//! | what the learned model sees, and when it counts | `learned` |
//! | what earlier turns of the conversation add | `conversation` |
//!
//! Of our crates it imports `semantics`, `text` and `wire`.

mod about;
mod conversation;
mod cue;
mod detection;
mod detector;
mod label;
mod languages;
mod learned;
mod lexicon;
mod matching;
mod pattern;
mod phrases;
mod refers;
mod rephrase;
mod reply;
mod synonyms;
#[cfg(test)]
mod tests;
mod tree;
mod verdict;
mod vocabulary;

pub use cue::{Cue, FeedbackStatus, RejectionKind};
pub use detection::{Detection, Earlier, Evidence, Exchange};
pub use detector::Detector;
pub use phrases::PhraseError;

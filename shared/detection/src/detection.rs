//! The input and the result of the detector.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::cue::{Cue, FeedbackStatus, RejectionKind};

/// A message with what was said before it, as far as that is known.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Exchange<'a> {
    /// What the user had asked.
    pub prev_query: Option<&'a str>,
    /// What was answered.
    pub prev_response: Option<&'a str>,
    /// What the user says now.
    pub message: &'a str,
    /// The message's language, as its code (`en`, or `en-GB`). Without it, and with one that has
    /// no phrases, the language is guessed.
    pub language: Option<&'a str>,
    /// The cosine of the caller's own embeddings of both turns, −1 to 1, if both have one. It counts
    /// for a rephrase beside the similarity of the words.
    pub embedding_similarity: Option<f64>,
    /// Whether the message is the query again, if the caller knows: `prev_query` may be only its beginning.
    pub repeats_query: Option<bool>,
}

/// What a message says of the answer before it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Detection {
    /// Whether the answer was rejected or accepted, if that can be told.
    pub feedback_type: FeedbackStatus,
    /// How sure that is, 0 to 1.
    #[schema(minimum = 0, maximum = 1)]
    pub confidence: f64,
    /// How it was rejected; `null` if it was not.
    pub correction_type: Option<RejectionKind>,
    /// What the user said, if they rejected: the message from the sentence with the cue on, at
    /// most 1,000 characters.
    pub user_said: Option<String>,
    /// What this rests on; empty for a message without a cue.
    pub evidence: Vec<Evidence>,
}

/// A cue, and where it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Evidence {
    /// The cue.
    pub cue: Cue,
    /// Its first character, counted from 0 in characters of the message.
    pub start: usize,
    /// After its last character.
    pub end: usize,
    /// The language whose phrase it is.
    pub language: String,
}

//! The input and the result of the detector.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::cue::{Cue, FeedbackStatus, RejectionKind};

/// A message with the turn before it, as far as that is known.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Exchange<'a> {
    /// The user's previous message.
    pub prev_query: Option<&'a str>,
    /// The answer to it.
    pub prev_response: Option<&'a str>,
    /// The user's new message.
    pub message: &'a str,
    /// The message's language, as its code (`en`, or `en-GB`). The language is guessed if this is `None` or has no
    /// phrases.
    pub language: Option<&'a str>,
    /// The cosine of the caller's own embeddings of both turns, −1 to 1, if both have one. A rephrase is detected by it
    /// or by the similarity of the words.
    pub embedding_similarity: Option<f64>,
    /// Whether the message is the query again, if the caller knows: `prev_query` may be only its beginning.
    pub repeats_query: Option<bool>,
    /// Earlier turns of the conversation, before the previous one, the latest first.
    pub earlier: &'a [Earlier<'a>],
}

/// An earlier turn of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Earlier<'a> {
    /// The user's message.
    pub query: &'a str,
    /// The answer to it; `None` if only parts of it are known, or if only parts of the previous answer are: an edited
    /// text has the beginning and the end of the text before.
    pub answer: Option<&'a str>,
}

impl Earlier<'_> {
    /// The maximum number of earlier turns that say more about a message.
    pub const MOST: usize = 3;
}

/// What a message says about the answer before it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Detection {
    /// Whether the answer was rejected or accepted, if that can be inferred.
    pub feedback_type: FeedbackStatus,
    /// The confidence in that, 0 to 1.
    #[schema(minimum = 0, maximum = 1)]
    pub confidence: f64,
    /// How it was rejected; `null` if it was not.
    #[schema(required = true)]
    pub correction_type: Option<RejectionKind>,
    /// What the user said, if they rejected the answer: the message, from the sentence with the cue if it is longer
    /// than 1,000 characters.
    #[schema(required = true)]
    pub user_said: Option<String>,
    /// The cue and its position; empty for a message without a cue.
    pub evidence: Vec<Evidence>,
}

/// A cue and its position in the message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Evidence {
    /// The cue.
    pub cue: Cue,
    /// The index of its first character, from 0, in characters of the message.
    pub start: usize,
    /// The index after its last character.
    pub end: usize,
    /// The language of its phrase.
    pub language: String,
}

//! Names of attributes that several kinds of items have, or by which the stream is filtered.

/// The part of an item that streams and queues carry: everything except free text.
pub(crate) const CORE: &str = "core";
/// The core of feedback that counts as a reaction. It has another name than [`CORE`], so that the
/// stream's readers ignore it: its feedback act is in the ledger already.
pub(crate) const COUNTED: &str = "counted";
/// The inference of the turn about the one before it.
pub(crate) const FOLLOW_UP: &str = "follow_up";
/// Free text, which stays in the table.
pub(crate) const TEXT: &str = "text";
/// The source of an event that its writer sends to the signal generator itself, instead of the
/// stream's pipe.
pub(crate) const SENT: &str = "sent";
/// The outcome of an event.
pub(crate) const OUTCOME: &str = "outcome";
/// The retraction of an event.
pub(crate) const RETRACTION: &str = "retraction";
/// What insights count of an event, [`Facts`](hearback_domain::views::insights::Facts), or of a turn,
/// [`AnswerFacts`](hearback_domain::views::insights::AnswerFacts).
pub(crate) const FACTS: &str = "facts";
/// Whether insights know that an event is retracted.
pub(crate) const RETRACTED: &str = "retracted";
/// Whether a turn has explicit feedback of its user that holds, for insights.
pub(crate) const IS_EXPLICIT: &str = "is_explicit";
/// Whether something was inferred about a turn, for insights.
pub(crate) const IS_INFERRED: &str = "is_inferred";
/// The URI of a turn's log.
pub(crate) const HOSTED_URI: &str = "hosted_uri";
/// The inference about a turn.
pub(crate) const USER_FEEDBACK: &str = "user_feedback";
/// Explicit feedback of the turn's user, by means:
/// [`ExplicitFeedback`](hearback_domain::feedback::turn_status::ExplicitFeedback).
pub(crate) const GIVEN_FEEDBACK: &str = "said";

/// The attributes that are JSON texts.
pub const JSON_ATTRIBUTES: [&str; 8] = [
    CORE,
    COUNTED,
    FACTS,
    FOLLOW_UP,
    GIVEN_FEEDBACK,
    OUTCOME,
    RETRACTION,
    USER_FEEDBACK,
];

//! Names of attributes that several kinds of items have, or by which the stream is filtered.

/// The part of an item that streams and queues carry: everything except free text.
pub(crate) const CORE: &str = "core";
/// Free text, which stays in the table.
pub(crate) const TEXT: &str = "text";
/// The source of an event that its writer sends to the signal generator itself, instead of the
/// stream's pipe.
pub(crate) const SENT: &str = "sent";
/// The outcome of an event.
pub(crate) const OUTCOME: &str = "outcome";
/// The retraction of an event.
pub(crate) const RETRACTION: &str = "retraction";
/// The URI of a turn's log.
pub(crate) const HOSTED_URI: &str = "hosted_uri";
/// The inference about a turn.
pub(crate) const USER_FEEDBACK: &str = "user_feedback";
/// Explicit feedback of the turn's user, by means:
/// [`ExplicitFeedback`](hearback_domain::feedback::turn_status::ExplicitFeedback).
pub(crate) const GIVEN_FEEDBACK: &str = "said";

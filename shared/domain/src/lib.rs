//! Hearback's model and every rule, pure: what feedback is, what it teaches, who may say it.
//!
//! No AWS, no I/O, no clock and no randomness of its own: time comes in as an argument, so a
//! rule is a function that a test can call. Input is parsed once, at the edge, into types that
//! cannot hold a bad value ([`parse`]); everything behind it trusts them.
//!
//! | to change | look in |
//! |---|---|
//! | what an event may contain | [`event`], [`submission`] |
//! | what an event teaches a model | [`signal`] |
//! | what a user may say of a turn, or of one message | [`reaction`], [`message_signal`] |
//! | what each kind of feedback is in the one ledger | [`ledger`] |
//! | what is published to subscribers | [`publication`] |
//! | how preferences look, change and learn | [`preferences`] |
//! | who may act for whom | [`caller`] |
//! | what is kept of an anonymous user | [`privacy`] |
//! | what an agent is told of the feedback on its turns | [`timeline`] |
//! | what an evaluation reads of all users | [`evaluation`] |
//! | how old reaction rows are read | [`legacy`] |

pub mod caller;
pub mod cursor;
pub mod dedupe;
pub mod digest;
pub mod evaluation;
pub mod event;
pub mod identifier;
pub mod ledger;
pub mod legacy;
pub mod message_signal;
pub mod mirror;
pub mod parse;
pub mod period;
pub mod preferences;
pub mod privacy;
pub mod publication;
pub mod reaction;
pub mod signal;
pub mod submission;
pub mod timeline;
pub mod turn;
pub mod turn_report;

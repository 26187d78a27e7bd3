//! Hearback's model and every rule, pure: what feedback is, what it teaches, who may say it.
//!
//! No AWS, no I/O, no clock and no randomness of its own: time comes in as an argument, so a
//! rule is a function that a test can call. Input is parsed once, at the edge, into types that
//! cannot hold a bad value ([`parse`]); everything behind it trusts them.
//!
//! | to change | look in |
//! |---|---|
//! | what an event may contain | [`event`], [`submission`] |
//! | what a team compares answers by | [`labels`] |
//! | what an event teaches a model | [`signal`] |
//! | what a user may say of a turn, or of one message | [`reaction`], [`message_signal`] |
//! | what each kind of feedback is in the one ledger | [`ledger`] |
//! | which signals and events count as reactions to a turn, and how a turn was taken | [`counted`], [`turn_status`] |
//! | what is published to subscribers | [`publication`] |
//! | how preferences look, change and learn | [`preferences`] |
//! | who may act for whom | [`caller`] |
//! | what is kept of an anonymous user | [`privacy`] |
//! | what counts as personal data in free text | [`scrub`] |
//! | what erasing a person removes, and for how long it holds | [`erasure`] |
//! | how a turn is registered in one step or two, and how long it is kept | [`turn`], [`registration`], [`retention`] |
//! | what an agent is told of the feedback on its turns | [`timeline`] |
//! | what an evaluation reads of all users | [`evaluation`] |
//! | what a model can learn from feedback, as rows of a file | [`training`] |
//! | how old reaction rows are read | [`legacy`] |
//! | what a follow-up message says of the answer before it | [`detection`] |
//! | how alike texts are, and which past turn is meant | [`similarity`], [`embedding`], [`target`] |
//! | how past turns rank, and what rejections in a row advise | [`satisfaction`], [`sequence`] |
//! | what a planner is told of a rejected turn | [`feedback_context`] |

pub mod caller;
pub mod carried;
pub mod counted;
pub mod cursor;
pub mod dedupe;
pub mod detection;
pub mod digest;
pub mod embedded;
pub mod embedding;
pub mod erasure;
pub mod evaluation;
pub mod event;
pub mod feedback_context;
pub mod follow_up;
mod hash;
pub mod identifier;
pub mod import;
pub mod labels;
pub mod language;
pub mod ledger;
pub mod legacy;
pub mod lines;
pub mod message_signal;
pub mod mirror;
pub mod one_line;
pub mod parse;
pub mod payload;
pub mod period;
pub mod preferences;
pub mod privacy;
pub mod publication;
pub mod rarity;
pub mod reaction;
pub mod refused;
pub mod registration;
pub mod retention;
pub mod satisfaction;
pub mod scrub;
pub mod sequence;
pub mod signal;
pub mod similarity;
pub mod submission;
pub mod target;
mod text;
pub mod timeline;
pub mod training;
pub mod turn;
pub mod turn_report;
pub mod turn_status;

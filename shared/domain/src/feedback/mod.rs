//! Feedback on turns, and what all of it together says about a turn.
//!
//! | to change | look in |
//! |---|---|
//! | how a user reacts to a turn, or rates a message | [`reaction`], [`message_signal`] |
//! | what a message implies about the turn before | [`follow_up`] |
//! | which message signals and events count as reactions to a turn | [`counted`] |
//! | the status of a turn | [`turn_status`] |
//! | which of a user's feedback on a turn counts in rates and timelines | [`voice`] |
//! | how satisfied users are, how past turns are ranked | [`satisfaction`] |
//! | what to do after consecutive rejections | [`sequence`] |
//! | a reaction in reports, and its copy in the turn's log | [`reported`], [`mirror`] |
//! | a second registration of a turn: a repeat, a completion, a conflict | [`registration`] |
//! | how old reaction rows are read | [`legacy`] |

pub mod counted;
pub mod follow_up;
pub mod legacy;
pub mod message_signal;
pub mod mirror;
pub mod reaction;
pub mod registration;
pub mod reported;
pub mod satisfaction;
pub mod sequence;
pub mod turn_status;
pub mod voice;

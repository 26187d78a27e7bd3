//! Feedback events, as they are submitted and stored.
//!
//! | to change | look in |
//! |---|---|
//! | what a request may contain, and what is stored of an anonymous event | [`submission`] |
//! | what is stored, and which of equal events is the first | [`event`] |
//! | which events are equal | [`dedupe`] |
//! | which of two acts is the latest | [`recency`] |
//! | how long the ledger and turns are kept | [`retention`] |
//! | the bounds of an import | [`import`] |
//! | what is stored of a rejected event | [`rejected_body`] |

pub mod dedupe;
pub mod event;
pub mod import;
pub mod recency;
pub mod rejected_body;
pub mod retention;
pub mod submission;

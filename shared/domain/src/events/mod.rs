//! Feedback events, as they are submitted and stored.
//!
//! | to change | look in |
//! |---|---|
//! | what a request may contain | [`submission`] |
//! | what is stored | [`event`] |
//! | which of equal events is the first | [`dedupe`] |
//! | which of two acts is the latest | [`recency`] |
//! | how long things are kept | [`retention`] |
//! | the bounds of an import | [`import`] |
//! | what is stored of a rejected event | [`rejected_body`] |

pub mod dedupe;
pub mod event;
pub mod import;
pub mod recency;
pub mod rejected_body;
pub mod retention;
pub mod submission;

//! What is learned from feedback, and published.
//!
//! | to change | look in |
//! |---|---|
//! | the event of each kind of feedback in the ledger, and its retraction | [`ledger`] |
//! | the learning signals of an event | [`signal`] |
//! | how preferences look, change and learn | [`preferences`] |
//! | what is published to subscribers | [`publication`] |

pub mod ledger;
pub mod preferences;
pub mod publication;
pub mod signal;

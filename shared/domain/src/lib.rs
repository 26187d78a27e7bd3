//! Hearback's model and rules, as pure functions. See docs/reference/rules.md.
//!
//! The crate does no I/O, calls no AWS API and reads no clock and no random numbers: time is an argument, so that tests
//! can call every rule directly. Input is parsed once, at the edge, into types that cannot hold an invalid value
//! ([`hearback_wire`]).
//!
//! Each module imports only modules above it, and says what is in it:
//!
//! | module | what |
//! |---|---|
//! | [`text`] | quoting for prompts, characters for SQS, lines of a file, digests, page limits, cursors |
//! | [`identity`] | identifiers, claims, callers, pseudonyms, labels |
//! | [`events`] | what an event may contain, which of equal ones counts, retention, imports, rejected bodies |
//! | [`turns`] | what a turn may contain, which turn a message is about |
//! | [`feedback`] | reactions, message signals, inferred feedback, the status of a turn, its second registration |
//! | [`learning`] | the ledger, learning signals, preferences, published messages |
//! | [`views`] | reports, timelines, a planner's context, the feed, insights |
//! | [`export`] | the evaluation read, training data, erasure |
//!
//! Of our crates it imports `hearback_detection`, `hearback_scrub`, `hearback_text` and `hearback_wire`.

pub mod events;
pub mod export;
pub mod feedback;
pub mod identity;
pub mod learning;
pub mod text;
pub mod turns;
pub mod views;

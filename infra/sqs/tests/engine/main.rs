//! The engine as its callers see it: through the AWS SDK, over HTTP.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod batches;
mod clocks;
mod forgetting;
mod groups;
mod harness;
mod messages;
mod queues;
mod receiving;
mod redrive;
mod reopening;
mod wire;

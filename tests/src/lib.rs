//! What the tests and benchmarks that cross crates share: a running bundle and a client for it, an
//! engine alone, meters and faults on its clients, and Lambda's Runtime API.

pub mod app;
pub mod engine;
pub mod events;
pub mod faults;
pub mod functions;
pub mod generate;
pub mod hands;
pub mod ledger;
pub mod meanwhile;
pub mod options;
pub mod page;
pub mod period;
pub mod permissions;
pub mod process;
pub mod queue;
pub mod runtime_api;
pub mod served;
pub mod stored;
pub mod template;
pub mod touched;
pub mod turns;

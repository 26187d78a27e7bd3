//! Shared by tests and benchmarks across crates: a running bundle with a client, the engines alone, meters and faults
//! for clients, and Lambda's Runtime API.

pub mod app;
pub mod counted_hours;
pub mod engine;
pub mod events;
pub mod faults;
pub mod function_set;
pub mod functions;
pub mod generate;
pub mod ledger;
pub mod live;
pub mod meanwhile;
pub mod options;
pub mod page;
pub mod period;
pub mod permissions;
pub mod process;
pub mod queue;
pub mod rows;
pub mod runtime_api;
pub mod served;
pub mod stored;
pub mod template;
pub mod touched;
pub mod turns;
pub mod webhook_target;

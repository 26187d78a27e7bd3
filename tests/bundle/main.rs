//! Tests that cross crates, against real engines.

mod batch;
mod capacity;
mod contract;
mod crash_points;
mod deployment;
mod embeddings;
mod erasure;
mod erasure_files;
mod evaluation;

mod exactly_once;
mod exactly_once_imports;
mod exactly_once_reactions;
mod exactly_once_signals;
mod follow_ups;
mod imports;
mod isolation;
mod keys;
mod load;
mod message_signals;
mod permissions;
mod pipeline;
mod preferences;
mod process;
mod reactions;
mod reports;
mod simulation;
mod submit;
mod timeline;
mod training;
mod turns;

//! Many events at once: in one request, by the ingest queue ([`Ingest`]), or as files in the bucket
//! ([`Importer`]).
//!
//! However they come, each event goes into the table by itself (`intake.rs`), with one conditional write,
//! at a pace that the table bears (`pace.rs`), and of those that say the same the first by position counts
//! (`order.rs`). None is acknowledged before, and one that is refused harms no other.

mod events;
mod imports;
mod ingest;
mod intake;
mod order;
mod pace;

pub use events::{MAX_BODY, MAX_EVENTS, routes};
pub use imports::{IMPORTS_DEAD_LETTERS_URL, IMPORTS_URL, Importer, notification};
pub use ingest::{INGEST_DEAD_LETTERS_URL, Ingest, TENANT};
pub use intake::Intake;

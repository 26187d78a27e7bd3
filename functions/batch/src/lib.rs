//! Many events at once: in one request (`events.rs`), from the ingest queue ([`Ingest`]), or from files in the bucket
//! ([`Importer`]).
//!
//! Each event is stored by itself, with one conditional write (`intake.rs`), as fast as the table allows (`pace.rs`).
//! Of several events with one dedupe key the first by position counts (`order.rs`). An event is acknowledged after it
//! is stored, and a rejected one does not affect the others. Processing is not here: the signal generator
//! (`functions/signals`) receives the stored events. One event in a request is in `functions/submit`.

mod events;
mod imports;
mod ingest;
mod intake;
mod order;
mod pace;

pub use events::{LISTED_ERRORS, MAX_BODY, MAX_EVENTS, routes};
pub use imports::{
    IMPORTS_DEAD_LETTERS_URL, IMPORTS_URL, Importer, Queues, SIGNALS_BULK_URL, SLICE, notification,
};
pub use ingest::{INGEST_DEAD_LETTERS_URL, Ingest};
pub use intake::Intake;

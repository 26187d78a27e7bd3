//! The state of a worker on a piece.

use std::collections::VecDeque;

use hearback_domain::events::import::Reject;
use hearback_domain::identity::caller::Caller;
use hearback_storage::Versioned;
use hearback_storage::imports::{ImportCore, ImportId, PieceState};

use crate::imports::Importer;
use crate::imports::bulk::Unsent;
use crate::imports::line::Outcome;
use crate::imports::task::Piece;

pub(super) struct Worker<'a> {
    pub(super) importer: &'a Importer,
    pub(super) import: &'a ImportCore,
    pub(super) id: ImportId,
    pub(super) piece: &'a Piece,
    pub(super) caller: Caller,
    /// The stored state of the piece, before this worker.
    pub(super) stored: Option<Versioned<PieceState>>,
    /// The state of the lines before `end`. All of these are settled, so that it can be stored at any time.
    pub(super) state: PieceState,
    pub(super) end: u64,
    /// The lines from `end` on that were read.
    pub(super) pending: VecDeque<PendingLine>,
    /// Rejected lines before `end` that are in no file yet.
    pub(super) rejects: Vec<Reject>,
    /// Bytes of these rejects, and of those in `pending`.
    pub(super) rejects_size: usize,
    /// Lines whose events are stored but not sent.
    pub(super) unsent: Unsent,
}

/// A line that is not counted yet.
pub(super) struct PendingLine {
    /// Where the next line begins.
    pub(super) end: u64,
    /// Its outcome, if it is settled before an earlier line.
    pub(super) outcome: Option<Outcome>,
}

//! Processes a piece of a file: stores the events of its lines.
//!
//! | to change | look in |
//! |---|---|
//! | the state of a worker | `worker.rs` |
//! | how lines are read, and their events stored | `read.rs` |
//! | how lines are settled and counted | `settle.rs` |
//! | which rejects are kept | `rejects.rs` |

mod read;
mod rejects;
mod settle;
mod worker;

use std::collections::VecDeque;

use chrono::{DateTime, Utc};
use hearback_domain::identity::identifier::UserId;
use hearback_storage::files::work_key;
use hearback_storage::imports::{ImportCore, ImportId, PieceState};
use hearback_storage::{Versioned, if_readable};

use super::bulk::Unsent;
use super::task::{Piece, Task, Work};
use super::{Failure, Importer};
use crate::intake::back_end;
use read::Ended;
use worker::Worker;

/// The user id of the sender.
const BACK_END: &str = "import";
/// The damage of a file that was replaced or deleted before it was read completely.
pub(super) const GONE: &str = "it was replaced or deleted while it was imported";

impl Piece {
    /// The name of its file, if it was unpacked.
    pub(super) fn file(&self) -> String {
        format!("piece-{:010}.jsonl", self.number)
    }
}

/// The progress of a piece when a worker begins.
enum Progress {
    /// None is stored.
    New,
    /// The stored one.
    Stored(Versioned<PieceState>),
    /// What is stored cannot be read, but the piece was completed: its file was deleted.
    Completed,
}

impl From<Option<Versioned<PieceState>>> for Progress {
    fn from(stored: Option<Versioned<PieceState>>) -> Self {
        stored.map_or(Self::New, Self::Stored)
    }
}

impl Importer {
    /// Processes a piece, or the rest of it.
    pub(super) async fn piece(
        &self,
        import: &ImportCore,
        piece: &Piece,
        until: Option<DateTime<Utc>>,
    ) -> Result<(), Failure> {
        let id = import.id();
        let stored = match self.progress(import, piece).await? {
            Progress::New => None,
            Progress::Stored(stored) => Some(stored),
            Progress::Completed => return self.complete(&id, piece, until).await,
        };
        let state = stored.as_ref().map(|stored| stored.value.clone());
        let state = state.unwrap_or_else(|| PieceState {
            next: Some(piece.from),
            ..PieceState::default()
        });
        let Some(end) = state.next else {
            return self.complete(&id, piece, until).await;
        };
        let user = UserId::try_from(BACK_END).map_err(|_| Failure::Unreadable)?;
        let mut worker = Worker {
            importer: self,
            import,
            caller: back_end(import.tenant.clone(), user),
            id: id.clone(),
            piece,
            stored,
            state,
            end,
            pending: VecDeque::new(),
            rejects: Vec::new(),
            rejects_size: 0,
            unsent: Unsent::default(),
        };
        match worker.process(until).await {
            Ok(true) => self.complete(&id, piece, until).await,
            // The next worker continues from the stored state.
            Ok(false) => {
                let rest = Task::Work(id.clone(), Work::Piece(piece.clone()));
                self.send(&id.tenant, [rest]).await
            }
            Err(failure) => {
                // Saving is an attempt to keep the progress. The failure itself is reported.
                let _ = worker.save().await;
                Err(failure)
            }
        }
    }

    /// The progress of a piece. One that cannot be read begins again, unless its file is gone.
    async fn progress(&self, import: &ImportCore, piece: &Piece) -> Result<Progress, Failure> {
        let (store, id) = (&self.intake.store, import.id());
        let stored = store.import_piece(&id, piece.number).await;
        if let Some(stored) = if_readable(stored, &id.tenant)? {
            return Ok(stored.into());
        }
        let file = work_key(&id, &piece.file());
        if piece.unpacked && self.blobs.file(&file, None).await?.is_none() {
            return Ok(Progress::Completed);
        }
        let restarted = store.restart_import_piece(import, piece.number, piece.from);
        restarted.await?;
        let stored = store.import_piece(&id, piece.number).await?;
        Ok(stored.into())
    }

    /// Completes a piece that is processed.
    async fn complete(
        &self,
        id: &ImportId,
        piece: &Piece,
        until: Option<DateTime<Utc>>,
    ) -> Result<(), Failure> {
        if piece.unpacked {
            // Its lines may ask for anonymity.
            let key = work_key(id, &piece.file());
            self.blobs.delete_for_good(&key).await?;
        }
        self.finish_if_done(id, until).await
    }
}

impl Worker<'_> {
    /// Processes the piece, stores its state, and returns whether this worker completed it.
    async fn process(&mut self, until: Option<DateTime<Utc>>) -> Result<bool, Failure> {
        let store = &self.importer.intake.store;
        let number = self.piece.number;
        let complete = match self.read(until).await? {
            Ended::Complete => true,
            Ended::OutOfTime => false,
            Ended::Gone => {
                if store.import_piece(&self.id, number).await? != self.stored {
                    // Another worker completed the piece, and deleted its file.
                    return Ok(false);
                }
                store.note_import_damage(&self.id, GONE).await?;
                true
            }
        };
        if !complete {
            self.save().await?;
            return Ok(false);
        }
        self.put_rejects().await?;
        self.state.next = None;
        let (state, stored) = (&self.state, self.stored.as_ref());
        Ok(store
            .finish_import_piece(self.import, number, state, stored)
            .await?)
    }

    /// Stores the progress of the piece, if there is any. If another worker stored its own meanwhile, that one is kept.
    async fn save(&mut self) -> Result<(), Failure> {
        let before = self.stored.as_ref().map(|stored| stored.value.counts);
        if self.state.counts == before.unwrap_or_default() {
            return Ok(());
        }
        self.put_rejects().await?;
        self.state.next = Some(self.end);
        let (state, stored) = (&self.state, self.stored.as_ref());
        let store = &self.importer.intake.store;
        store
            .put_import_piece(self.import, self.piece.number, state, stored)
            .await?;
        Ok(())
    }
}

//! A piece of a file: its lines, taken into the table.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use futures::stream::{FuturesUnordered, StreamExt};
use hearback_domain::caller::Caller;
use hearback_domain::identifier::UserId;
use hearback_domain::import::{FIRST_ERRORS, LONGEST_LINE, Reject, RejectedLine};
use hearback_domain::lines::{Line, Lines};
use hearback_domain::refused::{asks_for_anonymity, kept, kept_text};
use hearback_domain::submission::Rejection;
use hearback_storage::Attempt;
use hearback_storage::files::work_key;
use hearback_storage::imports::{ImportCore, ImportId, PieceState};
use serde_json::Value;
use uuid::Uuid;

use super::task::{Piece, Task, Work};
use super::{Failure, Importer};
use crate::intake::{Intake, back_end};
use crate::pace::MOST;

/// The user that acts for the users of a tenant.
const BACK_END: &str = "import";
/// The error of a line that is no JSON.
pub(super) const NOT_JSON: &str = "not_json";
/// What is wrong with a file that was replaced or deleted before it was read to its end.
pub(super) const GONE: &str = "it was replaced or deleted while it was imported";
/// Bytes of rejects that are kept in memory.
const REJECTS: usize = 4 * 1024 * 1024;

impl Piece {
    /// The name of the file into which it was unpacked.
    pub(super) fn file(&self) -> String {
        format!("piece-{:010}.jsonl", self.number)
    }
}

/// What became of a line.
enum Outcome {
    Taken {
        known: bool,
        anonymous: bool,
    },
    Rejected {
        reject: Box<Reject>,
        anonymous: bool,
    },
}

/// A worker on a piece.
struct Worker<'a> {
    importer: &'a Importer,
    id: ImportId,
    piece: &'a Piece,
    caller: Caller,
    state: PieceState,
    /// Lines that are no event, and in no file yet, by their numbers.
    rejects: BTreeMap<u64, Reject>,
    rejects_size: usize,
}

impl Importer {
    /// Works off a piece, or what is left of it.
    pub(super) async fn piece(
        &self,
        import: &ImportCore,
        piece: &Piece,
        until: Option<DateTime<Utc>>,
    ) -> Result<(), Failure> {
        let store = &self.intake.store;
        let id = import.id();
        let seen = store.import_piece(&id, piece.number).await?;
        let state = seen.as_ref().map(|seen| seen.held.clone());
        let state = state.unwrap_or_else(|| PieceState {
            next: Some(piece.from),
            ..PieceState::default()
        });
        let Some(next) = state.next else {
            return self.after(&id, piece).await;
        };
        let user = UserId::try_from(BACK_END).map_err(|_| Failure::Unreadable)?;
        let mut worker = Worker {
            importer: self,
            caller: back_end(import.tenant.clone(), user),
            id: id.clone(),
            piece,
            state,
            rejects: BTreeMap::new(),
            rejects_size: 0,
        };
        if !worker.read(import, next, until).await? {
            let now = store.import_piece(&id, piece.number).await?;
            if now != seen {
                // Somebody else finished it meanwhile, and deleted what was unpacked.
                let work = Work::Piece(piece.clone());
                return self.send([Task::Work(id, work)]).await;
            }
            store.note_import_damage(&id, GONE).await?;
            worker.done(None).await?;
        }
        let (number, state) = (piece.number, worker.state);
        if state.next.is_none() {
            let done = (&state, seen.as_ref());
            if store.finish_import_piece(import, number, done).await? {
                return self.after(&id, piece).await;
            }
            // Somebody else wrote down how far it is: whoever comes next goes on from there.
            return self
                .send([Task::Work(id, Work::Piece(piece.clone()))])
                .await;
        }
        let put = (&state, seen.as_ref());
        // If somebody else was faster, whoever comes next goes on from there.
        store.put_import_piece(import, number, put).await?;
        self.send([Task::Work(id, Work::Piece(piece.clone()))])
            .await
    }

    /// What follows once a piece is done.
    async fn after(&self, id: &ImportId, piece: &Piece) -> Result<(), Failure> {
        if piece.unpacked {
            // It may hold what was to be anonymous.
            let key = work_key(id, &piece.file());
            self.blobs.delete_for_good(&key).await?;
        }
        self.finish_if_done(id).await
    }
}

impl Worker<'_> {
    /// Reads lines from `next` on, and takes their events. Answers whether the file is still there.
    async fn read(
        &mut self,
        import: &ImportCore,
        next: u64,
        until: Option<DateTime<Utc>>,
    ) -> Result<bool, Failure> {
        let (key, etag) = if self.piece.unpacked {
            (work_key(&self.id, &self.piece.file()), None)
        } else {
            (import.key.clone(), Some(&import.etag))
        };
        // A line begins at the start, or behind the line end before it.
        let (mut lines, from) = match next.checked_sub(1) {
            None => (Lines::new(LONGEST_LINE), 0),
            Some(before) => (Lines::behind(before, LONGEST_LINE), before),
        };
        let found = self.importer.blobs.read_from(&key, from).await?;
        let Some((_, mut body)) = found.filter(|(found, _)| etag.is_none_or(|etag| etag == found))
        else {
            return Ok(false);
        };
        let intake = self.importer.intake.clone();
        let caller = self.caller.clone();
        let mut under_way = FuturesUnordered::new();
        let before = self.state.counts.lines;
        loop {
            let bytes = body.next().await.transpose().map_err(|_| Failure::Body)?;
            match &bytes {
                Some(bytes) => lines.push(bytes),
                None => lines.end(),
            }
            while let Some(Line { offset, content }) = lines.next_line() {
                if offset >= self.piece.to {
                    self.settle(&mut under_way, 0).await?;
                    return self.done(None).await;
                }
                // However late it is, each worker gets on.
                if self.importer.is_over(until) && self.state.counts.lines > before {
                    self.settle(&mut under_way, 0).await?;
                    return self.done(Some(offset)).await;
                }
                self.state.counts.lines += 1;
                if content.is_some_and(|line| line.trim_ascii().is_empty()) {
                    continue;
                }
                let by = self.attempt(offset);
                let number = self.state.counts.lines;
                let line = content.map(<[u8]>::to_vec);
                under_way.push(outcome(&intake, &caller, by, (number, line)));
                self.settle(&mut under_way, 2 * MOST).await?;
                if self.rejects_size > REJECTS {
                    // Those of earlier lines that are under way belong before these.
                    self.settle(&mut under_way, 0).await?;
                    self.put_rejects().await?;
                }
            }
            // A line that began before the piece may go on behind it: then none begins in it.
            if bytes.is_none() || lines.passes(self.piece.to) {
                self.settle(&mut under_way, 0).await?;
                return self.done(None).await;
            }
        }
    }

    /// The attempt that takes the line which begins there.
    fn attempt(&self, offset: u64) -> Attempt {
        let (number, offset) = (self.piece.number.to_string(), offset.to_string());
        Attempt::named(["import", &self.id.id, &number, &offset])
    }

    async fn done(&mut self, next: Option<u64>) -> Result<bool, Failure> {
        self.put_rejects().await?;
        self.state.next = next;
        Ok(true)
    }

    /// Waits until no more lines than these are under way.
    async fn settle<F>(
        &mut self,
        under_way: &mut FuturesUnordered<F>,
        left: usize,
    ) -> Result<(), Failure>
    where
        F: Future<Output = Result<Outcome, hearback_storage::Error>>,
    {
        while under_way.len() > left {
            let Some(outcome) = under_way.next().await else {
                return Ok(());
            };
            match outcome? {
                Outcome::Taken { known, anonymous } => {
                    self.state.anonymous |= anonymous;
                    let counts = &mut self.state.counts;
                    if known {
                        counts.duplicates += 1;
                    } else {
                        counts.queued += 1;
                    }
                }
                Outcome::Rejected { reject, anonymous } => {
                    self.state.anonymous |= anonymous;
                    self.state.counts.rejected += 1;
                    self.rejects_size += reject.line.as_ref().map_or(0, String::len) + 200;
                    self.rejects.insert(reject.rejected.line_number, *reject);
                }
            }
        }
        Ok(())
    }

    /// Stores the rejects that are in no file yet, in the order of their lines.
    async fn put_rejects(&mut self) -> Result<(), Failure> {
        if self.rejects.is_empty() {
            return Ok(());
        }
        let mut bytes = Vec::new();
        for reject in std::mem::take(&mut self.rejects).into_values() {
            serde_json::to_writer(&mut bytes, &reject).map_err(|_| Failure::Unreadable)?;
            bytes.push(b'\n');
            if self.state.first_errors.len() < FIRST_ERRORS {
                self.state.first_errors.push(reject.rejected);
            }
        }
        self.rejects_size = 0;
        // A name of its own: who works on the same piece at the same time writes over nothing.
        let name = format!("rejects-{:010}-{}.jsonl", self.piece.number, Uuid::new_v4());
        let blobs = &self.importer.blobs;
        blobs.put_file(&work_key(&self.id, &name), bytes).await?;
        self.state.rejects.push(name);
        Ok(())
    }
}

/// Takes the event of a line; a line that is too long is none.
async fn outcome(
    intake: &Intake,
    caller: &Caller,
    by: Attempt,
    (line_number, line): (u64, Option<Vec<u8>>),
) -> Result<Outcome, hearback_storage::Error> {
    let rejected = |rejection, line: Option<String>, anonymous| Outcome::Rejected {
        reject: Box::new(Reject {
            rejected: RejectedLine {
                line_number,
                rejection,
            },
            line,
        }),
        anonymous,
    };
    let Some(line) = line else {
        let detail = format!("must have at most {LONGEST_LINE} bytes");
        // It may be an anonymous event's.
        return Ok(rejected(
            Rejection::whole("line_too_long", detail),
            None,
            true,
        ));
    };
    let body = match serde_json::from_slice::<Value>(&line) {
        Ok(body) => body,
        Err(error) => {
            let text = String::from_utf8_lossy(&line);
            let kept = kept_text(&text).map(str::to_owned);
            let anonymous = kept.is_none();
            let detail = format!("must be JSON: column {}", error.column());
            return Ok(rejected(
                Rejection::whole(NOT_JSON, detail),
                kept,
                anonymous,
            ));
        }
    };
    match intake.read(caller, &body) {
        Ok(submission) => {
            // Not kept while it waits for the table.
            drop((body, line));
            let taken = intake.put(by, submission).await?;
            Ok(Outcome::Taken {
                known: taken.known,
                anonymous: taken.anonymous,
            })
        }
        Err(refused) => {
            let anonymous = asks_for_anonymity(&body);
            let line = if anonymous {
                kept(&body).to_string()
            } else {
                String::from_utf8_lossy(&line).into_owned()
            };
            Ok(rejected(refused.into(), Some(line), anonymous))
        }
    }
}

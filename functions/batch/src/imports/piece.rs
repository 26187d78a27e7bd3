//! A piece of a file: its lines, taken into the table.

use std::collections::VecDeque;

use chrono::{DateTime, Utc};
use futures::stream::{FuturesUnordered, StreamExt};
use hearback_domain::caller::Caller;
use hearback_domain::identifier::UserId;
use hearback_domain::import::{FIRST_ERRORS, LONGEST_LINE, Reject, RejectedLine};
use hearback_domain::lines::{Line, Lines};
use hearback_domain::refused::{asks_for_anonymity, kept, kept_text};
use hearback_domain::submission::{Rejection, Submission};
use hearback_storage::files::{ByteStream, work_key};
use hearback_storage::imports::{ImportCore, ImportId, PieceState};
use hearback_storage::{Attempt, Error, Standing};
use serde_json::Value;
use uuid::Uuid;

use super::task::{Piece, Task, Work};
use super::{Failure, Importer};
use crate::intake::{Intake, Sender, Taken, back_end};
use crate::order::{Order, Turn};
use crate::pace::MOST;

/// The user that acts for the users of a tenant.
const BACK_END: &str = "import";
/// The error of a line that is too long.
const TOO_LONG: &str = "line_too_long";
/// The error of a line that is no JSON.
pub(super) const NOT_JSON: &str = "not_json";
/// What is wrong with a file that was replaced or deleted before it was read to its end.
pub(super) const GONE: &str = "it was replaced or deleted while it was imported";
/// Bytes of rejects that are kept in memory.
const REJECTS_IN_MEMORY: usize = 4 * 1024 * 1024;

impl Piece {
    /// The name of the file into which it was unpacked.
    pub(super) fn file(&self) -> String {
        format!("piece-{:010}.jsonl", self.number)
    }
}

/// A line that was read.
struct Read {
    /// Its number within the piece, from 1.
    number: u64,
    /// What is in it; `None` if it is too long.
    content: Option<Vec<u8>>,
}

/// What became of a line.
enum Outcome {
    Blank,
    Taken {
        known: bool,
        anonymous: bool,
    },
    Rejected {
        reject: Box<Reject>,
        anonymous: bool,
    },
}

/// A line that is not counted yet.
struct Waiting {
    /// Where the line behind it begins.
    end: u64,
    /// What became of it, if that is known: a line before it may take longer.
    outcome: Option<Outcome>,
}

/// How a worker's reading ended.
enum Ended {
    /// No line is left.
    Whole,
    /// It is time to hand on.
    Late,
    /// The file is not there.
    Gone,
}

/// A worker on a piece.
struct Worker<'a> {
    importer: &'a Importer,
    import: &'a ImportCore,
    id: ImportId,
    piece: &'a Piece,
    caller: Caller,
    /// How far the piece was before.
    seen: Option<Standing<PieceState>>,
    /// What became of the lines before `end`. Each of them is settled, so that it can be written down at
    /// any time.
    state: PieceState,
    end: u64,
    /// The lines from `end` on that were read.
    waiting: VecDeque<Waiting>,
    /// Lines before `end` that are no event, and in no file yet.
    rejects: Vec<Reject>,
    /// Bytes of rejects in memory.
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
        let id = import.id();
        let seen = self.intake.store.import_piece(&id, piece.number).await?;
        let state = seen.as_ref().map(|seen| seen.held.clone());
        let state = state.unwrap_or_else(|| PieceState {
            next: Some(piece.from),
            ..PieceState::default()
        });
        let Some(end) = state.next else {
            return self.after(&id, piece, until).await;
        };
        let user = UserId::try_from(BACK_END).map_err(|_| Failure::Unreadable)?;
        let mut worker = Worker {
            importer: self,
            import,
            caller: back_end(import.tenant.clone(), user),
            id: id.clone(),
            piece,
            seen,
            state,
            end,
            waiting: VecDeque::new(),
            rejects: Vec::new(),
            rejects_size: 0,
        };
        match worker.work(until).await {
            Ok(true) => self.after(&id, piece, until).await,
            // Whoever comes next goes on from where the piece is now.
            Ok(false) => {
                let work = Work::Piece(piece.clone());
                self.send([Task::Work(id, work)]).await
            }
            Err(failure) => {
                // What failed may fail again, and is told once. Then the piece is begun where it was.
                let _ = worker.save().await;
                Err(failure)
            }
        }
    }

    /// What follows once a piece is done.
    async fn after(
        &self,
        id: &ImportId,
        piece: &Piece,
        until: Option<DateTime<Utc>>,
    ) -> Result<(), Failure> {
        if piece.unpacked {
            // It may hold what was to be anonymous.
            let key = work_key(id, &piece.file());
            self.blobs.delete_for_good(&key).await?;
        }
        self.finish_if_done(id, until).await
    }
}

impl Worker<'_> {
    /// Works the piece off, and writes down how far it is. Answers whether it is done by this worker.
    async fn work(&mut self, until: Option<DateTime<Utc>>) -> Result<bool, Failure> {
        let store = &self.importer.intake.store;
        let number = self.piece.number;
        let whole = match self.read(until).await? {
            Ended::Whole => true,
            Ended::Late => false,
            Ended::Gone => {
                if store.import_piece(&self.id, number).await? != self.seen {
                    // Somebody else finished it meanwhile, and deleted what was unpacked.
                    return Ok(false);
                }
                store.note_import_damage(&self.id, GONE).await?;
                true
            }
        };
        if !whole {
            self.save().await?;
            return Ok(false);
        }
        self.put_rejects().await?;
        self.state.next = None;
        let (state, seen) = (&self.state, self.seen.as_ref());
        Ok(store
            .finish_import_piece(self.import, number, state, seen)
            .await?)
    }

    /// Writes down how far the piece is, if that is further than before. If somebody else was faster,
    /// that holds.
    async fn save(&mut self) -> Result<(), Failure> {
        let before = self.seen.as_ref().map(|seen| seen.held.counts);
        if self.state.counts == before.unwrap_or_default() {
            return Ok(());
        }
        self.put_rejects().await?;
        self.state.next = Some(self.end);
        let (state, seen) = (&self.state, self.seen.as_ref());
        let store = &self.importer.intake.store;
        store
            .put_import_piece(self.import, self.piece.number, state, seen)
            .await?;
        Ok(())
    }

    /// Reads lines from `end` on, and takes their events. Those before are read again: of several events with
    /// one key the first is named by those behind it.
    async fn read(&mut self, until: Option<DateTime<Utc>>) -> Result<Ended, Failure> {
        let settled = self.end;
        // A line begins at the start, or behind the line end before it.
        let (mut lines, from) = match self.piece.from.checked_sub(1) {
            None => (Lines::new(LONGEST_LINE), 0),
            Some(before) => (Lines::behind(before, LONGEST_LINE), before),
        };
        let Some(mut body) = self.open(from).await? else {
            return Ok(Ended::Gone);
        };
        let intake = self.importer.intake.clone();
        let caller = self.caller.clone();
        let received_at = self.import.started_at;
        let mut order = Order::default();
        let mut under_way = FuturesUnordered::new();
        let before = self.state.counts.lines;
        let mut number = before;
        loop {
            let bytes = body.next().await.transpose().map_err(|_| Failure::Body)?;
            match &bytes {
                Some(bytes) => lines.push(bytes),
                None => lines.end(),
            }
            while let Some(line) = lines.next_line() {
                if line.offset >= self.piece.to {
                    self.settle(&mut under_way, 0).await?;
                    return Ok(Ended::Whole);
                }
                if line.offset < settled {
                    let by = self.attempt(line.offset);
                    note(&intake, (&caller, received_at), &mut order, (by, line));
                    continue;
                }
                // However late it is, each worker gets on.
                if self.importer.is_over(until) && number > before {
                    self.settle(&mut under_way, 0).await?;
                    return Ok(Ended::Late);
                }
                number += 1;
                let (by, read) = (self.attempt(line.offset), self.wait_for(number, line));
                let event = event(&intake, (&caller, received_at), &mut order, read);
                under_way.push(outcome(&intake, by, (number, event)));
                self.settle(&mut under_way, 2 * MOST).await?;
                if self.rejects_size > REJECTS_IN_MEMORY {
                    // Those of lines behind one that is under way cannot be stored yet.
                    self.settle(&mut under_way, 0).await?;
                    self.put_rejects().await?;
                }
            }
            // A line that began before the piece may go on behind it: then none begins in it.
            if bytes.is_none() || lines.passes(self.piece.to) {
                self.settle(&mut under_way, 0).await?;
                return Ok(Ended::Whole);
            }
        }
    }

    /// The bytes of the piece's file from a place on; `None` if it is not there.
    async fn open(&self, from: u64) -> Result<Option<ByteStream>, Failure> {
        let blobs = &self.importer.blobs;
        if self.piece.unpacked {
            let key = work_key(&self.id, &self.piece.file());
            let found = blobs.read_from(&key, None, from).await?;
            return Ok(found.map(|(_, body)| body));
        }
        let ImportCore {
            key, version, etag, ..
        } = self.import;
        let found = blobs.read_from(key, version.as_deref(), from).await?;
        Ok(found
            .filter(|(found, _)| found == etag)
            .map(|(_, body)| body))
    }

    /// The attempt that takes the line which begins there.
    fn attempt(&self, offset: u64) -> Attempt {
        let (number, offset) = (self.piece.number.to_string(), offset.to_string());
        Attempt::named(["import", &self.id.id, &number, &offset])
    }

    fn wait_for(&mut self, number: u64, line: Line<'_>) -> Read {
        self.waiting.push_back(Waiting {
            end: line.end,
            outcome: None,
        });
        Read {
            number,
            content: line.content.map(<[u8]>::to_vec),
        }
    }

    /// Waits until no more lines than these are under way.
    async fn settle<F>(
        &mut self,
        under_way: &mut FuturesUnordered<F>,
        left: usize,
    ) -> Result<(), Failure>
    where
        F: Future<Output = Result<(u64, Outcome), Error>>,
    {
        while under_way.len() > left {
            let Some(settled) = under_way.next().await else {
                return Ok(());
            };
            let (number, outcome) = settled?;
            if let Outcome::Rejected { reject, .. } = &outcome {
                self.rejects_size += reject.line.as_ref().map_or(0, String::len) + 200;
            }
            let ahead = usize::try_from(number - self.state.counts.lines - 1);
            if let Some(waiting) = ahead.ok().and_then(|ahead| self.waiting.get_mut(ahead)) {
                waiting.outcome = Some(outcome);
            }
            self.count_settled();
        }
        Ok(())
    }

    /// Counts the lines behind which none is open.
    fn count_settled(&mut self) {
        let settled = |line: &mut Waiting| line.outcome.is_some();
        while let Some(line) = self.waiting.pop_front_if(settled) {
            self.end = line.end;
            let counts = &mut self.state.counts;
            counts.lines += 1;
            match line.outcome {
                None | Some(Outcome::Blank) => {}
                Some(Outcome::Taken { known, anonymous }) => {
                    self.state.anonymous |= anonymous;
                    if known {
                        counts.duplicates += 1;
                    } else {
                        counts.queued += 1;
                    }
                }
                Some(Outcome::Rejected { reject, anonymous }) => {
                    self.state.anonymous |= anonymous;
                    self.state.unread |= reject.rejected.rejection.error == TOO_LONG;
                    counts.rejected += 1;
                    self.rejects.push(*reject);
                }
            }
        }
    }

    /// Stores the rejects that are in no file yet.
    async fn put_rejects(&mut self) -> Result<(), Failure> {
        if self.rejects.is_empty() {
            return Ok(());
        }
        let mut bytes = Vec::new();
        for reject in &self.rejects {
            serde_json::to_writer(&mut bytes, reject).map_err(|_| Failure::Unreadable)?;
            bytes.push(b'\n');
        }
        // A name of its own: who works on the same piece at the same time writes over nothing.
        let name = format!("rejects-{:010}-{}.jsonl", self.piece.number, Uuid::new_v4());
        let blobs = &self.importer.blobs;
        blobs.put_file(&work_key(&self.id, &name), bytes).await?;
        self.state.rejects.push(name);
        // Not before: what is in no file is to be stored later.
        let stored = std::mem::take(&mut self.rejects).into_iter();
        let first = FIRST_ERRORS.saturating_sub(self.state.first_errors.len());
        let errors = stored.map(|reject| reject.rejected);
        self.state.first_errors.extend(errors.take(first));
        self.rejects_size = 0;
        Ok(())
    }
}

/// Takes the event of a line into the table, and answers the line's number with what became of it.
async fn outcome(
    intake: &Intake,
    by: Attempt,
    (number, event): (u64, Result<(Turn, Submission), Outcome>),
) -> Result<(u64, Outcome), Error> {
    let (turn, submission) = match event {
        Ok(event) => event,
        Err(none) => return Ok((number, none)),
    };
    let anonymous = submission.event.core.privacy.anonymize;
    let outcome = match intake.put(by, submission, turn).await {
        Ok(Taken { known, .. }) => Outcome::Taken { known, anonymous },
        Err(not_taken) => rejected(number, not_taken.rejection()?, None, anonymous),
    };
    Ok((number, outcome))
}

/// A line that is no event, or whose event is not to be stored. `line` is what of it goes into the file of rejects.
fn rejected(number: u64, rejection: Rejection, line: Option<String>, anonymous: bool) -> Outcome {
    Outcome::Rejected {
        reject: Box::new(Reject {
            rejected: RejectedLine {
                line_number: number,
                rejection,
            },
            line,
        }),
        anonymous,
    }
}

/// Notes the event of a line that another worker settled, if it has one.
fn note(
    intake: &Intake,
    (caller, received_at): (&Caller, DateTime<Utc>),
    order: &mut Order,
    (by, line): (Attempt, Line<'_>),
) {
    let content = line.content.unwrap_or_default();
    let Ok(body) = serde_json::from_slice::<Value>(content) else {
        return;
    };
    if let Ok(submission) = intake.read(Sender::BackEnd(caller), (&body, received_at)) {
        order.settled(&submission.event.core, by);
    }
}

/// The event of a line and its place behind those before, or what else becomes of the line. A line that is too
/// long is no event.
fn event(
    intake: &Intake,
    (caller, received_at): (&Caller, DateTime<Utc>),
    order: &mut Order,
    Read { number, content }: Read,
) -> Result<(Turn, Submission), Outcome> {
    let rejected = |rejection, line, anonymous| rejected(number, rejection, line, anonymous);
    let Some(line) = content else {
        let detail = format!("must have at most {LONGEST_LINE} bytes");
        // Whether it asks for anonymity is not known. What was not read stays where it is, and nowhere else.
        return Err(rejected(Rejection::whole(TOO_LONG, detail), None, false));
    };
    if line.trim_ascii().is_empty() {
        return Err(Outcome::Blank);
    }
    let body = match serde_json::from_slice::<Value>(&line) {
        Ok(body) => body,
        Err(error) => {
            let text = String::from_utf8_lossy(&line);
            let kept = kept_text(&text).map(str::to_owned);
            let anonymous = kept.is_none();
            let detail = format!("must be JSON: column {}", error.column());
            return Err(rejected(
                Rejection::whole(NOT_JSON, detail),
                kept,
                anonymous,
            ));
        }
    };
    match intake.read(Sender::BackEnd(caller), (&body, received_at)) {
        Ok(submission) => Ok((order.next(&submission.event.core), submission)),
        Err(refused) => {
            let anonymous = asks_for_anonymity(&body);
            let line = if anonymous {
                kept(&body).to_string()
            } else {
                String::from_utf8_lossy(&line).into_owned()
            };
            Err(rejected(refused.into(), Some(line), anonymous))
        }
    }
}

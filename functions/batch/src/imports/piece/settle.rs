//! Settles lines: sends the messages of stored events, and counts lines in their order.

use futures::future::{BoxFuture, FutureExt};
use futures::stream::{FuturesUnordered, StreamExt};

use super::worker::{PendingLine, Worker};
use crate::imports::Failure;
use crate::imports::line::{NumberedOutcome, Outcome, TOO_LONG, size_of};

/// A completed operation.
pub(super) enum Completed {
    /// The event of a line is stored.
    Stored(NumberedOutcome),
    /// The messages of events are sent.
    Sent(Vec<NumberedOutcome>),
}

/// Operations in progress.
pub(super) type InProgress<'a> = FuturesUnordered<BoxFuture<'a, Result<Completed, Failure>>>;

impl<'a> Worker<'a> {
    /// Notes a blank line, which ends before `end`.
    pub(super) fn note_blank(&mut self, end: u64) {
        let outcome = Some(Outcome::Blank);
        self.pending.push_back(PendingLine { end, outcome });
        self.count_settled();
    }

    /// Waits until at most `left` operations are in progress. With 0, all messages are sent too.
    pub(super) async fn settle(
        &mut self,
        in_progress: &mut InProgress<'a>,
        left: usize,
    ) -> Result<(), Failure> {
        loop {
            if in_progress.len() <= left {
                if left > 0 || self.unsent.is_empty() {
                    return Ok(());
                }
                in_progress.push(self.send());
            }
            let Some(completed) = in_progress.next().await else {
                return Ok(());
            };
            match completed? {
                Completed::Stored((number, mut outcome)) => match outcome.take_message() {
                    None => self.note_settled([(number, outcome)]),
                    Some(message) => {
                        if !self.unsent.has_room(&message) {
                            in_progress.push(self.send());
                        }
                        self.unsent.push((number, outcome), message);
                    }
                },
                Completed::Sent(lines) => self.note_settled(lines),
            }
        }
    }

    /// Sends the messages of events that are stored.
    fn send(&mut self) -> BoxFuture<'a, Result<Completed, Failure>> {
        let unsent = std::mem::take(&mut self.unsent);
        let sent = unsent.send(self.importer, &self.import.tenant);
        sent.map(|sent| sent.map(Completed::Sent)).boxed()
    }

    fn note_settled(&mut self, lines: impl IntoIterator<Item = NumberedOutcome>) {
        for (number, outcome) in lines {
            if let Outcome::Rejected { reject, .. } = &outcome {
                self.rejects_size += size_of(reject);
            }
            let ahead = usize::try_from(number - self.state.counts.lines - 1);
            if let Some(line) = ahead.ok().and_then(|ahead| self.pending.get_mut(ahead)) {
                line.outcome = Some(outcome);
            }
            self.count_settled();
        }
    }

    /// Counts the lines before the first one that is not settled.
    fn count_settled(&mut self) {
        let settled = |line: &mut PendingLine| line.outcome.is_some();
        while let Some(line) = self.pending.pop_front_if(settled) {
            self.end = line.end;
            let counts = &mut self.state.counts;
            counts.lines += 1;
            match line.outcome {
                None | Some(Outcome::Blank) => {}
                Some(Outcome::Stored {
                    known, anonymous, ..
                }) => {
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
                    self.keep_reject(*reject);
                }
            }
        }
    }
}

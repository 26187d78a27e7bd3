//! Batches: one transaction, an outcome per entry.

use std::collections::HashSet;

use crate::{
    Sqs,
    fault::Fault,
    name::QueueName,
    store::{
        Unit,
        queues::{self, Queue},
    },
    wire::{
        request::{Batch, Entry},
        response::{Failed, Outcomes, Successful},
    },
};

/// The maximum number of entries in one batch.
const MAX_ENTRIES: usize = 10;

impl Sqs {
    /// Applies `step` to each entry. An invalid entry fails alone; a failure of the
    /// database fails the batch, which then has changed nothing.
    ///
    /// `step` must not have written anything when it returns a fault of the sender.
    pub(super) async fn run_batch<T, R, F>(
        &self,
        queue: QueueName,
        entries: Vec<Entry<T>>,
        mut step: F,
    ) -> Result<Outcomes<R>, Fault>
    where
        T: Send + 'static,
        R: Send + 'static,
        F: FnMut(&mut Unit<'_>, &Queue, T) -> Result<R, Fault> + Send + 'static,
    {
        let work = move |unit: &mut Unit<'_>| {
            let queue = queues::find(unit, &queue)?;
            let mut outcomes = Outcomes {
                successful: Vec::new(),
                failed: Vec::new(),
            };
            for Entry { id, item } in entries {
                match step(unit, &queue, item) {
                    Ok(item) => outcomes.successful.push(Successful { id, item }),
                    Err(fault) if fault.is_client_error() => {
                        outcomes.failed.push(Failed::new(id, &fault));
                    }
                    Err(fault) => return Err(fault),
                }
            }
            Ok(outcomes)
        };
        self.writer.run(work).await
    }
}

impl<T> Batch<T> {
    /// The queue and the entries: 1 to 10 of them, with distinct ids of 1 to 80 letters, digits,
    /// hyphens or underscores.
    pub(super) fn check(self) -> Result<(QueueName, Vec<Entry<T>>), Fault> {
        if self.entries.is_empty() {
            return Err(Fault::EmptyBatch);
        }
        if self.entries.len() > MAX_ENTRIES {
            return Err(Fault::TooManyEntries(self.entries.len()));
        }
        let mut seen = HashSet::new();
        for Entry { id, .. } in &self.entries {
            let valid = (1..=80).contains(&id.len())
                && id
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
            if !valid {
                return Err(Fault::InvalidEntryId);
            }
            if !seen.insert(id) {
                return Err(Fault::EntryIdsNotDistinct(id.clone()));
            }
        }
        Ok((QueueName::of_url(&self.queue_url), self.entries))
    }
}

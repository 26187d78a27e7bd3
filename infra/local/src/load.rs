//! The load of the machine: limits the requests in progress, and lets queued work yield to them.
//!
//! In AWS, requests and queue consumers do not compete for processors. Here they share the machine and one engine:
//! without this, a burst of requests would be served at a third of the rate.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::slots::{RequestSlots, Slots};

/// Up to this many requests in progress are not a burst.
const QUIET: usize = 2;
/// A consumer yields for at most `STEPS` times `STEP` before a batch.
const STEP: Duration = Duration::from_millis(10);
const STEPS: usize = 50;
/// Work that has waited for this long no longer yields. Bursts are shorter; under continuous requests, work would
/// otherwise pile up.
const MAX_WAIT: Duration = Duration::from_secs(2);

/// Counts the requests in progress.
#[derive(Debug, Clone)]
pub struct Load {
    in_progress: Arc<AtomicUsize>,
    slots: Slots,
}

/// Counts as a request in progress until it is dropped.
#[derive(Debug)]
pub struct InProgress(Arc<AtomicUsize>);

/// An admitted request, which is in progress until this is dropped.
#[derive(Debug)]
pub struct AdmittedRequest {
    _in_progress: InProgress,
    slots: RequestSlots,
}

impl Load {
    /// A load limit with this many slots, one for each small request.
    #[must_use]
    pub fn new(slots: u32) -> Self {
        Self {
            in_progress: Arc::default(),
            slots: Slots::new(slots),
        }
    }

    /// Admits a request if a slot is free.
    #[must_use]
    pub fn admit(&self) -> Option<AdmittedRequest> {
        let slots = self.slots.acquire()?;
        Some(AdmittedRequest {
            _in_progress: self.begin(),
            slots,
        })
    }

    fn begin(&self) -> InProgress {
        self.in_progress.fetch_add(1, Ordering::Relaxed);
        InProgress(self.in_progress.clone())
    }

    /// Counts a batch of events as a burst of requests.
    #[must_use]
    pub fn begin_burst(&self) -> [InProgress; QUIET + 1] {
        std::array::from_fn(|_| self.begin())
    }

    /// Waits until a burst of requests is over, for half a second at most. Returns at once if the work has `waited` for
    /// too long already.
    pub async fn yield_to_burst(&self, waited: Duration) {
        if waited >= MAX_WAIT {
            return;
        }
        for _ in 0..STEPS {
            if self.in_progress.load(Ordering::Relaxed) <= QUIET {
                return;
            }
            tokio::time::sleep(STEP).await;
        }
    }
}

impl AdmittedRequest {
    /// The request's slots, which grow with its body.
    #[must_use]
    pub fn slots(&self) -> RequestSlots {
        self.slots.clone()
    }
}

impl Drop for InProgress {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn work_yields_to_a_burst_but_not_forever() {
        let load = Load::new(128);
        let yields = |waited| load.yield_to_burst(waited).now_or_never().is_none();
        assert!(!yields(Duration::ZERO), "there are no requests");
        let burst = load.begin_burst();
        assert!(yields(Duration::ZERO), "there is a burst");
        assert!(!yields(MAX_WAIT), "it has waited for long enough");
        drop(burst);
        assert!(!yields(Duration::ZERO), "the burst is over");
    }
}

//! How busy the machine is: how many requests it takes on at once, and that what is queued can wait for
//! those who wait.
//!
//! In AWS requests and pipeline do not take each other's time. Here they share two processors and
//! one engine: without this, a burst of requests would be answered at a third of the rate.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Requests under way that are no burst.
const QUIET: usize = 2;
/// How long the pipeline gives way at most before a batch, in steps.
const STEP: Duration = Duration::from_millis(10);
const STEPS: usize = 50;
/// What has waited for so long gives way no more. That is longer than a burst lasts, and a stream of
/// requests without end must not keep what they submit from being worked off: it would pile up.
const PATIENCE: Duration = Duration::from_secs(2);
/// Bytes of a body for which a request takes a place: some ten events of a batch, or a turn.
const PLACE: u64 = 8 * 1024;
/// Places that one request takes at most: a batch has 1,000 events, however large they are.
const MOST: u32 = 64;

/// Counts the requests that are being answered.
#[derive(Debug, Clone)]
pub struct Load {
    under_way: Arc<AtomicUsize>,
    places: Arc<Semaphore>,
    most: u32,
}

/// Work that is being done for somebody who waits, until it is dropped.
#[derive(Debug)]
pub struct UnderWay(Arc<AtomicUsize>);

/// A request that is being answered, until it is dropped.
#[derive(Debug)]
pub struct Admitted {
    _under_way: UnderWay,
    _places: OwnedSemaphorePermit,
}

impl Load {
    /// With room for so many small requests at once.
    #[must_use]
    pub fn new(places: u32) -> Self {
        let room = usize::try_from(places).unwrap_or(Semaphore::MAX_PERMITS);
        Self {
            under_way: Arc::default(),
            places: Arc::new(Semaphore::new(room.min(Semaphore::MAX_PERMITS))),
            most: MOST.min(places),
        }
    }

    /// A request begins whose body has at most so many bytes; `None` for a length that nobody knows yet.
    /// It is not taken on if there is no room for it.
    #[must_use]
    pub fn admit(&self, body: Option<u64>) -> Option<Admitted> {
        let wanted = body.map_or(self.most, |body| {
            let places = u32::try_from(body.div_ceil(PLACE)).unwrap_or(self.most);
            places.clamp(1, self.most)
        });
        let places = self.places.clone().try_acquire_many_owned(wanted).ok()?;
        Some(Admitted {
            _under_way: self.begin(),
            _places: places,
        })
    }

    fn begin(&self) -> UnderWay {
        self.under_way.fetch_add(1, Ordering::Relaxed);
        UnderWay(self.under_way.clone())
    }

    /// A burst begins: events that come by the hundred.
    #[must_use]
    pub fn begin_burst(&self) -> [UnderWay; QUIET + 1] {
        std::array::from_fn(|_| self.begin())
    }

    /// Waits for a burst of requests to pass, for half a second at most, and not at all where work has
    /// waited for too long.
    pub async fn give_way(&self, waited: Duration) {
        if waited >= PATIENCE {
            return;
        }
        for _ in 0..STEPS {
            if self.under_way.load(Ordering::Relaxed) <= QUIET {
                return;
            }
            tokio::time::sleep(STEP).await;
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn work_gives_way_to_a_burst_but_not_for_ever() {
        let load = Load::new(128);
        let gives_way = |waited| load.give_way(waited).now_or_never().is_none();
        assert!(!gives_way(Duration::ZERO), "nobody is in its way");
        let burst = load.begin_burst();
        assert!(gives_way(Duration::ZERO));
        assert!(!gives_way(PATIENCE), "it has waited for long enough");
        drop(burst);
        assert!(!gives_way(Duration::ZERO));
    }
}

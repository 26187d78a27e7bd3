//! How busy the machine is, so that what is queued can wait for those who wait.
//!
//! In AWS requests and pipeline do not take each other's time. Here they share two processors and
//! one engine: without this, a burst of requests would be answered at a third of the rate.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Requests under way that are no burst.
const QUIET: usize = 2;
/// How long the pipeline gives way at most, in steps. It never stands still: a stream of requests
/// without end must not keep what they submit from being worked off.
const STEP: Duration = Duration::from_millis(10);
const STEPS: usize = 50;

/// Counts the requests that are being answered.
#[derive(Debug, Clone, Default)]
pub struct Load(Arc<AtomicUsize>);

/// A request that is being answered, until it is dropped.
#[derive(Debug)]
pub struct UnderWay(Load);

impl Load {
    /// A request begins.
    #[must_use]
    pub fn begin(&self) -> UnderWay {
        self.0.fetch_add(1, Ordering::Relaxed);
        UnderWay(self.clone())
    }

    /// A burst begins: events that come by the hundred.
    #[must_use]
    pub fn begin_burst(&self) -> [UnderWay; QUIET + 1] {
        std::array::from_fn(|_| self.begin())
    }

    /// Waits for a burst of requests to pass, for half a second at most.
    pub async fn give_way(&self) {
        for _ in 0..STEPS {
            if self.0.load(Ordering::Relaxed) <= QUIET {
                return;
            }
            tokio::time::sleep(STEP).await;
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

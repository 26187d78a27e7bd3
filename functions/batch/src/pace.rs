//! Limits concurrent calls to what the table can serve.
//!
//! Additive increase, multiplicative decrease: a throttled call halves the limit, and as many calls in a row as the
//! limit that are not throttled add one.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use backon::{BackoffBuilder, ExponentialBuilder};
use hearback_storage::Error;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Concurrent calls when nothing is throttled.
pub const MAX_CALLS: usize = 32;
/// The pauses before a throttled call is repeated, after the SDK's own retries. They have jitter, so that calls that
/// were throttled together are not repeated together.
const PAUSES: ExponentialBuilder = ExponentialBuilder::new()
    .with_min_delay(Duration::from_millis(50))
    .with_max_times(7)
    .with_jitter();

/// Runs as many calls concurrently as the table can serve.
#[derive(Debug, Clone)]
pub struct Pace {
    permits: Arc<Semaphore>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    /// The maximum number of concurrent calls.
    limit: usize,
    /// Permits to withdraw when their calls end.
    excess: usize,
    /// Calls since one was throttled, or since the limit was raised.
    unthrottled: usize,
    /// When permits were last withdrawn.
    changed: Option<Instant>,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            permits: Arc::new(Semaphore::new(MAX_CALLS)),
            state: Arc::new(Mutex::new(State {
                limit: MAX_CALLS,
                excess: 0,
                unthrottled: 0,
                changed: None,
            })),
        }
    }
}

impl Pace {
    /// Makes a repeatable call when there is a permit, and repeats it if it is throttled.
    pub async fn run<T, F>(&self, call: impl Fn() -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let mut pauses = PAUSES.build();
        loop {
            // The semaphore is never closed.
            let permit = self.permits.clone().acquire_owned().await.ok();
            let started = Instant::now();
            let result = call().await;
            let throttled = result.as_ref().is_err_and(Error::is_throttled);
            self.release(permit, throttled.then_some(started));
            match pauses.next() {
                Some(pause) if throttled => tokio::time::sleep(pause).await,
                _ => return result,
            }
        }
    }

    #[cfg(test)]
    fn limit(&self) -> usize {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .limit
    }

    /// Returns the permit of a call. `throttled` is when the call started, if it was throttled.
    fn release(&self, permit: Option<OwnedSemaphorePermit>, throttled: Option<Instant>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(started) = throttled {
            state.unthrottled = 0;
            // Calls that were throttled together halve the limit once.
            if state.changed.is_none_or(|changed| started > changed) {
                self.halve(&mut state);
            }
        } else {
            state.unthrottled += 1;
            if state.unthrottled >= state.limit && state.limit < MAX_CALLS {
                self.add_one(&mut state);
            }
        }
        if state.excess > 0
            && let Some(permit) = permit
        {
            state.excess -= 1;
            permit.forget();
        }
    }

    fn halve(&self, state: &mut State) {
        let limit = (state.limit / 2).max(1);
        let withdrawn = state.limit - limit;
        // Permits in use are withdrawn when their calls end.
        state.excess += withdrawn - self.permits.forget_permits(withdrawn);
        state.limit = limit;
        state.changed = Some(Instant::now());
    }

    fn add_one(&self, state: &mut State) {
        state.unthrottled = 0;
        state.limit += 1;
        if state.excess > 0 {
            state.excess -= 1;
        } else {
            self.permits.add_permits(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::future::join_all;

    use super::*;

    fn throttled() -> Error {
        Error::Unavailable {
            operation: "PutItem",
            code: "ThrottlingException".to_owned(),
        }
    }

    /// Makes calls to a table that throttles more than `capacity` at a time, and returns how many attempts it took.
    async fn attempts(pace: &Pace, calls: usize, capacity: usize) -> usize {
        let [running, attempts] = [const { AtomicUsize::new(0) }; 2];
        let call = || async {
            let concurrent = running.fetch_add(1, Ordering::SeqCst) + 1;
            attempts.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(1)).await;
            running.fetch_sub(1, Ordering::SeqCst);
            if concurrent > capacity {
                Err(throttled())
            } else {
                Ok(())
            }
        };
        let results = join_all((0..calls).map(|_| pace.run(call))).await;
        assert!(
            results.iter().all(Result::is_ok),
            "each call succeeds in the end"
        );
        attempts.load(Ordering::SeqCst)
    }

    #[tokio::test]
    async fn the_limit_follows_the_capacity_of_the_table() {
        let pace = Pace::default();
        let made = attempts(&pace, 1_000, 8).await;
        assert!((2..=16).contains(&pace.limit()), "{}", pace.limit());
        assert!(made < 1_400, "{made} attempts for 1000 calls are too many");
        // Withdrawn permits are added again when the table can serve more.
        attempts(&pace, 2_000, usize::MAX).await;
        assert_eq!(pace.limit(), MAX_CALLS);
        assert_eq!(pace.permits.available_permits(), MAX_CALLS);
    }

    #[tokio::test]
    async fn a_call_that_is_always_throttled_fails() {
        let pace = Pace::default();
        let result = pace.run(|| async { Err::<(), _>(throttled()) }).await;
        assert!(result.unwrap_err().is_throttled());
        assert_eq!(pace.limit(), 1);
    }
}

//! How much is asked of the table at once: as much as it bears.
//!
//! Additive increase, multiplicative decrease: a call that is throttled halves how many may run, and as
//! many in a row as may run that are not add one.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use backon::{BackoffBuilder, ExponentialBuilder};
use hearback_storage::Error;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Calls that run at once when nothing is throttled.
pub const MOST: usize = 32;
/// The pauses before a throttled call is made again, beside what the SDK tries by itself: in part by
/// chance, so that those who were throttled together do not come back together.
const PAUSES: ExponentialBuilder = ExponentialBuilder::new()
    .with_min_delay(Duration::from_millis(50))
    .with_max_times(7)
    .with_jitter();

/// Lets so many calls run at once as the table bears.
#[derive(Debug, Clone)]
pub struct Pace {
    places: Arc<Semaphore>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    /// Calls that may run at once.
    limit: usize,
    /// Places that are taken away as soon as their calls end.
    owed: usize,
    /// Calls since one was throttled, or since there is a place more.
    calm: usize,
    /// When places were last taken away.
    changed: Option<Instant>,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            places: Arc::new(Semaphore::new(MOST)),
            state: Arc::new(Mutex::new(State {
                limit: MOST,
                owed: 0,
                calm: 0,
                changed: None,
            })),
        }
    }
}

impl Pace {
    /// Makes a call that may be repeated, when there is a place for it, and again if it is throttled.
    pub async fn run<T, F>(&self, call: impl Fn() -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let mut pauses = PAUSES.build();
        loop {
            // The semaphore is never closed.
            let place = self.places.clone().acquire_owned().await.ok();
            let begun = Instant::now();
            let called = call().await;
            let throttled = called.as_ref().is_err_and(Error::is_throttled);
            self.give_back(place, throttled.then_some(begun));
            match pauses.next() {
                Some(pause) if throttled => tokio::time::sleep(pause).await,
                _ => return called,
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

    /// Gives a place back of a call, which, if it was throttled, was begun then.
    fn give_back(&self, place: Option<OwnedSemaphorePermit>, throttled: Option<Instant>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(begun) = throttled {
            state.calm = 0;
            // Calls that were under way together are throttled together, and say one thing.
            if state.changed.is_none_or(|changed| begun > changed) {
                self.halve(&mut state);
            }
        } else {
            state.calm += 1;
            if state.calm >= state.limit && state.limit < MOST {
                self.add_one(&mut state);
            }
        }
        if state.owed > 0
            && let Some(place) = place
        {
            state.owed -= 1;
            place.forget();
        }
    }

    fn halve(&self, state: &mut State) {
        let fewer = (state.limit / 2).max(1);
        let taken = state.limit - fewer;
        // Those that wait for their calls to end are owed.
        state.owed += taken - self.places.forget_permits(taken);
        state.limit = fewer;
        state.changed = Some(Instant::now());
    }

    fn add_one(&self, state: &mut State) {
        state.calm = 0;
        state.limit += 1;
        if state.owed > 0 {
            state.owed -= 1;
        } else {
            self.places.add_permits(1);
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

    /// A table that throttles every call beyond `bears` at once; answers how many calls it made.
    async fn work(pace: &Pace, calls: usize, bears: usize) -> usize {
        let [running, made] = [const { AtomicUsize::new(0) }; 2];
        let call = || async {
            let at_once = running.fetch_add(1, Ordering::SeqCst) + 1;
            made.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(1)).await;
            running.fetch_sub(1, Ordering::SeqCst);
            if at_once > bears {
                Err(throttled())
            } else {
                Ok(())
            }
        };
        let done = join_all((0..calls).map(|_| pace.run(call))).await;
        assert!(done.iter().all(Result::is_ok));
        made.load(Ordering::SeqCst)
    }

    #[tokio::test]
    async fn as_many_calls_run_as_the_table_bears() {
        let pace = Pace::default();
        let made = work(&pace, 1_000, 8).await;
        assert!((2..=16).contains(&pace.limit()), "{}", pace.limit());
        // Not many calls were in vain.
        assert!(made < 1_400, "{made}");
        // What was taken away comes back when the table bears it.
        work(&pace, 2_000, usize::MAX).await;
        assert_eq!(pace.limit(), MOST);
        assert_eq!(pace.places.available_permits(), MOST);
    }

    #[tokio::test]
    async fn what_is_throttled_for_ever_fails_in_the_end() {
        let pace = Pace::default();
        let refused = pace.run(|| async { Err::<(), _>(throttled()) }).await;
        assert!(refused.unwrap_err().is_throttled());
        assert_eq!(pace.limit(), 1);
    }
}

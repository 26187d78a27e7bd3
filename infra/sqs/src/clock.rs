//! The time, and adjustments after the wall clock is set.
//!
//! Stored times outlive the process, so they are the wall clock's. That clock may be set while messages wait: back by
//! two days, and everything hidden would stay hidden for two days; forward, and everything would be due, or past its
//! retention. [`Steps`] compares the wall clock with one that cannot be set. When the two differ, its reader moves the
//! stored times by the difference, so that all that was to happen in ten seconds still happens in ten seconds.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

/// The largest difference of the two clocks, in milliseconds, that is no step: between two readings a wall clock that
/// is being synchronised gains or loses less.
const TOLERANCE: i64 = 1_000;

/// Where the wall clock's time comes from.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl Clock {
    /// The machine's clock.
    #[must_use]
    pub fn system() -> Self {
        Self::of(SystemTime::now)
    }

    /// A clock that a test sets.
    pub fn of(now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// Milliseconds since 1970.
    fn now(&self) -> i64 {
        let since = (self.0)()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        milliseconds(since)
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::system()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clock").finish()
    }
}

/// Detects that the wall clock was set.
///
/// A machine that slept looks as if its clock had been set forward.
#[derive(Debug)]
pub struct Steps {
    clock: Clock,
    last: (i64, Instant),
}

/// The time at one moment.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    /// The wall clock, in milliseconds since 1970.
    pub now: i64,
    /// By how many milliseconds the wall clock was set since the last reading that was
    /// [acknowledged](Steps::acknowledge): negative for back, 0 for not at all.
    pub step: i64,
    at: Instant,
}

impl Steps {
    /// Watches this clock from now on.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        let last = (clock.now(), Instant::now());
        Self { clock, last }
    }

    /// Reads both clocks. A step is in each reading until one of them is acknowledged.
    #[must_use]
    pub fn read(&self) -> Reading {
        let (now, at) = (self.clock.now(), Instant::now());
        let (last, since) = self.last;
        let passed = milliseconds(at.saturating_duration_since(since));
        let difference = now.saturating_sub(last).saturating_sub(passed);
        let step = if difference.abs() > TOLERANCE {
            difference
        } else {
            0
        };
        Reading { now, step, at }
    }

    /// Marks the step of this reading as handled.
    pub fn acknowledge(&mut self, reading: Reading) {
        self.last = (reading.now, reading.at);
    }
}

fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn a_step_is_reported_until_it_is_acknowledged_and_a_tick_is_not_a_step() {
        let wall = Arc::new(AtomicU64::new(1_000_000));
        let shared = Arc::clone(&wall);
        let clock = Clock::of(move || {
            SystemTime::UNIX_EPOCH + Duration::from_secs(shared.load(Ordering::Relaxed))
        });
        let mut steps = Steps::new(clock);
        assert_eq!(steps.read().step, 0);
        wall.store(827_200, Ordering::Relaxed);
        for _ in 0..2 {
            let back = steps.read().step;
            assert!((-172_900_000..=-172_800_000).contains(&back), "{back}");
        }
        let reading = steps.read();
        steps.acknowledge(reading);
        assert_eq!(steps.read().step, 0);
        wall.store(1_000_000, Ordering::Relaxed);
        assert!(steps.read().step > 172_000_000);
    }
}

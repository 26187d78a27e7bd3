//! Keeps a persistent failure from filling the log: equal warnings and errors are written once a minute, and the
//! omitted ones are counted.
//!
//! Two lines are equal if they come from the same call site and differ only in numbers and ids. So the limit applies to
//! each worker, operation and cause separately.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt::{self, Debug, Write};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::FmtContext;
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::registry::LookupSpan;

/// How often a repeated line is written.
pub const INTERVAL: Duration = Duration::from_mins(1);
/// Lines that are tracked by text. Beyond that, all lines of a call site are equal.
const MAX_TRACKED: usize = 256;
/// Fields that differ in each line.
const ID_FIELDS: [&str; 2] = ["request_id", "message_id"];

/// Identifies equal lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LineKey {
    call_site: u64,
    text: u64,
}

/// A line that was written, and how often it was omitted since.
#[derive(Debug)]
struct TrackedLine {
    written: Instant,
    omitted: u64,
    name: String,
}

/// Decides which lines are written.
#[derive(Debug, Default)]
pub struct Limiter(Mutex<HashMap<LineKey, TrackedLine>>);

impl Limiter {
    /// Whether to write a line now.
    pub fn admits(&self, key: LineKey, name: impl FnOnce() -> String, now: Instant) -> bool {
        let mut tracked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = tracked.len() >= MAX_TRACKED && !tracked.contains_key(&key);
        let key = if is_full {
            LineKey { text: 0, ..key }
        } else {
            key
        };
        match tracked.entry(key) {
            Entry::Occupied(mut entry) => {
                let line = entry.get_mut();
                let age = now.saturating_duration_since(line.written);
                // Omitted lines are about to be reported, unless nothing in this process reports them.
                let is_due = age >= INTERVAL && (line.omitted == 0 || age >= 2 * INTERVAL);
                if is_due {
                    line.written = now;
                } else {
                    line.omitted += 1;
                }
                is_due
            }
            Entry::Vacant(entry) => {
                entry.insert(TrackedLine {
                    written: now,
                    omitted: 0,
                    name: name(),
                });
                true
            }
        }
    }

    /// Returns the lines that were omitted during the last minute, with their numbers. A line that did not occur for a
    /// minute is forgotten.
    pub fn omitted(&self, now: Instant) -> Vec<(String, u64)> {
        let mut tracked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut omitted = Vec::new();
        tracked.retain(|_, line| {
            if now.saturating_duration_since(line.written) < INTERVAL {
                return true;
            }
            if line.omitted == 0 {
                return false;
            }
            omitted.push((line.name.clone(), line.omitted));
            line.written = now;
            line.omitted = 0;
            true
        });
        omitted
    }
}

/// A format that omits the lines that the limiter does not admit.
#[derive(Debug)]
pub struct LimitedFormat<F> {
    format: F,
    limiter: Arc<Limiter>,
}

impl<F> LimitedFormat<F> {
    /// Limits the lines of `format`.
    pub fn new(format: F, limiter: Arc<Limiter>) -> Self {
        Self { format, limiter }
    }
}

impl<S, N, F> FormatEvent<S, N> for LimitedFormat<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let metadata = event.metadata();
        // Reports of omitted lines are not limited themselves.
        if *metadata.level() <= Level::WARN && metadata.target() != module_path!() {
            let mut line = LineContent::default();
            event.record(&mut line);
            let mut call_site = DefaultHasher::new();
            metadata.callsite().hash(&mut call_site);
            let key = LineKey {
                call_site: call_site.finish(),
                text: line.text.finish(),
            };
            let name = || format!("{}: {}", metadata.target(), line.message);
            if !self.limiter.admits(key, name, Instant::now()) {
                return Ok(());
            }
        }
        self.format.format_event(context, writer, event)
    }
}

/// The line of a line without numbers and ids.
#[derive(Default)]
struct LineContent {
    text: DefaultHasher,
    message: String,
}

impl Visit for LineContent {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let name = field.name();
        if ID_FIELDS.contains(&name) {
            return;
        }
        let text = format!("{value:?}");
        name.hash(&mut self.text);
        for part in text.split(|c: char| c.is_ascii_digit()) {
            part.hash(&mut self.text);
        }
        if name == "message" {
            self.message.push_str(&text);
        } else if text.len() <= 100 && !text.bytes().all(|byte| byte.is_ascii_digit()) {
            let _ = write!(self.message, " {name}={text}");
        }
    }
}

/// Reports omitted lines. Call this every [`INTERVAL`].
pub fn report(limiter: &Limiter) {
    for (line, count) in limiter.omitted(Instant::now()) {
        tracing::warn!(count, line, "equal lines were omitted");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: u64) -> LineKey {
        LineKey { call_site: 1, text }
    }

    #[test]
    fn equal_lines_are_written_once_a_minute_and_the_others_are_counted() {
        let limiter = Limiter::default();
        let start = Instant::now();
        let (mut counted, mut reports) = (0, 0);
        for line in 0..10_000 {
            // Five minutes, with a report every minute.
            let now = start + Duration::from_millis(30) * line;
            counted += u64::from(limiter.admits(key(7), || "disk".to_owned(), now));
            if line % 2_000 == 1_999 {
                let omitted = limiter.omitted(now + Duration::from_millis(30));
                reports += omitted.len();
                counted += omitted.iter().map(|(_, count)| count).sum::<u64>();
            }
        }
        assert_eq!(reports, 5, "one report a minute");
        assert_eq!(counted, 10_000, "each line was written or counted");
    }

    #[test]
    fn a_rare_line_is_always_written() {
        let limiter = Limiter::default();
        let start = Instant::now();
        for minute in 0..10 {
            let now = start + INTERVAL * minute;
            assert!(limiter.admits(key(7), String::new, now));
            assert_eq!(limiter.omitted(now + INTERVAL / 2), []);
        }
    }

    #[test]
    fn different_lines_are_written_until_there_are_too_many() {
        let limiter = Limiter::default();
        let now = Instant::now();
        let most = u64::try_from(MAX_TRACKED).unwrap();
        assert!((1..=most).all(|text| limiter.admits(key(text), String::new, now)));
        let others =
            (0..1_000).filter(|text| limiter.admits(key(most + 1 + text), String::new, now));
        assert_eq!(others.count(), 1, "they share one entry");
        // Lines that did not occur for a minute are forgotten.
        assert_eq!(limiter.omitted(now + INTERVAL).len(), 1);
        assert!(limiter.admits(key(5_000), String::new, now + INTERVAL));
    }
}

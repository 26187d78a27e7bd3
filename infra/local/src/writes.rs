//! Whether the table was written: the relay need not poll the stream, and has no lag while nothing is written.

use tokio::sync::watch;

/// The requests to write to the embedded engine of the table.
#[derive(Debug, Clone, Default)]
pub struct Writes(watch::Sender<()>);

impl Writes {
    /// Records a request, after it was performed.
    pub fn record(&self) {
        self.0.send_replace(());
    }

    /// The position after all requests that were recorded.
    #[must_use]
    pub fn position(&self) -> WritesPosition {
        WritesPosition(self.0.subscribe())
    }
}

/// A position among the requests.
#[derive(Debug, Clone)]
pub struct WritesPosition(watch::Receiver<()>);

impl WritesPosition {
    /// Whether no request was recorded after it.
    #[must_use]
    pub fn is_last(&self) -> bool {
        self.0.has_changed().is_ok_and(|changed| !changed)
    }

    /// Waits for a request after it.
    pub async fn next(&mut self) {
        // Without the embedded engine there are no requests.
        let _ = self.0.changed().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_write_after_a_position_is_not_missed() {
        let writes = Writes::default();
        writes.record();
        let mut position = writes.position();
        assert!(position.is_last());
        writes.record();
        assert!(!position.is_last() && !position.clone().is_last());
        position.next().await;
        assert!(position.is_last());
    }
}

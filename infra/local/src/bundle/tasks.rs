//! The tasks of the bundle.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Tasks that are stopped together.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    /// Asks the tasks to finish.
    pub(super) stop: CancellationToken,
    /// Drops the tasks that have not finished.
    abandoned: CancellationToken,
    pub(super) tracker: TaskTracker,
}

impl Tasks {
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let abandoned = self.abandoned.clone();
        self.tracker.spawn(async move {
            abandoned.run_until_cancelled(task).await;
        });
    }

    /// Asks all tasks to finish, and drops those that take longer.
    pub(super) async fn end(&self, timeout: Duration) {
        self.stop.cancel();
        self.tracker.close();
        let _ = tokio::time::timeout(timeout, self.tracker.wait()).await;
        self.abandoned.cancel();
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

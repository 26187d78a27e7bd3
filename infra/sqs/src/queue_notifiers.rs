//! Wakes long polls: one notifier per polled queue, notified when there may be more to receive.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

use crate::name::QueueName;

/// One notifier for each queue that a long poll has found empty.
#[derive(Debug, Default)]
pub(crate) struct QueueNotifiers(Mutex<HashMap<QueueName, Arc<Notify>>>);

impl QueueNotifiers {
    /// The notifier of a queue. Call it for existing queues only, or the map grows with every unknown name.
    pub(crate) fn of(&self, queue: &QueueName) -> Arc<Notify> {
        Arc::clone(self.lock().entry(queue.clone()).or_default())
    }

    /// Wakes all long polls of this queue, since one request may send several messages. A poll that finds nothing
    /// continues to wait, at the cost of one index seek.
    pub(crate) fn notify(&self, queue: &QueueName) {
        if let Some(notifier) = self.lock().get(queue) {
            notifier.notify_waiters();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<QueueName, Arc<Notify>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

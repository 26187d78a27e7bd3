//! Who waits for which queue: one bell per polled queue, rung when there may be more to receive.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

use crate::name::QueueName;

/// A bell per queue that was ever polled and found empty.
#[derive(Debug, Default)]
pub(crate) struct Bells(Mutex<HashMap<QueueName, Arc<Notify>>>);

impl Bells {
    /// The bell of a queue. Only for queues that exist, so that invented names leave nothing here.
    pub(crate) fn of(&self, queue: &QueueName) -> Arc<Notify> {
        Arc::clone(self.lock().entry(queue.clone()).or_default())
    }

    /// Wakes everybody who waits for this queue. All, not one: a single request may bring work for
    /// several, and a waiter that finds nothing goes back to waiting at the price of one index seek.
    pub(crate) fn ring(&self, queue: &QueueName) {
        if let Some(bell) = self.lock().get(queue) {
            bell.notify_waiters();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<QueueName, Arc<Notify>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

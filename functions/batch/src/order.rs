//! The order of a batch: of several events with one dedupe key the first by position counts.
//!
//! Events of a batch are stored side by side, so neither their times nor the table's stream tell which one
//! came first. So an event waits until the one before it that has its key, or its id, is stored, and then
//! names the first of its key ([`EventCore::second_to`]): whoever is processed first claims the key for that
//! one. An event that is alone with its key waits for nobody.
//!
//! [`EventCore::second_to`]: hearback_domain::event::EventCore::second_to

use std::collections::HashMap;
use std::hash::Hash;

use futures::channel::oneshot::{self, Receiver, Sender};
use hearback_domain::event::{EventCore, First};
use uuid::Uuid;

/// Keys that are remembered. Beyond these all are forgotten: what came so long before is stored by now, and is
/// first by its arrival.
const MOST: usize = 65_536;

/// The events of a batch so far.
#[derive(Debug, Default)]
pub(crate) struct Order {
    by_key: HashMap<[u8; 32], Receiver<Option<First>>>,
    by_id: HashMap<Uuid, Receiver<()>>,
}

/// An event's place behind those before it.
#[derive(Debug)]
pub(crate) struct Turn {
    first: Option<Receiver<Option<First>>>,
    same_id: Option<Receiver<()>>,
    tell_first: Sender<Option<First>>,
    /// Dropped when the event is stored, or is not to be.
    _stored: Sender<()>,
}

impl Order {
    /// The next event's place. Events have to ask in the order of their positions.
    pub(crate) fn next(&mut self, event: &EventCore) -> Turn {
        if self.by_key.len() >= MOST {
            self.by_key.clear();
            self.by_id.clear();
        }
        let (tell_first, first) = follow(&mut self.by_key, event.dedupe_key().fingerprint());
        let (stored, same_id) = follow(&mut self.by_id, event.feedback_id);
        Turn {
            first,
            same_id,
            tell_first,
            _stored: stored,
        }
    }
}

/// Takes the place behind the last one with a name.
fn follow<K: Eq + Hash, T>(
    last: &mut HashMap<K, Receiver<T>>,
    name: K,
) -> (Sender<T>, Option<Receiver<T>>) {
    let (sender, receiver) = oneshot::channel();
    (sender, last.insert(name, receiver))
}

impl Turn {
    /// Waits for the events before, and stores this one: `put` says whether it is stored by this batch, and not
    /// known before.
    pub(crate) async fn take<T, E, F>(
        self,
        mut event: EventCore,
        put: impl FnOnce(EventCore) -> F,
    ) -> Result<T, E>
    where
        F: Future<Output = Result<(T, bool), E>>,
    {
        // A sender that is gone says that its event was not stored.
        if let Some(same_id) = self.same_id {
            let _ = same_id.await;
        }
        let before = match self.first {
            Some(first) => first.await.unwrap_or_default(),
            None => None,
        };
        if let Some(first) = before {
            // Those behind need not wait for this one.
            let _ = self.tell_first.send(Some(first));
            event.second_to = Some(first).filter(|first| first.feedback_id != event.feedback_id);
            return put(event).await.map(|(taken, _)| taken);
        }
        let first = First::of(&event);
        let (taken, new) = put(event).await?;
        let _ = self.tell_first.send(Some(first).filter(|_| new));
        Ok(taken)
    }
}

//! The order of a batch: of several events with one dedupe key the first by position counts.
//!
//! Events of a batch are stored concurrently, so neither their times nor the table's stream show which one came first.
//! An event waits until the one before it with the same key or id is stored, and then names the first with its key
//! ([`EventCore::second_to`]): whichever of them is processed first claims the key for that one. Other events do not
//! wait.
//!
//! [`EventCore::second_to`]: hearback_domain::events::event::EventCore::second_to

use std::collections::HashMap;

use futures::channel::oneshot::{self, Receiver, Sender};
use hearback_domain::events::event::{EventCore, FirstEvent};
use hearback_storage::WriteToken;
use uuid::Uuid;

/// Keys that are remembered. When there are more, all are forgotten: the events so far before are stored by now.
const MAX_KEYS: usize = 65_536;

/// The events of a batch so far.
#[derive(Debug, Default)]
pub(crate) struct Order {
    by_key: HashMap<[u8; 32], Before>,
    by_id: HashMap<Uuid, Receiver<()>>,
}

/// The earlier events with one key.
#[derive(Debug)]
enum Before {
    /// They are being stored. The receiver gets the first of them.
    InProgress(Receiver<Option<FirstEvent>>),
    /// Another worker settled them, with these tokens. The first of them that is stored is the first.
    Settled(Vec<(FirstEvent, WriteToken)>),
}

/// The position of an event in the order.
#[derive(Debug)]
pub(crate) struct OrderSlot {
    first: Option<Before>,
    same_id: Option<Receiver<()>>,
    send_first: Sender<Option<FirstEvent>>,
    /// Dropped when the event is stored or rejected.
    _stored: Sender<()>,
}

impl Order {
    /// The slot of the next event. Call it for each event in the order of their positions.
    pub(crate) fn next(&mut self, event: &EventCore) -> OrderSlot {
        self.make_room();
        let (send_first, first) = oneshot::channel();
        let (stored, is_stored) = oneshot::channel();
        let key = event.dedupe_key().fingerprint();
        OrderSlot {
            first: self.by_key.insert(key, Before::InProgress(first)),
            same_id: self.by_id.insert(event.feedback_id, is_stored),
            send_first,
            _stored: stored,
        }
    }

    /// Notes an event before all others that another worker settled with this token.
    pub(crate) fn note_settled(&mut self, event: &EventCore, by: WriteToken) {
        self.make_room();
        let key = event.dedupe_key().fingerprint();
        let before = self.by_key.entry(key);
        if let Before::Settled(events) = before.or_insert_with(|| Before::Settled(Vec::new())) {
            events.push((FirstEvent::of(event), by));
        }
    }

    fn make_room(&mut self) {
        if self.by_key.len() >= MAX_KEYS {
            self.by_key.clear();
            self.by_id.clear();
        }
    }
}

impl OrderSlot {
    /// The earlier events that another worker settled. The caller removes those that were not stored.
    pub(crate) fn settled(&mut self) -> Option<&mut Vec<(FirstEvent, WriteToken)>> {
        match &mut self.first {
            Some(Before::Settled(events)) => Some(events),
            Some(Before::InProgress(_)) | None => None,
        }
    }

    /// Waits for the earlier events, and stores this one. `put` returns whether the event is new.
    pub(crate) async fn put_in_order<T, E, F>(
        self,
        mut event: EventCore,
        put: impl FnOnce(EventCore) -> F,
    ) -> Result<T, E>
    where
        F: Future<Output = Result<(T, bool), E>>,
    {
        // The sender is dropped when the other event with this id is stored or rejected.
        if let Some(same_id) = self.same_id {
            let _ = same_id.await;
        }
        let before = match self.first {
            // A dropped sender means that none of them was stored.
            Some(Before::InProgress(first)) => first.await.unwrap_or_default(),
            // The first that is left is stored.
            Some(Before::Settled(events)) => events.first().map(|(first, _)| *first),
            None => None,
        };
        if let Some(first) = before {
            // Later ones need not wait for this one.
            let _ = self.send_first.send(Some(first));
            event.second_to = Some(first).filter(|first| first.feedback_id != event.feedback_id);
            return put(event).await.map(|(stored, _)| stored);
        }
        let first = FirstEvent::of(&event);
        let (stored, new) = put(event).await?;
        let _ = self.send_first.send(Some(first).filter(|_| new));
        Ok(stored)
    }
}

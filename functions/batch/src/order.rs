//! The order of a batch: of several events with one dedupe key the first by position counts.
//!
//! Events of a batch are stored side by side, so neither their times nor the table's stream tell which one
//! came first. So an event waits until the one before it that has its key, or its id, is stored, and then
//! names the first of its key ([`EventCore::second_to`]): whoever is processed first claims the key for that
//! one. An event that is alone with its key waits for nobody.
//!
//! [`EventCore::second_to`]: hearback_domain::event::EventCore::second_to

use std::collections::HashMap;

use futures::channel::oneshot::{self, Receiver, Sender};
use hearback_domain::event::{EventCore, First};
use hearback_storage::Attempt;
use uuid::Uuid;

/// Keys that are remembered. Beyond these all are forgotten: what came so long before is stored by now, and is
/// first by its arrival.
const MOST: usize = 65_536;

/// The events of a batch so far.
#[derive(Debug, Default)]
pub(crate) struct Order {
    by_key: HashMap<[u8; 32], Before>,
    by_id: HashMap<Uuid, Receiver<()>>,
}

/// The events before with one key.
#[derive(Debug)]
enum Before {
    /// The last of them tells the first.
    UnderWay(Receiver<Option<First>>),
    /// Somebody else stored them, or found that they were known, by these attempts: the first that was
    /// stored is the first.
    Settled(Vec<(First, Attempt)>),
}

/// An event's place behind those before it.
#[derive(Debug)]
pub(crate) struct Turn {
    first: Option<Before>,
    same_id: Option<Receiver<()>>,
    tell_first: Sender<Option<First>>,
    /// Dropped when the event is stored, or is not to be.
    _stored: Sender<()>,
}

impl Order {
    /// The next event's place. Events have to ask in the order of their positions.
    pub(crate) fn next(&mut self, event: &EventCore) -> Turn {
        self.make_room();
        let (tell_first, told) = oneshot::channel();
        let (stored, is_stored) = oneshot::channel();
        let key = event.dedupe_key().fingerprint();
        Turn {
            first: self.by_key.insert(key, Before::UnderWay(told)),
            same_id: self.by_id.insert(event.feedback_id, is_stored),
            tell_first,
            _stored: stored,
        }
    }

    /// Notes an event that is before all that are to be stored, and that somebody else settled by this attempt.
    pub(crate) fn settled(&mut self, event: &EventCore, by: Attempt) {
        self.make_room();
        let key = event.dedupe_key().fingerprint();
        let before = self.by_key.entry(key);
        if let Before::Settled(events) = before.or_insert_with(|| Before::Settled(Vec::new())) {
            events.push((First::of(event), by));
        }
    }

    fn make_room(&mut self) {
        if self.by_key.len() >= MOST {
            self.by_key.clear();
            self.by_id.clear();
        }
    }
}

impl Turn {
    /// The events before that somebody else settled: those that were not stored are to be left out.
    pub(crate) fn settled(&mut self) -> Option<&mut Vec<(First, Attempt)>> {
        match &mut self.first {
            Some(Before::Settled(events)) => Some(events),
            Some(Before::UnderWay(_)) | None => None,
        }
    }

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
            Some(Before::UnderWay(first)) => first.await.unwrap_or_default(),
            // Of those that were settled the first is left.
            Some(Before::Settled(events)) => events.first().map(|(first, _)| *first),
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

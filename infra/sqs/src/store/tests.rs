//! Rules of the store whose tests would need hours or thousands of messages through the HTTP API.

use std::{
    collections::{BTreeMap, BTreeSet},
    error::Error,
};

use rusqlite::Connection;

use super::{
    SCHEMA, Unit, messages, prepare, queues,
    receive::{DUE, Look, Order, look},
};
use crate::{fault::Fault, message::Draft, name::QueueName};

type Outcome = Result<(), Box<dyn Error>>;

/// A store with one queue, and a clock that the test sets.
struct Store {
    database: Connection,
    queue: QueueName,
}

impl Store {
    fn new(settings: &[(&str, &str)]) -> Result<Self, Box<dyn Error>> {
        let database = Connection::open_in_memory()?;
        prepare(&database)?;
        let store = Self {
            database,
            queue: QueueName::parse("jobs")?,
        };
        let settings: BTreeMap<_, _> = settings
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        store.at(0, |unit| queues::create(unit, &store.queue, &settings))?;
        Ok(store)
    }

    fn at<T>(
        &self,
        now: i64,
        work: impl FnOnce(&mut Unit<'_>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let mut changed = BTreeSet::new();
        work(&mut Unit {
            database: &self.database,
            now,
            region: "us-east-1",
            changed: &mut changed,
        })
    }

    fn send(&self, now: i64) -> Result<(), Fault> {
        let draft = Draft::parse("x".to_owned(), BTreeMap::new(), None)?;
        self.at(now, |unit| {
            let queue = queues::find(unit, &self.queue)?;
            messages::send(unit, &queue, &draft).map(drop)
        })
    }

    fn receive(&self, now: i64) -> Result<Look, Fault> {
        let order = Order {
            queue: self.queue.clone(),
            most: 10,
            visibility_timeout: None,
        };
        self.at(now, |unit| look(unit, &order))
    }

    fn rows(&self, table: &str) -> rusqlite::Result<i64> {
        self.database
            .query_row(&format!("SELECT count(*) FROM {table}"), [], |row| {
                row.get(0)
            })
    }
}

#[test]
fn a_message_past_its_retention_is_not_received() -> Outcome {
    let store = Store::new(&[("MessageRetentionPeriod", "60")])?;
    store.send(0)?;
    store.send(10_000)?;
    assert_eq!(store.receive(59_999)?.messages.len(), 2);
    assert_eq!(store.receive(60_000 + 30_000)?.messages.len(), 0);
    assert_eq!((store.rows("message")?, store.rows("content")?), (0, 0));
    Ok(())
}

#[test]
fn a_sweep_removes_what_is_past_its_retention_and_nothing_else() -> Outcome {
    let store = Store::new(&[("MessageRetentionPeriod", "60")])?;
    store.send(0)?;
    store.send(1)?;
    queues::sweep(&store.database, 60_000)?;
    assert_eq!((store.rows("message")?, store.rows("content")?), (1, 1));
    Ok(())
}

#[test]
fn a_message_is_hidden_to_the_millisecond() -> Outcome {
    let store = Store::new(&[("VisibilityTimeout", "30"), ("DelaySeconds", "5")])?;
    store.send(0)?;
    let early = store.receive(4_999)?;
    assert_eq!((early.messages.len(), early.next_in), (0, Some(1)));
    assert_eq!(store.receive(5_000)?.messages.len(), 1);
    let early = store.receive(34_000)?;
    assert_eq!((early.messages.len(), early.next_in), (0, Some(1_000)));
    let again = store.receive(35_000)?;
    assert_eq!(
        again
            .messages
            .iter()
            .map(|m| m.receive_count)
            .collect::<Vec<_>>(),
        [2]
    );
    assert_eq!(
        again
            .messages
            .iter()
            .map(|m| m.first_received_at)
            .collect::<Vec<_>>(),
        [5_000]
    );
    Ok(())
}

#[test]
fn one_receive_hides_a_message_for_twelve_hours_at_most() -> Outcome {
    let store = Store::new(&[])?;
    store.send(0)?;
    let received = store.receive(0)?.messages;
    let handle = received.first().ok_or("nothing received")?.receipt.encode();
    let change = |now, timeout| {
        store.at(now, |unit| {
            let queue = queues::find(unit, &store.queue)?;
            messages::change_visibility(unit, &queue, &handle, timeout)
        })
    };
    change(10_000, 43_190)?;
    assert!(matches!(
        change(10_000, 43_191),
        Err(Fault::InvalidParameter(_))
    ));
    Ok(())
}

#[test]
fn receiving_reads_an_index_in_order_and_never_sorts() -> Outcome {
    let store = Store::new(&[])?;
    let mut plan = store
        .database
        .prepare(&format!("EXPLAIN QUERY PLAN {DUE}"))?;
    let steps = plan
        .query_map([1, 1], |row| row.get(3))?
        .collect::<Result<Vec<String>, _>>()?;
    let expected = "SEARCH message USING COVERING INDEX message_by_visibility \
                    (queue=? AND visible_at<?)";
    assert_eq!(steps, [expected]);
    Ok(())
}

#[test]
fn file_of_the_first_version_keeps_its_messages() -> Outcome {
    let database = Connection::open_in_memory()?;
    database.execute_batch(SCHEMA)?;
    database.execute_batch(
        "INSERT INTO queue VALUES (1, 'jobs', 0, 0, 30, 345600, 0, 0, 1048576, NULL);
         INSERT INTO message (number, queue, sent_at, visible_at) VALUES (1, 1, 0, 0);
         INSERT INTO content VALUES (1, 'id', 'old', NULL);
         PRAGMA user_version = 1;",
    )?;
    prepare(&database)?;
    let store = Store {
        database,
        queue: QueueName::parse("jobs")?,
    };
    let draft = Draft::parse("new".to_owned(), BTreeMap::new(), None)?;
    let draft = draft.of_group(Some("acme".to_owned()))?;
    store.at(1, |unit| {
        let queue = queues::find(unit, &store.queue)?;
        messages::send(unit, &queue, &draft).map(drop)
    })?;
    let received = store.receive(2)?.messages;
    let bodies: Vec<_> = received
        .iter()
        .map(|message| message.body.as_str())
        .collect();
    assert_eq!(bodies, ["old", "new"]);
    Ok(())
}

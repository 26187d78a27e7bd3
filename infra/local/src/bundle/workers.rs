//! What runs beside the gateway: the relay, and the event sources with their functions.

use std::time::Duration;

use anyhow::{Context, Result};
use hearback_batch::{Importer, Ingest, Intake, Queues};
use hearback_erasure::{Eraser, Erasures};
use hearback_insights::Counter;
use hearback_lambda::dead_letters::DeadLetters;
use hearback_relay::{Backoff, Nats, NatsSettings};
use hearback_signals::Generator;
use hearback_stream::Fanout;

use super::Bundle;
use crate::event_source::{Consumer, EventSource, OUTLET_MAX_WAIT};
use crate::files::POSITION_FILE;
use crate::position::RelayPosition;
use crate::relay::Relay;
use crate::stream::Stream;
use crate::writes::Writes;

/// How long a message may wait for a webhook: one that fails waits for a day, with pauses of up to 15 minutes.
const WEBHOOK_MAX_WAIT: Duration = Duration::from_mins(24 * 60 + 30);
/// Workers of the queue of webhooks. A target that does not answer occupies one of them for ten seconds.
const WEBHOOK_WORKERS: usize = 4;
/// Workers of a queue, each with its own batch.
const EVENT_SOURCES: usize = 2;

impl Bundle {
    /// Starts the relay and the event sources.
    pub(super) async fn start_workers(
        &self,
        writes: Option<Writes>,
        nats: Option<NatsSettings>,
    ) -> Result<()> {
        let outlets = nats.iter().map(|_| &self.queues.nats);
        let outlets = outlets.chain(self.webhooks.iter().map(|_| &self.queues.webhooks));
        let relay = Relay {
            outlets: outlets.cloned().collect(),
            stream: self.stream().await?,
            writes,
            store: self.store.clone(),
            blobs: self.blobs.clone(),
            sqs: self.clients.sqs.clone(),
            queues: self.queues.clone(),
            sockets: self.sockets.clone(),
            position: RelayPosition::new(
                self.data.path().join(POSITION_FILE),
                self.progress.clone(),
            ),
            health: self.health.clone(),
        };
        self.work.spawn(relay.run(self.work.stop.clone()));
        let (queues, minutes) = (&self.queues, Duration::from_mins);
        for _ in 0..EVENT_SOURCES {
            self.consume("signals", &queues.signals, minutes(5), self.generator());
            self.consume("imports", &queues.imports, minutes(360), self.importer()?);
        }
        let bulk = minutes(24 * 60);
        self.consume("signals-bulk", &queues.signals_bulk, bulk, self.generator());
        self.consume("ingest", &queues.ingest, minutes(15), self.ingest()?);
        self.consume("erasures", &queues.erasures, minutes(60), self.eraser());
        let dead_letters = self.dead_letters(&self.queues.fanout_dead_letters);
        let fanout = Fanout::new(self.delivery.clone(), dead_letters);
        self.consume("fanout", &queues.fanout, minutes(30), fanout);
        self.consume("insights", &queues.insights, minutes(15), self.counter());
        if let Some(settings) = nats {
            let dead_letters = self.dead_letters(&queues.nats_dead_letters);
            let backoff = Backoff::new(self.clients.sqs.clone(), &queues.nats);
            let outlet = hearback_relay::Relay::new(Nats::new(settings), backoff, dead_letters);
            self.consume("nats", &queues.nats, OUTLET_MAX_WAIT, outlet);
        }
        for sender in std::iter::repeat_n(self.webhooks.as_ref(), WEBHOOK_WORKERS).flatten() {
            let outlet = hearback_relay::Relay::to_webhooks(
                self.store.clone(),
                sender.clone(),
                self.clock,
                (self.clients.sqs.clone(), queues.webhooks.clone()),
                self.dead_letters(&queues.webhooks_dead_letters),
            );
            self.consume("webhooks", &queues.webhooks, WEBHOOK_MAX_WAIT, outlet);
        }
        Ok(())
    }

    async fn stream(&self) -> Result<Stream> {
        let arn = self.store.stream_arn().await;
        let arn = arn.context("the table has no stream")?;
        Ok(Stream::new(self.clients.streams.clone(), arn))
    }

    fn consume(
        &self,
        name: &'static str,
        queue_url: &str,
        max_wait: Duration,
        consumer: impl Consumer,
    ) {
        let source = EventSource {
            client: self.clients.sqs.clone(),
            queue_url: queue_url.to_owned(),
            consumer,
            visibility: self.visibility,
            max_wait,
            load: self.load.clone(),
            status: self.health.register(name),
        };
        self.work.spawn(source.run(self.work.stop.clone()));
    }

    fn counter(&self) -> Counter {
        let dead_letters = self.dead_letters(&self.queues.insights_dead_letters);
        Counter::new(self.store.clone(), self.clock, dead_letters)
    }

    fn importer(&self) -> Result<Importer> {
        let intake = Intake::from(self.app()?);
        let queues = Queues {
            client: self.clients.sqs.clone(),
            imports: self.queues.imports.clone(),
            signals_bulk: self.queues.signals_bulk.clone(),
        };
        let dead_letters = self.dead_letters(&self.queues.imports_dead_letters);
        Ok(Importer::new(
            intake,
            self.blobs.clone(),
            queues,
            dead_letters,
        ))
    }

    fn ingest(&self) -> Result<Ingest> {
        let dead_letters = self.dead_letters(&self.queues.ingest_dead_letters);
        Ok(Ingest::new(Intake::from(self.app()?), dead_letters))
    }

    pub(super) fn erasures(&self) -> Erasures {
        Erasures::new(self.clients.sqs.clone(), &self.queues.erasures, self.settle)
    }

    fn eraser(&self) -> Eraser {
        let (store, blobs) = (self.store.clone(), self.blobs.clone());
        let dead_letters = self.dead_letters(&self.queues.erasures_dead_letters);
        Eraser::new(store, blobs, self.clock, self.erasures(), dead_letters)
    }

    fn dead_letters(&self, queue_url: &str) -> DeadLetters {
        DeadLetters::new(self.clients.sqs.clone(), queue_url)
    }

    /// A signal generator on this bundle's table.
    #[must_use]
    pub fn generator(&self) -> Generator {
        Generator::new(
            self.store.clone(),
            self.blobs.clone(),
            self.dead_letters(&self.queues.dead_letters),
            self.clock,
        )
    }
}

//! The pipeline: messages of the stream, and the workers that process them.

use std::collections::BTreeSet;

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
use futures::future::join;
use hearback_domain::learning::publication::Subject;
use hearback_signals::publish;
use hearback_storage::stream::{RESULTS, SUBMITTED};
use hearback_tests::{counted_hours, queue};
use serde_json::Value;

use super::world::{Worker, World};

impl World {
    /// Reads the stream and the bulk queue into waiting messages.
    pub async fn relay(&mut self) {
        // Imported events use the bulk queue instead of the stream.
        let bulk = &self.engine.queues.signals_bulk;
        let imported = queue::drain(&self.engine.clients.sqs, bulk).await;
        self.waiting.extend(imported);
        for shard in self.stream.shards() {
            loop {
                let read = self.stream.read(&shard).await.unwrap();
                let is_full = read.is_full;
                for record in &read.records {
                    self.relay_record(record);
                }
                assert!(self.stream.advance(&shard, read), "the shard is still open");
                if !is_full {
                    break;
                }
            }
        }
    }

    fn relay_record(&mut self, record: &Value) {
        if SUBMITTED.takes(record) {
            let mut message = SqsMessage::default();
            message.message_id = Some(self.name().to_string());
            message.body = Some(SUBMITTED.send(record).to_string());
            self.waiting.push(message);
        }
        if RESULTS.takes(record) {
            self.counts.extend(counted_hours::messages(record));
            for (subject, message) in publish::addressed(record).unwrap().messages {
                let id = message.get("signalId").unwrap_or(&message["feedbackId"]);
                let name = format!("{subject:?} {} {id}", message["eventType"]);
                // One message for each event, as the topic selects them.
                if subject == Subject::FeedbackProcessed {
                    let mut wake = SqsMessage::default();
                    wake.message_id = Some(self.name().to_string());
                    wake.body = Some(message.to_string());
                    self.wakes.push(wake);
                }
                let before = self.published.insert(name, message.clone());
                assert!(before.is_none_or(|before| before == message), "{message}");
            }
        }
    }

    /// A batch of waiting and delivered messages, in any order.
    fn batch(&mut self) -> SqsEvent {
        let mut batch = SqsEvent::default();
        for _ in 0..1 + self.random.below(10) {
            let again = self.random.below(4) == 0;
            let count = if again {
                self.delivered.len()
            } else {
                self.waiting.len()
            };
            if count > 0 {
                let at = self.below(count);
                let from = if again {
                    &self.delivered
                } else {
                    &self.waiting
                };
                batch.records.push(from[at].clone());
            }
        }
        batch
    }

    /// Delivers two batches to two workers concurrently. Messages that a worker does not report as failed are done.
    pub async fn deliver(&mut self) {
        self.relay().await;
        let (one, other) = (self.batch(), self.batch());
        self.plan_faults(0);
        self.plan_faults(1);
        let [first, second] = &self.workers;
        let handled = join(
            first.functions.generator.handle(one.clone()),
            second.functions.generator.handle(other.clone()),
        );
        let (first, second) = handled.await;
        for (worker, batch, response) in [(0, one, first), (1, other, second)] {
            if !self.replace_if_crashed(worker) {
                self.acknowledge(batch, response);
            }
        }
    }

    fn acknowledge(&mut self, batch: SqsEvent, response: SqsBatchResponse) {
        let failed: BTreeSet<_> = (response.batch_item_failures.into_iter())
            .map(|failure| failure.item_identifier)
            .collect();
        for message in batch.records {
            let id = message.message_id.clone();
            if !failed.contains(id.as_deref().unwrap()) {
                self.waiting.retain(|message| message.message_id != id);
                self.delivered.push(message);
                self.operations += 1;
            }
        }
    }

    /// Processes all waiting messages with a worker without faults.
    pub async fn drain(&mut self) {
        let worker = Worker::new(&self.engine, &self.sockets);
        loop {
            self.relay().await;
            if self.waiting.is_empty() {
                return;
            }
            let batch = queue::batch(self.waiting.drain(..self.waiting.len().min(10)));
            let response = worker.functions.generator.handle(batch.clone()).await;
            assert!(response.batch_item_failures.is_empty());
            self.acknowledge(batch, response);
        }
    }
}

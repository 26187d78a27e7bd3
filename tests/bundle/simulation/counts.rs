//! Insights: two workers count hours, from messages that are late, repeated and out of order.

use aws_lambda_events::sqs::{SqsBatchResponse, SqsMessage};
use futures::future::join;
use hearback_tests::queue;

use super::world::{TRIES, Worker, World};

impl World {
    /// Two workers count the hours of some messages, concurrently.
    pub async fn count(&mut self) {
        self.relay().await;
        let (one, other) = (self.some_counts(), self.some_counts());
        self.plan_faults(0);
        self.plan_faults(1);
        let [first, second] = &self.workers;
        let (first, second) = join(
            first.functions.counter.handle(queue::batch(one.clone())),
            second.functions.counter.handle(queue::batch(other.clone())),
        )
        .await;
        for (worker, messages, response) in [(0, one, first), (1, other, second)] {
            if !self.replace_if_crashed(worker) {
                // Sometimes they come again although they were processed.
                if self.below(4) > 0 {
                    self.done(messages, &response);
                }
                self.operations += 1;
            }
        }
    }

    fn some_counts(&mut self) -> Vec<SqsMessage> {
        let waiting = self.counts.len();
        let most = self.below(waiting.min(40) + 1);
        let some: Vec<_> = (0..most).map(|_| self.below(waiting)).collect();
        some.into_iter().map(|at| self.counts[at].clone()).collect()
    }

    fn done(&mut self, messages: Vec<SqsMessage>, response: &SqsBatchResponse) {
        let failed = |message: &SqsMessage| {
            let id = message.message_id.as_deref().unwrap();
            let mut failures = response.batch_item_failures.iter();
            failures.any(|failure| failure.item_identifier == id)
        };
        for message in messages.iter().filter(|message| !failed(message)) {
            self.counts
                .retain(|waiting| waiting.message_id != message.message_id);
        }
    }

    /// Counts everything that has changed, with a worker without faults.
    pub async fn count_all(&mut self) {
        let worker = Worker::new(&self.engine, &self.sockets);
        for _ in 0..TRIES {
            let messages = self.counts.clone();
            let batch = queue::batch(messages.clone());
            let response = worker.functions.counter.handle(batch).await;
            self.done(messages, &response);
            if self.counts.is_empty() {
                return;
            }
        }
        panic!("not counted: {:?}", self.counts);
    }
}

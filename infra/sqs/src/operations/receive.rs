//! Receiving: once, or repeatedly until there is a message or the wait is over.

use std::{collections::BTreeMap, ops::RangeInclusive, time::Duration};

use tokio::time::{Instant, sleep_until};

use super::messages::check_timeout;
use crate::{
    Sqs, digest,
    fault::Fault,
    name::{ACCOUNT, QueueName},
    store::receive::{self, Look, Order, Received},
    wire::{
        request::ReceiveMessage,
        response::{Delivery, Messages},
    },
};

/// System attributes a receiver may ask for; those after the first six never have a value here.
const SYSTEM_ATTRIBUTES: [&str; 11] = [
    "ApproximateFirstReceiveTimestamp",
    "ApproximateReceiveCount",
    "DeadLetterQueueSourceArn",
    "MessageGroupId",
    "SenderId",
    "SentTimestamp",
    "AWSTraceHeader",
    "All",
    "MessageDeduplicationId",
    "SequenceNumber",
    "SqsManagedSseEnabled",
];

impl Sqs {
    pub(crate) async fn receive_message(&self, request: ReceiveMessage) -> Result<Messages, Fault> {
        let order = request.order()?;
        let wait = request.wait_time_seconds;
        let wanted = Wanted::parse(request)?;
        let messages = self.receive(order, wait).await?;
        Ok(Messages {
            messages: messages.into_iter().map(|m| wanted.present(m)).collect(),
        })
    }

    async fn receive(&self, order: Order, wait: Option<i64>) -> Result<Vec<Received>, Fault> {
        let Look {
            messages,
            wait: of_queue,
            ..
        } = self.look(&order).await?;
        let wait = u64::try_from(wait.unwrap_or(of_queue)).unwrap_or_default();
        if !messages.is_empty() || wait == 0 {
            return Ok(messages);
        }
        self.poll(&order, Instant::now() + Duration::from_secs(wait))
            .await
    }

    /// Receives again whenever the queue is notified or a hidden message becomes visible.
    ///
    /// Subscribes before it reads, so that no message in between is missed.
    async fn poll(&self, order: &Order, deadline: Instant) -> Result<Vec<Received>, Fault> {
        let queue = self.notifiers.of(&order.queue);
        loop {
            let notified = queue.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            let Look {
                messages, next_in, ..
            } = self.look(order).await?;
            if !messages.is_empty() || Instant::now() >= deadline {
                return Ok(messages);
            }
            let next = next_in
                .and_then(|ms| u64::try_from(ms).ok())
                .map(Duration::from_millis);
            let wake_at = next.map_or(deadline, |next| deadline.min(Instant::now() + next));
            tokio::select! {
                () = notified => {}
                () = sleep_until(wake_at) => {}
            }
        }
    }

    async fn look(&self, order: &Order) -> Result<Look, Fault> {
        let order = order.clone();
        self.writer
            .run(move |unit| receive::look(unit, &order))
            .await
    }
}

impl ReceiveMessage {
    fn order(&self) -> Result<Order, Fault> {
        if self.receive_request_attempt_id.is_some() {
            return Err(Fault::Unsupported(
                "ReceiveRequestAttemptId, of FIFO queues,".to_owned(),
            ));
        }
        let most = self.max_number_of_messages.unwrap_or(1);
        check("MaxNumberOfMessages", most, 1..=10)?;
        check(
            "WaitTimeSeconds",
            self.wait_time_seconds.unwrap_or(0),
            0..=20,
        )?;
        self.visibility_timeout.map(check_timeout).transpose()?;
        Ok(Order {
            queue: QueueName::of_url(&self.queue_url),
            most: usize::try_from(most).unwrap_or(1),
            visibility_timeout: self.visibility_timeout,
        })
    }
}

fn check(name: &str, value: i64, range: RangeInclusive<i64>) -> Result<(), Fault> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(Fault::InvalidParameter(format!(
        "Value {value} for parameter {name} is invalid. \
         Reason: Must be between {} and {}, if provided.",
        range.start(),
        range.end()
    )))
}

/// Which attributes a receiver asked for.
struct Wanted {
    system: Vec<String>,
    message: Vec<String>,
}

impl Wanted {
    fn parse(request: ReceiveMessage) -> Result<Self, Fault> {
        let mut system = request.message_system_attribute_names.unwrap_or_default();
        system.extend(request.attribute_names.unwrap_or_default());
        if let Some(name) = system
            .iter()
            .find(|name| !SYSTEM_ATTRIBUTES.contains(&name.as_str()))
        {
            return Err(Fault::InvalidAttributeName(name.clone()));
        }
        Ok(Self {
            system,
            message: request.message_attribute_names.unwrap_or_default(),
        })
    }

    /// The digest of attributes covers those returned, which is what a receiver can check.
    fn present(&self, received: Received) -> Delivery {
        let attributes = self.system_attributes(&received);
        let message_attributes = received.attributes.select(&self.message);
        Delivery {
            message_id: received.id,
            receipt_handle: received.receipt.encode(),
            md5_of_body: digest::of_body(&received.body),
            body: received.body,
            attributes,
            md5_of_message_attributes: digest::of_attributes(&message_attributes),
            message_attributes: message_attributes.to_wire(),
        }
    }

    fn system_attributes(&self, received: &Received) -> BTreeMap<&'static str, String> {
        let all = [
            (
                "ApproximateFirstReceiveTimestamp",
                Some(received.first_received_at.to_string()),
            ),
            (
                "ApproximateReceiveCount",
                Some(received.receive_count.to_string()),
            ),
            ("DeadLetterQueueSourceArn", received.moved_from.clone()),
            ("MessageGroupId", received.group.clone()),
            ("SenderId", Some(ACCOUNT.to_owned())),
            ("SentTimestamp", Some(received.sent_at.to_string())),
        ];
        all.into_iter()
            .filter(|(name, _)| {
                self.system
                    .iter()
                    .any(|wanted| wanted == name || wanted == "All")
            })
            .filter_map(|(name, value)| Some((name, value?)))
            .collect()
    }
}

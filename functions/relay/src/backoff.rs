//! The pauses between two attempts to deliver a message. Unless an outlet wants otherwise, the first two are the
//! visibility timeout of the queue: SQS does not count the age of a message that was received more often, by which an
//! alarm reports an outage. Each further one is about as long as the message has waited so far, so that a target that is
//! unavailable for long is not called often.

use aws_lambda_events::sqs::SqsMessage;
use aws_sdk_sqs::Client;
use chrono::TimeDelta;
use hearback_lambda::aws::error_code;
use hearback_lambda::queue::{age, receives};
use hearback_lambda::visibility::{LARGEST_CALL, hide};

/// Receives of which the last is followed by a pause of our own.
const RECEIVES: u32 = 3;
/// The longest pause, and so the longest time until messages flow again after an outage.
pub const LONGEST_PAUSE: TimeDelta = TimeDelta::minutes(15);

/// The queue of an outlet, in which messages wait for their next attempt.
#[derive(Debug, Clone)]
pub struct Backoff {
    client: Client,
    queue_url: String,
    receives: u32,
}

impl Backoff {
    /// The queue at this URL.
    #[must_use]
    pub fn new(client: Client, queue_url: impl Into<String>) -> Self {
        Self {
            client,
            queue_url: queue_url.into(),
            receives: RECEIVES,
        }
    }

    /// With pauses of our own from the first receive: for an outlet whose targets fail each on its own, which is no
    /// outage.
    #[must_use]
    pub fn from_the_first(self) -> Self {
        Self {
            receives: 1,
            ..self
        }
    }

    /// Hides received messages until their next attempt. If that fails, the visibility timeout of the queue applies.
    pub(crate) async fn postpone<'a>(&self, messages: impl Iterator<Item = &'a SqsMessage>) {
        let messages: Vec<_> = messages
            .filter(|message| receives(message) >= self.receives)
            .collect();
        for chunk in messages.chunks(LARGEST_CALL) {
            let hidden = chunk.iter().filter_map(|message| {
                let seconds = pause(age(message)).num_seconds();
                Some((message.receipt_handle.as_deref()?, seconds.try_into().ok()?))
            });
            let postponed = hide(&self.client, &self.queue_url, hidden).await;
            if let Err(error) = postponed {
                tracing::warn!(error = error_code(&error), "messages were not postponed");
            }
        }
    }
}

/// How long a message that has waited for so long waits for its next attempt. Two seconds longer than that: a target
/// that failed since shortly before the message was sent is called again after the time for which it has failed, and
/// a message that came just before that would wait once more.
fn pause(waited: TimeDelta) -> TimeDelta {
    (waited + TimeDelta::seconds(2)).clamp(TimeDelta::seconds(1), LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_quarter_of_an_hour() {
        let seconds = TimeDelta::seconds;
        for (waited, next) in [(-5, 1), (0, 2), (7, 9), (900, 900), (86_400, 900)] {
            assert_eq!(pause(seconds(waited)), seconds(next));
        }
        // The attempts of a day fit into the receives of the queue, with room for receives without an attempt.
        let (mut waited, mut attempts) = (TimeDelta::zero(), 0);
        while waited < hearback_lambda::queue::RETRIED_FOR {
            waited += pause(waited);
            attempts += 1;
        }
        assert!(
            attempts * 5 < hearback_lambda::queue::OUTLET_RECEIVES,
            "{attempts}"
        );
    }
}

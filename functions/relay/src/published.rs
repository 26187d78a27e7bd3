//! A published message, as a queue that subscribes to the topic receives it.

use aws_lambda_events::sqs::SqsMessage;
use bytes::Bytes;
use hearback_domain::learning::publication::Subject;
use hearback_domain::learning::signal::SignalType;
use hearback_lambda::queue::recipient;
use serde::Deserialize;
use uuid::Uuid;

/// A published message. Its body is passed on as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// The same in a repeat, and unique across tenants.
    pub id: Uuid,
    /// The subject.
    pub subject: Subject,
    /// The JSON document.
    pub body: Bytes,
    /// The only recipient, of an outlet that has several: the others have received the message.
    pub recipient: Option<String>,
}

/// The members that an outlet reads.
#[derive(Deserialize)]
struct Head {
    id: Uuid,
    #[serde(flatten)]
    kind: Kind,
}

#[derive(Deserialize)]
#[serde(tag = "eventType", rename_all_fields = "camelCase")]
enum Kind {
    #[serde(rename = "feedback.processed", alias = "feedback.retracted")]
    Feedback,
    #[serde(rename = "learning.signal.generated")]
    Signal { signal_type: SignalType },
}

impl Published {
    /// Reads a message; `None` if it is of an unknown kind.
    #[must_use]
    pub fn of(message: &SqsMessage) -> Option<Self> {
        Some(Self {
            recipient: recipient(message).map(ToOwned::to_owned),
            ..Self::read(message.body.as_deref()?)?
        })
    }

    fn read(body: &str) -> Option<Self> {
        let Head { id, kind } = serde_json::from_str(body).ok()?;
        let subject = match kind {
            Kind::Feedback => Subject::FeedbackProcessed,
            Kind::Signal { signal_type } => signal_type.into(),
        };
        let body = Bytes::copy_from_slice(body.as_bytes());
        Some(Self {
            id,
            subject,
            body,
            recipient: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_a_message_determines_its_subject() {
        let id = "0d9f5a2e-8f1b-5c44-9d3e-1d3f6d5a7b10";
        let message = |kind: &str| format!(r#"{{"id":"{id}",{kind},"tenant":"acme"}}"#);
        for (kind, subject) in [
            (
                r#""eventType":"feedback.processed""#,
                Subject::FeedbackProcessed,
            ),
            (
                r#""eventType":"feedback.retracted""#,
                Subject::FeedbackProcessed,
            ),
            (
                r#""eventType":"learning.signal.generated","signalType":"reward""#,
                Subject::Reward,
            ),
            (
                r#""eventType":"learning.signal.generated","signalType":"policy_update""#,
                Subject::Policy,
            ),
            (
                r#""eventType":"learning.signal.generated","signalType":"exploration_hint""#,
                Subject::Exploration,
            ),
        ] {
            let read = Published::read(&message(kind)).unwrap();
            assert_eq!(
                (read.subject, read.id.to_string()),
                (subject, id.to_owned())
            );
            assert_eq!(read.body, message(kind), "the body is passed on unchanged");
        }
        for body in ["", "{}", "[]", &message(r#""eventType":"other""#)] {
            assert_eq!(Published::read(body), None, "{body}");
        }
    }
}

//! One line of a file: its event and its outcome.

use chrono::{DateTime, Utc};
use hearback_domain::events::event::FilePosition;
use hearback_domain::events::import::{MAX_LINE_BYTES, Reject, RejectedLine};
use hearback_domain::events::rejected_body::{requests_anonymity, storable_body, storable_text};
use hearback_domain::events::submission::{RejectionReason, Submission};
use hearback_domain::identity::caller::Caller;
use hearback_storage::WriteToken;
use serde_json::Value;

use super::Failure;
use crate::intake::{AcceptedEvent, Intake, Sender};
use crate::order::{Order, OrderSlot};

/// The error of a line that is too long.
pub(super) const TOO_LONG: &str = "line_too_long";
/// The error of a line that is not JSON.
pub(super) const NOT_JSON: &str = "not_json";
/// Approximate bytes of a reject without its line.
const REJECT_OVERHEAD: usize = 200;

/// A line that was read.
pub(super) struct ReadLine {
    /// Its number within the piece, from 1.
    pub number: u64,
    /// Where it is in the file.
    pub position: FilePosition,
    /// Its bytes; `None` if it is too long.
    pub content: Option<Vec<u8>>,
}

/// The outcome of a line.
pub(super) enum Outcome {
    Blank,
    Stored {
        known: bool,
        anonymous: bool,
        /// The message of the stored event, until it is sent.
        message: Option<String>,
    },
    Rejected {
        reject: Box<Reject>,
        anonymous: bool,
    },
}

/// The outcome of a line, by its number within the piece.
pub(super) type NumberedOutcome = (u64, Outcome);

/// Stores the event of a line, and returns the line's number with its outcome.
pub(super) async fn store_event(
    intake: &Intake,
    by: WriteToken,
    number: u64,
    event: Result<(OrderSlot, Submission), Outcome>,
) -> Result<NumberedOutcome, Failure> {
    let (slot, submission) = match event {
        Ok(event) => event,
        Err(outcome) => return Ok((number, outcome)),
    };
    let anonymous = submission.event.core.privacy.anonymize;
    let outcome = match intake.put(by, submission, slot).await {
        Ok(AcceptedEvent { known, message, .. }) => Outcome::Stored {
            known,
            anonymous,
            message,
        },
        Err(error) => rejected(number, error.rejection()?, None, anonymous),
    };
    Ok((number, outcome))
}

impl Outcome {
    pub(super) fn take_message(&mut self) -> Option<String> {
        match self {
            Self::Stored { message, .. } => message.take(),
            Self::Blank | Self::Rejected { .. } => None,
        }
    }
}

pub(super) fn is_blank(line: &[u8]) -> bool {
    line.trim_ascii().is_empty()
}

/// The approximate bytes of a reject in memory, at least those of its line.
pub(super) fn size_of(reject: &Reject) -> usize {
    reject.line.as_ref().map_or(0, String::len) + REJECT_OVERHEAD
}

/// The outcome of a rejected line. `line` is the part of it that goes to the file of rejects.
fn rejected(
    number: u64,
    rejection: RejectionReason,
    line: Option<String>,
    anonymous: bool,
) -> Outcome {
    Outcome::Rejected {
        reject: Box::new(Reject {
            rejected: RejectedLine {
                line_number: number,
                rejection,
            },
            line,
        }),
        anonymous,
    }
}

/// Notes the event of a line that another worker settled, if it has one.
pub(super) async fn note_settled_line(
    intake: &Intake,
    caller: &Caller,
    received_at: DateTime<Utc>,
    order: &mut Order,
    by: WriteToken,
    content: &[u8],
) {
    let Ok(body) = serde_json::from_slice::<Value>(content) else {
        return;
    };
    let sender = Sender::BackEnd(caller);
    if let Ok(submission) = intake.read(sender, &body, received_at).await {
        order.note_settled(&submission.event.core, by);
    }
}

/// The event of a line with its slot in the order, or the outcome of a line without a valid event.
pub(super) async fn read_event(
    intake: &Intake,
    caller: &Caller,
    received_at: DateTime<Utc>,
    order: &mut Order,
    ReadLine {
        number,
        position,
        content,
    }: ReadLine,
) -> Result<(OrderSlot, Submission), Outcome> {
    let rejected = |rejection, line, anonymous| rejected(number, rejection, line, anonymous);
    let Some(line) = content else {
        let detail = format!("must have at most {MAX_LINE_BYTES} bytes");
        // The line is not copied: it may ask for anonymity.
        return Err(rejected(
            RejectionReason::of_event(TOO_LONG, detail),
            None,
            false,
        ));
    };
    let body = match serde_json::from_slice::<Value>(&line) {
        Ok(body) => body,
        Err(error) => {
            let text = String::from_utf8_lossy(&line);
            let kept = storable_text(&text).map(str::to_owned);
            let anonymous = kept.is_none();
            let detail = format!("must be JSON: column {}", error.column());
            return Err(rejected(
                RejectionReason::of_event(NOT_JSON, detail),
                kept,
                anonymous,
            ));
        }
    };
    let sender = Sender::BackEnd(caller);
    match intake.read(sender, &body, received_at).await {
        Ok(mut submission) => {
            submission.event.core.position = Some(position);
            Ok((order.next(&submission.event.core), submission))
        }
        Err(rejection) => {
            let anonymous = requests_anonymity(&body);
            let line = if anonymous {
                storable_body(&body).to_string()
            } else {
                String::from_utf8_lossy(&line).into_owned()
            };
            Err(rejected(rejection.into(), Some(line), anonymous))
        }
    }
}

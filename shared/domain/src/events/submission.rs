//! Parses submitted events, and anonymizes them.

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use hearback_scrub::Budget;
use hearback_wire::{Errors, FieldError, FromJson, Pointer};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::events::event::{FeedbackEvent, FreeText};
use crate::events::recency::{AHEAD, MAX_AHEAD};
use crate::identity::caller::{Caller, Forbidden};
use crate::identity::identifier::InvalidIdentifier;
use crate::identity::privacy::Pseudonyms;

mod request;

pub use request::FeedbackEventRequest;

/// Maximum length of a comment, in characters.
pub const MAX_COMMENT: usize = 2000;

/// An event to store, and the dedupe key for the response.
#[derive(Debug, Clone, PartialEq)]
pub struct Submission {
    /// The event to store, anonymized if it has `anonymize`.
    pub event: FeedbackEvent,
    /// The dedupe key with the original ids. For an anonymous event it must not be stored.
    pub dedupe_key: String,
}

/// Why an event is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EventRejected {
    /// The body does not match the schema: 400.
    #[error("the event does not match the schema")]
    Invalid(Vec<FieldError>),
    /// The channel or the type is unknown: 422.
    #[error("the channel or the type is unknown")]
    Unprocessable(Vec<FieldError>),
    /// The token does not allow it: 403.
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
}

/// Why an event is rejected, for reports and dead letters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RejectionReason {
    /// An error code.
    pub error: Cow<'static, str>,
    /// The invalid members, if any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
}

impl RejectionReason {
    /// A rejection with one error about the whole event.
    #[must_use]
    pub fn of_event(error: &'static str, detail: impl Into<String>) -> Self {
        Self {
            error: error.into(),
            errors: vec![FieldError {
                pointer: String::new(),
                detail: detail.into(),
            }],
        }
    }
}

impl From<EventRejected> for RejectionReason {
    fn from(rejected: EventRejected) -> Self {
        let (error, errors) = match rejected {
            EventRejected::Invalid(errors) => ("invalid_request", errors),
            EventRejected::Unprocessable(errors) => ("unknown_value", errors),
            EventRejected::Forbidden(forbidden) => {
                return Self::of_event("forbidden", forbidden.to_string());
            }
        };
        Self {
            error: error.into(),
            errors,
        }
    }
}

/// A parsed event that is not anonymized yet.
pub struct Draft(FeedbackEvent);

impl Draft {
    /// Parses an event. `now` is the time of receipt, and the default of `timestamp`.
    pub fn read(body: &Value, caller: &Caller, now: DateTime<Utc>) -> Result<Self, EventRejected> {
        let mut errors = Errors::default();
        let request = FeedbackEventRequest::read(body, Pointer::ROOT, &mut errors);
        let timestamp = request.as_ref().and_then(|request| request.timestamp);
        if timestamp.is_some_and(|timestamp| timestamp > now + MAX_AHEAD) {
            errors.add("/timestamp", AHEAD);
        }
        if !errors.is_empty() {
            return Err(EventRejected::Invalid(errors.into_vec()));
        }
        let request = request.ok_or_else(|| EventRejected::Unprocessable(errors.into_unknown()))?;
        let event = request.event(caller, now);
        caller.act_as(&event.core.user_id)?;
        Ok(Self(event))
    }

    /// The size of the text that must be scrubbed, in bytes: 0 unless the event is anonymous.
    #[must_use]
    pub fn to_scrub(&self) -> usize {
        if self.0.core.privacy.anonymize {
            texts(&self.0.text).map(str::len).sum()
        } else {
            0
        }
    }

    /// The event to store. The time that this takes depends on [`to_scrub`](Self::to_scrub).
    pub fn submission(self, pseudonyms: &Pseudonyms) -> Result<Submission, EventRejected> {
        let Self(event) = self;
        let dedupe_key = event.core.dedupe_key();
        if !event.core.privacy.anonymize {
            return Ok(Submission {
                event,
                dedupe_key: dedupe_key.to_string(),
            });
        }
        let (user, session) = (event.core.user_id.clone(), event.core.session_id.clone());
        let event = anonymized(event, pseudonyms).map_err(|error| {
            let mut errors = Errors::default();
            errors.add("/userId", error.to_string());
            EventRejected::Invalid(errors.into_vec())
        })?;
        let dedupe_key = event
            .core
            .dedupe_key()
            .with_original_ids(
                user.as_str(),
                session.as_str(),
                event.core.artifact_id.is_some(),
            )
            .to_string();
        Ok(Submission { event, dedupe_key })
    }
}

impl Submission {
    /// Parses an event, and anonymizes it if it has `anonymize`.
    pub fn parse(
        body: &Value,
        caller: &Caller,
        pseudonyms: &Pseudonyms,
        now: DateTime<Utc>,
    ) -> Result<Self, EventRejected> {
        Draft::read(body, caller, now)?.submission(pseudonyms)
    }
}

/// Replaces the user and the session by pseudonyms, and personal data in free text by placeholders.
fn anonymized(
    mut event: FeedbackEvent,
    pseudonyms: &Pseudonyms,
) -> Result<FeedbackEvent, InvalidIdentifier> {
    let tenant = &event.core.tenant;
    event.core.user_id = pseudonyms.user(tenant, &event.core.user_id)?;
    event.core.session_id = pseudonyms.session(tenant, &event.core.session_id)?;
    // One budget for all texts, so that many short texts cannot cost more than a long one.
    let mut budget = Budget::of(texts(&event.text).map(str::len).sum());
    let optional = [
        &mut event.text.comment,
        &mut event.text.original_value,
        &mut event.text.corrected_value,
    ];
    let optional = optional.into_iter().flatten();
    for text in optional.chain(&mut event.text.modified_elements) {
        if let Cow::Owned(scrubbed) = budget.scrub(text) {
            *text = scrubbed;
        }
    }
    Ok(event)
}

/// All free texts of an event.
fn texts(text: &FreeText) -> impl Iterator<Item = &str> {
    let optional = [&text.comment, &text.original_value, &text.corrected_value];
    let optional = optional.into_iter().flatten();
    optional.chain(&text.modified_elements).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::events::event::EventCore;

    fn caller(scopes: &[&str]) -> Caller {
        Caller {
            user: "user-123".try_into().unwrap(),
            tenant: "acme".try_into().unwrap(),
            projects: Vec::new(),
            scopes: scopes.iter().map(ToString::to_string).collect(),
        }
    }

    fn parse(body: &Value) -> Result<Submission, EventRejected> {
        let now = "2026-01-04T09:30:00Z".parse().unwrap();
        Submission::parse(body, &caller(&[]), &Pseudonyms::new("key"), now)
    }

    fn minimal() -> Value {
        json!({
            "feedbackId": "f47ac10b-58cc-4372-a567-0e02b2c3d479",
            "userId": "user-123",
            "sessionId": "session-abc",
            "feedbackChannel": "explicit",
        })
    }

    #[test]
    fn an_event_without_a_timestamp_has_the_time_of_receipt() {
        let submission = parse(&minimal()).unwrap();
        assert_eq!(
            submission.dedupe_key,
            "user-123:session-abc:explicit:2026-01-04T09"
        );
    }

    #[test]
    fn the_turn_that_an_event_names_is_in_its_key() {
        let key_of = |context: Value| {
            let mut body = minimal();
            body["context"] = context;
            let submission = parse(&body).unwrap();
            (
                submission.dedupe_key,
                submission.event.core.dedupe_key().fingerprint(),
            )
        };
        let in_turn = |turn| json!({"projectId": "p", "conversationId": "c", "turnId": turn});
        let (key, fingerprint) = key_of(in_turn("t"));
        assert_eq!(key, "user-123:session-abc:explicit:2026-01-04T09:p:c:t");
        for other in [
            in_turn("u"),
            json!({"turnId": "t"}),
            json!({"projectId": "p"}),
        ] {
            assert_ne!(key_of(other).1, fingerprint);
        }
    }

    #[test]
    fn the_hour_of_the_key_is_in_utc() {
        let mut body = minimal();
        body["timestamp"] = json!("2026-01-04T00:30:00+02:00");
        body["artifactId"] = json!("artifact-456");
        body["feedbackType"] = json!("rating");
        assert_eq!(
            parse(&body).unwrap().dedupe_key,
            "user-123:artifact-456:rating:2026-01-03T22"
        );
    }

    #[test]
    fn all_invalid_members_are_reported_at_once() {
        let body = json!({
            "feedbackId": "no",
            "userId": "",
            "feedbackChannel": 3,
            "timestamp": "yesterday",
            "data": {"rating": 6, "comment": "x".repeat(2001), "modifiedElements": [1]},
            "privacyFlags": {"retentionDays": 0},
            "correctionData": {"correctionType": "style"},
            "context": [],
        });
        let Err(EventRejected::Invalid(errors)) = parse(&body) else {
            panic!("accepted")
        };
        let pointers: Vec<_> = errors.iter().map(|e| e.pointer.as_str()).collect();
        assert_eq!(
            pointers,
            [
                "/feedbackId",
                "/userId",
                "/sessionId",
                "/feedbackChannel",
                "/data/rating",
                "/data/comment",
                "/data/modifiedElements/0",
                "/correctionData/correctionType",
                "/privacyFlags/retentionDays",
                "/context",
                "/timestamp"
            ]
        );
    }

    #[test]
    fn an_unknown_channel_or_type_is_unprocessable_and_not_invalid() {
        let mut body = minimal();
        body["feedbackChannel"] = json!("telepathy");
        body["feedbackType"] = json!("applause");
        let Err(EventRejected::Unprocessable(errors)) = parse(&body) else {
            panic!("accepted")
        };
        assert_eq!(errors.len(), 2);
    }

    #[test]
    fn an_anonymous_event_contains_no_ids_and_no_personal_data() {
        let mut body = minimal();
        body["privacyFlags"] = json!({"anonymize": true});
        body["data"] = json!({
            "comment": "call me at +1 (555) 010-4477, please",
            "modifiedElements": ["ada@example.org's field"],
        });
        body["correctionData"] =
            json!({"originalValue": "at 203.0.113.7", "correctedValue": "78-05-1120 is no SSN"});
        let submission = parse(&body).unwrap();
        let stored = format!("{:?}", submission.event);
        for raw in ["user-123", "session-abc", "555", "ada", "203"] {
            assert!(!stored.contains(raw), "{raw} is stored in {stored}");
        }
        let text = &submission.event.text;
        assert_eq!(text.comment.as_deref(), Some("call me at [phone], please"));
        assert_eq!(text.modified_elements, ["[email]'s field"]);
        assert_eq!(text.original_value.as_deref(), Some("at [ip]"));
        assert_eq!(
            text.corrected_value.as_deref(),
            Some("78-05-1120 is no SSN")
        );
        assert!(submission.event.core.commented);
        assert_eq!(
            submission.dedupe_key,
            "user-123:session-abc:explicit:2026-01-04T09"
        );
    }

    #[test]
    fn numbers_are_stored_without_loss_of_precision() {
        for number in [8.290_259_397_423_5e-16, 12.345_678_901_234_567, 1e-300] {
            let mut body = minimal();
            body["data"] = json!({"scrollPercentage": number});
            let core = parse(&body).unwrap().event.core;
            let stored = serde_json::to_string(&core).unwrap();
            let read: EventCore = serde_json::from_str(&stored).unwrap();
            assert_eq!(read, core);
        }
    }

    #[test]
    fn only_a_back_end_may_submit_for_another_user() {
        let mut body = minimal();
        body["userId"] = json!("somebody-else");
        assert!(matches!(parse(&body), Err(EventRejected::Forbidden(_))));
        let now = Utc::now();
        let back_end = caller(&["feedback:on-behalf"]);
        assert!(Submission::parse(&body, &back_end, &Pseudonyms::new("key"), now).is_ok());
    }
}

//! From the JSON that a caller posts to a [`FeedbackEvent`] that may be stored.
//!
//! Source: `SDS-009`, "Feedback Event Schema" and "Error Codes"; product specification, section 7.

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::caller::{Caller, Forbidden};
use crate::event::{
    Channel, CorrectionType, EventContext, EventCore, FeedbackEvent, FeedbackType, FreeText,
    PrivacyFlags, Rating,
};
use crate::identifier::NotAnIdentifier;
use crate::labels::Labels;
use crate::parse::{
    Errors, FieldError, Object, boolean, date_time, identifier, integer, integer_in, number_in,
    one_of, string, strings, text, to_instant,
};
use crate::privacy::Pseudonyms;
use crate::scrub::scrub;

/// Longest comment, in characters.
pub const MAX_COMMENT: usize = 2000;

/// An event that may be stored, and what its caller is told of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Submission {
    /// The event as it is kept: anonymous already, if the caller asked for that.
    pub event: FeedbackEvent,
    /// The dedupe key in the caller's own names. For an anonymous event this is the one place
    /// where they still stand, and it is answered, never stored.
    pub dedupe_key: String,
}

/// Why an event is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The body breaks the schema: 400.
    #[error("the event breaks the schema")]
    Invalid(Vec<FieldError>),
    /// The channel or the type is not one that is known: 422.
    #[error("the channel or the type is unknown")]
    Unprocessable(Vec<FieldError>),
    /// The token does not allow it: 403.
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
}

/// Why an event is not taken, for those who are not answered in person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejection {
    /// What went wrong, for a program.
    pub error: Cow<'static, str>,
    /// Each member that is wrong, if there are any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
}

impl Rejection {
    /// A rejection of the whole.
    #[must_use]
    pub fn whole(error: &'static str, detail: impl Into<String>) -> Self {
        Self {
            error: error.into(),
            errors: vec![FieldError {
                pointer: String::new(),
                detail: detail.into(),
            }],
        }
    }
}

impl From<Refused> for Rejection {
    fn from(refused: Refused) -> Self {
        let (error, errors) = match refused {
            Refused::Invalid(errors) => ("invalid_request", errors),
            Refused::Unprocessable(errors) => ("unknown_value", errors),
            Refused::Forbidden(forbidden) => {
                return Self::whole("forbidden", forbidden.to_string());
            }
        };
        Self {
            error: error.into(),
            errors,
        }
    }
}

impl Submission {
    /// Reads one event. `now` is the time of receipt, and the event's own time if it names none.
    pub fn parse(
        body: &Value,
        caller: &Caller,
        pseudonyms: &Pseudonyms,
        now: DateTime<Utc>,
    ) -> Result<Self, Refused> {
        let mut errors = Errors::default();
        let mut unknown = Errors::default();
        let event = read(body, caller, now, &mut errors, &mut unknown);
        if !errors.is_empty() {
            return Err(Refused::Invalid(errors.into_vec()));
        }
        if !unknown.is_empty() {
            return Err(Refused::Unprocessable(unknown.into_vec()));
        }
        // Without an error every required member was read.
        let event = event.ok_or_else(|| Refused::Invalid(Vec::new()))?;
        caller.act_as(&event.core.user_id)?;
        let dedupe_key = event.core.dedupe_key();
        if !event.core.privacy.anonymize {
            return Ok(Self {
                event,
                dedupe_key: dedupe_key.to_string(),
            });
        }
        let (user, session) = (event.core.user_id.clone(), event.core.session_id.clone());
        let event = anonymized(event, pseudonyms).map_err(|error| {
            let mut errors = Errors::default();
            errors.add("/userId", error.to_string());
            Refused::Invalid(errors.into_vec())
        })?;
        let dedupe_key = event
            .core
            .dedupe_key()
            .told_to(
                user.as_str(),
                session.as_str(),
                event.core.artifact_id.is_some(),
            )
            .to_string();
        Ok(Self { event, dedupe_key })
    }
}

/// Names of a closed set are told apart from what is no name at all: a string that is not in the
/// set is 422 (`SDS-009`, "Error Codes"), anything else is 400.
fn known<T: Copy>(
    object: Object<'_>,
    name: &str,
    names: &'static [(&'static str, T)],
    errors: &mut Errors,
    unknown: &mut Errors,
) -> Option<T> {
    let given = object.optional(name, errors, |value| string(value).map(|_| value))?;
    one_of(names)(given)
        .map_err(|detail| unknown.add(object.pointer(name), detail))
        .ok()
}

fn read(
    body: &Value,
    caller: &Caller,
    now: DateTime<Utc>,
    errors: &mut Errors,
    unknown: &mut Errors,
) -> Option<FeedbackEvent> {
    let event = Object::root(body, errors);
    let feedback_id = event.required("feedbackId", errors, uuid);
    let user_id = event.required("userId", errors, identifier);
    let session_id = event.required("sessionId", errors, identifier);
    let artifact_id = event.optional("artifactId", errors, identifier);
    if event.get("feedbackChannel").is_none() && body.is_object() {
        errors.add("/feedbackChannel", "is required");
    }
    let channel = known(event, "feedbackChannel", Channel::NAMES, errors, unknown);
    let feedback_type = known(event, "feedbackType", FeedbackType::NAMES, errors, unknown);
    let timestamp = event.optional("timestamp", errors, |value| {
        date_time(value).map(to_instant)
    });
    let (data, mut text) = read_data(event, errors);
    let correction_type = read_correction(event, &mut text, errors);
    let privacy = read_privacy(event, errors);
    let context = read_context(event, errors);
    Some(FeedbackEvent {
        core: EventCore {
            tenant: caller.tenant.clone(),
            feedback_id: feedback_id?,
            user_id: user_id?,
            session_id: session_id?,
            artifact_id,
            channel: channel?,
            feedback_type,
            accepted: data.accepted,
            rating: data.rating,
            modified_elements: text.modified_elements.len(),
            commented: text.comment.is_some(),
            time_spent: data.time_spent,
            scroll_percentage: data.scroll_percentage,
            correction_type,
            confidence: None,
            derived: false,
            private: false,
            second_to: None,
            privacy,
            context,
            timestamp: timestamp.unwrap_or(now),
            received_at: now,
        },
        text,
    })
}

#[derive(Default)]
struct Data {
    accepted: Option<bool>,
    rating: Option<Rating>,
    time_spent: Option<i64>,
    scroll_percentage: Option<f64>,
}

fn read_data(event: Object<'_>, errors: &mut Errors) -> (Data, FreeText) {
    let Some(data) = event.get("data") else {
        return (Data::default(), FreeText::default());
    };
    let data = Object::at(data, "/data", errors);
    let read = Data {
        accepted: data.optional("accepted", errors, boolean),
        rating: data.optional("rating", errors, rating),
        time_spent: data.optional("timeSpent", errors, integer),
        scroll_percentage: data.optional("scrollPercentage", errors, number_in(0.0, 100.0)),
    };
    let text = FreeText {
        comment: data.optional("comment", errors, text(MAX_COMMENT)),
        modified_elements: data
            .optional("modifiedElements", errors, strings)
            .unwrap_or_default(),
        original_value: None,
        corrected_value: None,
    };
    (read, text)
}

fn read_correction(
    event: Object<'_>,
    text: &mut FreeText,
    errors: &mut Errors,
) -> Option<CorrectionType> {
    let correction = Object::at(event.get("correctionData")?, "/correctionData", errors);
    text.original_value =
        correction.optional("originalValue", errors, |v| string(v).map(str::to_owned));
    text.corrected_value =
        correction.optional("correctedValue", errors, |v| string(v).map(str::to_owned));
    correction.optional("correctionType", errors, one_of(CorrectionType::NAMES))
}

fn read_privacy(event: Object<'_>, errors: &mut Errors) -> PrivacyFlags {
    let default = PrivacyFlags::default();
    let Some(flags) = event.get("privacyFlags") else {
        return default;
    };
    let flags = Object::at(flags, "/privacyFlags", errors);
    PrivacyFlags {
        anonymize: flags
            .optional("anonymize", errors, boolean)
            .unwrap_or(default.anonymize),
        retention_days: flags
            .optional("retentionDays", errors, integer_in(1, 3650))
            .and_then(|days| u16::try_from(days).ok())
            .unwrap_or(default.retention_days),
        exclude_from_training: flags
            .optional("excludeFromTraining", errors, boolean)
            .unwrap_or(default.exclude_from_training),
    }
}

fn read_context(event: Object<'_>, errors: &mut Errors) -> EventContext {
    let Some(context) = event.get("context") else {
        return EventContext::default();
    };
    let context = Object::at(context, "/context", errors);
    let labels = context
        .get("labels")
        .map(|labels| Labels::read(labels, "/context/labels", errors));
    let conversation_id = context.optional("conversationId", errors, identifier);
    let turn_id = context.optional("turnId", errors, identifier);
    let mut label = |name| context.optional(name, errors, identifier);
    EventContext {
        task_type: label("taskType"),
        project_id: label("projectId"),
        agent_id: label("agentId"),
        artifact_type: label("artifactType"),
        artifact_complexity: label("artifactComplexity"),
        artifact_format: label("artifactFormat"),
        response_length: label("responseLength"),
        code_style: label("codeStyle"),
        user_experience: label("userExperience"),
        conversation_id,
        turn_id,
        trace_id: None,
        span_id: None,
        labels: labels.unwrap_or_default(),
    }
}

/// An RFC 9562 UUID in its hyphenated form.
fn uuid(value: &Value) -> Result<Uuid, &'static str> {
    value
        .as_str()
        .filter(|text| text.len() == uuid::fmt::Hyphenated::LENGTH)
        .and_then(|text| Uuid::try_parse(text).ok())
        .ok_or("must be a UUID")
}

fn rating(value: &Value) -> Result<Rating, &'static str> {
    let number = integer(value).ok().and_then(|n| u8::try_from(n).ok());
    number
        .ok_or("must be an integer from 1 to 5")
        .and_then(Rating::try_from)
}

/// Replaces who it was by pseudonyms, and personal data in what they wrote by its kind, before anything is
/// stored.
fn anonymized(
    mut event: FeedbackEvent,
    pseudonyms: &Pseudonyms,
) -> Result<FeedbackEvent, NotAnIdentifier> {
    let tenant = &event.core.tenant;
    event.core.user_id = pseudonyms.user(tenant, &event.core.user_id)?;
    event.core.session_id = pseudonyms.session(tenant, &event.core.session_id)?;
    let texts = [
        &mut event.text.comment,
        &mut event.text.original_value,
        &mut event.text.corrected_value,
    ];
    let texts = texts.into_iter().flatten();
    for text in texts.chain(&mut event.text.modified_elements) {
        *text = scrub(text).into_owned();
    }
    Ok(event)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn caller(scopes: &[&str]) -> Caller {
        Caller {
            user: "user-123".try_into().unwrap(),
            tenant: "acme".try_into().unwrap(),
            projects: Vec::new(),
            scopes: scopes.iter().map(ToString::to_string).collect(),
        }
    }

    fn parse(body: &Value) -> Result<Submission, Refused> {
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
    fn an_event_without_a_timestamp_happened_when_it_was_received() {
        let submission = parse(&minimal()).unwrap();
        assert_eq!(
            submission.dedupe_key,
            "user-123:session-abc:explicit:2026-01-04T09"
        );
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
    fn every_broken_member_is_named_at_once() {
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
        let Err(Refused::Invalid(errors)) = parse(&body) else {
            panic!("taken")
        };
        let pointers: Vec<_> = errors.iter().map(|e| e.pointer.as_str()).collect();
        assert_eq!(
            pointers,
            [
                "/feedbackId",
                "/userId",
                "/sessionId",
                "/feedbackChannel",
                "/timestamp",
                "/data/rating",
                "/data/comment",
                "/data/modifiedElements",
                "/correctionData/correctionType",
                "/privacyFlags/retentionDays",
                "/context"
            ]
        );
    }

    #[test]
    fn an_unknown_channel_or_type_is_unprocessable_and_not_invalid() {
        let mut body = minimal();
        body["feedbackChannel"] = json!("telepathy");
        body["feedbackType"] = json!("applause");
        let Err(Refused::Unprocessable(errors)) = parse(&body) else {
            panic!("taken")
        };
        assert_eq!(errors.len(), 2);
    }

    #[test]
    fn an_anonymous_event_keeps_no_name_and_no_personal_data() {
        let mut body = minimal();
        body["privacyFlags"] = json!({"anonymize": true});
        body["data"] = json!({
            "comment": "call me at +1 (555) 010-4477, please",
            "modifiedElements": ["ada@example.org's field"],
        });
        body["correctionData"] =
            json!({"originalValue": "at 203.0.113.7", "correctedValue": "78-05-1120 is no SSN"});
        let submission = parse(&body).unwrap();
        let kept = format!("{:?}", submission.event);
        for raw in ["user-123", "session-abc", "555", "ada", "203"] {
            assert!(!kept.contains(raw), "{raw} is kept in {kept}");
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
    fn a_number_is_stored_to_its_last_bit() {
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
    fn only_a_back_end_speaks_for_another_user() {
        let mut body = minimal();
        body["userId"] = json!("somebody-else");
        assert!(matches!(parse(&body), Err(Refused::Forbidden(_))));
        let now = Utc::now();
        let back_end = caller(&["feedback:on-behalf"]);
        assert!(Submission::parse(&body, &back_end, &Pseudonyms::new("key"), now).is_ok());
    }
}

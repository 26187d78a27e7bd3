//! Any bytes are rejected or parsed as an event; a parsed event survives storage, and an anonymous one does not reveal
//! its user.

#![no_main]

use chrono::{DateTime, Utc};
use hearback_domain::events::event::{EventCore, FreeText};
use hearback_domain::events::submission::{EventRejected, RejectionReason, Submission};
use hearback_domain::identity::caller::Caller;
use hearback_domain::identity::privacy::Pseudonyms;
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

/// Nothing that a fuzzer writes by chance.
const USER: &str = "a user who is named nowhere else";
const SESSION: &str = "a session that is named nowhere else";

fn parse(body: &Value) -> Result<Submission, EventRejected> {
    let caller = Caller {
        user: "back-end".try_into().unwrap(),
        tenant: "acme".try_into().unwrap(),
        projects: Vec::new(),
        scopes: vec!["feedback:on-behalf".to_owned()],
    };
    let now: DateTime<Utc> = DateTime::from_timestamp(1_767_519_000, 0).unwrap();
    Submission::parse(body, &caller, &Pseudonyms::new("key"), now)
}

/// What the table and the queues keep is the event, and stays it.
fn survives_storage(submission: &Submission) {
    let core = serde_json::to_string(&submission.event.core).unwrap();
    let read: EventCore = serde_json::from_str(&core).unwrap();
    assert_eq!(read, submission.event.core, "{core}");
    let text = serde_json::to_string(&submission.event.text).unwrap();
    let read: FreeText = serde_json::from_str(&text).unwrap();
    assert_eq!(read, submission.event.text, "{text}");
}

/// The same event, by somebody who is named nowhere else and asks not to be named.
fn names_nobody(mut body: Value) {
    body["userId"] = json!(USER);
    body["sessionId"] = json!(SESSION);
    body["privacyFlags"] = json!({"anonymize": true});
    let submission = parse(&body).unwrap();
    let kept = format!("{:?}", submission.event);
    assert!(!kept.contains(USER) && !kept.contains(SESSION), "{kept}");
    survives_storage(&submission);
}

fuzz_target!(|input: &[u8]| {
    let Ok(body) = serde_json::from_slice::<Value>(input) else {
        return;
    };
    match parse(&body) {
        Ok(submission) => {
            assert_eq!(parse(&body).as_ref(), Ok(&submission));
            survives_storage(&submission);
            names_nobody(body);
        }
        Err(EventRejected::Forbidden(forbidden)) => panic!("a back end may do it: {forbidden}"),
        Err(refused) => {
            let rejection = RejectionReason::from(refused);
            assert!(!rejection.errors.is_empty());
            let written = serde_json::to_value(&rejection).unwrap();
            for error in &rejection.errors {
                assert!(body.pointer(&error.pointer).is_some() || error.detail == "is required");
            }
            assert!(written.is_object());
        }
    }
});

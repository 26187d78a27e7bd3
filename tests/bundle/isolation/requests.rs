//! The request of each row: the same for every caller, but for what is its own.

use chrono::{TimeDelta, Utc};
use hearback_tests::turns::{message, said};
use serde_json::{Value, json};
use uuid::Uuid;

use super::callers::Caller;
use super::owner::{ACCEPTED, OWNER, Owner, PROJECT, REJECTED, event, reaction, signal};
use super::table::Row;

/// A request.
#[derive(Debug)]
pub struct Sent {
    /// What stands in the place of the path's parameters.
    names: [(&'static str, String); 6],
    query: String,
    /// The body.
    pub body: Option<Value>,
    /// Whether it changes something that a later request would see.
    pub writes: bool,
    /// Whether the answer to the owner tells something of the owner's.
    pub shows: bool,
}

impl Sent {
    /// The path and query below this route.
    pub fn path(&self, route: &str) -> String {
        let mut path = route.to_owned();
        for (name, value) in &self.names {
            path = path.replace(&format!("{{{name}}}"), value);
        }
        assert!(!path.contains('{'), "{path}");
        path + &self.query
    }

    fn of(mut self, name: &str, value: &str) -> Self {
        for (known, given) in &mut self.names {
            if *known == name {
                value.clone_into(given);
            }
        }
        self
    }

    fn asking(mut self, query: String) -> Self {
        self.query = query;
        self
    }

    /// With the owner as its `user_id`: in the body, or in the query of a request without one.
    fn for_the_owner(mut self) -> Self {
        if let Some(body) = &mut self.body {
            body["user_id"] = json!(OWNER);
        } else {
            let first = if self.query.is_empty() { '?' } else { '&' };
            self.query += &format!("{first}user_id={OWNER}");
        }
        self
    }

    fn saying(mut self, body: Value) -> Self {
        self.body = Some(body);
        self
    }
}

/// The request of a row.
pub fn sent(row: &Row, owner: &Owner, caller: &Caller) -> Sent {
    let [conversation, turn, message_id] = REJECTED;
    let reads = || Sent {
        names: [
            ("tenant", caller.at.0.to_owned()),
            ("project", caller.at.1.to_owned()),
            ("conversation_id", conversation.to_owned()),
            ("turn_id", turn.to_owned()),
            ("userId", OWNER.to_owned()),
            ("feedbackId", owner.event.clone()),
        ],
        query: String::new(),
        body: None,
        writes: false,
        shows: true,
    };
    let writes = || Sent {
        writes: true,
        shows: false,
        ..reads()
    };
    if let Some((name, _)) = row
        .name
        .rsplit_once(" in the owner's view")
        .or_else(|| row.name.rsplit_once(" in the owner's name"))
    {
        let plain = Row {
            name: name.to_owned(),
            cells: row.cells.clone(),
        };
        return sent(&plain, owner, caller).for_the_owner();
    }
    // A name that the owner has not.
    let new = |kind: &str| format!("{kind}-{}", caller.name.replace(' ', "-"));
    match row.name.as_str() {
        "`POST /v1/feedback/submit` of the owner's" => writes().saying(event()),
        "`POST /v1/feedback/submit` with an id of the owner's" => {
            writes().saying(own_event(caller, &owner.event))
        }
        "`POST /v1/feedback/submit` about the owner's turn" => {
            let mut event = own_event(caller, &Uuid::new_v4().to_string());
            event["artifactId"] = json!(new("artifact"));
            event["context"] = json!({
                "projectId": PROJECT, "conversationId": conversation, "turnId": turn,
            });
            writes().saying(event)
        }
        "`POST /v1/feedback/batch` of the owner's" => writes().saying(json!({"events": [event()]})),
        "`GET /v1/feedback/{feedbackId}`" => reads(),
        "`GET /v1/feedback/{feedbackId}` of a signal" => {
            reads().of("feedbackId", &owner.signal_event)
        }
        "`GET /v1/preferences/{userId}`" | "`GET /v1/preferences/{userId}/history`" => reads(),
        "`PUT /v1/preferences/{userId}`" => writes().saying(json!({
            "preferenceVersion": owner.version, "globalPreferences": {"detailLevel": "overview"}
        })),
        "`POST /v1/preferences/{userId}/reset`" | "`DELETE /v1/users/{userId}/data`" => writes(),
        "`GET /v1/preferences/{userId}/resolved`" => {
            reads().asking(format!("?projectId={PROJECT}"))
        }
        "`GET /v1/preferences/{userId}/resolved` of anonymous events" => Sent {
            // There are none of the owner's.
            shows: false,
            ..reads().asking("?anonymous=true".to_owned())
        },
        "`GET /v1/users/{userId}/data/erasure`" => reads(),
        "`PUT …/turns/{turn_id}` beside the owner's" => {
            let own = said("And what does the parcel cost?", "Nothing.");
            writes().of("turn_id", &new("turn")).saying(own)
        }
        "`PUT …/turns/{turn_id}` the owner's again" => {
            writes().saying(owner.registration.clone())
        }
        "`PUT …/turns/{turn_id}` in place of the owner's" => {
            let [conversation, turn, message_id] = ACCEPTED;
            let at = writes()
                .of("conversation_id", conversation)
                .of("turn_id", turn);
            at.saying(message(message_id, "Something else?", "Nothing else."))
        }
        "`PUT …/turns/{turn_id}` a new one of the owner's" => {
            let mut turn = said("What else is there?", "That is all.");
            turn["user_id"] = json!(OWNER);
            let at = writes().of("conversation_id", &new("conversation"));
            at.of("turn_id", "turn-1").saying(turn)
        }
        "`GET …/turns/{turn_id}`" | "`GET …/turns/{turn_id}/feedback-context`" => reads(),
        "`POST …/turns/{turn_id}/feedback` of the owner's" => writes().saying(reaction()),
        "`POST …/turns/{turn_id}/feedback` of the caller's own" => {
            writes().saying(json!({"reaction": "neutral", "text": "So so."}))
        }
        "`POST …/turns/{turn_id}/feedback` of the machine's" => writes().saying(json!({
            "reaction": "ok", "text": "It was inferred.", "origin": "machine", "confidence": 0.9
        })),
        "`POST …/turns-with-feedbacks`" => reads().saying(json!({"include_turn_logs": true})),
        "`POST …/timeline/refresh`" => {
            reads().saying(json!({"turn_ids": [turn], "cache": {"ttl_seconds": 0}}))
        }
        "`POST /v1/feedback/detect`" => reads().saying(json!({"message": "No, that is wrong."})),
        // So that a reaction of the machine would be written, were there a turn to see.
        "`POST /conversations/{tenant}/{project}/feedback/infer`" => reads().saying(json!({
            "message": "No, that's wrong, I meant: Which gaming laptops are there?"
        })),
        "`POST /conversations/{tenant}/{project}/strategies/search`" => {
            reads().saying(json!({"query": "Which gaming laptops are there?"}))
        }
        "`GET /conversations/{tenant}/{project}/turns`" => {
            reads().asking("?user_feedback_status=rejected".to_owned())
        }
        "`POST /api/v1/feedback`" => writes().saying(signal()),
        "`GET /api/v1/feedback`" => reads(),
        "`DELETE /api/v1/feedback`" => {
            writes().asking(format!("?message_id={message_id}&signal=edit"))
        }
        "`POST /conversations/{tenant}/{project}/feedback/conversations-in-period`" => {
            let hour = TimeDelta::hours(1);
            reads().saying(json!({
                "start": Utc::now() - hour, "end": Utc::now() + hour, "include_turns": true
            }))
        }
        other => panic!("no request is known for {other}"),
    }
}

/// An event of the caller's own under this id.
fn own_event(caller: &Caller, id: &str) -> Value {
    json!({
        "feedbackId": id.parse::<Uuid>().unwrap(), "userId": caller.user, "sessionId": "a-session",
        "feedbackChannel": "explicit", "feedbackType": "rating", "data": {"rating": 1}
    })
}

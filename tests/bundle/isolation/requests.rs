//! The request of each row. It is the same for every caller, except for the caller's own names.

use chrono::{TimeDelta, Utc};
use hearback_tests::turns::{message, turn_body};
use serde_json::{Value, json};
use uuid::Uuid;

use super::callers::Caller;
use super::owner::{
    ACCEPTED, OWNER, Owner, PRIVATE, PROJECT, REJECTED, WEBHOOK, WORDS, event, reaction, signal,
    webhook,
};
use super::table::Row;

/// A request.
#[derive(Debug)]
pub struct Sent {
    /// The values of the path's parameters.
    names: [(&'static str, String); 9],
    query: String,
    /// The body.
    pub body: Option<Value>,
    /// Whether it writes something that later requests read.
    pub writes: bool,
    /// Whether the response to the owner contains the owner's data.
    pub shows: bool,
    /// What follows from the owner's message signals, and is in the owner's view only.
    pub private: &'static [&'static str],
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

    fn with_name(mut self, name: &str, value: &str) -> Self {
        for (known, given) in &mut self.names {
            if *known == name {
                value.clone_into(given);
            }
        }
        self
    }

    fn with_query(mut self, query: String) -> Self {
        self.query = query;
        self
    }

    /// Adds the owner as `user_id`: to the body, or to the query of a request without a body.
    fn for_the_owner(mut self) -> Self {
        if let Some(body) = &mut self.body {
            body["user_id"] = json!(OWNER);
        } else {
            let first = if self.query.is_empty() { '?' } else { '&' };
            self.query += &format!("{first}user_id={OWNER}");
        }
        self
    }

    /// Replaces the owner with the pseudonym.
    fn under(mut self, pseudonym: &str) -> Self {
        self.query = self.query.replace(OWNER, pseudonym);
        let body = self.body.map(|body| body.to_string());
        let body = body.map(|body| body.replace(OWNER, pseudonym));
        self.body = body.map(|body| serde_json::from_str(&body).unwrap());
        self.with_name("userId", pseudonym)
    }

    fn with_body(mut self, body: Value) -> Self {
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
            ("name", WEBHOOK.to_owned()),
            ("projectId", caller.at.1.to_owned()),
            ("queue", "signals".to_owned()),
        ],
        query: String::new(),
        body: None,
        writes: false,
        shows: true,
        private: &[],
    };
    let writes = || Sent {
        writes: true,
        shows: false,
        ..reads()
    };
    if let Some((name, _)) = row.name.rsplit_once(", by pseudonym") {
        let plain = Row {
            name: name.to_owned(),
            cells: row.cells.clone(),
        };
        return sent(&plain, owner, caller).under(&owner.pseudonym);
    }
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
    // A name that the owner does not use.
    let new = |kind: &str| format!("{kind}-{}", caller.name.replace(' ', "-"));
    match row.name.as_str() {
        "`POST /v1/feedback/submit` of the owner's" => writes().with_body(event()),
        "`POST /v1/feedback/submit` with an id of the owner's" => {
            writes().with_body(own_event(caller, &owner.event))
        }
        "`POST /v1/feedback/submit` about the owner's turn" => {
            let mut event = own_event(caller, &Uuid::new_v4().to_string());
            event["artifactId"] = json!(new("artifact"));
            event["context"] = json!({
                "projectId": PROJECT, "conversationId": conversation, "turnId": turn,
            });
            writes().with_body(event)
        }
        "`POST /v1/feedback/batch` of the owner's" => {
            writes().with_body(json!({"events": [event()]}))
        }
        "`GET /v1/feedback/{feedbackId}`" => reads(),
        "`GET /v1/feedback/{feedbackId}` of an anonymous event" => {
            reads().with_name("feedbackId", &owner.anonymous_event)
        }
        "`GET /v1/feedback/{feedbackId}` of a signal" => {
            reads().with_name("feedbackId", &owner.signal_event)
        }
        "`DELETE /v1/feedback/{feedbackId}`" => writes(),
        "`DELETE /v1/feedback/{feedbackId}` of an anonymous event" => {
            writes().with_name("feedbackId", &owner.anonymous_event)
        }
        "`DELETE /v1/feedback/{feedbackId}` about the owner's turn" => {
            writes().with_name("feedbackId", &owner.about_turn)
        }
        "`DELETE /v1/feedback/{feedbackId}` of a signal" => {
            writes().with_name("feedbackId", &owner.signal_event)
        }
        "`GET /v1/feedback/events`" => reads(),
        "`POST /v1/feedback/events/ticket`" => writes(),
        "`GET /v1/feedback/events` of the owner's" => {
            reads().with_query(format!("?userId={OWNER}"))
        }
        // It counts what the owner said, without a word of it.
        "`GET /v1/projects/{projectId}/insights`" => Sent {
            shows: false,
            ..reads()
        },
        "`GET /v1/projects/{projectId}/insights/compare`" => Sent {
            shows: false,
            ..reads().with_query("?by=label.model&a=m-1&b=m-2".to_owned())
        },
        "`GET /v1/preferences/{userId}`" | "`GET /v1/preferences/{userId}/history`" => reads(),
        "`PUT /v1/preferences/{userId}`" => writes().with_body(json!({
            "preferenceVersion": owner.version, "globalPreferences": {"detailLevel": "overview"}
        })),
        "`POST /v1/preferences/{userId}/reset`" | "`DELETE /v1/users/{userId}/data`" => writes(),
        "`GET /v1/preferences/{userId}/resolved`" => {
            reads().with_query(format!("?projectId={PROJECT}"))
        }
        "`GET /v1/preferences/{userId}/resolved` of anonymous events" => Sent {
            // The owner has none.
            shows: false,
            ..reads().with_query("?anonymous=true".to_owned())
        },
        "`GET /v1/users/{userId}/data/erasure`" => reads(),
        "`PUT …/turns/{turn_id}` next to the owner's" => {
            let own = turn_body("And what does the parcel cost?", "Nothing.");
            writes().with_name("turn_id", &new("turn")).with_body(own)
        }
        "`PUT …/turns/{turn_id}` the owner's again" => {
            writes().with_body(owner.registration.clone())
        }
        "`PUT …/turns/{turn_id}` in place of the owner's" => {
            let [conversation, turn, message_id] = ACCEPTED;
            let at = writes()
                .with_name("conversation_id", conversation)
                .with_name("turn_id", turn);
            at.with_body(message(message_id, "Something else?", "Nothing else."))
        }
        "`PUT …/turns/{turn_id}` a new one of the owner's" => {
            let mut turn = turn_body("What else is there?", "That is all.");
            turn["user_id"] = json!(OWNER);
            let at = writes().with_name("conversation_id", &new("conversation"));
            at.with_name("turn_id", "turn-1").with_body(turn)
        }
        "`GET …/turns/{turn_id}`" | "`GET …/turns/{turn_id}/feedback-context`" => reads(),
        "`GET …/turns/{turn_id}` with a message signal"
        | "`GET …/turns/{turn_id}/feedback-context` with a message signal" => Sent {
            private: &["\"rejected\"", "by:unsafe"],
            ..reads()
                .with_name("conversation_id", PRIVATE[0])
                .with_name("turn_id", PRIVATE[1])
        },
        "`POST …/turns/{turn_id}/feedback` of the owner's" => writes().with_body(reaction()),
        "`POST …/turns/{turn_id}/feedback` of the caller's own" => {
            writes().with_body(json!({"reaction": "neutral", "text": "So so."}))
        }
        "`POST …/turns/{turn_id}/feedback` of the machine's" => writes().with_body(json!({
            "reaction": "ok", "text": "It was inferred.", "origin": "machine", "confidence": 0.9
        })),
        "`PUT …/turns/{turn_id}/inference`" => {
            writes().with_body(json!({"feedback_type": "accepted"}))
        }
        "`GET …/turns`" => reads(),
        "`GET /conversations/{tenant}/{project}/corrections`" => reads(),
        "`POST …/turns-with-feedbacks`" => reads().with_body(json!({"include_turn_logs": true})),
        "`POST …/timeline/refresh`" => {
            reads().with_body(json!({"turn_ids": [turn], "cache": {"ttl_seconds": 0}}))
        }
        "`POST /v1/feedback/detect`" => reads().with_body(json!({"message": "No, that is wrong."})),
        // A machine reaction would be written if a turn were visible.
        "`POST /conversations/{tenant}/{project}/feedback/infer`" => reads().with_body(json!({
            "message": "No, that's wrong, I meant: Which gaming laptops are there?"
        })),
        "`POST /conversations/{tenant}/{project}/strategies/search`" => {
            reads().with_body(json!({"query": "Which gaming laptops are there?"}))
        }
        "`GET /conversations/{tenant}/{project}/turns`" => Sent {
            private: &[PRIVATE[1]],
            ..reads().with_query("?user_feedback_status=rejected".to_owned())
        },
        "`POST /api/v1/feedback`" => writes().with_body(signal()),
        "`GET /api/v1/feedback`" => reads(),
        "`DELETE /api/v1/feedback`" => {
            writes().with_query(format!("?message_id={message_id}&signal=edit"))
        }
        "`POST /conversations/{tenant}/{project}/feedback/conversations-in-period`" => {
            let hour = TimeDelta::hours(1);
            reads().with_body(json!({
                "start": Utc::now() - hour, "end": Utc::now() + hour, "include_turns": true
            }))
        }
        "`GET /v1/operations/queues`" => reads(),
        "`POST /v1/operations/dead-letters/{queue}/redrive`" => writes(),
        "`GET /v1/webhooks`" => reads(),
        "`PUT /v1/webhooks/{name}` a new one" => {
            let new = writes().with_name("name", &new("hook"));
            new.with_body(webhook("new"))
        }
        "`PUT /v1/webhooks/{name}` the tenant's" => writes().with_body(webhook(WORDS)),
        "`POST /v1/webhooks/{name}/test` the tenant's"
        | "`POST /v1/webhooks/{name}/secret` the tenant's" => writes(),
        "`DELETE /v1/webhooks/{name}` the new one" => writes().with_name("name", &new("hook")),
        other => panic!("no request is known for {other}"),
    }
}

/// An event of the caller with this id.
fn own_event(caller: &Caller, id: &str) -> Value {
    json!({
        "feedbackId": id.parse::<Uuid>().unwrap(), "userId": caller.user, "sessionId": "a-session",
        "feedbackChannel": "explicit", "feedbackType": "rating", "data": {"rating": 1}
    })
}

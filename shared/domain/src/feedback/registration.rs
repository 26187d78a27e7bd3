//! Resolves a second registration of a turn: a repeat, a completion, or a conflict.
//!
//! A turn may be registered in two steps: opened with the user's message, and completed with the answer. The second
//! body adds members, but cannot change those of the first.

use crate::feedback::mirror;
use crate::turns::turn::{Turn, TurnCore, TurnLog};

/// The effect of a body on a registered turn.
#[derive(Debug, Clone, PartialEq)]
pub enum Resolution {
    /// It repeats what is registered.
    Repeat,
    /// It completes the turn. Contains the completed turn.
    Completes(Box<Turn>),
    /// It conflicts with what is registered.
    Conflict(Conflict),
}

/// Why a body conflicts with a registered turn.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Conflict {
    /// The turn belongs to another user of the project.
    #[error("This turn is another user's.")]
    Owner,
    /// These members have other values, or are new.
    #[error("This turn is registered with another body. What differs: {}.", .0.join(", "))]
    Members(Vec<String>),
    /// The body differs. The turn was registered before the digests of members were stored.
    #[error("This turn is registered with another body.")]
    Body,
}

impl Turn {
    /// Whether this body is the one that registered or completed the turn.
    #[must_use]
    pub fn is_repeat_of(&self, known: &TurnCore) -> bool {
        let fingerprint = &self.core.fingerprint;
        *fingerprint == known.fingerprint || self.completed(known)
    }

    /// Whether this body is the one that completed the turn.
    #[must_use]
    pub fn completed(&self, known: &TurnCore) -> bool {
        known.completed_by.as_ref() == Some(&self.core.fingerprint)
    }

    /// The effect of this body on the registered turn `known` with the log `log`.
    #[must_use]
    pub fn resolve(&self, known: &TurnCore, log: TurnLog) -> Resolution {
        if self.core.user_id != known.user_id {
            return Resolution::Conflict(Conflict::Owner);
        }
        if log.given.is_empty() {
            return Resolution::Conflict(Conflict::Body);
        }
        let completes = known.open && !self.core.open;
        let differs = |(name, value): &(&String, &String)| match log.given.get(*name) {
            Some(given) => given != *value,
            // Only a completion may add members.
            None => !completes,
        };
        let differing = self.log.given.iter().filter(differs);
        let mut differing: Vec<String> = differing.map(|(name, _)| name.clone()).collect();
        if self.given_ts.is_some_and(|ts| ts != known.ts) {
            differing.push("ts".to_owned());
        }
        if !differing.is_empty() {
            Resolution::Conflict(Conflict::Members(differing))
        } else if completes {
            Resolution::Completes(Box::new(self.completing(known.clone(), log)))
        } else {
            Resolution::Repeat
        }
    }

    /// The open turn `known`, completed by this body.
    fn completing(&self, known: TurnCore, log: TurnLog) -> Self {
        let mut given = log.given;
        let mut turn_log = log.turn_log;
        if self.log.given.contains_key("turn_log") && !given.contains_key("turn_log") {
            // The open turn had no log, so everything in it is mirrored feedback.
            let mirrored = std::mem::replace(&mut turn_log, self.log.turn_log.clone());
            mirror::carry_over(&mirrored, &mut turn_log);
        }
        given.extend(self.log.given.clone());
        Self {
            core: known.completed_with(self.core.clone()),
            summary: self.summary.clone(),
            embedding: self.embedding.clone(),
            given_ts: self.given_ts,
            log: TurnLog {
                user: log.user,
                assistant: self.log.assistant.clone(),
                turn_log,
                given,
            },
        }
    }
}

impl TurnCore {
    /// The open turn with the members of the completing body.
    fn completed_with(self, body: Self) -> Self {
        Self {
            at: self.at,
            user_id: self.user_id,
            ts: self.ts,
            open: false,
            message_id: body.message_id,
            trace_id: self.trace_id.or(body.trace_id),
            span_id: self.span_id.or(body.span_id),
            track_id: self.track_id.or(body.track_id),
            bundle_id: self.bundle_id.or(body.bundle_id),
            user_type: self.user_type.or(body.user_type),
            artifact_type: self.artifact_type.or(body.artifact_type),
            task_type: self.task_type.or(body.task_type),
            agent_id: self.agent_id.or(body.agent_id),
            strategy: self.strategy.or(body.strategy),
            validation_outcome: self.validation_outcome.or(body.validation_outcome),
            quality_score: self.quality_score.or(body.quality_score),
            language: self.language.or(body.language),
            labels: if self.labels.is_empty() {
                body.labels
            } else {
                self.labels
            },
            fingerprint: self.fingerprint,
            completed_by: Some(body.fingerprint),
            expires_at: self.expires_at,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::identity::caller::Caller;
    use crate::turns::turn::{ConversationRef, TurnRef};

    fn turn_of(user: &str, body: &Value) -> Turn {
        let at = TurnRef {
            within: ConversationRef {
                tenant: "acme".try_into().unwrap(),
                project: "support".try_into().unwrap(),
                conversation: "c".try_into().unwrap(),
            },
            turn: "t".try_into().unwrap(),
        };
        let caller = Caller {
            user: user.try_into().unwrap(),
            tenant: "acme".try_into().unwrap(),
            projects: vec!["support".try_into().unwrap()],
            scopes: Vec::new(),
        };
        Turn::parse(at, body, &caller, "2026-01-04T09:30:00Z".parse().unwrap()).unwrap()
    }

    fn turn(body: &Value) -> Turn {
        turn_of("ada", body)
    }

    fn resolved(known: &Turn, body: &Value) -> Resolution {
        turn(body).resolve(&known.core, known.log.clone())
    }

    fn completed(known: &Turn, body: &Value) -> Turn {
        match resolved(known, body) {
            Resolution::Completes(turn) => *turn,
            other => panic!("{other:?}"),
        }
    }

    fn differing(known: &Turn, body: &Value) -> Vec<String> {
        match resolved(known, body) {
            Resolution::Conflict(Conflict::Members(members)) => members,
            other => panic!("{other:?}"),
        }
    }

    fn opening() -> Value {
        json!({"user": {"text": "a", "lang": "en"}, "trace_id": "t1"})
    }

    fn completion() -> Value {
        json!({
            "user": {"text": "a", "lang": "en"}, "assistant": {"text": "b", "message_id": "m"},
            "agent_id": "router", "turn_log": {"text": "log"}
        })
    }

    #[test]
    fn a_completion_adds_missing_members() {
        let open = turn(&opening());
        assert!(open.core.open && open.log.assistant.is_none());
        let complete = completed(&open, &completion());
        assert!(!complete.core.open);
        let core = &complete.core;
        assert_eq!(core.trace_id, open.core.trace_id);
        assert_eq!(core.agent_id.as_ref().unwrap().as_str(), "router");
        assert_eq!(core.message_id.as_ref().unwrap().as_str(), "m");
        assert_eq!(core.fingerprint, open.core.fingerprint);
        assert_eq!(complete.log.turn_log["text"], "log");
        assert_eq!(complete.summary.assistant, "b");
        for body in [opening(), completion()] {
            assert!(turn(&body).is_repeat_of(core));
            assert_eq!(resolved(&complete, &body), Resolution::Repeat);
        }
        assert!(turn(&completion()).completed(core) && !turn(&opening()).completed(core));
    }

    #[test]
    fn a_registered_member_cannot_be_changed() {
        let open = turn(&opening());
        let mut other = completion();
        other["user"]["lang"] = json!("de");
        other["trace_id"] = json!("t2");
        other["ts"] = json!("2026-01-04T09:31:00Z");
        assert_eq!(differing(&open, &other), ["trace_id", "user", "ts"]);
        let complete = completed(&open, &completion());
        let mut other = completion();
        other["assistant"]["text"] = json!("c");
        assert_eq!(differing(&complete, &other), ["assistant"]);
    }

    #[test]
    fn only_a_completion_may_add_members() {
        let open = turn(&opening());
        let mut more = opening();
        more["agent_id"] = json!("router");
        assert_eq!(differing(&open, &more), ["agent_id"]);
        let complete = completed(&open, &completion());
        let mut more = completion();
        more["quality_score"] = json!(0.5);
        assert_eq!(differing(&complete, &more), ["quality_score"]);
    }

    #[test]
    fn a_turn_of_another_user_is_an_owner_conflict() {
        let known = turn(&completion());
        let same = turn_of("eve", &completion());
        let resolution = same.resolve(&known.core, known.log.clone());
        assert_eq!(resolution, Resolution::Conflict(Conflict::Owner));
    }

    #[test]
    fn feedback_mirrored_into_an_open_turn_is_kept_on_completion() {
        let mut open = turn(&opening());
        let mirrored = json!({
            "text": "[feedback user 2026-01-04T09:30:00Z ok]",
            "entries": [{"type": "feedback", "feedback_id": "1", "line": "[feedback user 2026-01-04T09:30:00Z ok]"}],
            "feedbacks": [{"ts": "2026-01-04T09:30:00Z", "user_id": "ada"}]
        });
        open.log.turn_log = mirrored.as_object().cloned().unwrap();
        let mut body = completion();
        body["turn_log"]["entries"] = json!([{"type": "tool"}]);
        let complete = Value::Object(completed(&open, &body).log.turn_log);
        let text = "log\n[feedback user 2026-01-04T09:30:00Z ok]";
        assert_eq!(complete["text"], text);
        assert_eq!(complete["entries"][0], json!({"type": "tool"}));
        assert_eq!(complete["entries"][1], mirrored["entries"][0]);
        assert_eq!(complete["feedbacks"], mirrored["feedbacks"]);
    }
}

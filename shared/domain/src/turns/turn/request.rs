//! The request that registers a turn.

use chrono::{DateTime, Utc};
use hearback_wire::parse::to_instant;
use hearback_wire::{
    Errors, FieldError, FromJson, Members, Number, Pointer, from_json_with, noted, request,
};
use serde_json::{Map, Value};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{
    ArrayBuilder, KnownFormat, ObjectBuilder, Schema, SchemaFormat, Type,
};

use super::{Summary, Turn, TurnCore, TurnLog, TurnRef, message_digest, text_of};
use crate::events::recency::{AHEAD, MAX_AHEAD};
use crate::identity::caller::{Caller, Forbidden};
use crate::identity::identifier::{Label, MessageId, UserId};
use crate::identity::labels::Labels;
use crate::text::digest::digest;
use crate::text::language::Language;
use crate::text::member_digests::member_digests;

/// Length of the excerpt of the user's message in the index row, in characters. Of a longer message the row also has a
/// digest, by which it is recognised if it is repeated.
pub const QUERY: usize = 1000;
/// Length of the excerpt of the beginning of an answer, in characters.
pub const SUMMARY: usize = 300;
/// Length of the excerpt of the end of a longer answer, in characters. An answer often ends with a question.
pub const ENDING: usize = 200;
/// Maximum number of dimensions of an embedding.
pub const MAX_DIMENSIONS: usize = 4096;

request! {
    /// A turn of a conversation.
    pub struct TurnRequest, closed {
        /// RFC 3339 with an offset, at most 5 minutes in the future; the time of receipt if left out.
        "ts" => ts: nullable DateTime<Utc>,
        /// The owner of the turn: the caller, or with `feedback:on-behalf` any user.
        "user_id" => user_id: nullable UserId,
        /// The user's message. Other members are stored in the log.
        "user" => user: required UserMessage,
        /// The answer. Other members are stored in the log. Without an answer the turn is open, until a request with
        /// the answer completes it.
        "assistant" => assistant: nullable Answer,
        /// The trace of the answer.
        "trace_id" => trace_id: nullable Label,
        /// The span of the answer within its trace.
        "span_id" => span_id: nullable Label,
        /// The track of the turn.
        "track_id" => track_id: nullable Label,
        /// The bundle that answered.
        "bundle_id" => bundle_id: nullable Label,
        /// The kind of user.
        "user_type" => user_type: nullable Label,
        /// The kind of answer.
        "artifact_type" => artifact_type: nullable Label,
        /// The kind of task.
        "task_type" => task_type: nullable Label,
        /// The agent that answered.
        "agent_id" => agent_id: nullable Label,
        /// The agent's strategy.
        "strategy" => strategy: nullable Label,
        /// The result of a validation of the answer.
        "validation_outcome" => validation_outcome: nullable Label,
        /// The quality of the answer.
        "quality_score" => quality_score: nullable Number<0, 1>,
        /// Labels by which you compare answers; feedback on the turn inherits them. Up to 16 keys of 1 to 64 characters
        /// (`A-Z`, `a-z`, `0-9`, `_`, `.`, `-`), each with a string of 1 to 256 characters. `model` and
        /// `prompt_version` are the well-known keys.
        "labels" => labels: nullable Labels,
        /// An embedding of the turn, 1 to 4096 numbers.
        "embedding" => embedding: nullable Embedding,
        /// The language of the user's message, as a BCP 47 tag such as `de` or `pt-BR`; guessed if left out.
        "language" => language: nullable Language,
        /// Your own log of the turn, into which feedback may be mirrored.
        "turn_log" => turn_log: nullable Map<String, Value>,
    }
    example {
        "user": {"text": "How do I return an item?"},
        "assistant": {"text": "Within 30 days, with the receipt.", "message_id": "msg-1"},
        "track_id": "A",
        "task_type": "support"
    }
    example {"user": {"text": "Wie gebe ich etwas zurück?"}, "language": "de"}

    /// The user's message.
    pub struct UserMessage, open {
        /// The text of the message.
        "text" => text: required String,
    }

    /// The answer.
    pub struct Answer, open {
        /// The text of the answer.
        "text" => text: required String,
        /// The id of the answer, unique in its project.
        "message_id" => message_id: nullable MessageId,
    }
}

/// An embedding of a text: 1 to [`MAX_DIMENSIONS`] finite numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedding(pub Vec<f32>);

impl FromJson for Embedding {
    fn read(value: &Value, at: Pointer<'_>, errors: &mut Errors) -> Option<Self> {
        let numbers = value
            .as_array()
            .filter(|numbers| (1..=MAX_DIMENSIONS).contains(&numbers.len()))
            .and_then(|numbers| numbers.iter().map(finite).collect());
        let expected = || format!("must be an array of 1 to {MAX_DIMENSIONS} numbers");
        noted(numbers.ok_or_else(expected), at, errors).map(Self)
    }

    fn schema() -> RefOr<Schema> {
        let number = ObjectBuilder::new()
            .schema_type(Type::Number)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Float)))
            .minimum(Some(f32::MIN))
            .maximum(Some(f32::MAX));
        ArrayBuilder::new()
            .items(number)
            .min_items(Some(1))
            .max_items(Some(MAX_DIMENSIONS))
            .into()
    }
}

fn finite(number: &Value) -> Option<f32> {
    let number: f32 = serde_json::from_value(number.clone()).ok()?;
    number.is_finite().then_some(number)
}

/// Why a turn is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TurnRejected {
    /// The body does not match the schema: 400.
    #[error("the turn does not match the schema")]
    Invalid(Vec<FieldError>),
    /// The token does not allow it: 403.
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
}

impl Turn {
    /// Parses a registration. `now` is the time of receipt, and the default of `ts`.
    pub fn parse(
        at: TurnRef,
        body: &Value,
        caller: &Caller,
        now: DateTime<Utc>,
    ) -> Result<Self, TurnRejected> {
        let request: TurnRequest =
            from_json_with(body, |members, errors| check(members, now, errors))
                .map_err(TurnRejected::Invalid)?;
        let user_id = request.user_id.unwrap_or_else(|| caller.user.clone());
        caller.act_as(&user_id)?;
        let message = |name: &str| body.get(name).filter(|message| !message.is_null());
        let (user, assistant) = (
            message("user").cloned().unwrap_or_default(),
            message("assistant"),
        );
        Ok(Self {
            summary: summary(&user, assistant),
            embedding: request.embedding.map(|embedding| embedding.0),
            given_ts: request.ts,
            core: TurnCore {
                user_id,
                ts: request.ts.unwrap_or_else(|| to_instant(now)),
                open: request.assistant.is_none(),
                message_id: request.assistant.and_then(|answer| answer.message_id),
                trace_id: request.trace_id,
                span_id: request.span_id,
                track_id: request.track_id,
                bundle_id: request.bundle_id,
                user_type: request.user_type,
                artifact_type: request.artifact_type,
                task_type: request.task_type,
                agent_id: request.agent_id,
                strategy: request.strategy,
                validation_outcome: request.validation_outcome,
                quality_score: request.quality_score.map(|score| score.0),
                language: request.language,
                labels: request.labels.unwrap_or_default(),
                fingerprint: fingerprint(body, caller),
                completed_by: None,
                expires_at: None,
                at,
            },
            log: TurnLog {
                user,
                assistant: assistant.cloned(),
                turn_log: request.turn_log.unwrap_or_default(),
                given: member_digests(body),
            },
        })
    }
}

fn check(members: Members<'_>, now: DateTime<Utc>, errors: &mut Errors) {
    let ts = members.peek::<Option<DateTime<Utc>>>("ts").flatten();
    if ts.is_some_and(|ts| ts > now + MAX_AHEAD) {
        errors.add("/ts", AHEAD);
    }
}

/// A digest of the body and the user. It does not depend on the order of members, because `serde_json` sorts them.
fn fingerprint(body: &Value, caller: &Caller) -> String {
    let hash = digest([body.to_string().as_str(), caller.user.as_str()]);
    let half: Vec<u8> = hash.into_iter().take(16).collect();
    hex::encode(half)
}

/// Excerpts of the message and the answer.
fn summary(user: &Value, assistant: Option<&Value>) -> Summary {
    let (user, assistant) = (text_of(user), assistant.map_or("", text_of));
    let beginning = |text: &str, length| -> String { text.chars().take(length).collect() };
    let length = assistant.chars().count();
    let from = length.saturating_sub(ENDING).max(SUMMARY);
    Summary {
        user: beginning(user, QUERY),
        user_digest: (user.chars().nth(QUERY)).map(|_| message_digest(user)),
        assistant: beginning(assistant, SUMMARY),
        assistant_end: assistant.chars().skip(from).collect(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::turns::turn::ConversationRef;

    fn caller() -> Caller {
        Caller {
            user: "ada".try_into().unwrap(),
            tenant: "acme".try_into().unwrap(),
            projects: vec!["support".try_into().unwrap()],
            scopes: Vec::new(),
        }
    }

    fn at() -> TurnRef {
        TurnRef {
            within: ConversationRef {
                tenant: "acme".try_into().unwrap(),
                project: "support".try_into().unwrap(),
                conversation: "c".try_into().unwrap(),
            },
            turn: "t".try_into().unwrap(),
        }
    }

    fn parse(body: &Value) -> Result<Turn, TurnRejected> {
        Turn::parse(
            at(),
            body,
            &caller(),
            "2026-01-04T09:30:00Z".parse().unwrap(),
        )
    }

    #[test]
    fn all_invalid_members_are_reported() {
        let Err(TurnRejected::Invalid(errors)) = parse(&json!({
            "ts": "today", "user": {}, "assistant": "hello", "quality_score": 2,
            "embedding": [], "turn_log": [], "track": "A", "labels": {"model": ""}
        })) else {
            panic!("accepted")
        };
        let mut pointers: Vec<_> = errors.iter().map(|e| e.pointer.as_str()).collect();
        pointers.sort_unstable();
        assert_eq!(
            pointers,
            [
                "/assistant",
                "/embedding",
                "/labels/model",
                "/quality_score",
                "/track",
                "/ts",
                "/turn_log",
                "/user/text"
            ]
        );
    }

    #[test]
    fn the_fingerprint_does_not_depend_on_the_order_of_members() {
        let one = r#"{"user": {"text": "a"}, "assistant": {"text": "b", "message_id": "m"}}"#;
        let two = r#"{"assistant": {"message_id": "m", "text": "b"}, "user": {"text": "a"}}"#;
        let fingerprint = |text: &str| {
            let body = serde_json::from_str(text).unwrap();
            parse(&body).unwrap().core.fingerprint
        };
        assert_eq!(fingerprint(one), fingerprint(two));
        assert_ne!(fingerprint(one), fingerprint(&two.replace('m', "n")));
    }

    #[test]
    fn only_a_back_end_may_register_for_another_user() {
        let body = json!({"user_id": "eve", "user": {"text": "a"}, "assistant": {"text": "b"}});
        assert!(matches!(parse(&body), Err(TurnRejected::Forbidden(_))));
    }
}

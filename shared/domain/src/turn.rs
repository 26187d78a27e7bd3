//! Turns: what a user said and what was answered, as their registry takes them.
//!
//! Source: product specification, section 2.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::caller::{Caller, Forbidden};
use crate::digest::digest;
use crate::event::{EventContext, is_false};
use crate::identifier::{ConversationId, Label, MessageId, ProjectId, TenantId, TurnId, UserId};
use crate::labels::Labels;
use crate::language::Language;
use crate::parse::{
    Errors, FieldError, Object, date_time, identifier, number_in, string, to_instant,
};
use crate::payload::carried;
use crate::registration::{Given, given};

/// Characters of what the user said that the index row keeps: as many as it takes to tell whether the
/// next message asks the same.
const QUERY: usize = 1000;
/// Characters of an answer's beginning that it keeps.
const SUMMARY: usize = 300;
/// Characters of an answer's end that it keeps besides, where that is not all: what an answer asks
/// stands there.
const ENDING: usize = 200;
/// Most numbers of an embedding.
const MAX_DIMENSIONS: usize = 4096;

/// Where a conversation is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ConversationRef {
    /// The tenant.
    pub tenant: TenantId,
    /// The project.
    pub project: ProjectId,
    /// The conversation.
    #[serde(rename = "conversation_id")]
    pub conversation: ConversationId,
}

/// Where a turn is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TurnRef {
    /// Its conversation.
    #[serde(flatten)]
    pub within: ConversationRef,
    /// The turn.
    #[serde(rename = "turn_id")]
    pub turn: TurnId,
}

/// How far a turn is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = TurnStatus)]
pub enum Status {
    /// The user spoke, and the answer is not there yet.
    Open,
    /// It has an answer.
    Complete,
}

impl Status {
    /// The status of a turn that is open, or not.
    #[must_use]
    pub fn of(open: bool) -> Self {
        if open { Self::Open } else { Self::Complete }
    }
}

/// What an index row tells of a turn, without what was said in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnCore {
    /// Where it is.
    #[serde(flatten)]
    pub at: TurnRef,
    /// Whose it is.
    pub user_id: UserId,
    /// When it was.
    pub ts: DateTime<Utc>,
    /// Whether it has no answer yet.
    #[serde(default, skip_serializing_if = "is_false")]
    pub open: bool,
    /// The answer's own name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
    /// The trace of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<Label>,
    /// The span of the answer within its trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span_id: Option<Label>,
    /// The track that it is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub track_id: Option<Label>,
    /// The bundle that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle_id: Option<Label>,
    /// The kind of user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_type: Option<Label>,
    /// The kind of what was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<Label>,
    /// The kind of task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_type: Option<Label>,
    /// The agent that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<Label>,
    /// The strategy by which it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Label>,
    /// What a validation of the answer said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation_outcome: Option<Label>,
    /// How good the answer was held to be, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quality_score: Option<f64>,
    /// The language of what the user said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<Language>,
    /// What a team compares answers by. Every act on the turn inherits them.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// Tells one body from another: the same is a repeat.
    pub fingerprint: String,
    /// The same of the body that completed it, if it was opened first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_by: Option<String>,
    /// When it expires, and all that belongs to it; `None` is never. An attribute of the row of its own.
    #[serde(skip)]
    pub expires_at: Option<DateTime<Utc>>,
}

impl TurnCore {
    /// The tags of the index row (`Feedback System`, "Storage & Indexing").
    #[must_use]
    pub fn tags(&self) -> Vec<String> {
        let mut tags = vec![
            "artifact:turn.log".to_owned(),
            format!("turn:{}", self.at.turn),
        ];
        tags.extend(self.track_id.iter().map(|track| format!("track:{track}")));
        tags
    }

    /// What an event about this turn tells of it.
    #[must_use]
    pub fn context(&self) -> EventContext {
        EventContext {
            task_type: self.task_type.clone(),
            project_id: Label::try_from(self.at.within.project.as_str()).ok(),
            agent_id: self.agent_id.clone(),
            artifact_type: self.artifact_type.clone(),
            trace_id: self.trace_id.clone(),
            span_id: self.span_id.clone(),
            labels: self.labels.clone(),
            ..EventContext::default()
        }
    }
}

/// What a turn's log in the bucket holds: what was said, and the caller's own log, into which
/// feedback may be mirrored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnLog {
    /// What the user said: `{text}` and whatever else was given.
    pub user: Value,
    /// What was answered: `{text, message_id?}` and whatever else was given; `None` of an open turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assistant: Option<Value>,
    /// The caller's log, or an empty one.
    pub turn_log: Map<String, Value>,
    /// What bodies gave; empty if the log was stored before that was noted.
    #[serde(default, skip_serializing_if = "Given::is_empty")]
    pub given: Given,
}

impl TurnLog {
    /// Largest log, in bytes [as Lambda carries it](crate::payload): an answer holds it whole, and
    /// feedback beside it.
    pub const MAX: usize = 5_000_000;

    /// Whether an answer holds it: the log, and once more the `feedbacks` that are listed in it.
    #[must_use]
    pub fn fits(&self) -> bool {
        let listed = self.turn_log.get("feedbacks");
        carried(self) + listed.map_or(0, carried) <= Self::MAX
    }
}

/// What was said in a turn, in short.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// The beginning of what the user said.
    pub user: String,
    /// The beginning of what was answered.
    pub assistant: String,
    /// The end of what was answered, if the beginning is not all.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub assistant_end: String,
}

impl Summary {
    /// The answer as far as it is kept.
    #[must_use]
    pub fn answer(&self) -> String {
        if self.assistant_end.is_empty() {
            self.assistant.clone()
        } else {
            format!("{}\n…\n{}", self.assistant, self.assistant_end)
        }
    }
}

/// A turn to be registered.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// What the index row tells.
    pub core: TurnCore,
    /// What was said, in short, for the index row.
    pub summary: Summary,
    /// The embedding of the turn, if the caller made one.
    pub embedding: Option<Vec<f32>>,
    /// The turn's time, if the caller gave one.
    pub given_ts: Option<DateTime<Utc>>,
    /// What goes to the bucket.
    pub log: TurnLog,
}

/// Why a turn is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The body breaks the schema: 400.
    #[error("the turn breaks the schema")]
    Invalid(Vec<FieldError>),
    /// The token does not allow it: 403.
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
}

const MEMBERS: &[&str] = &[
    "ts",
    "user_id",
    "user",
    "assistant",
    "trace_id",
    "span_id",
    "track_id",
    "bundle_id",
    "user_type",
    "artifact_type",
    "task_type",
    "agent_id",
    "strategy",
    "validation_outcome",
    "quality_score",
    "labels",
    "embedding",
    "turn_log",
    "language",
];

impl Turn {
    /// What the user said, whole.
    #[must_use]
    pub fn query(&self) -> &str {
        text_of(&self.log.user)
    }

    /// What was said, on both sides as far as both spoke.
    #[must_use]
    pub fn texts(&self) -> String {
        match &self.log.assistant {
            Some(assistant) => format!("{}\n{}", self.query(), text_of(assistant)),
            None => self.query().to_owned(),
        }
    }

    /// Reads a registration. `now` is the time of receipt, and the turn's own time if it names
    /// none.
    pub fn parse(
        at: TurnRef,
        body: &Value,
        caller: &Caller,
        now: DateTime<Utc>,
    ) -> Result<Self, Refused> {
        let mut errors = Errors::default();
        let turn = read(at, body, caller, now, &mut errors);
        match turn {
            Some(turn) if errors.is_empty() => {
                caller.act_as(&turn.core.user_id)?;
                Ok(turn)
            }
            _ => Err(Refused::Invalid(errors.into_vec())),
        }
    }
}

fn read(
    at: TurnRef,
    body: &Value,
    caller: &Caller,
    now: DateTime<Utc>,
    errors: &mut Errors,
) -> Option<Turn> {
    let turn = Object::root(body, errors);
    turn.known_only(MEMBERS, errors);
    let user_id = turn.nullable("user_id", errors, identifier);
    let ts = turn.nullable("ts", errors, date_time);
    let user = turn.required("user", errors, object);
    let assistant = turn.nullable("assistant", errors, object);
    for (name, side) in [("user", user), ("assistant", assistant)] {
        if let Some(side) = side {
            with_text(side, &turn.pointer(name), errors);
        }
    }
    let message_id = assistant.and_then(|assistant| {
        Object::at(assistant, "/assistant", errors).nullable("message_id", errors, identifier)
    });
    let quality_score = turn.nullable("quality_score", errors, number_in(0.0, 1.0));
    let embedding = turn.nullable("embedding", errors, embedding);
    let turn_log = turn.nullable("turn_log", errors, |value| {
        value.as_object().cloned().ok_or("must be an object")
    });
    let language = turn.nullable("language", errors, identifier);
    let ts = ts.map(to_instant);
    let labels = turn.get("labels").filter(|labels| !labels.is_null());
    let labels = labels.map(|labels| Labels::read(labels, "/labels", errors));
    let mut label = |name| turn.nullable(name, errors, identifier);
    let user = user?;
    Some(Turn {
        core: TurnCore {
            user_id: user_id.unwrap_or_else(|| caller.user.clone()),
            ts: ts.unwrap_or_else(|| to_instant(now)),
            open: assistant.is_none(),
            message_id,
            trace_id: label("trace_id"),
            span_id: label("span_id"),
            track_id: label("track_id"),
            bundle_id: label("bundle_id"),
            user_type: label("user_type"),
            artifact_type: label("artifact_type"),
            task_type: label("task_type"),
            agent_id: label("agent_id"),
            strategy: label("strategy"),
            validation_outcome: label("validation_outcome"),
            quality_score,
            language,
            labels: labels.unwrap_or_default(),
            fingerprint: fingerprint(body, caller),
            completed_by: None,
            expires_at: None,
            at,
        },
        summary: summary(user, assistant),
        embedding,
        given_ts: ts,
        log: TurnLog {
            user: user.clone(),
            assistant: assistant.cloned(),
            turn_log: turn_log.unwrap_or_default(),
            given: given(body),
        },
    })
}

fn object(value: &Value) -> Result<&Value, &'static str> {
    value
        .is_object()
        .then_some(value)
        .ok_or("must be an object")
}

/// `{text: "…"}`, with whatever else the caller wants to keep beside.
fn with_text(side: &Value, at: &str, errors: &mut Errors) {
    Object::at(side, at, errors).required("text", errors, |text| string(text).map(|_| ()));
}

/// Reads an embedding.
pub fn embedding(value: &Value) -> Result<Vec<f32>, String> {
    let numbers = value
        .as_array()
        .filter(|numbers| (1..=MAX_DIMENSIONS).contains(&numbers.len()));
    numbers
        .and_then(|numbers| {
            numbers
                .iter()
                .map(|number| {
                    let number: Option<f32> = serde_json::from_value(number.clone()).ok();
                    number.filter(|number| number.is_finite())
                })
                .collect()
        })
        .ok_or_else(|| format!("must be an array of 1 to {MAX_DIMENSIONS} numbers"))
}

/// The same for the same body by the same user. The keys of a JSON object have no order, and are
/// sorted here.
fn fingerprint(body: &Value, caller: &Caller) -> String {
    let whole = digest([body.to_string().as_str(), caller.user.as_str()]);
    let half: Vec<u8> = whole.into_iter().take(16).collect();
    hex::encode(half)
}

/// What was said, cut short.
fn summary(user: &Value, assistant: Option<&Value>) -> Summary {
    let (user, assistant) = (text_of(user), assistant.map_or("", text_of));
    let beginning = |text: &str, most| -> String { text.chars().take(most).collect() };
    let length = assistant.chars().count();
    let from = length.saturating_sub(ENDING).max(SUMMARY);
    Summary {
        user: beginning(user, QUERY),
        assistant: beginning(assistant, SUMMARY),
        assistant_end: assistant.chars().skip(from).collect(),
    }
}

/// The text of a side of a turn.
fn text_of(side: &Value) -> &str {
    let text = side.get("text").and_then(Value::as_str);
    text.unwrap_or_default()
}

/// An embedding in the store: a scale, and a signed byte for each number.
///
/// The largest magnitude becomes 127, so the cosine of two vectors changes in the third decimal
/// at most.
#[must_use]
pub fn quantized(embedding: &[f32]) -> Vec<u8> {
    let largest = embedding.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
    let scale = if largest > 0.0 { largest / 127.0 } else { 1.0 };
    let mut bytes = scale.to_le_bytes().to_vec();
    bytes.extend(embedding.iter().map(|x| {
        #[expect(
            clippy::as_conversions,
            clippy::cast_possible_truncation,
            reason = "held in −127..127 before"
        )]
        let byte = (x / scale).round().clamp(-127.0, 127.0) as i8;
        byte.to_le_bytes()[0]
    }));
    bytes
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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

    fn parse(body: &Value) -> Result<Turn, Refused> {
        Turn::parse(
            at(),
            body,
            &caller(),
            "2026-01-04T09:30:00Z".parse().unwrap(),
        )
    }

    #[test]
    fn every_broken_member_is_named() {
        let Err(Refused::Invalid(errors)) = parse(&json!({
            "ts": "today", "user": {}, "assistant": "hello", "quality_score": 2,
            "embedding": [], "turn_log": [], "track": "A", "labels": {"model": ""}
        })) else {
            panic!("taken")
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
    fn the_order_of_members_makes_no_other_turn() {
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
    fn only_a_back_end_registers_for_another_user() {
        let body = json!({"user_id": "eve", "user": {"text": "a"}, "assistant": {"text": "b"}});
        assert!(matches!(parse(&body), Err(Refused::Forbidden(_))));
    }

    #[test]
    fn an_embedding_keeps_its_direction() {
        let embedding: Vec<f32> = (0..64_u8).map(|n| (f32::from(n) * 0.7).sin()).collect();
        let bytes = quantized(&embedding);
        assert_eq!(bytes.len(), 68);
        let back: Vec<f32> = bytes[4..]
            .iter()
            .map(|b| f32::from(b.cast_signed()))
            .collect();
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        let cosine =
            dot(&embedding, &back) / (dot(&embedding, &embedding) * dot(&back, &back)).sqrt();
        assert!(cosine > 0.999, "{cosine}");
    }
}

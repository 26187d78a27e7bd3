//! The live feed: who is connected, what a connection subscribes to, and how far it has received the feed. See
//! docs/reference/live-feed.md.
//!
//! What is published only wakes a connection. It then receives what it has not received of the feed, so that the first
//! page after a `subscribe`, later events and those of a slow hour all take one path, and none is missed between them.

use std::collections::BTreeSet;

use chrono::{DateTime, TimeDelta, Utc};
use hearback_wire::{FieldError, List, from_json, request, wire_names};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::events::event::{Channel, FeedbackType};
use crate::identity::identifier::{ProjectId, TenantId, UserId};
use crate::identity::labels::Labels;
use crate::views::feed::{EventType, FeedFilter, FeedPosition, FeedView, SETTLED_AFTER};

/// How long a ticket can be used.
pub const TICKET_LIFETIME: TimeDelta = TimeDelta::seconds(60);
/// How long a connection lasts at most: a WebSocket API would close it after two hours, without a goodbye.
pub const MAX_DURATION: TimeDelta = TimeDelta::minutes(118);
/// Bytes of a message, as API Gateway limits them.
pub const MAX_MESSAGE: usize = 128 * 1024;
/// Bytes of a frame.
pub const MAX_FRAME: usize = 32 * 1024;
/// When a connection reads the feed again after it was woken. Index entries that were missing then are there now.
pub const CHECK_AFTER: TimeDelta = TimeDelta::seconds(20);
/// Entries that a connection may receive before everything before them is complete. On a busier feed, the others
/// follow a little later.
const MAX_AHEAD: usize = 300;

/// Who is connected, or may connect with a ticket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listener {
    /// The tenant of the token.
    pub tenant: TenantId,
    /// The user of the token.
    pub user: UserId,
    /// What the token allows to see.
    pub view: FeedView,
    /// When the token expires, if it does.
    pub token_ends: Option<DateTime<Utc>>,
    /// When the ticket was made, or the connection.
    pub since: DateTime<Utc>,
}

/// Why a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Goodbye {
    /// The token has expired.
    TokenExpired,
    /// The connection has lasted for [`MAX_DURATION`].
    MaxDuration,
    /// The server stops.
    Shutdown,
}

impl Listener {
    /// When the connection ends, and why.
    #[must_use]
    pub fn end(&self) -> (DateTime<Utc>, Goodbye) {
        let latest = self.since + MAX_DURATION;
        match self.token_ends {
            Some(end) if end < latest => (end, Goodbye::TokenExpired),
            _ => (latest, Goodbye::MaxDuration),
        }
    }
}

/// What a client asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClientAction {
    /// Receive events.
    Subscribe,
    /// Receive a `pong`.
    Ping,
}

wire_names!(ClientAction {
    Subscribe = "subscribe",
    Ping = "ping",
});

request! {
    /// A frame from a client.
    pub struct ClientFrame, closed {
        /// What is asked for.
        "action" => action: required ClientAction,
        /// Receive events after this one: an `eventId`, or a `lastEventId`. Without it, new events and those of the last
        /// 15 seconds.
        "after" => after: nullable String,
        /// Which events are received; without it, all that the token allows.
        "filter" => filter: group FilterFrame,
    }

    /// Which events are received. What is left out or empty matches every value.
    pub struct FilterFrame, closed {
        /// Channels of the feedback.
        "channels" => channels: nullable List<Channel, 0, 16>,
        /// Types of the feedback. Retractions are received whatever the type of their event.
        "types" => types: nullable List<FeedbackType, 0, 16>,
        /// `eventType`s.
        "eventTypes" => event_types: nullable List<EventType, 0, 16>,
        /// The project.
        "projectId" => project: nullable ProjectId,
        /// Labels that the feedback has.
        "labels" => labels: nullable Labels,
    }
}

impl ClientFrame {
    /// Parses a frame.
    pub fn parse(text: &str) -> Result<Self, Vec<FieldError>> {
        let value: Value = serde_json::from_str(text).map_err(|_| {
            vec![FieldError {
                pointer: String::new(),
                detail: "must be JSON".to_owned(),
            }]
        })?;
        from_json(&value)
    }

    /// The position after which events are received; `None` for new events and those of the last 15 seconds.
    pub fn after(&self) -> Result<Option<FeedPosition>, FieldError> {
        let after = self.after.as_deref().map(FeedPosition::from_event_id);
        after.transpose().map_err(|invalid| FieldError {
            pointer: "/after".to_owned(),
            detail: invalid.to_string(),
        })
    }
}

impl From<FilterFrame> for FeedFilter {
    fn from(frame: FilterFrame) -> Self {
        fn values<T, const MOST: usize>(list: Option<List<T, 0, MOST>>) -> Vec<T> {
            list.map(|List(values)| values).unwrap_or_default()
        }
        Self {
            channels: values(frame.channels),
            types: values(frame.types),
            outcome: None,
            event_types: values(frame.event_types),
            project: frame.project,
            labels: frame.labels.unwrap_or_default(),
        }
    }
}

/// What a connection subscribes to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subscription {
    /// Distinguishes it from the one that it replaced.
    pub id: Uuid,
    /// Which events are received.
    pub filter: FeedFilter,
}

/// How far a connection has received the feed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Everything up to here was sent.
    position: FeedPosition,
    /// Entries after it that were sent. Others may still appear between them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    ahead: BTreeSet<FeedPosition>,
    /// When the feed is read again although nothing woke the connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check_at: Option<DateTime<Utc>>,
}

impl Progress {
    /// Nothing after this position was sent.
    #[must_use]
    pub fn from(position: FeedPosition) -> Self {
        Self {
            position,
            ahead: BTreeSet::new(),
            check_at: None,
        }
    }

    /// Everything up to here was sent: where a client resumes.
    #[must_use]
    pub fn position(&self) -> FeedPosition {
        self.position
    }

    /// Entries after the position that were sent.
    #[must_use]
    pub fn ahead(&self) -> &BTreeSet<FeedPosition> {
        &self.ahead
    }

    /// Whether nothing more can be sent before everything before it is complete.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.ahead.len() >= MAX_AHEAD
    }

    /// Records that everything up to `reached` that was in the feed by `now` was sent, with these entries.
    pub fn advance(
        &mut self,
        reached: FeedPosition,
        entries: impl IntoIterator<Item = FeedPosition>,
        now: DateTime<Utc>,
    ) {
        self.ahead.extend(entries);
        self.position = self.settled(reached, now);
        let position = self.position;
        self.ahead.retain(|entry| *entry > position);
    }

    /// Where a client resumes that has received everything up to `reached`, of what was in the feed by `now`.
    #[must_use]
    pub fn settled(&self, reached: FeedPosition, now: DateTime<Utc>) -> FeedPosition {
        let complete = FeedPosition::before(now - SETTLED_AFTER);
        self.position.max(reached.min(complete))
    }

    /// Plans to read the feed again, and returns whether that is new.
    pub fn plan_check(&mut self, now: DateTime<Utc>) -> bool {
        let is_planned = (self.check_at).is_some_and(|at| at >= now + SETTLED_AFTER);
        if !is_planned {
            self.check_at = Some(now + CHECK_AFTER);
        }
        !is_planned
    }
}

/// A frame for a client.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerFrame {
    /// The subscription was accepted; what follows comes after this position.
    Subscribed(FeedPosition),
    /// Events, and where to resume.
    Events(Vec<Value>, FeedPosition),
    /// The answer to `ping`.
    Pong,
    /// The frame was rejected: a code, and the errors of its members.
    Error(&'static str, String, Vec<FieldError>),
    /// The connection ends.
    Goodbye(Goodbye),
}

impl ServerFrame {
    /// The frame as JSON text.
    #[must_use]
    pub fn text(&self) -> String {
        let frame = match self {
            Self::Subscribed(at) => json!({"type": "subscribed", "lastEventId": at.event_id()}),
            Self::Events(events, at) => {
                json!({"type": "events", "events": events, "lastEventId": at.event_id()})
            }
            Self::Pong => json!({"type": "pong"}),
            Self::Error(error, detail, errors) => {
                json!({"type": "error", "error": error, "detail": detail, "errors": errors})
            }
            Self::Goodbye(reason) => json!({"type": "goodbye", "reason": reason}),
        };
        frame.to_string()
    }
}

/// Divides messages into frames of up to [`MAX_FRAME`] bytes. A larger message has a frame of its own.
#[must_use]
pub fn frames(events: Vec<(FeedPosition, Value)>) -> Vec<(FeedPosition, Vec<Value>)> {
    /// The members around the events.
    const AROUND: usize = 128;
    let mut frames: Vec<(FeedPosition, Vec<Value>)> = Vec::new();
    let mut room = 0;
    for (position, event) in events {
        let size = event.to_string().len() + 1;
        match frames.last_mut() {
            Some((last, frame)) if size <= room => {
                *last = position;
                frame.push(event);
                room -= size;
            }
            _ => {
                frames.push((position, vec![event]));
                room = (MAX_FRAME - AROUND).saturating_sub(size);
            }
        }
    }
    frames
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_767_519_000 + seconds, 0).unwrap()
    }

    fn position(seconds: i64) -> FeedPosition {
        FeedPosition::before(at(seconds))
    }

    #[test]
    fn a_frame_names_each_wrong_member() {
        let frame = |text| {
            ClientFrame::parse(text).map_err(|errors| {
                let pointers = errors.into_iter().map(|error| error.pointer);
                pointers.collect::<Vec<_>>()
            })
        };
        assert_eq!(frame("no JSON"), Err(vec![String::new()]));
        assert_eq!(frame("[]"), Err(vec![String::new()]));
        assert_eq!(frame("{}"), Err(vec!["/action".to_owned()]));
        let wrong = r#"{"action":"subscribe","filter":{"channels":["x"],"eventTypes":7,"labels":{"":"a"}}}"#;
        let pointers = [
            "/filter/channels/0",
            "/filter/eventTypes",
            "/filter/labels/",
        ];
        assert_eq!(frame(wrong), Err(pointers.map(ToOwned::to_owned).to_vec()));
        let after = frame(r#"{"action":"subscribe","after":"never"}"#)
            .unwrap()
            .after();
        assert_eq!(after.unwrap_err().pointer, "/after");
        assert_eq!(
            frame(r#"{"action":"ping"}"#).unwrap().action,
            ClientAction::Ping
        );
    }

    #[test]
    fn a_connection_ends_when_its_token_expires() {
        let listener = |token_ends: Option<DateTime<Utc>>| Listener {
            tenant: "acme".try_into().unwrap(),
            user: "ada".try_into().unwrap(),
            view: FeedView::Own(Vec::new()),
            token_ends,
            since: at(0),
        };
        assert_eq!(
            listener(Some(at(60))).end(),
            (at(60), Goodbye::TokenExpired)
        );
        let latest = (at(0) + MAX_DURATION, Goodbye::MaxDuration);
        assert_eq!(listener(Some(at(86_400))).end(), latest);
        assert_eq!(listener(None).end(), latest);
    }

    #[test]
    fn a_check_is_planned_once_for_the_same_time() {
        let mut progress = Progress::from(position(0));
        assert!(progress.plan_check(at(0)));
        assert!(
            !progress.plan_check(at(5)),
            "20 seconds after 0 is 15 after 5"
        );
        assert!(progress.plan_check(at(6)));
    }

    #[test]
    fn frames_are_at_most_32_kilobytes() {
        let event = |size: usize| json!({"text": "x".repeat(size)});
        let sizes = [10, 16_000, 16_000, 40_000, 10, 32_700];
        let events = sizes.iter().map(|size| (position(0), event(*size)));
        let frames = frames(events.collect());
        let counts: Vec<_> = frames.iter().map(|(_, events)| events.len()).collect();
        assert_eq!(counts, [3, 1, 1, 1]);
        for (at, events) in frames {
            let alone = events.len() == 1;
            assert!(ServerFrame::Events(events, at).text().len() <= MAX_FRAME || alone);
        }
    }

    proptest! {
        /// A connection reads the feed at some times, while entries appear late by up to `SETTLED_AFTER`. It receives
        /// each entry once, and a client that resumes at any `lastEventId` misses none.
        #[test]
        fn late_entries_are_received_once(
            entries in prop::collection::btree_map(0..60_i64, 0..15_i64, 0..20),
            reads in prop::collection::btree_set(0..70_i64, 0..20),
        ) {
            let visible = |now: i64| {
                let late = entries.iter().filter(move |(at, late)| **at + **late <= now);
                late.map(|(at, _)| position(*at)).collect::<BTreeSet<_>>()
            };
            let mut progress = Progress::from(position(-1));
            let mut sent = Vec::new();
            for now in reads.into_iter().chain([100]) {
                let from = progress.position();
                let is_new = |entry: &FeedPosition| *entry > from && !progress.ahead().contains(entry);
                let new: Vec<_> = visible(now).into_iter().filter(is_new).collect();
                sent.extend(&new);
                progress.advance(position(now), new, at(now));
                let resumed = visible(100).into_iter().filter(|entry| *entry > progress.position());
                let received: BTreeSet<_> = sent.iter().copied().chain(resumed).collect();
                prop_assert_eq!(received, visible(100));
            }
            let all: Vec<_> = visible(100).into_iter().collect();
            sent.sort();
            prop_assert_eq!(sent, all);
        }
    }
}

//! A project with feedback on many days, and its period report, read page by page.

use std::collections::BTreeMap;

use axum::Router;
use axum::http::{Method, StatusCode};
use chrono::{DateTime, TimeDelta, Utc};
use futures::stream::{self, StreamExt};
use hearback_domain::feedback::reaction::{NewReaction, Reaction, ReactionUpdate};
use hearback_domain::identity::caller::Caller;
use hearback_domain::turns::turn::{ConversationRef, Turn, TurnRef};
use hearback_lambda::http::service;
use hearback_storage::Replaced;
use hearback_storage::Store;
use serde_json::{Value, json};

use crate::engine::{Cost, Engine, Meter};
use crate::functions::call;
use crate::turns::turn_body;

/// Concurrent writes.
const CONCURRENCY: usize = 16;

/// A project with feedback, and the expected report.
pub struct Project {
    /// Its engine.
    pub engine: Engine,
    store: Store,
    meter: Meter,
    functions: Router,
    /// Whether all feedback is of one user, who has no scope.
    is_own: bool,
    /// The counts of `ok`, `not_ok` and `neutral` of each conversation.
    pub expected: BTreeMap<String, [u32; 3]>,
}

/// An amount of feedback and its period.
#[derive(Debug, Clone, Copy)]
pub struct Extent {
    /// Conversations.
    pub conversations: u32,
    /// Reactions, distributed evenly over the conversations.
    pub reactions: u32,
    /// The first day.
    pub start: DateTime<Utc>,
    /// Days over which the reactions are spread.
    pub days: u32,
}

/// All pages of a report.
#[derive(Debug, Default)]
pub struct Report {
    /// The items, in order.
    pub items: Vec<Value>,
    /// The number of pages.
    pub pages: usize,
    /// The cost.
    pub cost: Cost,
}

impl Project {
    /// A project without feedback.
    pub async fn start() -> Self {
        let engine = Engine::start().await;
        let meter = Meter::default();
        let app = engine.with_blobs(engine.store_with(meter.clone()));
        Self {
            store: engine.store.clone(),
            functions: service(hearback_local::gateway::functions(app, engine.erasures())),
            meter,
            engine,
            is_own: false,
            expected: BTreeMap::new(),
        }
    }

    /// A project in which all feedback is the caller's own.
    pub async fn of_one_user() -> Self {
        Self {
            is_own: true,
            ..Self::start().await
        }
    }

    /// Adds feedback, in conversations whose names begin with `prefix`.
    pub async fn add(&mut self, prefix: &str, extent: Extent) {
        let span = TimeDelta::days(i64::from(extent.days)).num_seconds();
        let writes: Vec<_> = (0..extent.reactions)
            .map(|n| {
                let conversation = format!("{prefix}-{}", n % extent.conversations);
                // Spread over the whole span, out of order, and not one each minute.
                let second = (i64::from(n) * 7919 * 61) % span;
                let verdict = n / 3 % 3;
                (
                    conversation,
                    n,
                    extent.start + TimeDelta::seconds(second),
                    verdict,
                )
            })
            .collect();
        for (conversation, _, _, verdict) in &writes {
            let counts = self.expected.entry(conversation.clone()).or_default();
            counts[usize::try_from(*verdict).unwrap()] += 1;
        }
        // Received ten minutes ago, so that no write counts as in progress.
        let received_at = Utc::now() - TimeDelta::minutes(10);
        let (store, is_own) = (&self.store, self.is_own);
        stream::iter(writes)
            .for_each_concurrent(CONCURRENCY, |(conversation, n, ts, verdict)| async move {
                let (name, _) = Reaction::NAMES[usize::try_from(verdict).unwrap()];
                let body = json!({"reaction": name, "ts": ts, "text": format!("number {n}")});
                let others = format!("user-of-{conversation}");
                let user = if is_own { "ada" } else { &others };
                let at = (&*conversation, &*format!("turn-{n}"));
                put_by(store, user, at, &body, received_at).await;
            })
            .await;
    }

    /// Adds reactions that each take over 4 KB of a response: each to a different turn, or each by a different user to
    /// the turn `t`.
    pub async fn add_large(&self, conversation: &str, reactions: u32, to_one_turn: bool) {
        let received_at = Utc::now() - TimeDelta::minutes(10);
        let ts = "2025-09-05T12:00:00Z".parse::<DateTime<Utc>>().unwrap();
        stream::iter(0..reactions)
            .for_each_concurrent(CONCURRENCY, |n| async move {
                let at = ts + TimeDelta::seconds(i64::from(n % 50));
                let body = json!({"reaction": "ok", "ts": at, "text": "\"".repeat(1000)});
                let (user, turn) = if to_one_turn {
                    (format!("user-{n}"), "t".to_owned())
                } else {
                    ("ada".to_owned(), format!("turn-{n}"))
                };
                put_by(
                    &self.store,
                    &user,
                    (conversation, &turn),
                    &body,
                    received_at,
                )
                .await;
            })
            .await;
    }

    /// Registers a turn, so that it can be reacted to over HTTP.
    pub async fn register(&self, conversation: &str, turn: &str) {
        let path = format!("/conversations/acme/support/{conversation}/turns/{turn}");
        let (status, _) = self.call(Method::PUT, &path, &turn_body("a", "b")).await;
        assert!(status.is_success());
    }

    /// Reacts to a turn over HTTP.
    pub async fn react(&self, conversation: &str, turn: &str, body: &Value) {
        let path = format!("/conversations/acme/support/{conversation}/turns/{turn}/feedback");
        let (status, response) = self.call(Method::POST, &path, body).await;
        assert_eq!(status, StatusCode::OK, "{response}");
    }

    /// Stores a reaction that was received at `received_at`, as a slow request does.
    pub async fn put_late(&self, conversation: &str, ts: &str, received_at: DateTime<Utc>) {
        let body = json!({"reaction": "ok", "ts": ts});
        put(&self.store, conversation, "late", &body, received_at).await;
    }

    /// One page of a report.
    pub async fn page(&self, request: &Value) -> Value {
        let path = "/conversations/acme/support/feedback/conversations-in-period";
        let (status, page) = self.call(Method::POST, path, request).await;
        assert_eq!(status, StatusCode::OK, "{page}");
        page
    }

    /// Every page of a report; `between` runs after each.
    pub async fn report(&self, request: &Value, mut between: impl AsyncFnMut(usize)) -> Report {
        let mut report = Report::default();
        let mut request = request.clone();
        self.meter.take();
        loop {
            let page = self.page(&request).await;
            let cost = self.meter.take();
            report.cost.calls += cost.calls;
            report.cost.reads += cost.reads;
            report
                .items
                .extend(page["items"].as_array().unwrap().clone());
            report.pages += 1;
            if page["next_cursor"].is_null() {
                return report;
            }
            request["cursor"] = page["next_cursor"].clone();
            between(report.pages).await;
            self.meter.take();
        }
    }

    /// Calls a route as a back end with the scope for reports, or as the one user.
    pub async fn call(&self, method: Method, path: &str, body: &Value) -> (StatusCode, Value) {
        let scope = if self.is_own {
            ""
        } else {
            "feedback:report feedback:on-behalf"
        };
        let caller = ("support", scope);
        call(&self.functions, caller, (method, path), body).await
    }
}

/// Writes a reaction as the function does, without a registered turn.
async fn put(store: &Store, conversation: &str, turn: &str, body: &Value, now: DateTime<Utc>) {
    let user = format!("user-of-{conversation}");
    put_by(store, &user, (conversation, turn), body, now).await;
}

/// The same, by a user.
async fn put_by(
    store: &Store,
    user: &str,
    (conversation, turn): (&str, &str),
    body: &Value,
    now: DateTime<Utc>,
) {
    let caller = Caller {
        user: user.try_into().unwrap(),
        tenant: "acme".try_into().unwrap(),
        projects: Vec::new(),
        scopes: Vec::new(),
    };
    let at = TurnRef {
        within: ConversationRef {
            tenant: caller.tenant.clone(),
            project: "support".try_into().unwrap(),
            conversation: conversation.try_into().unwrap(),
        },
        turn: turn.try_into().unwrap(),
    };
    let turn = Turn::parse(at, &turn_body("a", "b"), &caller, now)
        .unwrap()
        .core;
    let posted = NewReaction::parse(body, &caller, now).unwrap();
    let reaction = posted.on(&turn, &caller, false, now);
    let ReactionUpdate::Write(reaction) = reaction.resolve(None) else {
        panic!("nothing to write")
    };
    store.mark_activity(&reaction.core).await.unwrap();
    let replaced = store.put_reaction(&reaction, None).await.unwrap();
    assert_eq!(replaced, Replaced::Done);
}

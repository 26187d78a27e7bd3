//! A client of the live feed.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use hearback_domain::views::feed::FeedPosition;
use hearback_local::live::Outgoing;
use hearback_tests::live::sent;
use serde_json::Value;
use tokio::sync::mpsc::Receiver;

use super::model::USERS;

/// A reporter, who is no user.
pub const REPORTER: &str = "analyst";

/// A client with everything that it was sent, on all its connections.
pub struct Listener {
    pub tenant: usize,
    pub user: &'static str,
    pub scope: &'static str,
    pub connection: Option<(String, Receiver<Outgoing>)>,
    /// Where the next connection resumes.
    pub last: String,
    /// Events by their ids.
    pub received: BTreeMap<String, Value>,
}

impl Listener {
    /// Each user and a reporter of each tenant, by its number. They listen from a time on.
    pub fn all(tenants: usize, since: DateTime<Utc>) -> Vec<Self> {
        let last = FeedPosition::before(since).event_id();
        let who = USERS.map(|user| (user, ""));
        let who = who.into_iter().chain([(REPORTER, "feedback:report")]);
        let all = who.flat_map(|who| (0..tenants).map(move |tenant| (tenant, who)));
        all.map(|(tenant, (user, scope))| Self {
            tenant,
            user,
            scope,
            connection: None,
            last: last.clone(),
            received: BTreeMap::new(),
        })
        .collect()
    }

    /// Reads what it was sent.
    pub fn read(&mut self) {
        let Some((_, frames)) = &mut self.connection else {
            return;
        };
        for frame in sent(frames) {
            match frame["type"].as_str().unwrap() {
                "subscribed" => {}
                "events" => {
                    for event in frame["events"].as_array().unwrap() {
                        let id = event["eventId"].as_str().unwrap().to_owned();
                        let before = self.received.insert(id, event.clone());
                        assert!(before.is_none_or(|before| before == *event), "{event}");
                    }
                }
                // It connects again.
                "closed" | "error" => {
                    self.connection = None;
                    return;
                }
                _ => panic!("{frame}"),
            }
            frame["lastEventId"]
                .as_str()
                .unwrap()
                .clone_into(&mut self.last);
        }
    }
}

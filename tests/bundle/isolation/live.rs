//! The live feed: a connection receives what the list has for the same token.

use std::collections::BTreeSet;

use hearback_tests::events::acceptance;
use hearback_tests::live::{LiveClient, TICKET, subscribe_to_all};
use hearback_tests::turns::FEED;
use serde_json::Value;

use super::{Caller, Cell, Matrix, callers_of, owner, settled};

/// The row of the list.
const LIST: &str = "`GET /v1/feedback/events`";

/// A connection with what it has received.
struct Connected<'a> {
    caller: &'a Caller,
    cell: Cell,
    token: &'a str,
    live: LiveClient,
    events: Vec<Value>,
}

impl Connected<'_> {
    fn ids(&self) -> BTreeSet<&str> {
        self.events.iter().map(event_id).collect()
    }

    /// Receives until there is an event with each of these ids.
    async fn receive(&mut self, expected: &[Value]) {
        let expected: BTreeSet<_> = expected.iter().map(event_id).collect();
        while !self.ids().is_superset(&expected) {
            self.receive_frame().await;
        }
    }

    /// Receives one frame, and returns whether it has events.
    async fn receive_frame(&mut self) -> bool {
        let frame = self.live.receive().await.expect("an open connection");
        let events = frame["events"].as_array().cloned();
        self.events.extend(events.clone().unwrap_or_default());
        events.is_some()
    }
}

fn event_id(event: &Value) -> &str {
    event["eventId"].as_str().unwrap()
}

impl Matrix {
    async fn listed(&self, token: &str) -> Vec<Value> {
        let page = self.app.get(token, &format!("{FEED}?limit=500")).await;
        assert_eq!(page.body["nextCursor"], Value::Null, "one page");
        page.body["events"].as_array().unwrap().clone()
    }
}

#[tokio::test]
async fn every_connection_to_the_live_feed_receives_what_the_isolation_page_says_of_the_list() {
    let matrix = Matrix::new().await;
    settled(&matrix.app).await;
    let row = matrix.table.rows.iter().find(|row| row.name == LIST);
    let mut connections = Vec::new();
    for (caller, cell, (_, authorization)) in callers_of(&matrix.callers, row.unwrap()) {
        let mut request = matrix.app.request(reqwest::Method::POST, TICKET);
        if let Some(authorization) = authorization {
            request = request.header("authorization", authorization);
        }
        let ticket = matrix.app.send(request).await;
        if cell.is_rejected() {
            assert_eq!(ticket.status, cell.status, "{}", caller.name);
            continue;
        }
        let token = authorization.and_then(|given| given.strip_prefix("Bearer "));
        let text = |member: &str| ticket.body[member].as_str().unwrap().to_owned();
        let url = format!("{}?ticket={}", text("url"), text("ticket"));
        let mut live = LiveClient::connect(&url).await.unwrap();
        live.send(&subscribe_to_all()).await;
        assert_eq!(live.receive().await.unwrap()["type"], "subscribed");
        connections.push(Connected {
            caller,
            cell,
            token: token.unwrap(),
            live,
            events: Vec::new(),
        });
    }
    assert!(connections.len() > 80, "{}", connections.len());

    // What was published before is replayed, and what the owner publishes now follows.
    let token = matrix.app.token(owner::OWNER);
    let mut event = acceptance(owner::OWNER);
    event["context"]["projectId"] = owner::PROJECT.into();
    let published = matrix.app.submit(&token, &event).await;
    assert_eq!(published.status, 202, "{}", published.body);
    matrix
        .app
        .outcome(&token, event["feedbackId"].as_str().unwrap())
        .await;
    // Those that receive it first: by then, it was sent to the others too, if at all.
    connections.sort_by_key(|connection| !connection.cell.is_the_owners);
    for connection in &mut connections {
        let listed = matrix.listed(connection.token).await;
        connection.receive(&listed).await;
        connection.live.send(r#"{"action":"ping"}"#).await;
        while connection.receive_frame().await {}
        let about = format!("{}: {:?}", connection.caller.name, connection.events);
        for event in &connection.events {
            assert!(listed.contains(event), "not in the list: {about}");
        }
        let secrets = matrix.owner.secrets.iter();
        let received = format!("{:?}", connection.events);
        let revealed: Vec<_> = secrets
            .filter(|secret| received.contains(*secret))
            .filter(|secret| !connection.caller.claims.contains(*secret))
            .collect();
        assert_eq!(
            !revealed.is_empty(),
            connection.cell.is_the_owners,
            "{revealed:?}: {about}"
        );
    }
}

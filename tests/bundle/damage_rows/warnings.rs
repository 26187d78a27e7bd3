//! The log names what is left out, and none of its data.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use hearback_tests::engine::Engine;
use hearback_tests::functions::{call, functions_of};

use super::*;

/// What is logged in this thread.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(line)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn skipped_items_are_logged_with_their_kind_and_tenant_but_without_data() {
    let log = Log::default();
    let written = log.clone();
    let subscriber = tracing_subscriber::fmt().json().flatten_event(true);
    let subscriber = subscriber.with_writer(move || written.clone()).finish();
    // With one subscriber in the process, a line of the log that another thread reaches first is off for good.
    let _second = tracing::Dispatch::new(tracing::subscriber::NoSubscriber::default());
    let _logging = tracing::subscriber::set_default(subscriber);
    let engine = Engine::start().await;
    let functions = functions_of(&engine);
    let send = async |method: Method, path: &str, body: &Value| {
        let caller = ("order-service", "");
        let (status, body) = call(&functions, caller, (method, path), body).await;
        assert!(status.is_success(), "{status} {body}");
    };
    for turn in ["t1", "t2"] {
        let at = path("c", turn);
        let body = message(turn, "Where is the laptop?", "In the shop.");
        send(Method::PUT, &at, &body).await;
        let reaction = json!({"reaction": "not_ok", "text": "no"});
        send(Method::POST, &format!("{at}/feedback"), &reaction).await;
    }
    let (dynamodb, table) = (&engine.clients.dynamodb, engine.names.table());
    for key in ["TURN#t2", "REACTION#t1#user#ada"] {
        let rows = rows(dynamodb, &table).await;
        let row = rows.iter().find(|row| attribute(row, "SK") == key).unwrap();
        damage(dynamodb, &table, row, "core").await;
    }
    let report = format!("{}/turns-with-feedbacks", conversation_path("c"));
    send(Method::POST, &report, &json!({})).await;
    send(Method::GET, BY_STATUS, &Value::Null).await;
    let logged = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    let lines = logged
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let damaged: BTreeSet<_> = lines
        .filter(|line| line["damaged"] == true)
        .map(|line| ["tenant", "partition", "row"].map(|name| line[name].to_string()))
        .collect();
    let row = |row: &str| ["acme", "CONV", row].map(|part| format!("{part:?}"));
    assert_eq!(
        damaged,
        BTreeSet::from([row("REACTION"), row("TURN")]),
        "{logged}"
    );
    let without_ids = logged.lines().map(|line| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        // It is random and hexadecimal, and may contain "ada".
        line["request_id"] = Value::Null;
        line.to_string()
    });
    let logged: String = without_ids.collect();
    for data in ["ada", "laptop", "t1", "t2"] {
        assert!(!logged.contains(data), "{data}: {logged}");
    }
}

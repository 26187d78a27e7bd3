//! The position of the relay: a damaged one is rebuilt, undelivered records are kept, and delivered ones are removed.

use std::path::Path;
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::Utc;
use hearback_local::clients::Clients;
use hearback_local::data_dir::DataDir;
use hearback_local::engines::{
    self, Access, EngineLifecycle, KeyPair, Maintenance, Sockets, Threads,
};
use hearback_local::files::POSITION_FILE;
use hearback_local::health::Health;
use hearback_local::live::OpenSockets;
use hearback_local::names::Names;
use hearback_local::position::RelayPosition;
use hearback_local::provision;
use hearback_local::relay::Relay;
use hearback_local::stream::Stream;
use hearback_local::writes::Writes;
use hearback_storage::{Blobs, Store};
use hearback_tests::app::{TestApp, eventually};
use hearback_tests::events::{acceptance, id};
use reqwest::{Method, StatusCode};
use rusqlite::Connection;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

/// Positions that are unreadable or outside the stream.
const DAMAGED: [&str; 7] = [
    "",
    "{\"shards\": {\"shardId-0000",
    "[]",
    "{\"shards\": {\"shardId-00000001-hearback\": 7}}",
    "{\"shards\": {\"shardId-00000001-hearback\": \"seven\"}}",
    "{\"shards\": {\"shardId-00000001-hearback\": \"100000000000000000000\"}}",
    "{\"shards\": {\"shardId-00000001-hearback\": \"199999999999999999999\"}}",
];

#[tokio::test]
async fn a_damaged_position_is_rebuilt_and_nothing_is_learned_twice() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().to_owned();
    let start = || async {
        let app = TestApp::on(Some(data.clone())).await;
        let token = app.token("ada");
        (app, token)
    };
    let mut events = Vec::new();
    let submit = async |app: &TestApp, token: &str| {
        let event = acceptance("ada");
        let response = app.submit(token, &event).await;
        assert_eq!(response.status, StatusCode::ACCEPTED);
        id(&event)
    };
    let (app, token) = start().await;
    events.push(submit(&app, &token).await);
    app.outcome(&token, &events[0]).await;
    app.bundle.stop().await;
    for damaged in DAMAGED {
        std::fs::write(folder.path().join(POSITION_FILE), damaged).unwrap();
        let (app, token) = start().await;
        let event = submit(&app, &token).await;
        let outcome = app.outcome(&token, &event).await;
        assert_eq!(outcome["status"], "processed", "after {damaged:?}");
        let health = app.send(app.request(Method::GET, "/health")).await.body;
        assert_eq!(health["status"], "ok", "{health}");
        events.push(event);
        app.bundle.stop().await;
    }
    let (app, token) = start().await;
    let preferences = app.get(&token, "/v1/preferences/ada").await.body;
    let learned = &preferences["artifactPreferences"]["unknown"];
    assert_eq!(learned["sampleCount"], events.len(), "{preferences}");
}

/// Engines on a folder with frequent maintenance, and without a relay.
struct Engines {
    clients: Clients,
    store: Store,
    maintenance: Maintenance,
    writes: Writes,
    data: DataDir,
    _running: (DropGuard, Threads),
}

impl Engines {
    async fn start(folder: &Path) -> Self {
        let data = DataDir::open(folder).unwrap();
        let sockets = Sockets::bind(0).await.unwrap();
        let endpoints = sockets.endpoints().unwrap();
        let stop = CancellationToken::new();
        let maintenance = Maintenance {
            interval: Duration::from_millis(20),
            ..Maintenance::default()
        };
        let lifecycle = EngineLifecycle {
            stop: &stop,
            tasks: &TaskTracker::new(),
            health: &Health::default(),
        };
        let (threads, writes) =
            engines::start(&data, sockets, maintenance.clone(), lifecycle).unwrap();
        let keys = KeyPair::of_folder(data.path()).unwrap();
        let clients = Clients::of_engines(&Access { endpoints, keys });
        let store = Store::new(clients.dynamodb.clone(), Names::default().table());
        provision::table(&store).await.unwrap();
        Self {
            clients,
            store,
            maintenance,
            data,
            writes,
            _running: (stop.drop_guard(), threads),
        }
    }

    fn database(&self) -> Connection {
        Connection::open(self.data.path().join("dynamodb.sqlite")).unwrap()
    }

    fn number(&self, sql: &str) -> i64 {
        self.database()
            .query_row(sql, [], |row| row.get(0))
            .unwrap()
    }

    fn records(&self) -> i64 {
        self.number("SELECT count(*) FROM _stream_records")
    }

    /// Puts an item with a size and an expiry.
    async fn put(&self, key: &str, (size, expires): (usize, i64)) {
        let put = self.clients.dynamodb.put_item();
        let put = put.table_name(Names::default().table());
        let put = put.item("PK", AttributeValue::S(key.to_owned()));
        let put = put.item("SK", AttributeValue::S("X".to_owned()));
        let put = put.item("text", AttributeValue::S("x".repeat(size)));
        let put = put.item("expires_at", AttributeValue::N(expires.to_string()));
        put.send().await.unwrap();
    }

    /// Waits for a full run of the maintenance: it deletes expired items, so two deletions include one.
    async fn wait_for_maintenance(&self) {
        for _ in 0..2 {
            self.put("EXPIRED", (1, 1)).await;
            eventually(|| async {
                let get = self.clients.dynamodb.get_item();
                let get = get.table_name(Names::default().table());
                let get = get.key("PK", AttributeValue::S("EXPIRED".to_owned()));
                let get = get.key("SK", AttributeValue::S("X".to_owned()));
                let found = get.send().await.unwrap();
                found.item.is_none().then_some(())
            })
            .await;
        }
    }

    /// Runs a relay until the stream is delivered.
    async fn run_relay(&self) {
        let names = Names::default();
        let visibility = Duration::from_secs(1);
        let queues = provision::queues(&self.clients.sqs, &names, visibility).await;
        let arn = self.store.stream_arn().await.unwrap();
        let file = self.data.path().join(POSITION_FILE);
        let health = Health::default();
        let relay = Relay {
            outlets: Vec::new(),
            stream: Stream::new(self.clients.streams.clone(), arn),
            writes: Some(self.writes.clone()),
            store: self.store.clone(),
            blobs: Blobs::new(self.clients.s3.clone(), names.bucket()),
            sqs: self.clients.sqs.clone(),
            queues: queues.unwrap(),
            sockets: OpenSockets::default(),
            position: RelayPosition::new(file, self.maintenance.progress.clone()),
            health: health.clone(),
        };
        let stop = CancellationToken::new();
        let running = tokio::spawn(relay.run(stop.clone()));
        eventually(|| async {
            let lag = health.document()["relay"]["lag_seconds"].as_f64();
            (lag.is_some_and(|lag| lag < 60.0) && self.records() <= 1).then_some(())
        })
        .await;
        stop.cancel();
        running.await.unwrap();
    }
}

#[tokio::test]
async fn undelivered_records_are_kept_at_any_age_and_delivered_ones_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let engines = Engines::start(folder.path()).await;
    let later = (Utc::now() + chrono::TimeDelta::days(1)).timestamp();
    for at in 0..400 {
        engines.put(&format!("ITEM#{at}"), (20_000, later)).await;
    }
    assert_eq!(
        engines.number("PRAGMA auto_vacuum"),
        2,
        "incremental vacuum"
    );
    // Make the records two days old.
    let aged = "UPDATE _stream_records SET created_at = created_at - 172800";
    assert!(engines.database().execute(aged, []).unwrap() >= 400);
    engines.wait_for_maintenance().await;
    let old = "SELECT count(*) FROM _stream_records WHERE created_at < unixepoch() - 86400";
    assert_eq!(engines.number(old), 400, "they are not delivered");

    let full = engines.number("PRAGMA page_count");
    engines.run_relay().await;
    assert_eq!(
        engines.records(),
        1,
        "the last record marks the position of the stream"
    );
    eventually(|| async {
        let unused = engines.number("PRAGMA freelist_count");
        let pages = engines.number("PRAGMA page_count");
        (unused <= 256 && pages < full * 2 / 3).then_some(())
    })
    .await;
    // The sequence numbers continue.
    let last = "SELECT max(CAST(sequence_number AS INTEGER)) FROM _stream_records";
    let before = engines.number(last);
    engines.put("NEW", (1, later)).await;
    assert!(engines.number(last) > before);
}

#[tokio::test]
async fn a_file_of_an_older_version_is_compacted_too() {
    let folder = tempfile::tempdir().unwrap();
    let data = DataDir::open(folder.path()).unwrap();
    let file = data.file("dynamodb.sqlite").unwrap();
    let old = Connection::open(&file).unwrap();
    old.execute_batch("CREATE TABLE kept (x); INSERT INTO kept VALUES (7)")
        .unwrap();
    drop((old, data));
    let engines = Engines::start(folder.path()).await;
    assert_eq!(engines.number("PRAGMA auto_vacuum"), 2);
    assert_eq!(engines.number("SELECT x FROM kept"), 7);
}

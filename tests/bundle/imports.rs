//! Imports of files: every line is imported once, whatever the packing and wherever a worker crashes.

mod pieces;

use std::io::Write;
use std::time::Duration;

use chrono::{DateTime, Utc};
use flate2::Compression;
use flate2::write::GzEncoder;
use hearback_batch::{Importer, notification};
use hearback_domain::events::import::{ImportReport, RejectedLine};
use hearback_storage::Store;
use hearback_storage::files::import_key;
use hearback_tests::engine::Engine;
use hearback_tests::events::acceptance;
use hearback_tests::faults::{Fault, Faults};
use hearback_tests::generate::{Expected, Lines, Mix};
use hearback_tests::queue;
use hearback_tests::rows::rows;
use serde_json::{Value, json};

/// An engine with a file to import.
pub struct Import {
    pub engine: Engine,
    pub key: String,
}

impl Import {
    pub async fn of(file: Vec<u8>) -> Self {
        let engine = Engine::start().await;
        let key = import_key(&"acme".try_into().unwrap(), "events.jsonl").unwrap();
        engine.blobs().put_file(&key, file).await.unwrap();
        let import = Self { engine, key };
        import.notify().await;
        import
    }

    /// Sends the notification of the file, as the bucket does in AWS.
    pub async fn notify(&self) {
        let send = self.engine.clients.sqs.send_message();
        let send = send.queue_url(&self.engine.queues.imports);
        let send = send.message_body(notification(&self.key, None));
        send.send().await.unwrap();
    }

    pub fn importer(&self, store: Store) -> Importer {
        self.engine.importer(store)
    }

    pub async fn step(&self, importer: &Importer, until: Option<DateTime<Utc>>) -> Option<bool> {
        step(&self.engine, importer, until).await
    }

    /// Processes messages until there is a report and no more message.
    pub async fn work_until(
        &self,
        importer: &Importer,
        until: impl Fn() -> Option<DateTime<Utc>>,
    ) -> ImportReport {
        for _ in 0..10_000 {
            if self.step(importer, until()).await.is_some() {
                continue;
            }
            if let Some(report) = self.report().await {
                return report;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("no report");
    }

    pub async fn work(&self) -> ImportReport {
        let importer = self.importer(self.engine.store.clone());
        self.work_until(&importer, || None).await
    }

    pub async fn read(&self, key: &str) -> Option<Vec<u8>> {
        let found = self.engine.blobs().read_from(key, None, 0).await.unwrap()?;
        Some(found.1.collect().await.unwrap().to_vec())
    }

    pub async fn report(&self) -> Option<ImportReport> {
        let report = self
            .read(&format!("{}.import/report.json", self.key))
            .await?;
        Some(serde_json::from_slice(&report).unwrap())
    }

    pub async fn rejects(&self) -> Vec<Value> {
        let rejects = self
            .read(&format!("{}.import/rejects.jsonl", self.key))
            .await;
        let rejects = String::from_utf8(rejects.unwrap_or_default()).unwrap();
        let lines = rejects.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// The keys of all objects.
    pub async fn objects(&self) -> Vec<String> {
        let listed = self.engine.clients.s3.list_objects_v2();
        let listed = listed.bucket(self.engine.names.bucket()).send().await;
        let listed = listed.unwrap();
        let keys = listed.contents().iter().filter_map(|object| object.key());
        keys.map(str::to_owned).collect()
    }

    /// The stored events, without attributes that depend on the attempt: the time of receipt, and the first of a
    /// worker's equal lines.
    pub async fn events(&self) -> Vec<String> {
        let (client, names) = (&self.engine.clients.dynamodb, &self.engine.names);
        let mut events = Vec::new();
        for item in rows(client, &names.table()).await {
            if item["SK"].as_s().unwrap() != "EVENT" {
                continue;
            }
            let mut core: Value = serde_json::from_str(item["core"].as_s().unwrap()).unwrap();
            for name in ["receivedAt", "secondTo"] {
                core.as_object_mut().unwrap().remove(name);
            }
            events.push(format!("{core}{:?}", item.get("text")));
        }
        events.sort();
        events
    }
}

/// Processes one message, and returns whether it failed; `None` if the queue is empty.
pub async fn step(
    engine: &Engine,
    importer: &Importer,
    until: Option<DateTime<Utc>>,
) -> Option<bool> {
    let (sqs, imports) = (&engine.clients.sqs, &engine.queues.imports);
    queue::step(sqs, imports, |batch| importer.handle(batch, until)).await
}

/// Stores a file, sends a notification of this version, and imports it.
pub async fn import_with(
    engine: &Engine,
    importer: &Importer,
    file: Vec<u8>,
    version: Option<&str>,
) {
    let key = import_key(&"acme".try_into().unwrap(), "events.jsonl").unwrap();
    engine.blobs().put_file(&key, file).await.unwrap();
    let send = engine.clients.sqs.send_message();
    let send = send.queue_url(&engine.queues.imports);
    let send = send.message_body(notification(&key, version));
    send.send().await.unwrap();
    while step(engine, importer, None).await == Some(false) {}
}

pub fn generated(seed: u64, count: usize) -> (Vec<String>, Expected) {
    let mut lines = Lines::new(seed, Mix::default());
    (lines.by_ref().take(count).collect(), lines.expected)
}

pub fn counts_of(report: &ImportReport) -> Expected {
    Expected {
        queued: report.counts.queued,
        duplicates: report.counts.duplicates,
        rejected: report.counts.rejected,
    }
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

#[tokio::test]
async fn every_line_of_a_plain_file_is_imported_once() {
    let (lines, expected) = generated(1, 300);
    // A file from Windows, with a byte order mark and a blank line.
    let file = format!("\u{FEFF}{}\r\n\r\n", lines.join("\r\n"));
    let import = Import::of(file.clone().into_bytes()).await;
    let report = import.work().await;
    assert_eq!(counts_of(&report), expected);
    assert_eq!(report.counts.lines, 301);
    assert_eq!(report.bytes, u64::try_from(file.len()).unwrap());
    assert!(report.events_per_second > 0.0 && !report.file_deleted);
    assert_eq!(
        import.events().await.len(),
        usize::try_from(expected.queued).unwrap()
    );

    let rejects = import.rejects().await;
    assert_eq!(rejects.len(), usize::try_from(expected.rejected).unwrap());
    for reject in &rejects {
        let number = usize::try_from(reject["line_number"].as_u64().unwrap()).unwrap();
        let line = &lines[number - 1];
        assert_eq!(reject["line"].as_str(), Some(line.as_str()));
        assert!(reject["error"].is_string() && reject["errors"][0]["detail"].is_string());
    }
    let first: Vec<RejectedLine> = report.first_errors.clone();
    assert_eq!(
        first[0].line_number,
        rejects[0]["line_number"].as_u64().unwrap()
    );
    let mut left = import.objects().await;
    left.sort();
    let result = |name: &str| format!("{}.import/{name}", import.key);
    assert_eq!(
        left[..3],
        [
            import.key.clone(),
            result("rejects.jsonl"),
            result("report.json")
        ]
    );
    assert_eq!(left.len(), 3, "{left:?}");

    // A second notification finds the completed import.
    import.notify().await;
    let again = import.work().await;
    assert_eq!(again, report);
}

#[tokio::test]
async fn a_damaged_file_is_reported_and_its_complete_lines_are_imported() {
    let (lines, _) = generated(3, 200);
    let mut packed = gzip(lines.join("\n").as_bytes());
    packed.truncate(packed.len() / 2);
    let import = Import::of(packed).await;
    let report = import.work().await;
    assert!(report.damage.is_some());
    assert!(report.counts.queued > 20, "{report:?}");
}

#[tokio::test]
async fn a_file_deleted_before_it_is_read_ends_with_a_report() {
    for packed in [false, true] {
        let text = generated(8, 50).0.join("\n").into_bytes();
        let import = Import::of(if packed { gzip(&text) } else { text }).await;
        let importer = import.importer(import.engine.store.clone());
        assert_eq!(import.step(&importer, None).await, Some(false));
        let other = b"another file".to_vec();
        import
            .engine
            .blobs()
            .put_file(&import.key, other.clone())
            .await
            .unwrap();
        let report = import.work().await;
        assert!(report.damage.unwrap().contains("replaced"));
        // The replacing file is kept.
        assert_eq!(import.read(&import.key).await, Some(other));
    }
}

#[tokio::test]
async fn lines_that_are_not_events_are_reported_by_number() {
    let event = generated(4, 1).0.remove(0);
    let long = format!(r#"{{"comment": "{}"}}"#, "x".repeat(256 * 1024));
    let pseudonyms = acceptance("anon-0123456789abcdef0123456789abcdef").to_string();
    let file = [
        event.as_bytes(),
        b"\xFF\xFE",
        long.as_bytes(),
        b"7",
        b"  ",
        event.as_bytes(),
        pseudonyms.as_bytes(),
    ];
    let import = Import::of(file.join(&b'\n')).await;
    let report = import.work().await;
    assert_eq!(
        counts_of(&report),
        Expected {
            queued: 1,
            duplicates: 1,
            rejected: 4
        }
    );
    let rejects: Vec<_> = import
        .rejects()
        .await
        .into_iter()
        .map(|reject| {
            (
                reject["line_number"].as_u64().unwrap(),
                reject["error"].clone(),
            )
        })
        .collect();
    assert_eq!(
        rejects,
        [
            (2, json!("not_json")),
            (3, json!("line_too_long")),
            (4, json!("invalid_request")),
            (7, json!("invalid_request"))
        ]
    );
    let empty = Import::of(Vec::new()).await;
    assert_eq!(empty.work().await.counts.lines, 0);
}

#[tokio::test]
async fn a_worker_out_of_time_hands_over_the_rest() {
    let (lines, expected) = generated(5, 250);
    for packed in [false, true] {
        let text = lines.join("\n");
        let file = if packed {
            gzip(text.as_bytes())
        } else {
            text.into_bytes()
        };
        let import = Import::of(file).await;
        let importer = import.importer(import.engine.store.clone());
        // With hardly any time each message processes the lines that are in progress.
        let soon = || Some(Utc::now() + Duration::from_millis(15));
        let report = import.work_until(&importer, soon).await;
        assert_eq!(counts_of(&report), expected);
        assert_eq!(report.counts.lines, 250);
        let numbers: Vec<_> = import.rejects().await;
        let numbers = numbers.iter().map(|reject| reject["line_number"].as_u64());
        assert!(numbers.is_sorted(), "in order");
    }
}

/// A worker crashes at each of its calls; the result has the same events and counts.
#[tokio::test]
async fn a_crash_at_any_call_does_not_change_the_result_of_an_import() {
    let (lines, expected) = generated(6, 12);
    let mut lines = lines;
    lines.push("no event".to_owned());
    let file = lines.join("\n").into_bytes();
    let expected = Expected {
        rejected: expected.rejected + 1,
        ..expected
    };
    let reference = Import::of(file.clone()).await;
    assert_eq!(counts_of(&reference.work().await), expected);
    let events = reference.events().await;
    let crashes = Faults::at_each_call(Fault::Crashed, async |faults| {
        let at = faults.at_call();
        let import = Import::of(file.clone()).await;
        let (store, blobs) = (
            import.engine.failing_store(faults),
            import.engine.failing_blobs(faults),
        );
        let crashing = import.engine.importer_with(store, blobs);
        while import.step(&crashing, None).await == Some(false) {}
        let report = import.work().await;
        assert_eq!(counts_of(&report), expected, "crashed at call {at}");
        assert_eq!(import.events().await, events, "crashed at call {at}");
    })
    .await;
    assert!(crashes >= 20, "only {crashes} crashes");
}

#[tokio::test]
async fn an_anonymous_file_is_deleted_and_leaves_no_raw_data() {
    let mix = Mix {
        anonymous: true,
        invalid: 200,
        ..Mix::default()
    };
    let lines: Vec<String> = Lines::new(7, mix).take(100).collect();
    let import = Import::of(lines.join("\n").into_bytes()).await;
    let report = import.work().await;
    assert!(report.file_deleted);
    let left = import.objects().await;
    assert!(!left.contains(&import.key), "{left:?}");
    let (client, names) = (&import.engine.clients.dynamodb, &import.engine.names);
    let mut stored = format!("{:?}", rows(client, &names.table()).await);
    for key in left {
        let bytes = import.read(&key).await.unwrap();
        stored += &String::from_utf8(bytes).unwrap();
    }
    for raw in hearback_tests::generate::PLANTED {
        assert!(!stored.contains(raw), "{raw}");
    }
}

//! Imports whose workers fail, lose races, or find another file under the key.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_sdk_dynamodb::config::interceptors::{
    BeforeDeserializationInterceptorContextMut, BeforeSerializationInterceptorContextRef,
};
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::BoxError;
use aws_sdk_s3::types::{BucketVersioningStatus, VersioningConfiguration};
use aws_smithy_runtime_api::client::orchestrator::Metadata;
use chrono::Utc;
use hearback_batch::notification;
use hearback_domain::events::import::{ImportReport, Packing, Reject};
use hearback_storage::imports::{ImportCore, ImportId, ImportRow};
use hearback_tests::engine::ENDPOINT_URL;
use hearback_tests::faults::{Fault, Faults};
use hearback_tests::generate::{Expected, Mix};
use hearback_tests::meanwhile::Meanwhile;
use hearback_tests::permissions::version;

use crate::imports::{Import, counts_of, generated, gzip};

/// The id of the import of the current file.
async fn id(import: &Import) -> ImportId {
    let file = import.engine.blobs().file(&import.key, None).await;
    let file = file.unwrap().unwrap();
    let core = ImportCore {
        tenant: "acme".try_into().unwrap(),
        key: file.key,
        etag: file.etag,
        version: file.version,
        size: file.size,
        packing: Packing::Plain,
        started_at: Utc::now(),
    };
    core.id()
}

async fn row(import: &Import, id: &ImportId) -> ImportRow {
    let row = import.engine.store.import(id).await;
    row.unwrap().unwrap()
}

/// Asserts that no work files are left.
async fn assert_no_work_left(import: &Import) {
    let left = import.objects().await;
    let work = left.iter().filter(|key| !key.starts_with("imports/"));
    assert_eq!(work.count(), 0, "{left:?}");
}

#[tokio::test]
async fn a_call_that_did_not_arrive_does_not_change_the_result_of_an_import() {
    at_each_call(Fault::Unreachable).await;
}

#[tokio::test]
async fn a_call_whose_response_was_lost_does_not_change_the_result_of_an_import() {
    at_each_call(Fault::Unanswered).await;
}

/// One call fails. The progress before it is recorded, and counts once.
async fn at_each_call(fault: Fault) {
    let (mut lines, expected) = generated(11, 12);
    lines.insert(3, "no event".to_owned());
    let file = lines.join("\n").into_bytes();
    let expected = Expected {
        rejected: expected.rejected + 1,
        ..expected
    };
    let failures = Faults::at_each_call(fault, async |faults| {
        let import = Import::of(file.clone()).await;
        let store = import.engine.failing_store(faults);
        let blobs = import.engine.failing_blobs(faults);
        let importer = import.engine.importer_with(store, blobs);
        let report = import.work_until(&importer, || None).await;
        assert_eq!(counts_of(&report), expected, "{faults:?}");
        assert_eq!(report.counts.lines, 13, "{faults:?}");
        let numbers = import.rejects().await;
        let numbers = numbers.iter().map(|reject| reject["line_number"].as_u64());
        assert!(numbers.is_sorted(), "{faults:?}");
        assert_no_work_left(&import).await;
    })
    .await;
    assert!(failures >= 20, "only {failures} failures");
}

#[tokio::test]
async fn a_failing_worker_records_its_progress() {
    let (lines, expected) = generated(12, 600);
    let import = Import::of(lines.join("\n").into_bytes()).await;
    let id = id(&import).await;
    // The first step starts the import, the second processes most of the lines and fails.
    let failing = import
        .engine
        .failing_store(&Faults::at(500, Fault::Unreachable));
    let failing = import.importer(failing);
    assert_eq!(import.step(&failing, None).await, Some(false));
    assert_eq!(import.step(&failing, None).await, Some(true));
    let piece = import.engine.store.import_piece(&id, 1).await.unwrap();
    let piece = piece.expect("the piece has progress").value;
    assert!(piece.counts.lines >= 40, "{piece:?}");
    assert_eq!(piece.counts.lines, piece.counts.events());
    let before: usize = (lines.iter())
        .take(usize::try_from(piece.counts.lines).unwrap())
        .map(|line| line.len() + 1)
        .sum();
    assert_eq!(piece.next, Some(u64::try_from(before).unwrap()));

    let counted = Faults::none();
    let importer = import.importer(import.engine.failing_store(&counted));
    let report = import.work_until(&importer, || None).await;
    assert_eq!(counts_of(&report), expected);
    assert_eq!(report.counts.lines, 600);
    // Completed work is not repeated.
    let calls = u64::from(counted.calls());
    assert!(calls <= 600 - piece.counts.lines + 10, "{calls} calls");
}

#[tokio::test]
async fn rejects_beyond_the_limit_of_a_file_continue_in_the_next() {
    let lines: Vec<_> = (1..=12)
        .map(|number| format!("no event {number}"))
        .collect();
    let import = Import::of(lines.join("\n").into_bytes()).await;
    // Each worker writes one or a few rejects. A file with four of them is full.
    let importer = import.importer(import.engine.store.clone());
    let importer = importer.with_rejects_file(400);
    // The deadline has always passed, so the worker that finishes the import hands over the rest of that, too.
    let report = import.work_until(&importer, || Some(Utc::now())).await;
    assert_eq!(report.counts.rejected, 12);
    let key = |number: usize| match number {
        0 => format!("{}.import/rejects.jsonl", import.key),
        _ => format!("{}.import/rejects-{}.jsonl", import.key, number + 1),
    };
    let files: Vec<_> = report.rejects.iter().chain(&report.more_rejects).collect();
    assert!(files.len() > 2, "{files:?}");
    let mut counts_of = Vec::new();
    for (number, file) in files.into_iter().enumerate() {
        assert_eq!(*file, import.engine.blobs().object_uri(&key(number)));
        let rejects = String::from_utf8(import.read(&key(number)).await.unwrap()).unwrap();
        let rejects = rejects.lines();
        let line = |line: &str| serde_json::from_str::<Reject>(line).unwrap();
        counts_of.extend(rejects.map(line).map(|reject| reject.line.unwrap()));
    }
    assert_eq!(counts_of, lines);
    assert_no_work_left(&import).await;
}

/// Finishes the import as another worker.
async fn finish(import: Arc<Import>) {
    import.work().await;
    // The next timestamp is later than this worker's.
    tokio::time::sleep(Duration::from_millis(5)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_packed_piece_finished_by_another_worker_is_not_reported_as_damaged() {
    let (lines, expected) = generated(13, 50);
    let import = Arc::new(Import::of(gzip(lines.join("\n").as_bytes())).await);
    let id = id(&import).await;
    let other = import.importer(import.engine.store.clone());
    // The first two steps start the import and unpack the file.
    assert_eq!(import.step(&other, None).await, Some(false));
    assert_eq!(import.step(&other, None).await, Some(false));
    // Another worker finishes the piece and deletes its file after this one has read the piece.
    let meanwhile = Meanwhile::before("GetObject", finish(import.clone()));
    let blobs = import.engine.blobs_with(meanwhile.clone());
    let late = (import.engine).importer_with(import.engine.store.clone(), blobs);
    assert_eq!(import.step(&late, None).await, Some(false));
    assert!(meanwhile.is_done());
    let report = import.work().await;
    assert_eq!(counts_of(&report), expected);
    let row = row(&import, &id).await;
    assert_eq!(row.damage, None);
    assert_eq!((row.pieces, row.done), (Some(1), 1));
    assert_no_work_left(&import).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_losing_worker_leaves_no_rejects() {
    let import = Arc::new(Import::of(b"no event\nnor this".to_vec()).await);
    let other = import.importer(import.engine.store.clone());
    assert_eq!(import.step(&other, None).await, Some(false));
    let meanwhile = Meanwhile::before("PutObject", finish(import.clone()));
    let blobs = import.engine.blobs_with(meanwhile.clone());
    let late = (import.engine).importer_with(import.engine.store.clone(), blobs);
    assert_eq!(import.step(&late, None).await, Some(false));
    assert!(meanwhile.is_done());
    let report = import.work().await;
    assert_eq!(report.counts.rejected, 2);
    assert_eq!(import.rejects().await.len(), 2);
    assert_no_work_left(&import).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_of_two_import_reports_counts() {
    let (lines, _) = generated(14, 20);
    let import = Arc::new(Import::of(lines.join("\n").into_bytes()).await);
    let id = id(&import).await;
    let other = import.importer(import.engine.store.clone());
    assert_eq!(import.step(&other, None).await, Some(false));
    // A second notification, so that the other worker has a message.
    import.notify().await;
    let first = Arc::new(Mutex::new(None));
    let action = {
        let (import, id, first) = (import.clone(), id.clone(), first.clone());
        async move {
            finish(import.clone()).await;
            *first.lock().unwrap() = row(&import, &id).await.report;
        }
    };
    let meanwhile = Meanwhile::before("UpdateItem", action);
    let late = import.importer(import.engine.store_with(meanwhile.clone()));
    while !meanwhile.is_done() {
        assert_eq!(import.step(&late, None).await, Some(false));
    }
    let first: Option<ImportReport> = first.lock().unwrap().clone();
    assert!(first.is_some());
    assert_eq!(import.report().await, first);
    assert_eq!(row(&import, &id).await.report, first);
}

/// A call and the object version that it names.
type NamedVersion = (String, Option<String>);

/// Makes a bucket without versions return one, and records the versions that calls on imported files name.
#[derive(Debug, Clone, Default)]
struct Versioned(Arc<Mutex<BTreeSet<NamedVersion>>>);

impl Intercept for Versioned {
    fn name(&self) -> &'static str {
        "Versioned"
    }

    fn read_before_serialization(
        &self,
        context: &BeforeSerializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let call = config.load::<Metadata>().expect("a call has a name");
        if matches!(call.name(), "HeadObject" | "GetObject" | "DeleteObject") {
            let version = version(context.input()).map(str::to_owned);
            let mut named = self.0.lock().unwrap();
            named.insert((call.name().to_owned(), version));
        }
        Ok(())
    }

    fn modify_before_deserialization(
        &self,
        context: &mut BeforeDeserializationInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let call = config.load::<Metadata>().expect("a call has a name");
        if call.name() == "HeadObject" {
            let headers = context.response_mut().headers_mut();
            headers.insert("x-amz-version-id", "v1");
        }
        Ok(())
    }
}

#[tokio::test]
async fn every_call_names_the_object_version_of_the_notification() {
    // Another engine supports versions, and has none of this name.
    if std::env::var(ENDPOINT_URL).is_ok() {
        return;
    }
    let mix = Mix {
        anonymous: true,
        invalid: 0,
        ..Mix::default()
    };
    let lines: Vec<String> = hearback_tests::generate::Lines::new(15, mix)
        .take(10)
        .collect();
    let import = Import::of(Vec::new()).await;
    // Imports the empty file, whose notification has no version.
    import.work().await;
    let file = lines.join("\n").into_bytes();
    let blobs = import.engine.blobs();
    blobs.put_file(&import.key, file).await.unwrap();
    notify(&import, "v1").await;
    let versioned = Versioned::default();
    let blobs = import.engine.blobs_with(versioned.clone());
    let importer = (import.engine).importer_with(import.engine.store.clone(), blobs);
    while import.step(&importer, None).await.is_some() {}
    let report = import.report().await.unwrap();
    assert!(report.file_deleted && report.counts.lines == 10);
    let v1 = |call: &str| (call.to_owned(), Some("v1".to_owned()));
    let expected = ["DeleteObject", "GetObject", "HeadObject"].map(v1);
    assert_eq!(*versioned.0.lock().unwrap(), BTreeSet::from(expected));
}

/// Sends a notification with a version of the file.
async fn notify(import: &Import, version: &str) {
    let send = import.engine.clients.sqs.send_message();
    let send = send.queue_url(&import.engine.queues.imports);
    let send = send.message_body(notification(&import.key, Some(version)));
    send.send().await.unwrap();
}

/// Runs on an engine with versions only; the embedded engine has none.
#[tokio::test]
async fn two_files_put_under_one_key_are_both_imported() {
    if std::env::var(ENDPOINT_URL).is_err() {
        return;
    }
    let import = Import::of(Vec::new()).await;
    import.work().await;
    let bucket = import.engine.names.bucket();
    let s3 = &import.engine.clients.s3;
    let enabled = VersioningConfiguration::builder()
        .status(BucketVersioningStatus::Enabled)
        .build();
    let enable = s3.put_bucket_versioning().bucket(&bucket);
    let enable = enable.versioning_configuration(enabled);
    enable.send().await.unwrap();
    let blobs = import.engine.blobs();
    let mut queued = 0;
    for packed in [false, true] {
        let mut ids = Vec::new();
        for seed in [16, 17] {
            let (lines, expected) = generated(seed + u64::from(packed) * 2, 30);
            let text = lines.join("\n").into_bytes();
            let file = if packed { gzip(&text) } else { text };
            blobs.put_file(&import.key, file).await.unwrap();
            let stored = blobs.file(&import.key, None).await.unwrap().unwrap();
            notify(&import, &stored.version.unwrap()).await;
            ids.push(id(&import).await);
            queued += expected.queued;
        }
        let importer = import.importer(import.engine.store.clone());
        while import.step(&importer, None).await.is_some() {}
        for id in ids {
            let report = row(&import, &id).await.report.unwrap();
            assert_eq!(report.damage, None);
        }
    }
    let events = u64::try_from(import.events().await.len()).unwrap();
    assert_eq!(events, queued);
    assert_no_work_left(&import).await;
}

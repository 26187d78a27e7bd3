//! Imports where workers fail, lose races against each other, or find another file in the place of theirs.

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
use hearback_domain::import::{Packing, Reject, Report};
use hearback_storage::imports::{ImportCore, ImportId, ImportRow};
use hearback_tests::engine::ENDPOINT_URL;
use hearback_tests::faults::{Fault, Faults};
use hearback_tests::generate::{Expected, Mix};
use hearback_tests::meanwhile::Meanwhile;
use hearback_tests::permissions::version;

use crate::imports::{Import, generated, gzip, told};

/// The import of the file that lies there.
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

/// Nothing that workers left for each other is there.
async fn nothing_is_left(import: &Import) {
    let left = import.objects().await;
    let work = left.iter().filter(|key| !key.starts_with("imports/"));
    assert_eq!(work.count(), 0, "{left:?}");
}

/// One call may fail, and none after it: what was done before is written down, and counts once.
#[tokio::test]
async fn a_failure_at_any_call_changes_nothing() {
    let (mut lines, expected) = generated(11, 12);
    lines.insert(3, "no event".to_owned());
    let file = lines.join("\n").into_bytes();
    let expected = Expected {
        rejected: expected.rejected + 1,
        ..expected
    };
    for fault in [Fault::Unreachable, Fault::Unanswered] {
        let failures = Faults::at_each_call(fault, async |faults| {
            let import = Import::of(file.clone()).await;
            let store = import.engine.failing_store(faults);
            let blobs = import.engine.failing_blobs(faults);
            let importer = import.engine.importer_with(store, blobs);
            let report = import.work_until(&importer, || None).await;
            assert_eq!(told(&report), expected, "{faults:?}");
            assert_eq!(report.counts.lines, 13, "{faults:?}");
            let numbers = import.rejects().await;
            let numbers = numbers.iter().map(|reject| reject["line_number"].as_u64());
            assert!(numbers.is_sorted(), "{faults:?}");
            nothing_is_left(&import).await;
        })
        .await;
        assert!(failures >= 20, "only {failures} failures");
    }
}

#[tokio::test]
async fn a_worker_that_fails_writes_down_how_far_it_is() {
    let (lines, expected) = generated(12, 600);
    let import = Import::of(lines.join("\n").into_bytes()).await;
    let id = id(&import).await;
    // The file is begun, and then most of its lines are taken.
    let failing = import
        .engine
        .failing_store(&Faults::at(500, Fault::Unreachable));
    let failing = import.importer(failing);
    assert_eq!(import.step(&failing, None).await, Some(false));
    assert_eq!(import.step(&failing, None).await, Some(true));
    let piece = import.engine.store.import_piece(&id, 1).await.unwrap();
    let piece = piece.expect("it is written down").held;
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
    assert_eq!(told(&report), expected);
    assert_eq!(report.counts.lines, 600);
    // What was done before is not done again.
    let calls = u64::from(counted.calls());
    assert!(calls <= 600 - piece.counts.lines + 10, "{calls} calls");
}

#[tokio::test]
async fn rejects_that_are_too_many_for_one_file_go_on_in_another() {
    let lines: Vec<_> = (1..=12)
        .map(|number| format!("no event {number}"))
        .collect();
    let import = Import::of(lines.join("\n").into_bytes()).await;
    // Each worker leaves a line or a few; the file that has four such lines is full.
    let importer = import.importer(import.engine.store.clone());
    let importer = importer.with_rejects_file(400);
    // However late it is: whoever ends the import hands on what is left of that too.
    let report = import.work_until(&importer, || Some(Utc::now())).await;
    assert_eq!(report.counts.rejected, 12);
    let key = |number: usize| match number {
        0 => format!("{}.import/rejects.jsonl", import.key),
        _ => format!("{}.import/rejects-{}.jsonl", import.key, number + 1),
    };
    let files: Vec<_> = report.rejects.iter().chain(&report.more_rejects).collect();
    assert!(files.len() > 2, "{files:?}");
    let mut told = Vec::new();
    for (number, file) in files.into_iter().enumerate() {
        assert_eq!(*file, import.engine.blobs().place(&key(number)));
        let rejects = String::from_utf8(import.read(&key(number)).await.unwrap()).unwrap();
        let rejects = rejects.lines();
        let line = |line: &str| serde_json::from_str::<Reject>(line).unwrap();
        told.extend(rejects.map(line).map(|reject| reject.line.unwrap()));
    }
    assert_eq!(told, lines);
    nothing_is_left(&import).await;
}

/// Everything that another worker does until the import is done.
async fn finish(import: Arc<Import>) {
    import.work().await;
    // Of two times the later one is told from the first.
    tokio::time::sleep(Duration::from_millis(5)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_packed_piece_that_somebody_else_finished_is_no_damage() {
    let (lines, expected) = generated(13, 50);
    let import = Arc::new(Import::of(gzip(lines.join("\n").as_bytes())).await);
    let id = id(&import).await;
    let other = import.importer(import.engine.store.clone());
    // Begun, and unpacked.
    assert_eq!(import.step(&other, None).await, Some(false));
    assert_eq!(import.step(&other, None).await, Some(false));
    // Between a look at the piece and one at its file another worker finishes it, and deletes the file.
    let meanwhile = Meanwhile::before("GetObject", finish(import.clone()));
    let blobs = import.engine.blobs_with(meanwhile.clone());
    let late = (import.engine).importer_with(import.engine.store.clone(), blobs);
    assert_eq!(import.step(&late, None).await, Some(false));
    assert!(meanwhile.is_done());
    let report = import.work().await;
    assert_eq!(told(&report), expected);
    let row = row(&import, &id).await;
    assert_eq!(row.damage, None);
    assert_eq!((row.pieces, row.done), (Some(1), 1));
    nothing_is_left(&import).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_lost_leaves_no_rejects() {
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
    nothing_is_left(&import).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_reports_the_first_counts() {
    let (lines, _) = generated(14, 20);
    let import = Arc::new(Import::of(lines.join("\n").into_bytes()).await);
    let id = id(&import).await;
    let other = import.importer(import.engine.store.clone());
    assert_eq!(import.step(&other, None).await, Some(false));
    // Told of twice, so that there is a message by which the other one finishes.
    import.tell().await;
    let first = Arc::new(Mutex::new(None));
    let deeds = {
        let (import, id, first) = (import.clone(), id.clone(), first.clone());
        async move {
            finish(import.clone()).await;
            *first.lock().unwrap() = row(&import, &id).await.report;
        }
    };
    let meanwhile = Meanwhile::before("UpdateItem", deeds);
    let late = import.importer(import.engine.store_with(meanwhile.clone()));
    while !meanwhile.is_done() {
        assert_eq!(import.step(&late, None).await, Some(false));
    }
    let first: Option<Report> = first.lock().unwrap().clone();
    assert!(first.is_some());
    assert_eq!(import.report().await, first);
    assert_eq!(row(&import, &id).await.report, first);
}

/// A call, and the version that it names.
type Naming = (String, Option<String>);

/// Makes a bucket without versions tell one, and notes which version calls on files to import name.
#[derive(Debug, Clone, Default)]
struct Versioned(Arc<Mutex<BTreeSet<Naming>>>);

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
async fn every_call_names_the_version_that_the_bucket_told_of() {
    // An engine that looks at versions has none of this name.
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
    // The empty file that was told of without a version.
    import.work().await;
    let file = lines.join("\n").into_bytes();
    let blobs = import.engine.blobs();
    blobs.put_file(&import.key, file).await.unwrap();
    tell(&import, "v1").await;
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

/// Tells the queue of a version of the file.
async fn tell(import: &Import, version: &str) {
    let send = import.engine.clients.sqs.send_message();
    let send = send.queue_url(&import.engine.queues.imports);
    let send = send.message_body(notification(&import.key, Some(version)));
    send.send().await.unwrap();
}

/// On an engine that keeps versions: the embedded one keeps none.
#[tokio::test]
async fn each_of_two_files_that_were_put_under_one_key_is_imported() {
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
            let there = blobs.file(&import.key, None).await.unwrap().unwrap();
            tell(&import, &there.version.unwrap()).await;
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
    nothing_is_left(&import).await;
}

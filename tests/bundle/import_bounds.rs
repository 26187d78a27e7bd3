//! Bounds of an import: its time, its output, and the delay of other tenants.

use std::time::Duration;

use chrono::Utc;
use hearback_batch::notification;
use hearback_domain::events::import::{Bounds, ImportReport, PIECE_BYTES};
use hearback_storage::files::import_key;
use hearback_tests::generate::Expected;

use crate::imports::{Import, counts_of, generated, gzip};

/// Four GiB of line ends, packed into less than 500 kB.
pub fn bomb() -> Vec<u8> {
    let frame = zstd::encode_all(vec![b'\n'; 64 << 20].as_slice(), 3).unwrap();
    frame.repeat(64)
}

/// Stores a file of another tenant, and notifies the importer.
async fn put_for_tenant(import: &Import, tenant: &str, file: &[u8]) -> String {
    let key = import_key(&tenant.try_into().unwrap(), "events.jsonl").unwrap();
    let blobs = import.engine.blobs();
    blobs.put_file(&key, file.to_vec()).await.unwrap();
    let send = import.engine.clients.sqs.send_message();
    let send = send.queue_url(&import.engine.queues.imports);
    let send = send.message_body(notification(&key, None));
    send.send().await.unwrap();
    key
}

async fn report_of(import: &Import, key: &str) -> Option<ImportReport> {
    let report = import.read(&format!("{key}.import/report.json")).await?;
    Some(serde_json::from_slice(&report).unwrap())
}

#[tokio::test]
async fn a_file_of_endless_line_breaks_is_stopped_and_delays_no_other() {
    let file = bomb();
    assert!(file.len() < 500_000);
    let import = Import::of(file).await;
    let (lines, expected) = generated(21, 30);
    let other = put_for_tenant(&import, "other", lines.join("\n").as_bytes()).await;
    let importer = import.importer(import.engine.store.clone());
    let mut steps = 0;
    let other_report = loop {
        steps += 1;
        assert_eq!(import.step(&importer, None).await, Some(false));
        if let Some(report) = report_of(&import, &other).await {
            break report;
        }
        // Both files are started, one is unpacked, and one piece of each may be processed.
        assert!(steps < 6, "the other tenant waits for the bomb");
    };
    assert_eq!(counts_of(&other_report), expected);
    assert!(
        import.report().await.is_none(),
        "the bomb is still in progress"
    );

    let report = import.work().await;
    let damage = report.damage.unwrap();
    assert!(damage.contains("200 times its size"), "{damage}");
    assert!(damage.contains("after line 1048576"), "{damage}");
    assert_eq!(report.counts.lines, 1_048_576);
    assert_eq!(report.counts.events(), 0);
    assert!(!report.file_deleted);
}

#[tokio::test]
async fn workers_are_shared_among_tenants() {
    let text = format!("no event {}\n", "x".repeat(100_000)).repeat(200);
    let import = Import::of(gzip(text.as_bytes())).await;
    let importer = import.importer(import.engine.store.clone());
    assert_eq!(import.step(&importer, None).await, Some(false));
    assert_eq!(import.step(&importer, None).await, Some(false));
    let (lines, expected) = generated(22, 10);
    let other = put_for_tenant(&import, "other", lines.join("\n").as_bytes()).await;
    // The second file is started, and its only piece is processed before the five of the first file.
    assert_eq!(import.step(&importer, None).await, Some(false));
    assert_eq!(import.step(&importer, None).await, Some(false));
    let other_report = report_of(&import, &other).await.expect("a report");
    assert_eq!(counts_of(&other_report), expected);
    assert!(import.report().await.is_none());
    assert_eq!(import.work().await.counts.rejected, 200);
}

#[tokio::test]
async fn the_rejects_of_a_small_file_are_small() {
    let file = gzip(&b"x\n".repeat(100_000));
    let size = file.len();
    assert!(size < 1_100, "{size}");
    let import = Import::of(file).await;
    let report = import.work().await;
    assert_eq!(report.damage, None);
    assert_eq!(report.counts.rejected, 100_000);
    let rejects_key = format!("{}.import/rejects.jsonl", import.key);
    let rejects = import.read(&rejects_key).await.unwrap();
    let bound = Bounds::default().max_reject_bytes(u64::try_from(size).unwrap());
    assert!(rejects.len() <= usize::try_from(bound).unwrap());
    assert_eq!(report.more_rejects.len(), 0);
    let kept = import.rejects().await;
    let numbers = kept
        .iter()
        .map(|line| line["line_number"].as_u64().unwrap());
    let last = u64::try_from(kept.len()).unwrap();
    assert!(last > 4_000, "{last}");
    assert!(numbers.eq(1..=last), "the first, without a gap");
    assert_eq!(report.rejects_left_out, 100_000 - last);
    let why = report.rejects_bound.unwrap();
    assert!(why.ends_with(&format!("ends with line {last}")), "{why}");
    assert!(why.contains(&format!("{bound} bytes")), "{why}");
}

/// The limit of unpacked bytes ends a file at the same line, whether one worker unpacks it or many.
#[tokio::test]
async fn unpacking_stops_at_the_same_line_with_one_worker_or_many() {
    let line = format!("no event {}\n", "x".repeat(100_000));
    let packed = gzip(line.repeat(120).as_bytes());
    let bounds = Bounds {
        unpacked: 2 * PIECE_BYTES + 100,
        ..Bounds::default()
    };
    let mut ended = Vec::new();
    for each in [None, Some(Duration::ZERO)] {
        let import = Import::of(packed.clone()).await;
        let importer = import.importer(import.engine.store.clone());
        let importer = importer.with_bounds(bounds);
        let until = || each.map(|each| Utc::now() + each);
        let report = import.work_until(&importer, until).await;
        let damage = report.damage.unwrap();
        assert!(damage.contains("8388708 bytes at most"), "{damage}");
        ended.push((damage, report.counts));
    }
    assert_eq!(ended[0], ended[1]);
    assert_eq!(ended[0].1.lines, 83);
}

#[tokio::test]
async fn an_endless_line_is_stopped_at_the_limit() {
    let frame = zstd::encode_all(vec![b'x'; 1 << 20].as_slice(), 3).unwrap();
    let import = Import::of(frame.repeat(64)).await;
    let bounds = Bounds {
        unpacked: 1 << 20,
        ..Bounds::default()
    };
    let importer = import.importer(import.engine.store.clone());
    let importer = importer.with_bounds(bounds);
    let report = import.work_until(&importer, || None).await;
    let damage = report.damage.unwrap();
    assert!(damage.contains("after line 0, 0 bytes"), "{damage}");
    assert_eq!(report.counts.lines, 0);
}

#[tokio::test]
async fn blank_lines_are_counted_in_line_numbers() {
    let (lines, expected) = generated(23, 3);
    let blank = "\n".repeat(50_000);
    let text = format!(
        "{}\n{blank}no event\n{blank}{}",
        lines[0],
        lines[1..].join("\n")
    );
    for packed in [false, true] {
        let text = text.clone().into_bytes();
        let import = Import::of(if packed { gzip(&text) } else { text }).await;
        let report = import.work().await;
        assert_eq!(
            counts_of(&report),
            Expected {
                rejected: expected.rejected + 1,
                ..expected
            }
        );
        assert_eq!(report.counts.lines, 100_004);
        let rejected = import.rejects().await;
        let mut rejected = rejected.iter().map(|reject| reject["line_number"].as_u64());
        assert!(rejected.any(|number| number == Some(50_002)));
    }
}

//! Rows of an import.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::Utc;
use hearback_domain::events::import::ImportReport;
use hearback_tests::generate::Expected;
use hearback_tests::rows::{Row, attribute, rows};
use uuid::Uuid;

use crate::imports::{Import, counts_of, generated, gzip};

async fn import_rows(import: &Import, key: &str) -> Vec<Row> {
    let (client, names) = (&import.engine.clients.dynamodb, &import.engine.names);
    let rows = rows(client, &names.table()).await.into_iter();
    let of_imports = rows.filter(|row| attribute(row, "PK").starts_with("IMPORT#"));
    of_imports
        .filter(|row| attribute(row, "SK").starts_with(key))
        .collect()
}

async fn put(import: &Import, row: &Row) {
    let put = import.engine.clients.dynamodb.put_item();
    let put = put.table_name(import.engine.names.table());
    put.set_item(Some(row.clone())).send().await.unwrap();
}

/// A row without each of its attributes, and with something else in each.
fn damaged(row: &Row) -> BTreeMap<String, Row> {
    let mut damaged = BTreeMap::new();
    for name in row
        .keys()
        .filter(|name| !["PK", "SK"].contains(&name.as_str()))
    {
        let mut without = row.clone();
        without.remove(name);
        damaged.insert(format!("without {name}"), without);
        let mut cut = row.clone();
        cut.insert(name.clone(), AttributeValue::S("{".to_owned()));
        damaged.insert(format!("{name} cut"), cut);
    }
    damaged
}

/// An import of which one worker has processed some lines.
async fn begun(lines: &[String]) -> Import {
    let import = Import::of(lines.join("\n").into_bytes()).await;
    let importer = import.importer(import.engine.store.clone());
    assert_eq!(import.step(&importer, None).await, Some(false));
    assert_eq!(import.step(&importer, Some(Utc::now())).await, Some(false));
    let pieces = import_rows(&import, "PIECE#").await;
    assert!(attribute(&pieces[0], "core").contains("\"lines\":1"));
    import
}

fn all(count: usize, expected: Expected) -> (u64, Expected) {
    (u64::try_from(count).unwrap(), expected)
}

fn counted(report: &ImportReport) -> (u64, Expected) {
    (report.counts.lines, counts_of(report))
}

/// Damages the row with this key of an import that has begun, in every way, and lets `then` cause what continues it.
async fn each_line_counts_once(
    (lines, expected): (Vec<String>, Expected),
    key: &str,
    then: impl AsyncFn(&Import),
) {
    let row = import_rows(&begun(&lines).await, key).await.remove(0);
    for damage in damaged(&row).into_keys() {
        let import = begun(&lines).await;
        let row = import_rows(&import, key).await.remove(0);
        put(&import, &damaged(&row)[&damage]).await;
        then(&import).await;
        let report = import.work().await;
        assert_eq!(counted(&report), all(lines.len(), expected), "{damage}");
        assert_eq!(report.damage, None, "{damage}");
        let rejects = u64::try_from(import.rejects().await.len()).unwrap();
        assert_eq!(rejects, expected.rejected, "{damage}");
    }
}

#[tokio::test]
async fn a_piece_whose_row_is_damaged_begins_again_and_each_line_counts_once() {
    // The message of the piece is still in the queue.
    each_line_counts_once(generated(24, 100), "PIECE#", async |_| {}).await;
}

#[tokio::test]
async fn an_import_whose_row_is_damaged_continues_when_its_file_is_put_again() {
    let put_again = async |import: &Import| import.notify().await;
    each_line_counts_once(generated(22, 30), "IMPORT", put_again).await;
}

#[tokio::test]
async fn a_completed_import_whose_row_is_damaged_counts_its_pieces_again() {
    let (lines, expected) = generated(23, 30);
    let import = Import::of(lines.join("\n").into_bytes()).await;
    let before = import.work().await;
    let row = import_rows(&import, "IMPORT").await.remove(0);
    for (damage, row) in damaged(&row) {
        put(&import, &row).await;
        import.notify().await;
        let report = import.work().await;
        assert_eq!(counted(&report), all(30, expected), "{damage}");
        assert_eq!(report.first_errors, before.first_errors, "{damage}");
    }
}

#[tokio::test]
async fn a_report_is_written_without_the_rejects_of_a_damaged_piece() {
    let (lines, expected) = generated(24, 100);
    assert!(expected.rejected > 0);
    let import = Import::of(lines.join("\n").into_bytes()).await;
    import.work().await;
    // As if the worker that wrote the report had crashed before.
    let mut row = import_rows(&import, "IMPORT").await.remove(0);
    row.remove("report");
    put(&import, &row).await;
    let mut piece = import_rows(&import, "PIECE#").await.remove(0);
    piece.insert("core".to_owned(), AttributeValue::S("{".to_owned()));
    put(&import, &piece).await;
    import.notify().await;
    let importer = import.importer(import.engine.store.clone());
    // The notification only: the message of the piece would begin it again.
    assert_eq!(import.step(&importer, None).await, Some(false));
    let report = import.report().await.unwrap();
    assert_eq!(counted(&report), all(100, expected));
    assert!(report.damage.unwrap().contains("1 of its parts"));
    assert_eq!((report.first_errors, report.rejects), (vec![], None));
    assert_eq!(report.rejects_left_out, expected.rejected);
    assert_eq!((report.rejects_bound, report.file_deleted), (None, false));
}

/// Sends each message of the queue of imports again, as if it had been delivered twice.
async fn repeat_messages(import: &Import) {
    let (sqs, queue) = (&import.engine.clients.sqs, &import.engine.queues.imports);
    let receive = sqs.receive_message().queue_url(queue);
    let receive = receive.max_number_of_messages(10).visibility_timeout(0);
    let messages = receive.send().await.unwrap().messages.unwrap();
    assert_eq!(messages.len(), 2);
    for message in messages {
        let send = sqs.send_message().queue_url(queue);
        let send = send.set_message_body(message.body);
        send.send().await.unwrap();
    }
}

/// The lines of a completed piece of a packed file cannot be read again.
#[tokio::test]
async fn a_completed_piece_of_a_packed_file_whose_row_is_damaged_stays_completed() {
    let long: String = (0..6_250)
        .map(|_| Uuid::new_v4().simple().to_string())
        .collect();
    let text = vec![format!("no event {long}"); 30].join("\n");
    let import = Import::of(gzip(text.as_bytes())).await;
    let importer = import.importer(import.engine.store.clone());
    for _ in 0..2 {
        assert_eq!(import.step(&importer, None).await, Some(false));
    }
    repeat_messages(&import).await;
    let mut completed = loop {
        assert_eq!(import.step(&importer, None).await, Some(false));
        let pieces = import_rows(&import, "PIECE#").await.into_iter();
        let mut completed = pieces.filter(|row| attribute(row, "core").contains("\"next\":null"));
        if let Some(row) = completed.next() {
            break row;
        }
    };
    assert_eq!(import.report().await, None, "there are two pieces");
    completed.insert("core".to_owned(), AttributeValue::S("{".to_owned()));
    put(&import, &completed).await;
    // The other piece is not complete yet, so that the second message of this one comes first.
    assert_eq!(import.step(&importer, Some(Utc::now())).await, Some(false));
    let report = import.work().await;
    assert_eq!((report.counts.lines, report.counts.rejected), (30, 30));
    assert!(report.damage.unwrap().contains("1 of its parts"));
}

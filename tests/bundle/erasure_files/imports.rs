//! Imported files and their rejects.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use chrono::Utc;
use hearback_domain::events::import::{MAX_LINE_BYTES, Packing};
use hearback_erasure::ErasedFiles;
use hearback_storage::files::{import_key, report_key};
use serde_json::{Value, json};

use super::{ADA, BOB, Bucket, acme, gzip, report};
use crate::import_bounds::bomb;
use crate::imports::import_with;

#[tokio::test]
async fn an_imported_file_with_a_line_of_the_person_is_deleted_in_every_packing() {
    let bucket = Bucket::start().await;
    // Too long, not JSON, nested too deeply, and not UTF-8: such lines belong to no user.
    let long = format!(
        r#"{{"userId": "ada", "x": "{}"}}"#,
        "x".repeat(MAX_LINE_BYTES)
    );
    let deep = "[".repeat(10_000);
    let odd = [
        long.as_bytes(),
        b"{\"userId\": \"ada\"",
        deep.as_bytes(),
        b"\xFF\xFE",
        BOB.as_bytes(),
    ]
    .join(&b'\n');
    let with_ada = [odd.as_slice(), ADA.as_bytes()].join(&b'\n');
    let zstd = |bytes: &[u8]| zstd::encode_all(bytes, 1).unwrap();
    let mut left = Vec::new();
    for (content, name) in [(&odd, "bob"), (&with_ada, "ada")] {
        for (packing, bytes) in [
            (Packing::Plain, content.clone()),
            (Packing::Gzip, gzip(content)),
            (Packing::Zstd, zstd(content)),
        ] {
            let name = format!("{packing:?}/{name}.jsonl");
            // An older version of the file.
            bucket
                .put(&import_key(&acme(), &name).unwrap(), "before")
                .await;
            let key = bucket.put_imported(&name, packing, &bytes).await;
            left.push(report_key(&key, "report.json"));
            if name.contains("bob") {
                left.push(key);
            }
        }
    }
    let erased = bucket.erase().await;
    let expected = ErasedFiles {
        import_files: 3,
        ..ErasedFiles::default()
    };
    assert_eq!(erased, expected);
    left.sort();
    assert_eq!(bucket.keys().await, left);
    if let Some(versions) = bucket.versions().await {
        assert!(!versions.iter().any(|key| key.ends_with("ada.jsonl")));
    }
    assert_eq!(bucket.erase().await, ErasedFiles::default());
}

#[tokio::test]
async fn a_damaged_file_is_judged_by_its_complete_lines() {
    let bucket = Bucket::start().await;
    let filler: String = (0..200_000).map(|number| format!("{number}\n")).collect();
    let mut packed = gzip(format!("{ADA}\n{filler}").as_bytes());
    packed.truncate(packed.len() / 2);
    bucket
        .put_imported("cut.jsonl", Packing::Gzip, &packed)
        .await;
    bucket
        .put_imported("none.jsonl", Packing::Zstd, ADA.as_bytes())
        .await;
    assert_eq!(bucket.erase().await.import_files, 1);
}

/// The import stops at its bound, and so does the search for the person. It lets other tasks run meanwhile.
#[tokio::test]
async fn a_file_of_endless_line_breaks_is_searched_as_far_as_it_was_imported() {
    let bucket = Bucket::start().await;
    let line = zstd::encode_all(format!("{ADA}\n").as_bytes(), 3).unwrap();
    let within = [line.clone(), bomb()].concat();
    let beyond = [bomb(), line].concat();
    bucket
        .put_imported("within.jsonl", Packing::Zstd, &within)
        .await;
    let beyond_key = bucket
        .put_imported("beyond.jsonl", Packing::Zstd, &beyond)
        .await;
    let turns = Arc::new(AtomicUsize::new(0));
    let counting = turns.clone();
    let others = tokio::spawn(async move {
        loop {
            counting.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    });
    let erased = tokio::time::timeout(Duration::from_secs(60), bucket.erase()).await;
    others.abort();
    assert_eq!(erased.expect("the search ends").import_files, 1);
    assert!(
        bucket.keys().await.contains(&beyond_key),
        "nothing of the person was imported from it"
    );
    assert!(turns.load(Ordering::Relaxed) > 10, "the search yields");
}

#[tokio::test]
async fn a_file_that_is_not_imported_yet_is_kept() {
    let bucket = Bucket::start().await;
    let new = import_key(&acme(), "new.jsonl").unwrap();
    bucket.put(&new, ADA).await;
    // A newer file under the key of an imported one, whose report can be read or not.
    let replaced = import_key(&acme(), "replaced.jsonl").unwrap();
    let before = report(&replaced, Packing::Plain, Utc::now());
    let before = serde_json::to_vec(&before).unwrap();
    bucket
        .put(&report_key(&replaced, "report.json"), before)
        .await;
    let odd = import_key(&acme(), "odd.jsonl").unwrap();
    bucket
        .put(&report_key(&odd, "report.json"), "no report")
        .await;
    // A bucket may round times to seconds, and a file of the second after a damaged report counts as imported.
    tokio::time::sleep(Duration::from_millis(2100)).await;
    bucket.put(&replaced, ADA).await;
    bucket.put(&odd, ADA).await;
    let before = bucket.keys().await;
    assert_eq!(bucket.erase().await, ErasedFiles::default());
    assert_eq!(bucket.keys().await, before);
}

#[tokio::test]
async fn an_imported_file_is_erased_although_its_report_cannot_be_read() {
    let bucket = Bucket::start().await;
    let packed = zstd::encode_all(ADA.as_bytes(), 3).unwrap();
    for (name, packing, bytes) in [
        ("plain.jsonl", Packing::Plain, ADA.as_bytes()),
        ("packed.jsonl", Packing::Zstd, &packed),
    ] {
        let key = bucket.put_imported(name, packing, bytes).await;
        let cut = "{\"file\": ";
        bucket.put(&report_key(&key, "report.json"), cut).await;
    }
    assert_eq!(bucket.erase().await.import_files, 2);
}

/// The rejects are written by the importer.
#[tokio::test]
async fn the_persons_lines_are_removed_from_the_rejects_of_an_import() {
    let bucket = Bucket::start().await;
    let engine = &bucket.engine;
    let importer = engine.importer(engine.store.clone());
    let file = [
        r#"{"userId": "ada", "ada-lovelace": 1, "context": {"ada": 1}, "privacyFlags": {"ada": 1}}"#,
        r#"{"userId": "bob", "unknown": 1}"#,
        r#"{"userId": "ada", "feedbackChannel": "ada", "data": {"rating": "Ada \"Lovelace\""}}"#,
        "ada, but no JSON",
    ];
    import_with(engine, &importer, file.join("\n").into_bytes(), None).await;
    let key = import_key(&acme(), "events.jsonl").unwrap();
    let (rejects, report) = (
        report_key(&key, "rejects.jsonl"),
        report_key(&key, "report.json"),
    );
    let before = bucket.text(&rejects).await;
    let lines: Vec<_> = before.lines().collect();
    assert_eq!(lines.len(), 4);
    // The report names the errors, and quotes nothing from the lines.
    let mut text: Value = serde_json::from_str(&bucket.text(&report).await).unwrap();
    // The name of the bucket is hexadecimal and may contain "ada".
    for member in ["file", "rejects"] {
        text[member] = json!("");
    }
    let text = text.to_string().to_lowercase();
    assert!(
        text.contains("/data/rating") && !text.contains("ada"),
        "{text}"
    );

    let erased = bucket.erase().await;
    let expected = ErasedFiles {
        import_files: 1,
        import_lines: 2,
        ..ErasedFiles::default()
    };
    assert_eq!(erased, expected);
    assert_eq!(
        bucket.text(&rejects).await,
        format!("{}\n{}\n", lines[1], lines[3])
    );
    bucket.assert_left(vec![rejects, report]).await;
    assert_eq!(bucket.erase().await, ErasedFiles::default());
}

//! Export files: the person's lines are removed, and everything else is unchanged.

use hearback_erasure::ErasedFiles;
use hearback_storage::exports::ExportRun;
use serde_json::json;

use super::{ADA, BOB, Bucket, acme};

#[tokio::test]
async fn the_persons_lines_of_exports_are_removed_and_the_others_are_unchanged() {
    let bucket = Bucket::start().await;
    let day = "2026-02-03".parse().unwrap();
    let run = ExportRun::new(&acme(), day, "run");
    let training = ExportRun::of_training(&acme(), &"p".try_into().unwrap(), "run");
    let other_tenant = ExportRun::new(&"other".try_into().unwrap(), day, "run");
    let key = |name: &str| format!("exports/signals/acme/2026-02-03/run/{name}");
    let mixed = format!("{ADA}\n{BOB}\r\n\nno JSON of ada\n{ADA}\r\n{BOB}");
    let put = async |run: &ExportRun, name: &str, lines: &str| {
        let lines = lines.as_bytes().to_vec();
        bucket.blobs.put_export_file(run, name, lines).await
    };
    put(&run, "mixed.jsonl", &mixed).await.unwrap();
    put(&run, "bob.jsonl", &format!("{BOB}\n")).await.unwrap();
    put(&run, "ada.jsonl", &format!("{ADA}\n\n{ADA}"))
        .await
        .unwrap();
    put(&training, "pairs/1.jsonl", &format!("{ADA}\n{BOB}\n"))
        .await
        .unwrap();
    put(&other_tenant, "mixed.jsonl", &mixed).await.unwrap();
    let manifest = json!({"userId": "ada"});
    bucket
        .blobs
        .put_export_manifest(&run, &manifest)
        .await
        .unwrap();
    let untouched = bucket.blobs.file(&key("bob.jsonl"), None).await.unwrap();

    let erased = bucket.erase().await;
    let expected = ErasedFiles {
        export_lines: 5,
        ..ErasedFiles::default()
    };
    assert_eq!(erased, expected);
    assert_eq!(bucket.text(&key("ada.jsonl")).await.trim_ascii(), "");
    assert_eq!(
        bucket.text(&key("mixed.jsonl")).await,
        format!("{BOB}\r\n\nno JSON of ada\n{BOB}")
    );
    let mixed_now = bucket.blobs.file(&key("mixed.jsonl"), None).await.unwrap();
    assert_eq!(
        mixed_now.unwrap().content_type.as_deref(),
        Some("application/jsonl")
    );
    assert_eq!(
        bucket
            .text("exports/training/acme/p/run/pairs/1.jsonl")
            .await,
        format!("{BOB}\n")
    );
    assert_eq!(
        bucket
            .text("exports/signals/other/2026-02-03/run/mixed.jsonl")
            .await,
        mixed
    );
    // A file without the person's lines is not rewritten.
    assert_eq!(
        bucket.blobs.file(&key("bob.jsonl"), None).await.unwrap(),
        untouched
    );
    bucket
        .assert_left(vec![
            // Without lines, but kept, because the manifest names it.
            key("ada.jsonl"),
            key("mixed.jsonl"),
            key("bob.jsonl"),
            "exports/signals/acme/2026-02-03/manifest.json".to_owned(),
            "exports/training/acme/p/run/pairs/1.jsonl".to_owned(),
            "exports/signals/other/2026-02-03/run/mixed.jsonl".to_owned(),
        ])
        .await;
    assert_eq!(bucket.erase().await, ErasedFiles::default());
}

/// A file of several parts, with lines across the boundaries of chunks and parts.
#[tokio::test]
async fn a_large_file_is_rewritten_in_parts() {
    let bucket = Bucket::start().await;
    let line = |number: usize| {
        let user = if number.is_multiple_of(7) {
            "ada"
        } else {
            "bob"
        };
        let text = "x".repeat(number * 7919 % 60_000);
        format!("{{\"userId\": \"{user}\", \"comment\": \"{number} {text}\"}}")
    };
    let lines: Vec<_> = (0..420).map(line).collect();
    let text = lines.join("\n");
    assert!(text.len() > 11 * 1024 * 1024, "{}", text.len());
    let kept = lines.iter().enumerate();
    let kept = kept.filter(|(number, _)| !number.is_multiple_of(7));
    let kept: Vec<_> = kept.map(|(_, line)| line.as_str()).collect();
    let key = "exports/signals/acme/2026-02-03/run/large.jsonl";
    // The older version has another checksum.
    bucket.put(key, "before").await;
    bucket.put_in_parts(key, &text).await;
    assert_eq!(bucket.erase().await.export_lines, 60);
    assert!(bucket.text(key).await == kept.join("\n"));
    let etag = bucket.blobs.file(key, None).await.unwrap().unwrap().etag;
    assert!(etag.contains('-'), "a multipart upload: {etag}");
    bucket.assert_left(vec![key.to_owned()]).await;
}

#[tokio::test]
async fn a_line_that_is_too_long_is_copied_unchanged() {
    let bucket = Bucket::start().await;
    if bucket.keeps_versions {
        // The result does not depend on the engine, and another engine may be slow with large files.
        return;
    }
    let key = "exports/signals/acme/2026-02-03/run/long.jsonl";
    let text = "x".repeat(33 * 1024 * 1024);
    let long = format!(r#"{{"userId": "ada", "x": "{text}"}}"#);
    let file = format!("{BOB}\n{long}\n{ADA}\n{BOB}\n");
    bucket.put_in_parts(key, &file).await;
    assert_eq!(bucket.erase().await.export_lines, 1);
    assert!(bucket.text(key).await == format!("{BOB}\n{long}\n{BOB}\n"));
}

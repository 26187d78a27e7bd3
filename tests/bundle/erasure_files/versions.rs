//! Versions of objects, files that change during a pass, and passes that run out of time.

use std::sync::atomic::{AtomicU32, Ordering};

use hearback_domain::events::import::Packing;
use hearback_erasure::{ErasedFiles, erase_files};
use hearback_storage::files::report_key;
use tokio::runtime::Handle;

use super::{ADA, BOB, Bucket, acme, is_adas};

#[tokio::test]
async fn a_pass_that_runs_out_of_time_is_continued() {
    let bucket = Bucket::start().await;
    let mut left = Vec::new();
    for number in 0..3 {
        for folder in ["exports/signals/acme/d/r", "exports/training/acme/p/r"] {
            let key = format!("{folder}/{number}.jsonl");
            bucket.put(&key, format!("{ADA}\n{BOB}\n{ADA}\n")).await;
            left.push(key);
        }
        let name = format!("{number}.jsonl");
        let ada = format!("{ADA}\n");
        let key = bucket
            .put_imported(&name, Packing::Plain, ada.as_bytes())
            .await;
        left.push(report_key(&key, "report.json"));
    }
    let mut sum = ErasedFiles::default();
    let mut after = None;
    let mut runs = 0;
    loop {
        // Without any time each run does one step.
        let (tenant, over) = (acme(), || true);
        let erased = erase_files(&bucket.blobs, &tenant, &is_adas, after.as_deref(), &over);
        let erased = erased.await.unwrap();
        sum.export_lines += erased.export_lines;
        sum.import_files += erased.import_files;
        runs += 1;
        assert!(erased.next.is_none() || erased.next > after);
        after = erased.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!((sum.export_lines, sum.import_files), (12, 3));
    assert!(runs > 9, "{runs}");
    bucket.assert_left(left).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_changes_during_the_pass_is_read_again() {
    let bucket = Bucket::start().await;
    let key = "exports/signals/acme/d/r/1.jsonl";
    bucket.put(key, format!("{ADA}\n{BOB}\n")).await;
    let calls = AtomicU32::new(0);
    let belongs = |line: &[u8]| {
        // The file is read once to look for a line, and once to remove it.
        if calls.fetch_add(1, Ordering::Relaxed) == 2 {
            let put = bucket.put(key, format!("{BOB}\n{ADA}\n{ADA}\n"));
            tokio::task::block_in_place(|| Handle::current().block_on(put));
        }
        line == ADA.as_bytes()
    };
    let removed = bucket.blobs.remove_lines(key, belongs).await;
    assert_eq!(removed.unwrap(), 2);
    assert_eq!(bucket.text(key).await, format!("{BOB}\n"));
    bucket.assert_left(vec![key.to_owned()]).await;
    let missing = bucket.blobs.remove_lines("exports/none.jsonl", |_| true);
    assert_eq!(missing.await.unwrap(), 0);
}

#[tokio::test]
async fn a_newer_file_under_the_same_key_is_not_deleted() {
    let bucket = Bucket::start().await;
    let key = "imports/acme/1.jsonl";
    bucket.put(key, ADA).await;
    let (file, _) = bucket.blobs.open(key).await.unwrap().unwrap();
    bucket.put(key, BOB).await;
    bucket.blobs.remove_file(&file).await.unwrap();
    assert_eq!(bucket.text(key).await, BOB);
    bucket.assert_left(vec![key.to_owned()]).await;
}

#[tokio::test]
async fn every_version_is_deleted_except_those_to_keep() {
    let bucket = Bucket::start().await;
    let mut spared = Vec::new();
    for number in 0..3 {
        for key in ["turn-logs/a/1.json", "turn-logs/a/2.json", "turn-logs/b/1"] {
            bucket.put(key, format!("{number}")).await;
        }
        spared.push("turn-logs/b/1".to_owned());
    }
    bucket.put("turn-logs/a/spared", "").await;
    spared.push("turn-logs/a/spared".to_owned());
    // A delete marker, if the engine has versions.
    bucket
        .blobs
        .delete_file("turn-logs/a/2.json", None)
        .await
        .unwrap();
    let delete = || {
        let blobs = &bucket.blobs;
        blobs.delete_versions("turn-logs/a/", |listed| listed.key.ends_with("spared"))
    };
    let deleted = delete().await.unwrap();
    assert_eq!(deleted, if bucket.keeps_versions { 7 } else { 1 });
    assert_eq!(bucket.keys().await, ["turn-logs/a/spared", "turn-logs/b/1"]);
    if let Some(versions) = bucket.versions().await {
        spared.sort();
        assert_eq!(versions, spared);
    }
    assert_eq!(delete().await.unwrap(), 0);
    let older = bucket.blobs.delete_older_versions("turn-logs/", |_| false);
    let older = older.await.unwrap();
    assert_eq!(older, if bucket.keeps_versions { 2 } else { 0 });
    bucket
        .assert_left(vec![
            "turn-logs/a/spared".to_owned(),
            "turn-logs/b/1".to_owned(),
        ])
        .await;
}

/// More objects than one page of a listing or one delete request.
#[tokio::test]
async fn many_objects_are_deleted_page_by_page() {
    let bucket = Bucket::start().await;
    for some in (0..1100).collect::<Vec<_>>().chunks(50) {
        let puts = some.iter().map(async |number| {
            bucket.put(&format!("many/{number:04}"), "").await;
        });
        futures::future::join_all(puts).await;
    }
    let spare = |listed: &hearback_storage::versions::ListedObject| listed.key.ends_with("99");
    let deleted = bucket.blobs.delete_versions("many/", spare).await.unwrap();
    assert_eq!(deleted, 1089);
    assert_eq!(bucket.keys().await.len(), 11);
    assert_eq!(
        bucket
            .blobs
            .delete_versions("many/", |_| false)
            .await
            .unwrap(),
        11
    );
    bucket.assert_left(Vec::new()).await;
}

//! The erasure in the bucket: what belongs to a person goes, in all its versions, and all else stays as
//! it is.

use std::io::Write;
use std::sync::atomic::{AtomicU32, Ordering};

use aws_sdk_s3::types::{BucketVersioningStatus, VersioningConfiguration};
use chrono::{DateTime, Utc};
use flate2::Compression;
use flate2::write::GzEncoder;
use hearback_domain::identifier::TenantId;
use hearback_domain::import::{Counts, LONGEST_LINE, Packing, Report};
use hearback_erasure::{Erased, erase_files};
use hearback_storage::Blobs;
use hearback_storage::exports::ExportRun;
use hearback_storage::files::{beside, import_key};
use hearback_tests::engine::{ENDPOINT_URL, Engine};
use serde_json::{Value, json};
use tokio::runtime::Handle;

use crate::imports::import_with;

fn acme() -> TenantId {
    "acme".try_into().unwrap()
}

fn is_adas(line: &Value) -> bool {
    line["userId"] == "ada"
}

/// An engine whose bucket keeps versions if it can, as in AWS. Answers whether it does.
async fn versioned() -> (Engine, bool) {
    let engine = Engine::start().await;
    let enabled = VersioningConfiguration::builder()
        .status(BucketVersioningStatus::Enabled)
        .build();
    let put = engine.clients.s3.put_bucket_versioning();
    let put = put.bucket(engine.names.bucket());
    let put = put.versioning_configuration(enabled).send().await;
    // The embedded engine does not.
    assert_eq!(put.is_ok(), std::env::var(ENDPOINT_URL).is_ok());
    (engine, put.is_ok())
}

struct Bucket {
    engine: Engine,
    blobs: Blobs,
    keeps_versions: bool,
}

impl Bucket {
    async fn start() -> Self {
        let (engine, keeps_versions) = versioned().await;
        let blobs = engine.blobs();
        Self {
            engine,
            blobs,
            keeps_versions,
        }
    }

    async fn put(&self, key: &str, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref().to_vec();
        self.blobs.put_file(key, bytes).await.unwrap();
    }

    /// Stores a file in parts: no call takes long.
    async fn put_in_parts(&self, key: &str, text: &str) {
        let mut upload = self.blobs.upload(key);
        upload.push(text.as_bytes()).await.unwrap();
        upload.finish().await.unwrap();
    }

    async fn read(&self, key: &str) -> Option<Vec<u8>> {
        let (_, body) = self.blobs.open(key).await.unwrap()?;
        Some(body.collect().await.unwrap().to_vec())
    }

    async fn text(&self, key: &str) -> String {
        String::from_utf8(self.read(key).await.unwrap()).unwrap()
    }

    /// Stores a file and the report of its import, which began behind it.
    async fn put_imported(&self, name: &str, packing: Packing, bytes: &[u8]) -> String {
        let key = import_key(&acme(), name).unwrap();
        self.put(&key, bytes).await;
        // A time of a file is told to the second.
        let started_at = Utc::now() + chrono::Duration::seconds(1);
        let report = serde_json::to_vec(&report(&key, packing, started_at)).unwrap();
        self.put(&beside(&key, "report.json"), report).await;
        key
    }

    async fn erase(&self) -> Erased {
        let (tenant, over) = (acme(), || false);
        let erased = erase_files(&self.blobs, &tenant, &is_adas, None, &over).await;
        erased.unwrap()
    }

    async fn keys(&self) -> Vec<String> {
        let listed = self.blobs.list("", None).await.unwrap();
        listed.into_iter().map(|listed| listed.key).collect()
    }

    /// Keys of all versions and marks of deletions, where versions are kept.
    async fn versions(&self) -> Option<Vec<String>> {
        if !self.keeps_versions {
            return None;
        }
        let listed = self.engine.clients.s3.list_object_versions();
        let listed = listed.bucket(self.engine.names.bucket()).send().await;
        let listed = listed.unwrap();
        let versions = listed.versions().iter().map(|version| version.key());
        let marks = listed.delete_markers().iter().map(|mark| mark.key());
        let mut keys: Vec<_> = versions
            .chain(marks)
            .map(|key| key.unwrap().to_owned())
            .collect();
        keys.sort();
        Some(keys)
    }

    /// Asserts that these objects are left, and no version beside them.
    async fn assert_left(&self, mut left: Vec<String>) {
        left.sort();
        assert_eq!(self.keys().await, left);
        if let Some(versions) = self.versions().await {
            assert_eq!(versions, left);
        }
    }
}

fn report(key: &str, packing: Packing, started_at: DateTime<Utc>) -> Report {
    Report {
        file: key.to_owned(),
        packing,
        bytes: 1,
        damage: None,
        counts: Counts::default(),
        started_at,
        finished_at: started_at,
        events_per_second: 1.0,
        first_errors: Vec::new(),
        rejects: None,
        more_rejects: Vec::new(),
        file_deleted: false,
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

const ADA: &str = r#"{"userId": "ada", "comment": "I am Ada"}"#;
const BOB: &str = r#"{"userId": "bob",  "comment": "Ada is not my name"}"#;

#[tokio::test]
async fn lines_of_exports_are_removed_and_the_others_stay_as_they_are() {
    let bucket = Bucket::start().await;
    let day = "2026-02-03".parse().unwrap();
    let run = ExportRun::new(&acme(), day, "run");
    let training = ExportRun::of_training(&acme(), &"p".try_into().unwrap(), "run");
    let theirs = ExportRun::new(&"other".try_into().unwrap(), day, "run");
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
    put(&theirs, "mixed.jsonl", &mixed).await.unwrap();
    let manifest = json!({"userId": "ada"});
    bucket
        .blobs
        .put_export_manifest(&run, &manifest)
        .await
        .unwrap();
    let untouched = bucket.blobs.file(&key("bob.jsonl"), None).await.unwrap();

    let erased = bucket.erase().await;
    let expected = Erased {
        export_lines: 5,
        ..Erased::default()
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
    // Not even written.
    assert_eq!(
        bucket.blobs.file(&key("bob.jsonl"), None).await.unwrap(),
        untouched
    );
    bucket
        .assert_left(vec![
            // Its manifest names it.
            key("ada.jsonl"),
            key("mixed.jsonl"),
            key("bob.jsonl"),
            "exports/signals/acme/2026-02-03/manifest.json".to_owned(),
            "exports/training/acme/p/run/pairs/1.jsonl".to_owned(),
            "exports/signals/other/2026-02-03/run/mixed.jsonl".to_owned(),
        ])
        .await;
    assert_eq!(bucket.erase().await, Erased::default());
}

/// A file of several parts, with lines that are cut across chunks and parts.
#[tokio::test]
async fn a_large_file_is_stored_anew_in_parts() {
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
    // What lay there before has a checksum of its own.
    bucket.put(key, "before").await;
    bucket.put_in_parts(key, &text).await;
    assert_eq!(bucket.erase().await.export_lines, 60);
    assert!(bucket.text(key).await == kept.join("\n"));
    let etag = bucket.blobs.file(key, None).await.unwrap().unwrap().etag;
    assert!(etag.contains('-'), "in parts: {etag}");
    bucket.assert_left(vec![key.to_owned()]).await;
}

#[tokio::test]
async fn a_line_that_is_too_long_passes_as_it_is() {
    let bucket = Bucket::start().await;
    if bucket.keeps_versions {
        // Nothing here depends on the engine, and another one may take long for so much.
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

#[tokio::test]
async fn an_imported_file_with_a_line_of_the_person_is_deleted_however_it_is_packed() {
    let bucket = Bucket::start().await;
    // Too long, no JSON, deep, and not UTF-8: nobody's.
    let long = format!(
        r#"{{"userId": "ada", "x": "{}"}}"#,
        "x".repeat(LONGEST_LINE)
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
            // It was there before, too.
            bucket
                .put(&import_key(&acme(), &name).unwrap(), "before")
                .await;
            let key = bucket.put_imported(&name, packing, &bytes).await;
            left.push(beside(&key, "report.json"));
            if name.contains("bob") {
                left.push(key);
            }
        }
    }
    let erased = bucket.erase().await;
    let expected = Erased {
        import_files: 3,
        ..Erased::default()
    };
    assert_eq!(erased, expected);
    left.sort();
    assert_eq!(bucket.keys().await, left);
    if let Some(versions) = bucket.versions().await {
        assert!(!versions.iter().any(|key| key.ends_with("ada.jsonl")));
    }
    assert_eq!(bucket.erase().await, Erased::default());
}

#[tokio::test]
async fn of_a_file_that_cannot_be_unpacked_the_whole_lines_count() {
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

#[tokio::test]
async fn a_file_that_is_not_imported_yet_is_left_alone() {
    let bucket = Bucket::start().await;
    let new = import_key(&acme(), "new.jsonl").unwrap();
    bucket.put(&new, ADA).await;
    // Others took the place of one that was imported, and of a report.
    let replaced = import_key(&acme(), "replaced.jsonl").unwrap();
    let before = report(&replaced, Packing::Plain, Utc::now());
    let before = serde_json::to_vec(&before).unwrap();
    bucket.put(&beside(&replaced, "report.json"), before).await;
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    bucket.put(&replaced, ADA).await;
    let odd = import_key(&acme(), "odd.jsonl").unwrap();
    bucket.put(&odd, ADA).await;
    bucket.put(&beside(&odd, "report.json"), "no report").await;
    let before = bucket.keys().await;
    assert_eq!(bucket.erase().await, Erased::default());
    assert_eq!(bucket.keys().await, before);
}

/// By the importer itself.
#[tokio::test]
async fn what_an_import_rejected_goes_out_of_the_rejects() {
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
    let (rejects, report) = (beside(&key, "rejects.jsonl"), beside(&key, "report.json"));
    let before = bucket.text(&rejects).await;
    let lines: Vec<_> = before.lines().collect();
    assert_eq!(lines.len(), 4);
    // It says what is wrong, and nothing that the lines say.
    let told = bucket.text(&report).await.to_lowercase();
    assert!(
        told.contains("/data/rating") && !told.contains("ada"),
        "{told}"
    );

    let erased = bucket.erase().await;
    let expected = Erased {
        import_files: 1,
        import_lines: 2,
        ..Erased::default()
    };
    assert_eq!(erased, expected);
    assert_eq!(
        bucket.text(&rejects).await,
        format!("{}\n{}\n", lines[1], lines[3])
    );
    bucket.assert_left(vec![rejects, report]).await;
    assert_eq!(bucket.erase().await, Erased::default());
}

#[tokio::test]
async fn a_run_out_of_time_is_gone_on_with() {
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
        left.push(beside(&key, "report.json"));
    }
    let mut sum = Erased::default();
    let mut after = None;
    let mut runs = 0;
    loop {
        // No time at all: each run is good for one step.
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
async fn a_file_that_others_write_meanwhile_is_read_again() {
    let bucket = Bucket::start().await;
    let key = "exports/signals/acme/d/r/1.jsonl";
    bucket.put(key, format!("{ADA}\n{BOB}\n")).await;
    let asked = AtomicU32::new(0);
    let belongs = |line: &[u8]| {
        // The file is read once to look for a line, and once to remove it.
        if asked.fetch_add(1, Ordering::Relaxed) == 2 {
            let put = bucket.put(key, format!("{BOB}\n{ADA}\n{ADA}\n"));
            tokio::task::block_in_place(|| Handle::current().block_on(put));
        }
        line == ADA.as_bytes()
    };
    let removed = bucket.blobs.remove_lines(key, belongs).await;
    assert_eq!(removed.unwrap(), 2);
    assert_eq!(bucket.text(key).await, format!("{BOB}\n"));
    bucket.assert_left(vec![key.to_owned()]).await;
    let gone = bucket.blobs.remove_lines("exports/none.jsonl", |_| true);
    assert_eq!(gone.await.unwrap(), 0);
}

#[tokio::test]
async fn a_file_that_came_since_is_not_deleted_with_the_one_before() {
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
async fn every_version_is_deleted_but_those_that_are_spared() {
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
    // A mark of a deletion, where versions are kept.
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

/// More than a page of a listing, and more than one call deletes.
#[tokio::test]
async fn many_objects_are_deleted_page_by_page() {
    let bucket = Bucket::start().await;
    for some in (0..1100).collect::<Vec<_>>().chunks(50) {
        let puts = some.iter().map(async |number| {
            bucket.put(&format!("many/{number:04}"), "").await;
        });
        futures::future::join_all(puts).await;
    }
    let spare = |listed: &hearback_storage::versions::Listed| listed.key.ends_with("99");
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

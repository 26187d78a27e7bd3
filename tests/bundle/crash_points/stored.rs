//! The state of the table, the bucket and the queues.

use std::collections::BTreeMap;

use hearback_domain::feedback::reaction::ReactionCore;
use hearback_domain::learning::preferences::{Cause, Version};
use hearback_tests::engine::Engine;
use hearback_tests::rows::{Row, rows};
use serde_json::Value;

/// Everything that is stored, without what differs between attempts. A message that was sent twice counts once.
pub async fn stored(engine: &Engine, gave_up: bool) -> BTreeMap<String, String> {
    let items = items(engine).await;
    let mut objects = objects(engine).await;
    // A writer that crashed after it moved the row leaves the earlier log: nobody reads it, and erasing the turn removes
    // it.
    objects.retain(|key, _| {
        let unread =
            key.starts_with("turn-logs/") && !items.values().any(|row| row.contains(key.as_str()));
        !(gave_up && unread)
    });
    let objects = exported(objects);
    let mut stored: BTreeMap<_, _> = items.into_iter().chain(objects).collect();
    let names = erasure_ids(&stored);
    let dead_letter_queues = [
        &engine.queues.dead_letters,
        &engine.queues.ingest_dead_letters,
        &engine.queues.insights_dead_letters,
    ];
    for queue in dead_letter_queues {
        let dead_letters = messages(engine, queue).await;
        stored.extend(
            dead_letters
                .into_iter()
                .map(|message| (message, String::new())),
        );
    }
    // A request sends its message before it stores its erasure. A message without an erasure has no effect.
    let opened = |message: &String| names.iter().any(|(id, _)| message.contains(id.as_str()));
    let requests = messages(engine, &engine.queues.erasures).await;
    stored.extend(
        requests
            .into_iter()
            .filter(opened)
            .map(|message| (message, String::new())),
    );
    let named = |text: String| {
        (names.iter()).fold(text, |text, (id, name)| text.replace(id.as_str(), name))
    };
    stored
        .into_iter()
        .map(|(key, value)| (named(key), named(value)))
        .collect()
}

/// The reactions that a report would miss: those without a marker of their minute, and markers of minutes without
/// one of their month.
pub async fn missed(engine: &Engine) -> Vec<String> {
    let rows = rows(&engine.clients.dynamodb, &engine.names.table()).await;
    let key = |row: &Row, name: &str| row[name].as_s().unwrap().clone();
    let keys: Vec<_> = rows
        .iter()
        .map(|row| (key(row, "PK"), key(row, "SK")))
        .collect();
    let has = |pk: &str, sk: &str| {
        let found =
            |(other, place): &(String, String)| other.starts_with(pk) && place.starts_with(sk);
        keys.iter().any(found)
    };
    let reactions = (rows.iter()).filter(|row| key(row, "SK").starts_with("REACTION#"));
    let cores = reactions.filter_map(|row| row.get("core").or_else(|| row.get("counted")));
    let cores = cores.map(|core| serde_json::from_str::<ReactionCore>(core.as_s().unwrap()));
    let current = cores
        .map(Result::unwrap)
        .filter(|core| core.reaction.is_some());
    let unmarked = current.filter(|core| {
        let day = core
            .ts
            .format("DAY#acme#order-service#%Y-%m-%d#")
            .to_string();
        !has(&day, &core.ts.format("%H:%M#").to_string())
    });
    let days = (keys.iter()).filter_map(|(pk, _)| pk.strip_prefix("DAY#acme#order-service#"));
    let hidden = days.filter(|day| !has("MONTHS#acme#order-service", &day[..7]));
    unmarked
        .map(|core| format!("{core:?}"))
        .chain(hidden.map(|day| format!("the month of {day}")))
        .collect()
}

/// The random ids of erasures, each with a stable name.
fn erasure_ids(stored: &BTreeMap<String, String>) -> Vec<(String, String)> {
    let erasures = stored
        .iter()
        .filter(|(key, _)| key.ends_with("S(\"ERASURE\")"));
    let ids = erasures.filter_map(|(key, row)| {
        let (_, after) = row.split_once(r#"{\"id\":\""#)?;
        let (id, _) = after.split_once('\\')?;
        Some((id.to_owned(), format!("the erasure of {key}")))
    });
    ids.collect()
}

async fn items(engine: &Engine) -> BTreeMap<String, String> {
    let mut rows = rows(&engine.clients.dynamodb, &engine.names.table()).await;
    let versions: Vec<_> = rows
        .extract_if(.., |row| row.contains_key("version"))
        .collect();
    let items = rows.into_iter().map(|row| named(engine, row));
    items.chain(learned(&versions)).collect()
}

/// The newest preferences, and the events that they were learned from. After a failed batch the generator processes
/// its messages one by one, and writes a version for each.
fn learned(versions: &[Row]) -> Option<(String, String)> {
    let parsed = versions.iter().map(|row| row["version"].as_s().unwrap());
    let mut versions: Vec<Version> = parsed
        .map(|text| serde_json::from_str(text).unwrap())
        .collect();
    versions.sort_by_key(|version| version.number);
    let taught = versions.iter().flat_map(|version| match &version.cause {
        Cause::Feedback { feedback_ids, .. } => feedback_ids.clone(),
        _ => Vec::new(),
    });
    let mut taught: Vec<_> = taught.collect();
    taught.sort_unstable();
    let newest = &versions.last()?.preferences;
    Some(("preferences".to_owned(), format!("{newest:?} {taught:?}")))
}

fn named(engine: &Engine, mut item: Row) -> (String, String) {
    item.remove("attempt");
    item.remove("fence");
    // Each count of an hour has a greater one.
    item.remove("number");
    // A process that dies between removing a line and counting it leaves the count short.
    item.remove("export_rows");
    let key = format!("{:?} {:?}", item["PK"], item["SK"]);
    let item: BTreeMap<_, _> = item.into_iter().collect();
    let item = format!("{item:?}").replace(&engine.names.bucket(), "bucket");
    (key, unnamed(&item))
}

/// An item without the random names of workers' files.
fn unnamed(item: &str) -> String {
    const BEFORE: &str = "rejects-0000000001-";
    match item.split_once(BEFORE) {
        Some((before, drawn)) => {
            let after = drawn.get(uuid::fmt::Hyphenated::LENGTH..).unwrap();
            format!("{before}{BEFORE}{after}")
        }
        None => item.to_owned(),
    }
}

async fn objects(engine: &Engine) -> BTreeMap<String, String> {
    let (s3, bucket) = (&engine.clients.s3, engine.names.bucket());
    let listed = s3.list_objects_v2().bucket(&bucket).send().await;
    let mut objects = BTreeMap::new();
    for object in listed.unwrap().contents() {
        let key = object.key().unwrap();
        let get = s3.get_object().bucket(&bucket).key(key);
        let body = get.send().await.unwrap().body.collect().await.unwrap();
        let body = String::from_utf8_lossy(&body.into_bytes()).into_owned();
        objects.insert(key.to_owned(), body.replace(&bucket, "bucket"));
    }
    objects
}

/// Objects, with each export as its manifest and the text of the files that the manifest lists. Files of an
/// unfinished run are in no manifest and do not count.
fn exported(mut objects: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let keys: Vec<_> = objects.keys().cloned().collect();
    for key in keys {
        let Some(folder) = key.strip_suffix("manifest.json") else {
            continue;
        };
        let mut manifest = serde_json::from_str(&objects[&key]).unwrap();
        inline_files(&mut manifest, &objects);
        objects.retain(|key, _| !key.starts_with(folder));
        objects.insert(key, manifest.to_string());
    }
    objects
}

/// Replaces the names of files by their text.
fn inline_files(value: &mut Value, objects: &BTreeMap<String, String>) {
    match value {
        Value::String(text) => {
            let key = text.strip_prefix("s3://bucket/").unwrap_or_default();
            if let Some(file) = objects.get(key).filter(|_| key.ends_with(".jsonl")) {
                text.clone_from(file);
            }
        }
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| inline_files(item, objects)),
        Value::Object(members) => members
            .values_mut()
            .for_each(|member| inline_files(member, objects)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

async fn messages(engine: &Engine, queue: &str) -> Vec<String> {
    let mut messages = Vec::new();
    loop {
        let received = engine.clients.sqs.receive_message().queue_url(queue);
        let received = received.max_number_of_messages(10).send().await.unwrap();
        let received = received.messages.unwrap_or_default();
        if received.is_empty() {
            return messages;
        }
        messages.extend(received.into_iter().filter_map(|message| message.body));
    }
}

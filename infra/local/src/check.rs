//! Checks the integrity of a data folder: quickly at each start, and completely on demand.
//!
//! `SQLite` detects damage only where it reads, and its error does not name the file. So the structure of each database
//! is checked before it is used. `SQLite` cannot detect a changed byte inside a value; the complete check finds it if
//! the value, or a part of it, is no longer valid JSON, and in objects, which have checksums. It also finds turns whose
//! log is missing. The engine's metadata cannot show that an object is missing, because it stays when an object is
//! deleted.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use hearback_storage::JSON_ATTRIBUTES;
use rusqlite::{Connection, InterruptHandle, OpenFlags};
use s3s::crypto::{Checksum, Md5};
use serde_json::Value;

use crate::files::{BUCKET_FOLDER, MANIFEST_FILE, POSITION_FILE, QUEUES_FILE, TABLE_FILE};
use crate::manifest::{self, RESTORE};
use crate::{object_metadata, position};

/// Databases of up to this many bytes are checked before the start; this takes about a second for each GB in the page
/// cache. Larger ones are checked while the bundle runs.
pub const MAX_CHECKED_AT_START: u64 = 256 * 1024 * 1024;

/// Problems of a database that are reported; the first says most.
const MAX_PROBLEMS: u32 = 5;

/// The result of checking one part.
#[derive(Debug)]
pub struct PartCheck {
    /// The part, or a file in it.
    pub name: String,
    /// A remark if the part is whole, otherwise what is wrong with it.
    pub result: Result<String, String>,
}

impl std::fmt::Display for PartCheck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (state, detail) = match &self.result {
            Ok(detail) => ("ok", detail),
            Err(detail) => ("FAILED", detail),
        };
        write!(f, "{}: {state}: {detail}", self.name)
    }
}

/// Fails if a database is damaged. Returns whether the check was complete.
pub fn check_at_start(path: &Path) -> Result<bool> {
    let size = path.metadata().map(|file| file.len()).unwrap_or_default();
    if size == 0 {
        return Ok(true);
    }
    let checked = if size <= MAX_CHECKED_AT_START {
        problems(path, "quick_check")
    } else {
        schema(path)
    };
    let shown = path.display();
    match checked {
        Ok(found) if found.is_empty() => Ok(size <= MAX_CHECKED_AT_START),
        Ok(found) => bail!("{shown} is damaged: {}. {RESTORE}", found.join("; ")),
        Err(error) => bail!("{shown} is damaged: {error:#}. {RESTORE}"),
    }
}

/// Checks the structure of a large database while it is in use.
#[derive(Debug)]
pub struct BackgroundCheck {
    path: PathBuf,
    connection: Connection,
}

impl BackgroundCheck {
    /// Opens the database.
    pub fn open(path: &Path) -> Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            connection: open(path)?,
        })
    }

    /// A handle that ends the check early.
    #[must_use]
    pub fn interrupt_handle(&self) -> Arc<InterruptHandle> {
        Arc::new(self.connection.get_interrupt_handle())
    }

    /// Returns what is wrong; `None` if nothing is, or if the check was interrupted.
    #[must_use]
    pub fn run(self) -> Option<String> {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        match pragma(&self.connection, "quick_check") {
            Ok(found) if found.is_empty() => None,
            Ok(found) => Some(format!("{name} is damaged: {}", found.join("; "))),
            Err(error)
                if error.sqlite_error_code() == Some(rusqlite::ErrorCode::OperationInterrupted) =>
            {
                None
            }
            Err(error) => Some(format!("{name} is damaged: {error}")),
        }
    }
}

/// Checks everything in a folder.
#[must_use]
pub fn check_folder(folder: &Path) -> Vec<PartCheck> {
    let mut results = vec![PartCheck {
        name: MANIFEST_FILE.to_owned(),
        result: parts(folder),
    }];
    for file in [TABLE_FILE, QUEUES_FILE] {
        let path = folder.join(file);
        if path.exists() {
            results.push(PartCheck {
                name: file.to_owned(),
                result: database(&path),
            });
        }
    }
    results.extend(relay_position(&folder.join(POSITION_FILE)));
    let is_whole = |part: &PartCheck| part.name == TABLE_FILE && part.result.is_ok();
    let has_whole_table = results.iter().any(is_whole);
    let objects = folder.join(BUCKET_FOLDER);
    if objects.exists() {
        results.extend(bucket(&objects));
        if has_whole_table {
            results.push(turn_logs(&folder.join(TABLE_FILE), &objects));
        }
    }
    results
}

fn parts(folder: &Path) -> Result<String, String> {
    let found = manifest::check(folder).map_err(|error| format!("{error:#}"))?;
    if !found.is_empty() {
        let found: Vec<_> = found.iter().map(ToString::to_string).collect();
        return Err(found.join("; "));
    }
    if folder.join(MANIFEST_FILE).exists() {
        Ok("every part is there and belongs to this folder".to_owned())
    } else {
        Ok("none yet; the next start writes it".to_owned())
    }
}

fn relay_position(path: &Path) -> Option<PartCheck> {
    let result = match position::read(path) {
        Ok(None) => return None,
        Ok(Some(shards)) => Ok(format!("positions in {} shards", shards.len())),
        Err(error) => Err(format!(
            "{error:#}; the next start begins with the oldest record"
        )),
    };
    Some(PartCheck {
        name: POSITION_FILE.to_owned(),
        result,
    })
}

fn database(path: &Path) -> Result<String, String> {
    let found = problems(path, "integrity_check").map_err(|error| format!("{error:#}"))?;
    if !found.is_empty() {
        return Err(found.join("; "));
    }
    let (items, unreadable) = items(path).map_err(|error| format!("{error:#}"))?;
    if unreadable > 0 {
        let keys = unreadable_keys(path).map_err(|error| format!("{error:#}"))?;
        let named = if keys.is_empty() { "" } else { ", such as " };
        let keys = keys.join(", ");
        return Err(format!(
            "{unreadable} of {items} values are not valid JSON{named}{keys}"
        ));
    }
    let size = path.metadata().map(|file| file.len()).unwrap_or_default();
    Ok(format!("{size} bytes"))
}

/// Opens a database read-only: a check must not change what it checks.
fn open(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(Duration::from_secs(5))?;
    Ok(connection)
}

fn problems(path: &Path, check: &str) -> Result<Vec<String>> {
    Ok(pragma(&open(path)?, check)?)
}

fn pragma(connection: &Connection, check: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare(&format!("PRAGMA {check}({MAX_PROBLEMS})"))?;
    let rows = statement.query_map([], |row| row.get::<_, String>(0))?;
    let mut found: Vec<_> = rows.collect::<Result<_, _>>()?;
    found.retain(|line| line != "ok");
    // One row may have several problems, one a line.
    Ok(found.iter().map(|line| line.replace('\n', ", ")).collect())
}

/// Reads the header and the schema only, which is quick for any size.
fn schema(path: &Path) -> Result<Vec<String>> {
    let connection = open(path)?;
    connection.pragma_query_value(None, "schema_version", |row| row.get::<_, i64>(0))?;
    let tables = "SELECT count(*) FROM sqlite_schema WHERE length(sql) > 0";
    connection.query_row(tables, [], |row| row.get::<_, i64>(0))?;
    Ok(Vec::new())
}

/// Counts the items of the table's engine, indexes included, and those that cannot be read.
fn items(path: &Path) -> Result<(i64, i64)> {
    let connection = open(path)?;
    let (mut items, mut unreadable) = (0, 0);
    let is_unreadable = format!(
        "CASE WHEN json_valid(item_json) THEN {} ELSE TRUE END",
        has_unreadable_attribute()
    );
    for table in item_tables(&connection)? {
        let count = format!("SELECT count(*), coalesce(sum({is_unreadable}), 0) FROM \"{table}\"");
        let (all, bad): (i64, i64) =
            connection.query_row(&count, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        items += all;
        unreadable += bad;
    }
    Ok((items, unreadable))
}

/// An SQL expression: whether an attribute of an item that is to be JSON is not.
fn has_unreadable_attribute() -> String {
    // NULL is the result for an attribute that an item does not have.
    let parts = JSON_ATTRIBUTES.map(|part| {
        format!("coalesce(NOT json_valid(json_extract(item_json, '$.{part}.S')), FALSE)")
    });
    parts.join(" OR ")
}

/// The keys of the first items that cannot be read, where the keys can.
fn unreadable_keys(path: &Path) -> Result<Vec<String>> {
    let connection = open(path)?;
    let mut keys = BTreeSet::new();
    for table in item_tables(&connection)? {
        let query = format!(
            "SELECT json_extract(item_json, '$.PK.S') || ' ' || json_extract(item_json, '$.SK.S') FROM \"{table}\"
             WHERE CASE WHEN json_valid(item_json) THEN {} ELSE FALSE END LIMIT {MAX_PROBLEMS}",
            has_unreadable_attribute()
        );
        let mut statement = connection.prepare(&query)?;
        let rows = statement.query_map([], |row| row.get::<_, Option<String>>(0))?;
        for key in rows {
            keys.extend(key?);
        }
    }
    let most = usize::try_from(MAX_PROBLEMS).unwrap_or(usize::MAX);
    Ok(keys.into_iter().take(most).collect())
}

/// The names of the engine's tables of items, to be put in double quotes.
fn item_tables(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare(
        "SELECT replace(m.name, '\"', '\"\"') FROM sqlite_schema m JOIN pragma_table_info(m.name) c
         WHERE m.type = 'table' AND c.name = 'item_json'",
    )?;
    let names = statement.query_map([], |row| row.get(0))?;
    names.collect()
}

/// Whether each turn in the table has its log in the bucket.
fn turn_logs(table: &Path, bucket: &Path) -> PartCheck {
    let name = "turn logs".to_owned();
    let result = missing_logs(table, bucket).map_err(|error| format!("{error:#}"));
    let result = result.and_then(|(turns, missing)| match missing.first() {
        None => Ok(format!("each of {turns} turns has its log")),
        Some(first) => Err(format!(
            "{} of {turns} turns have no log, the first at {first}",
            missing.len()
        )),
    });
    PartCheck { name, result }
}

/// The number of turns, and the locations of logs that are missing.
fn missing_logs(table: &Path, bucket: &Path) -> Result<(usize, BTreeSet<String>)> {
    let named = log_locations(table)?;
    let turns = named.len();
    let is_missing = |location: &String| {
        let path = location.strip_prefix("s3://");
        !path.is_some_and(|path| bucket.join(path).is_file())
    };
    let mut missing: BTreeSet<_> = named.into_iter().filter(is_missing).collect();
    if !missing.is_empty() {
        // A running bundle may have deleted a turn, or replaced its log, in between.
        let named = log_locations(table)?;
        missing.retain(|location| named.contains(location) && is_missing(location));
    }
    Ok((turns, missing))
}

/// The locations of the logs of all turns.
fn log_locations(table: &Path) -> Result<BTreeSet<String>> {
    let connection = open(table)?;
    let mut locations = BTreeSet::new();
    for table in item_tables(&connection)? {
        let query = format!(
            "SELECT json_extract(item_json, '$.hosted_uri.S') FROM \"{table}\"
             WHERE json_valid(item_json) AND json_extract(item_json, '$.SK.S') LIKE 'TURN#%'"
        );
        let mut statement = connection.prepare(&query)?;
        let rows = statement.query_map([], |row| row.get::<_, Option<String>>(0))?;
        for location in rows {
            locations.extend(location?);
        }
    }
    Ok(locations)
}

/// A result for each damaged object, and one for the whole bucket.
fn bucket(root: &Path) -> Vec<PartCheck> {
    let mut results = Vec::new();
    let (mut objects, mut checked) = (0_u64, 0_u64);
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        match list(&folder, root) {
            Ok((folders, files)) => {
                open.extend(folders);
                for file in files {
                    objects += 1;
                    match object(&file, root) {
                        Ok(has_checksum) => checked += u64::from(has_checksum),
                        Err(error) => results.push(failed(&file, root, &error)),
                    }
                }
            }
            Err(error) => results.push(failed(&folder, root, &error)),
        }
    }
    let damaged = results.len();
    results.push(PartCheck {
        name: BUCKET_FOLDER.to_owned(),
        result: if damaged == 0 {
            Ok(format!(
                "{objects} objects read, {checked} compared with their checksums"
            ))
        } else {
            Err(format!("{damaged} of {objects} objects are damaged"))
        },
    });
    results
}

fn failed(path: &Path, root: &Path, error: &anyhow::Error) -> PartCheck {
    let within = path.strip_prefix(root).unwrap_or(path);
    PartCheck {
        name: Path::new(BUCKET_FOLDER).join(within).display().to_string(),
        result: Err(format!("{error:#}")),
    }
}

/// The folders and objects in a folder. The engine's own files are in the root only.
fn list(folder: &Path, root: &Path) -> Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    let (mut folders, mut files) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            folders.push(entry.path());
        } else if folder != root {
            files.push(entry.path());
        }
    }
    Ok((folders, files))
}

/// Reads an object. Returns whether it was compared with a checksum.
fn object(path: &Path, root: &Path) -> Result<bool> {
    let within = path.strip_prefix(root)?.to_string_lossy();
    let (bucket, key) = within
        .split_once('/')
        .context("the object is not in a bucket")?;
    let metadata = object_metadata::read(root, bucket, key)?;
    let member = |name: &str| metadata.get(name).and_then(Value::as_str);
    // The ETag of a multipart upload is not a digest of the object, and its checksums are those of an earlier object.
    let Some(etag) = member("e_tag").filter(|etag| !etag.contains('-')) else {
        std::io::copy(&mut File::open(path)?, &mut std::io::sink())?;
        return Ok(false);
    };
    let found = digest::<Md5>(path)?;
    anyhow::ensure!(found == etag, "its content does not match its checksum");
    Ok(true)
}

/// The digest of a file, in hexadecimal.
fn digest<C: Checksum>(path: &Path) -> Result<String> {
    let mut file = File::open(path)?;
    let mut checksum = C::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = file.read(&mut buffer)?;
        let Some(bytes) = buffer.get(..read).filter(|bytes| !bytes.is_empty()) else {
            return Ok(hex::encode(checksum.finalize()));
        };
        checksum.update(bytes);
    }
}

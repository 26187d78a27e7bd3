//! Overwrites deleted items in the DynamoDB engine's files.
//!
//! SQLite is built to overwrite deleted content with zeros (`.cargo/config.toml`). The write-ahead log keeps earlier
//! states of pages until it is truncated, which happens once a minute.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use rusqlite::Connection;

use super::connection::open;

/// Warns if SQLite was built without overwriting.
pub(super) fn check_build() -> Result<()> {
    let database = Connection::open_in_memory()?;
    let overwrites: bool = database.query_row("PRAGMA secure_delete", [], |row| row.get(0))?;
    if !overwrites {
        tracing::warn!(
            "SQLite was built without SQLITE_SECURE_DELETE: deleted data remains in the files"
        );
    }
    Ok(())
}

/// How long the truncation waits for readers. Meanwhile nobody can write.
const PATIENCE: Duration = Duration::from_millis(100);

/// Moves the content of the write-ahead log into the database and truncates the log. This costs two syncs, or none if
/// the log is empty.
pub(super) fn truncate_log(file: &Path) -> Result<()> {
    let database = open(file)?;
    database.busy_timeout(PATIENCE)?;
    let busy: bool = database
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
        .context("cannot truncate the write-ahead log")?;
    if busy {
        tracing::warn!(
            "the write-ahead log was not truncated: another process is reading the table"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use dynoxide::Database;
    use serde_json::{Value, json};

    use super::*;
    use crate::engines::table::perform;

    fn call(database: &Database, operation: &str, body: &Value) {
        let body = body.to_string();
        let response = perform(database, operation, body.as_bytes()).unwrap();
        assert!(response.is_ok(), "{operation}: {response:?}");
    }

    fn item(number: usize, word: &str) -> Value {
        let text = format!("{word}-{number:04} ").repeat(1 + number * number % 2_000);
        json!({"TableName": "items", "Item": {
            "PK": {"S": format!("P{}", number % 7)}, "SK": {"S": format!("S{number:04}")},
            "by": {"S": format!("{word}-{number:04}")}, "text": {"S": text},
        }})
    }

    fn is_in_a_file(folder: &Path, words: &[u8]) -> bool {
        let files = std::fs::read_dir(folder).unwrap();
        let mut bytes = files.map(|file| std::fs::read(file.unwrap().path()).unwrap());
        bytes.any(|bytes| bytes.windows(words.len()).any(|window| window == words))
    }

    #[test]
    fn deleted_and_replaced_items_leave_nothing_in_the_files() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("dynamodb.sqlite");
        let database = Database::new(&file.to_string_lossy()).unwrap();
        let string = |name: &str| json!({"AttributeName": name, "AttributeType": "S"});
        let key = |name: &str, kind: &str| json!({"AttributeName": name, "KeyType": kind});
        let table = json!({
            "TableName": "items", "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [string("PK"), string("SK"), string("by")],
            "KeySchema": [key("PK", "HASH"), key("SK", "RANGE")],
            "GlobalSecondaryIndexes": [{
                "IndexName": "by_by", "Projection": {"ProjectionType": "KEYS_ONLY"},
                "KeySchema": [key("by", "HASH"), key("PK", "RANGE")],
            }],
            "StreamSpecification": {"StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        });
        call(&database, "CreateTable", &table);
        for number in 0..200 {
            call(&database, "PutItem", &item(number, "gone"));
        }
        for number in 0..200 {
            let Value::Object(mut request) = item(number, "kept") else {
                unreachable!()
            };
            if number % 3 == 0 {
                call(&database, "PutItem", &Value::Object(request));
            } else {
                let mut key = request.remove("Item").unwrap();
                let key_of = |name: &str| matches!(name, "PK" | "SK");
                key.as_object_mut().unwrap().retain(|name, _| key_of(name));
                request.insert("Key".to_owned(), key);
                call(&database, "DeleteItem", &Value::Object(request));
            }
        }
        // The engine deletes stream records after a day.
        let records = open(&file).unwrap();
        records.execute("DELETE FROM _stream_records", []).unwrap();
        assert!(
            is_in_a_file(folder.path(), b"gone-"),
            "the log keeps earlier states"
        );
        truncate_log(&file).unwrap();
        assert!(
            !is_in_a_file(folder.path(), b"gone-"),
            "a truncated log leaves nothing of deleted items"
        );
        assert!(
            is_in_a_file(folder.path(), b"kept-0003"),
            "current items remain"
        );
    }
}

//! The messages of the queue of imports: notifications of the bucket, and tasks of workers.

use hearback_storage::imports::ImportId;
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The task of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Task {
    /// Import a new file.
    Begin(NewFile),
    /// Continue an import.
    Work(ImportId, Work),
}

/// A new file, as the bucket's notification names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NewFile {
    /// Its key.
    pub key: String,
    /// Its version, if the bucket keeps versions.
    pub version: Option<String>,
}

/// The next step of an import.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Work {
    /// Unpack the file, or the rest of it.
    Unpack(Unpacking),
    /// Process a piece.
    Piece(Piece),
    /// Finish, after all pieces are done.
    Finish(Merged),
}

/// How far a packed file is unpacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Unpacking {
    /// Unpacked bytes that are in pieces already.
    pub skip: u64,
    /// The number of the next piece.
    pub next: u64,
    /// Lines in those bytes.
    #[serde(default)]
    pub lines: u64,
    /// Bytes of these lines that count towards the bound.
    #[serde(default)]
    pub counted: u64,
}

impl Default for Unpacking {
    fn default() -> Self {
        Self {
            skip: 0,
            next: 1,
            lines: 0,
            counted: 0,
        }
    }
}

/// A piece of a file: the lines that begin in a range of its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Piece {
    /// Its number, from 1.
    pub number: u64,
    /// Where the range begins.
    pub from: u64,
    /// The first byte after the range.
    pub to: u64,
    /// Whether it was unpacked into a file of its own.
    pub unpacked: bool,
}

/// How far the rejects of an import are merged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Merged {
    /// Files of rejects that are complete.
    pub files: u64,
    /// Files of workers that are merged into them.
    pub sources: usize,
    /// Lines in them.
    #[serde(default)]
    pub lines: u64,
    /// Bytes in them.
    #[serde(default)]
    pub bytes: u64,
    /// The number of the last of these lines.
    #[serde(default)]
    pub last_line: u64,
    /// Whether the bound is reached.
    #[serde(default)]
    pub is_full: bool,
}

#[derive(Serialize, Deserialize)]
struct Message {
    import: ImportId,
    work: Work,
}

impl Task {
    /// Reads a message; `None` if it is invalid. A notification may name several files, or none.
    ///
    /// Reads only the members that an import needs. `aws_lambda_events::s3` rejects a whole notification if one of
    /// its records lacks a time, an identity or an address, and one record must not stop the others.
    pub(super) fn read(body: &str) -> Option<Vec<Self>> {
        let body: Value = serde_json::from_str(body).ok()?;
        if let Some(records) = body.get("Records").and_then(Value::as_array) {
            let created = records.iter().filter_map(|record| {
                let event = record.get("eventName")?.as_str()?;
                let object = record.pointer("/s3/object")?;
                object.get("key")?.as_str()?;
                event.starts_with("ObjectCreated:").then_some(object)
            });
            return created
                .map(|file| new_file(file).map(Self::Begin))
                .collect();
        }
        // The test event that the bucket sends when its notifications are configured.
        if body
            .get("Event")
            .is_some_and(|event| event == "s3:TestEvent")
        {
            return Some(Vec::new());
        }
        let message: Message = serde_json::from_value(body).ok()?;
        Some(vec![Self::Work(message.import, message.work)])
    }

    pub(super) fn message(self) -> String {
        match self {
            Self::Begin(file) => notification(&file.key, file.version.as_deref()),
            Self::Work(import, work) => json!(Message { import, work }).to_string(),
        }
    }
}

/// The bucket's notification of a new file, with the members that an import reads.
#[must_use]
pub fn notification(key: &str, version: Option<&str>) -> String {
    let key = percent_encoding::utf8_percent_encode(key, percent_encoding::NON_ALPHANUMERIC);
    let object = match version {
        None => json!({"key": key.to_string()}),
        Some(version) => json!({"key": key.to_string(), "versionId": version}),
    };
    json!({"Records": [{"eventName": "ObjectCreated:Put", "s3": {"object": object}}]}).to_string()
}

fn new_file(object: &Value) -> Option<NewFile> {
    let version = object.get("versionId").and_then(Value::as_str);
    Some(NewFile {
        key: decoded(object.get("key")?.as_str()?)?,
        version: version
            .filter(|version| !version.is_empty())
            .map(str::to_owned),
    })
}

/// Decodes a key, which notifications encode as form data.
fn decoded(key: &str) -> Option<String> {
    let key = key.replace('+', " ");
    let decoded = percent_decode_str(&key).decode_utf8().ok()?;
    Some(decoded.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notifications_of_the_bucket_are_read() {
        let body = r#"{"Records": [
            {"eventName": "ObjectCreated:CompleteMultipartUpload",
             "s3": {"object": {"key": "imports/acme/my+events%2B1.jsonl", "size": 7, "eTag": "d41d",
                               "versionId": "096fKKXTRTtl3on89fVO.nfljtsv6qko"}}},
            {"eventName": "ObjectCreated:Put", "s3": {"object": {"key": "imports/acme/y"}}},
            {"eventName": "ObjectRemoved:Delete", "s3": {"object": {"key": "imports/acme/x"}}}]}"#;
        let read = Task::read(body).unwrap();
        let begin = |key: &str, version: Option<&str>| {
            Task::Begin(NewFile {
                key: key.to_owned(),
                version: version.map(str::to_owned),
            })
        };
        let version = Some("096fKKXTRTtl3on89fVO.nfljtsv6qko");
        assert_eq!(
            read,
            [
                begin("imports/acme/my events+1.jsonl", version),
                begin("imports/acme/y", None)
            ]
        );
        let test = r#"{"Service": "Amazon S3", "Event": "s3:TestEvent"}"#;
        assert_eq!(Task::read(test), Some(Vec::new()));
        assert_eq!(Task::read("{}"), None);
        let key = "imports/acme/ä b+c.jsonl";
        for version in [None, Some("v.1")] {
            let task = begin(key, version);
            assert_eq!(Task::read(&notification(key, version)), Some(vec![task]));
        }
    }

    #[test]
    fn a_task_is_read_from_its_message() {
        let import = ImportId {
            tenant: "acme".try_into().unwrap(),
            id: "1f".to_owned(),
        };
        let piece = Piece {
            number: 2,
            from: 4,
            to: 8,
            unpacked: false,
        };
        let unpacked = Unpacking {
            skip: 3,
            next: 4,
            lines: 2,
            counted: 128,
        };
        let merged = Merged {
            files: 1,
            sources: 5,
            lines: 7,
            ..Merged::default()
        };
        for work in [
            Work::Unpack(unpacked),
            Work::Piece(piece),
            Work::Finish(merged),
        ] {
            let task = Task::Work(import.clone(), work);
            assert_eq!(Task::read(&task.clone().message()), Some(vec![task]));
        }
    }
}

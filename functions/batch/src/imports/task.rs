//! The messages of the queue of imports: the bucket's notifications, and what workers leave for each
//! other.

use hearback_storage::imports::ImportId;
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::rejects::Merged;

/// What a message asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Task {
    /// To import a file.
    Begin(Named),
    /// To go on with an import.
    Work(ImportId, Work),
}

/// A file that came, as the bucket names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    /// Its key.
    pub key: String,
    /// Its version, if the bucket keeps versions: another may lie in its place by now.
    pub version: Option<String>,
}

/// How an import goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Work {
    /// By unpacking.
    Unpack(Unpacking),
    /// With a piece.
    Piece(Piece),
    /// With its end, all pieces being done.
    Finish(Merged),
}

/// How far a packed file is unpacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Unpacking {
    /// Bytes that are in pieces already, unpacked.
    pub skip: u64,
    /// The number of the next piece.
    pub next: u64,
}

/// Lines of a file: those that begin in a range of its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Piece {
    /// Its number, from 1.
    pub number: u64,
    /// Where the range begins.
    pub from: u64,
    /// The first byte behind the range.
    pub to: u64,
    /// Whether it was unpacked into a file of its own.
    pub unpacked: bool,
}

#[derive(Serialize, Deserialize)]
struct Message {
    import: ImportId,
    work: Work,
}

impl Task {
    /// Reads a message; `None` if it is none of ours. A notification may name several files, or none.
    pub(super) fn read(body: &str) -> Option<Vec<Self>> {
        let body: Value = serde_json::from_str(body).ok()?;
        if let Some(records) = body.get("Records").and_then(Value::as_array) {
            let created = records.iter().filter_map(|record| {
                let created = record.get("eventName")?.as_str()?;
                let object = record.pointer("/s3/object")?;
                object.get("key")?.as_str()?;
                created.starts_with("ObjectCreated:").then_some(object)
            });
            return created.map(|file| named(file).map(Self::Begin)).collect();
        }
        // What the bucket sends when it is told of the queue.
        if body
            .get("Event")
            .is_some_and(|event| event == "s3:TestEvent")
        {
            return Some(Vec::new());
        }
        let message: Message = serde_json::from_value(body).ok()?;
        Some(vec![Self::Work(message.import, message.work)])
    }

    /// The message that asks for it.
    pub(super) fn message(self) -> String {
        match self {
            Self::Begin(file) => notification(&file.key, file.version.as_deref()),
            Self::Work(import, work) => json!(Message { import, work }).to_string(),
        }
    }
}

/// What the bucket tells the queue when a file came, as far as it is read.
#[must_use]
pub fn notification(key: &str, version: Option<&str>) -> String {
    let key = percent_encoding::utf8_percent_encode(key, percent_encoding::NON_ALPHANUMERIC);
    let object = match version {
        None => json!({"key": key.to_string()}),
        Some(version) => json!({"key": key.to_string(), "versionId": version}),
    };
    json!({"Records": [{"eventName": "ObjectCreated:Put", "s3": {"object": object}}]}).to_string()
}

fn named(object: &Value) -> Option<Named> {
    let version = object.get("versionId").and_then(Value::as_str);
    Some(Named {
        key: decoded(object.get("key")?.as_str()?)?,
        version: version
            .filter(|version| !version.is_empty())
            .map(str::to_owned),
    })
}

/// A key as a notification writes it: as a form writes its values.
fn decoded(key: &str) -> Option<String> {
    let spaced = key.replace('+', " ");
    let decoded = percent_decode_str(&spaced).decode_utf8().ok()?;
    Some(decoded.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_messages_of_the_bucket_are_read() {
        let body = r#"{"Records": [
            {"eventName": "ObjectCreated:CompleteMultipartUpload",
             "s3": {"object": {"key": "imports/acme/my+events%2B1.jsonl", "size": 7, "eTag": "d41d",
                               "versionId": "096fKKXTRTtl3on89fVO.nfljtsv6qko"}}},
            {"eventName": "ObjectCreated:Put", "s3": {"object": {"key": "imports/acme/y"}}},
            {"eventName": "ObjectRemoved:Delete", "s3": {"object": {"key": "imports/acme/x"}}}]}"#;
        let read = Task::read(body).unwrap();
        let begin = |key: &str, version: Option<&str>| {
            Task::Begin(Named {
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
    fn what_workers_leave_is_read() {
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
        let unpacked = Unpacking { skip: 3, next: 4 };
        let merged = Merged {
            files: 1,
            sources: 5,
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

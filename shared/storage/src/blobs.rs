//! The bucket: turn logs, and exports ([`exports`](crate::exports)). A log is never overwritten:
//! another version has another key, and the index row says which one counts, so that the row alone
//! settles a race.

use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_s3::operation::get_object::GetObjectError;
use aws_sdk_s3::primitives::ByteStream;
use chrono::{DateTime, Utc};
use hearback_domain::turn::{TurnCore, TurnLog, TurnRef};
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use crate::turns::{IndexRow, Moved};
use crate::{Error, Store, keys};

const TURN_LOG: &str = "turn log";
/// The tag of the logs of turns that expire, to which `template.yaml` has a lifecycle rule.
const EXPIRING: &str = "kept=turn-retention";
/// How often a turn's log is looked for that is being moved.
const LOG_TRIES: usize = 5;
/// How often a turn's log is changed when others write into it too.
const CHANGE_TRIES: usize = 20;
/// How often a put is tried while others put the same.
const PUT_TRIES: usize = 5;

/// The bucket, reached through an SDK client.
#[derive(Debug, Clone)]
pub struct Blobs {
    pub(crate) client: aws_sdk_s3::Client,
    pub(crate) bucket: String,
}

impl Blobs {
    /// The bucket of this name.
    #[must_use]
    pub fn new(client: aws_sdk_s3::Client, bucket: impl Into<String>) -> Self {
        Self {
            client,
            bucket: bucket.into(),
        }
    }

    /// Stores a version of a turn's log under a name that its content gives it, and the day on which its
    /// turn expires, and answers where it is. The same again is there already. That of a turn that expires
    /// has a tag, by which the bucket deletes it. One call.
    pub async fn put_turn_log(&self, turn: &TurnCore, log: &TurnLog) -> Result<String, Error> {
        let body = serde_json::to_vec(log).map_err(|e| Error::undecodable(TURN_LOG, &e))?;
        let mut digest = Sha256::new_with_prefix(&body);
        if let Some(expires) = turn.expires_at {
            // Without the day a log of an earlier turn of this name could be taken for this one's, which
            // the bucket is about to delete.
            digest.update(expires.date_naive().to_string());
        }
        let digest: Vec<u8> = digest.finalize().into_iter().take(16).collect();
        let key = keys::turn_log(&turn.at, &hex::encode(digest));
        let tags = turn.expires_at.map(|_| EXPIRING.to_owned());
        for _ in 0..PUT_TRIES {
            let put = self
                .client
                .put_object()
                .bucket(&self.bucket)
                .key(&key)
                .content_type("application/json")
                .set_tagging(tags.clone())
                .if_none_match("*")
                .body(ByteStream::from(body.clone()))
                .send()
                .await;
            let Err(error) = put else {
                return Ok(self.uri(&key));
            };
            match error.code() {
                Some("PreconditionFailed") => return Ok(self.uri(&key)),
                // Another put of the same key is under way, and may yet fail.
                Some("ConditionalRequestConflict") => {}
                _ => return Err(unavailable("PutObject", &error)),
            }
        }
        Err(Error::Unavailable {
            operation: "PutObject",
            code: "ConditionalRequestConflict".to_owned(),
        })
    }

    /// A turn's log; `None` if that version is gone. One call.
    pub async fn turn_log(&self, hosted_uri: &str) -> Result<Option<TurnLog>, Error> {
        self.json(TURN_LOG, self.key(hosted_uri)?).await
    }

    /// A small object that is JSON. One call.
    pub(crate) async fn json<T: DeserializeOwned>(
        &self,
        kind: &'static str,
        key: &str,
    ) -> Result<Option<T>, Error> {
        let found = self
            .client
            .get_object()
            .bucket(&self.bucket)
            .key(key)
            .send()
            .await;
        let object = match found {
            Ok(object) => object,
            Err(error)
                if error
                    .as_service_error()
                    .is_some_and(GetObjectError::is_no_such_key) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(unavailable("GetObject", &error)),
        };
        let body = object.body.collect().await.map_err(|_| body_not_read())?;
        serde_json::from_slice(&body.into_bytes())
            .map(Some)
            .map_err(|error| Error::undecodable(kind, &error))
    }

    /// A turn and its log, if the turn is there `now` and one that is wanted. Two calls, and more while
    /// the log is being moved.
    pub async fn turn_with_log(
        &self,
        store: &Store,
        (at, now): (&TurnRef, DateTime<Utc>),
        wanted: impl Fn(&TurnCore) -> bool,
    ) -> Result<Option<(IndexRow, TurnLog)>, Error> {
        let mut missing = None;
        for _ in 0..LOG_TRIES {
            let row = store.turn(at, now).await?;
            let Some(row) = row.filter(|row| wanted(&row.core)) else {
                return Ok(None);
            };
            if missing.as_ref() == Some(&row.hosted_uri) {
                // The bucket has deleted it: a shorter retention holds for older turns at once.
                return Ok(None);
            }
            if let Some(log) = self.turn_log(&row.hosted_uri).await? {
                return Ok(Some((row, log)));
            }
            // It was moved on since the row was read, or is gone.
            missing = Some(row.hosted_uri);
        }
        Err(Error::Unavailable {
            operation: "GetObject",
            code: "the turn log moved too often".to_owned(),
        })
    }

    /// Changes a turn's log: the new version is written beside the old one, and the index row then points
    /// there if it still pointed to what was read. Of two at once, the one that loses starts again from
    /// what the other wrote. `change` answers whether there is anything to change. Three calls and two
    /// reads or writes of the row, and more for whoever loses.
    pub async fn change_turn_log(
        &self,
        store: &Store,
        at: &TurnRef,
        change: impl Fn(&mut TurnLog) -> bool,
    ) -> Result<(), Error> {
        // From which version to which the row was to be moved.
        let mut lost: Option<(String, String)> = None;
        let mut missing = None;
        for _ in 0..CHANGE_TRIES {
            let row = store.kept_turn(at).await?;
            if let Some((from, to)) = lost.take() {
                let moved = row.as_ref().is_some_and(|row| row.hosted_uri == to);
                // A version has the name of its content: that it lost may mean that the row was moved
                // before, by itself, whose answer was lost, or by another writer of the same.
                self.forget(if moved { &from } else { &to }).await;
                if moved {
                    return Ok(());
                }
            }
            let Some(row) = row else {
                return Ok(());
            };
            let Some(mut log) = self.turn_log(&row.hosted_uri).await? else {
                if missing.as_ref() == Some(&row.hosted_uri) {
                    // The bucket has deleted it.
                    return Ok(());
                }
                // Or somebody else moved the row on and deleted this version.
                missing = Some(row.hosted_uri);
                continue;
            };
            if !change(&mut log) {
                return Ok(());
            }
            let to = self.put_turn_log(&row.core, &log).await?;
            match store.move_turn_log(at, &row.hosted_uri, &to).await? {
                Moved::Done => {
                    self.forget(&row.hosted_uri).await;
                    return Ok(());
                }
                Moved::Lost => lost = Some((row.hosted_uri, to)),
            }
        }
        Err(Error::Unavailable {
            operation: "UpdateItem",
            code: "the turn log was changed too often at once".to_owned(),
        })
    }

    /// Deletes a version that nobody points to. If that fails, it lies there unread until the turn is
    /// erased.
    pub async fn forget(&self, hosted_uri: &str) {
        if let Err(error) = self.delete_turn_log(hosted_uri).await {
            tracing::warn!(%error, "a version of a turn log was not deleted");
        }
    }

    /// Deletes a version that no row points to any more, for good: what is erased must not be there still
    /// because it was changed before. Three calls.
    pub async fn delete_turn_log(&self, hosted_uri: &str) -> Result<(), Error> {
        self.delete_for_good(self.key(hosted_uri)?).await
    }

    pub(crate) fn uri(&self, key: &str) -> String {
        format!("s3://{}/{key}", self.bucket)
    }

    fn key<'a>(&self, hosted_uri: &'a str) -> Result<&'a str, Error> {
        hosted_uri
            .strip_prefix("s3://")
            .and_then(|rest| rest.strip_prefix(&self.bucket))
            .and_then(|rest| rest.strip_prefix('/'))
            .ok_or_else(|| Error::unreadable(TURN_LOG, "it is in another bucket"))
    }
}

/// The error of an object that could not be read to its end.
#[must_use]
pub fn body_not_read() -> Error {
    Error::Unavailable {
        operation: "GetObject",
        code: "body not read".to_owned(),
    }
}

pub(crate) fn unavailable<E: ProvideErrorMetadata, R>(
    operation: &'static str,
    error: &SdkError<E, R>,
) -> Error {
    Error::Unavailable {
        operation,
        code: error.code().unwrap_or("service not reached").to_owned(),
    }
}

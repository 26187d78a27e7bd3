//! The bucket: turn logs, and exports ([`exports`](crate::exports)). A log is never overwritten:
//! another version has another key, and the index row names the current one, so that the row alone
//! settles a race.

use aws_sdk_s3::config::http::HttpResponse;
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_s3::operation::get_object::GetObjectError;
use aws_sdk_s3::primitives::ByteStream;
use chrono::{DateTime, Utc};
use hearback_domain::turns::turn::{TurnCore, TurnLog, TurnRef};
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use crate::damage::{self, Damaged, Loss};
use crate::turn_rows::IndexRow;
use crate::turns::TurnUpdate;
use crate::{Error, Store, keys};

const TURN_LOG: &str = "turn log";
/// The tag of expiring logs; `template.yaml` has a lifecycle rule for it.
const EXPIRING: &str = "kept=turn-retention";
/// Attempts to read a turn's log while other writers replace it.
const LOG_TRIES: usize = 5;
/// Attempts to change a turn's log while other writers change it.
const CHANGE_TRIES: usize = 20;
/// The code of a failure of the bucket's engine.
const INTERNAL_ERROR: &str = "InternalError";
/// Codes of S3 for a key that no object can have, so that a retry fails too. Other 400s depend on the caller's clock,
/// credentials or connection.
const INVALID_KEY: [&str; 3] = ["InvalidArgument", "InvalidURI", "KeyTooLongError"];
/// Attempts to put an object while another writer puts the same key.
const PUT_TRIES: usize = 5;

/// The bucket, reached through an SDK client.
#[derive(Debug, Clone)]
pub struct Blobs {
    pub(crate) client: aws_sdk_s3::Client,
    pub(crate) bucket: String,
}

impl Blobs {
    /// A client for the bucket with this name.
    #[must_use]
    pub fn new(client: aws_sdk_s3::Client, bucket: impl Into<String>) -> Self {
        Self {
            client,
            bucket: bucket.into(),
        }
    }

    /// Stores a version of a turn's log and returns its URI. The key is a digest of the content and
    /// of the day on which the turn expires, so a repeat changes nothing. The log of an expiring
    /// turn has a tag, by which the bucket deletes it. One call.
    pub async fn put_turn_log(&self, turn: &TurnCore, log: &TurnLog) -> Result<String, Error> {
        let body = serde_json::to_vec(log).map_err(|e| Error::undecodable(TURN_LOG, &e))?;
        let mut digest = Sha256::new_with_prefix(&body);
        if let Some(expires) = turn.expires_at {
            // Without the day, this turn could share the log of an earlier turn with the same id,
            // which the bucket is about to delete.
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
                // Another put of the same key is in progress and may fail.
                Some("ConditionalRequestConflict") => {}
                _ => return Err(unavailable("PutObject", &error)),
            }
        }
        Err(Error::failed("PutObject", "ConditionalRequestConflict"))
    }

    /// A turn's log; `None` if that version is gone. One call.
    pub async fn turn_log(&self, hosted_uri: &str) -> Result<Option<TurnLog>, Error> {
        let key = self.key(hosted_uri)?;
        let log = self.json(TURN_LOG, key).await;
        if let Err(error @ Error::Unreadable { .. }) = &log {
            let damaged = Damaged {
                // It has digests only.
                key: Some(key),
                ..Damaged::default()
            };
            damage::note(Loss::None, &damaged, error, "a turn log cannot be read");
        }
        log
    }

    /// A small JSON object. One call.
    pub(crate) async fn json<T: DeserializeOwned>(
        &self,
        kind: &'static str,
        key: &str,
    ) -> Result<Option<T>, Error> {
        let response = self
            .client
            .get_object()
            .bucket(&self.bucket)
            .key(key)
            .send()
            .await;
        let object = match response {
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

    /// A turn and its log, if the turn exists, has not expired by `now` and matches `wanted`. Two
    /// calls, more while other writers replace the log.
    pub async fn turn_with_log(
        &self,
        store: &Store,
        at: &TurnRef,
        now: DateTime<Utc>,
        wanted: impl Fn(&TurnCore) -> bool,
    ) -> Result<Option<(IndexRow, TurnLog)>, Error> {
        let mut missing = None;
        for _ in 0..LOG_TRIES {
            let row = store.turn(at, now).await?;
            let Some(row) = row.filter(|row| wanted(&row.core)) else {
                return Ok(None);
            };
            if missing.as_ref() == Some(&row.hosted_uri) {
                // The bucket has deleted it: a shorter retention applies to older turns at once.
                return Ok(None);
            }
            if let Some(log) = self.turn_log(&row.hosted_uri).await? {
                return Ok(Some((row, log)));
            }
            // Another writer replaced it since the row was read, or it was deleted.
            missing = Some(row.hosted_uri);
        }
        Err(Error::failed(
            "GetObject",
            "the turn log was replaced too often",
        ))
    }

    /// Changes a turn's log: stores a new version, then points the index row to it if the row still
    /// points to the version that was read. After a conflict, starts again from the winning
    /// writer's version. `change` returns whether it changed anything. Three calls and two reads or
    /// writes of the row; more after a conflict.
    pub async fn change_turn_log(
        &self,
        store: &Store,
        at: &TurnRef,
        change: impl Fn(&mut TurnLog) -> bool,
    ) -> Result<(), Error> {
        // The version that the row pointed to, and the one whose write conflicted.
        let mut rejected: Option<(String, String)> = None;
        let mut missing = None;
        for _ in 0..CHANGE_TRIES {
            let row = store.kept_turn(at).await?;
            if let Some((from, to)) = rejected.take() {
                let moved = row.as_ref().is_some_and(|row| row.hosted_uri == to);
                // Keys are digests of the content, so the row may point to this version although
                // the update failed: an earlier response was lost, or another writer stored the
                // same log.
                self.discard_turn_log(if moved { &from } else { &to }).await;
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
                // Another writer may have changed the row and deleted this version.
                missing = Some(row.hosted_uri);
                continue;
            };
            if !change(&mut log) {
                return Ok(());
            }
            let to = self.put_turn_log(&row.core, &log).await?;
            match store.move_turn_log(at, &row.hosted_uri, &to).await? {
                TurnUpdate::Done => {
                    self.discard_turn_log(&row.hosted_uri).await;
                    return Ok(());
                }
                TurnUpdate::Conflict => rejected = Some((row.hosted_uri, to)),
            }
        }
        Err(Error::failed(
            "UpdateItem",
            "the turn log was changed too often at once",
        ))
    }

    /// Deletes a version that no row points to. After a failure, it stays until the turn is erased.
    pub async fn discard_turn_log(&self, hosted_uri: &str) {
        if let Err(error) = self.delete_turn_log(hosted_uri).await {
            tracing::warn!(%error, "a version of a turn log was not deleted");
        }
    }

    /// Deletes a version that no row points to, permanently: erased text must not remain in an
    /// earlier version. Three calls.
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
            .filter(|key| keys::is_turn_log(key))
            .ok_or_else(|| Error::unreadable(TURN_LOG, "its URI names no log in the bucket"))
    }
}

/// The error of an object whose body was cut off.
#[must_use]
pub fn body_not_read() -> Error {
    Error::failed("GetObject", "body not read")
}

pub(crate) fn unavailable<E: ProvideErrorMetadata>(
    operation: &'static str,
    error: &SdkError<E, HttpResponse>,
) -> Error {
    let status = error
        .raw_response()
        .map(|response| response.status().as_u16());
    let code = match (error.code(), status) {
        (Some(code), _) => code,
        // The response to a HEAD has no code.
        (None, Some(500)) => INTERNAL_ERROR,
        (None, Some(_)) => "service error",
        (None, None) => "service not reached",
    };
    if INVALID_KEY.contains(&code) {
        return Error::unreadable("object", format!("{operation} rejects its key: {code}"));
    }
    Error::failed(operation, code)
}

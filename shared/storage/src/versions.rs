//! Permanent deletion of objects, in all their versions.
//!
//! In AWS, the bucket keeps noncurrent versions for a week; erased data must not remain so long.
//! The local engine has no versions, and rejects requests to list them.

use aws_sdk_s3::error::ProvideErrorMetadata;
use aws_sdk_s3::operation::list_object_versions::ListObjectVersionsOutput;
use aws_sdk_s3::primitives::DateTime as SdkDateTime;
use aws_sdk_s3::types::{Delete, ObjectIdentifier};
use chrono::{DateTime, Utc};

use crate::Error;
use crate::blobs::{Blobs, unavailable};
use crate::files::{File, LISTING, instant};

const DELETE: &str = "DeleteObjects";
/// Largest number of objects that one call deletes.
const DELETIONS: usize = 1000;

/// An object, or a version of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedObject {
    /// Its key.
    pub key: String,
    /// The time at which it was stored or deleted.
    pub modified: DateTime<Utc>,
}

/// A version of an object, or a delete marker.
struct Version {
    listed: ListedObject,
    id: Option<String>,
    /// Whether it is current.
    current: bool,
}

/// The keys whose versions are listed.
#[derive(Clone, Copy)]
enum ListingScope<'a> {
    Prefix(&'a str),
    Key(&'a str),
}

impl Blobs {
    /// One page of the objects whose keys begin with `prefix` and come after `after`, in the order
    /// of their keys; empty at the end. One call.
    pub async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
    ) -> Result<Vec<ListedObject>, Error> {
        let mut next = None;
        loop {
            let page = self.client.list_objects_v2().bucket(&self.bucket);
            let page = page.prefix(prefix).set_continuation_token(next);
            let page = page.set_start_after(after.map(str::to_owned)).send().await;
            let page = page.map_err(|error| unavailable("ListObjectsV2", &error))?;
            let listed = page.contents().iter();
            let listed = listed.map(|object| listed_object(object.key(), object.last_modified()));
            let listed: Vec<_> = listed.collect::<Result<_, _>>()?;
            next = page.next_continuation_token;
            // A page may be empty though others follow.
            if !listed.is_empty() || next.is_none() {
                return Ok(listed);
            }
        }
    }

    /// Permanently deletes all versions and delete markers of the objects whose keys begin with
    /// `prefix`, except those for which `keep` is true, and returns their number. Idempotent. One
    /// call for each 1,000 that are listed, and one for each 1,000 that are deleted.
    pub async fn delete_versions(
        &self,
        prefix: &str,
        keep: impl Fn(&ListedObject) -> bool,
    ) -> Result<u64, Error> {
        let selected = |version: &Version| !keep(&version.listed);
        match self
            .delete_selected(ListingScope::Prefix(prefix), selected)
            .await?
        {
            Some(deleted) => Ok(deleted),
            None => self.delete_objects(prefix, &keep).await,
        }
    }

    /// Permanently deletes the noncurrent versions of the objects whose keys begin with `prefix`,
    /// except those for which `keep` is true, and returns their number; 0 in a bucket without
    /// versions. Calls as for [`delete_versions`](Self::delete_versions).
    pub async fn delete_older_versions(
        &self,
        prefix: &str,
        keep: impl Fn(&ListedObject) -> bool,
    ) -> Result<u64, Error> {
        let selected = |version: &Version| !version.current && !keep(&version.listed);
        let deleted = self
            .delete_selected(ListingScope::Prefix(prefix), selected)
            .await?;
        Ok(deleted.unwrap_or_default())
    }

    /// Permanently deletes a file in the version that was read, and its earlier versions, but no
    /// later one. Three calls, more for many versions.
    ///
    /// In a bucket without versions, a later file is kept only if it is stored before the check of
    /// the `ETag`.
    pub async fn remove_file(&self, file: &File) -> Result<(), Error> {
        // The earlier versions first, so that a repeat of an interrupted call finds the file again.
        self.delete_older(&file.key).await?;
        if file.version.is_none() {
            let current = self.file(&file.key, None).await?;
            if current.is_none_or(|current| current.etag != file.etag) {
                return Ok(());
            }
        }
        self.delete_file(&file.key, file.version.as_deref()).await
    }

    pub(crate) async fn delete_older(&self, key: &str) -> Result<u64, Error> {
        let selected = |version: &Version| !version.current;
        let deleted = self
            .delete_selected(ListingScope::Key(key), selected)
            .await?;
        Ok(deleted.unwrap_or_default())
    }

    /// Deletes the selected versions; `None` if the engine has no versions.
    async fn delete_selected(
        &self,
        scope: ListingScope<'_>,
        selected: impl Fn(&Version) -> bool,
    ) -> Result<Option<u64>, Error> {
        let Some(mut page) = self.versions(scope, None).await? else {
            return Ok(None);
        };
        let mut deleted = 0;
        loop {
            // The next page is read before the deletion, because a listing continues after a
            // version that must still exist.
            let next = if scope.has_next(&page) {
                self.versions(scope, Some(&page)).await?
            } else {
                None
            };
            let versions = versions_of(&page)?.into_iter();
            let versions = versions.filter(|version| scope.contains(version) && selected(version));
            let objects = versions.map(|version| (version.listed.key, version.id));
            deleted += self.delete_each(objects.collect()).await?;
            match next {
                Some(next) => page = next,
                None => return Ok(Some(deleted)),
            }
        }
    }

    /// A page of versions; `None` if the engine has no versions.
    async fn versions(
        &self,
        scope: ListingScope<'_>,
        before: Option<&ListObjectVersionsOutput>,
    ) -> Result<Option<ListObjectVersionsOutput>, Error> {
        let (ListingScope::Prefix(prefix) | ListingScope::Key(prefix)) = scope;
        let page = self.client.list_object_versions().bucket(&self.bucket);
        let key = before.and_then(|before| before.next_key_marker.clone());
        let version = before.and_then(|before| before.next_version_id_marker.clone());
        let page = page.set_key_marker(key).set_version_id_marker(version);
        match page.prefix(prefix).send().await {
            Ok(page) => Ok(Some(page)),
            Err(error) if error.code() == Some("NotImplemented") => Ok(None),
            Err(error) => Err(unavailable("ListObjectVersions", &error)),
        }
    }

    /// Deletes the objects with a prefix in a bucket without versions.
    async fn delete_objects(
        &self,
        prefix: &str,
        keep: &impl Fn(&ListedObject) -> bool,
    ) -> Result<u64, Error> {
        let mut deleted = 0;
        let mut after = None;
        loop {
            let page = self.list(prefix, after.as_deref()).await?;
            let Some(last) = page.last() else {
                return Ok(deleted);
            };
            after = Some(last.key.clone());
            let objects = page.into_iter().filter(|listed| !keep(listed));
            let objects = objects.map(|listed| (listed.key, None));
            deleted += self.delete_each(objects.collect()).await?;
        }
    }

    /// Deletes objects, each in the given version, if any.
    async fn delete_each(&self, objects: Vec<(String, Option<String>)>) -> Result<u64, Error> {
        let mut deleted = 0;
        for chunk in objects.chunks(DELETIONS) {
            let identifiers = chunk.iter().map(|(key, version)| {
                let object = ObjectIdentifier::builder().key(key);
                object.set_version_id(version.clone()).build()
            });
            let identifiers = identifiers
                .collect::<Result<_, _>>()
                .map_err(|_| not_built())?;
            // The response lists failures only.
            let delete = Delete::builder().quiet(true).set_objects(Some(identifiers));
            let response = self.client.delete_objects().bucket(&self.bucket);
            let response = response.delete(delete.build().map_err(|_| not_built())?);
            let response = response.send().await;
            let response = response.map_err(|error| unavailable(DELETE, &error))?;
            if let Some(failed) = response.errors().first() {
                let code = failed.code().unwrap_or("an object was not deleted");
                return Err(Error::failed(DELETE, code));
            }
            deleted += u64::try_from(chunk.len()).unwrap_or(u64::MAX);
        }
        Ok(deleted)
    }
}

impl ListingScope<'_> {
    fn contains(&self, version: &Version) -> bool {
        match self {
            ListingScope::Prefix(_) => true,
            ListingScope::Key(key) => version.listed.key == *key,
        }
    }

    /// Whether a page may have a successor. Versions are in the order of their keys, so those of an
    /// object come before those of longer keys.
    fn has_next(&self, page: &ListObjectVersionsOutput) -> bool {
        let truncated = page.is_truncated() == Some(true);
        truncated
            && match self {
                ListingScope::Prefix(_) => true,
                ListingScope::Key(key) => page.next_key_marker() == Some(*key),
            }
    }
}

/// The versions and delete markers of a page.
fn versions_of(page: &ListObjectVersionsOutput) -> Result<Vec<Version>, Error> {
    let versions = page.versions().iter().map(|version| {
        Ok(Version {
            listed: listed_object(version.key(), version.last_modified())?,
            id: version.version_id().map(str::to_owned),
            current: version.is_latest() == Some(true),
        })
    });
    let markers = page.delete_markers().iter().map(|marker| {
        Ok(Version {
            listed: listed_object(marker.key(), marker.last_modified())?,
            id: marker.version_id().map(str::to_owned),
            current: marker.is_latest() == Some(true),
        })
    });
    versions.chain(markers).collect()
}

fn listed_object(key: Option<&str>, modified: Option<&SdkDateTime>) -> Result<ListedObject, Error> {
    let key = key.ok_or_else(|| Error::unreadable(LISTING, "an object has no key"))?;
    Ok(ListedObject {
        key: key.to_owned(),
        modified: instant(modified)?,
    })
}

fn not_built() -> Error {
    Error::failed(DELETE, "request could not be built")
}

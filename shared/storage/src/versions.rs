//! What is deleted for good: objects in all their versions, and lines of files.
//!
//! The bucket in AWS keeps for a week what was overwritten or deleted. What is erased must not be there
//! for so long. The machine-local engine keeps no versions, and says that it cannot list them.

use aws_sdk_s3::error::ProvideErrorMetadata;
use aws_sdk_s3::operation::list_object_versions::ListObjectVersionsOutput;
use aws_sdk_s3::primitives::{ByteStream, DateTime as SdkDateTime};
use aws_sdk_s3::types::{Delete, ObjectIdentifier};
use chrono::{DateTime, Utc};

use crate::Error;
use crate::blobs::{Blobs, body_not_read, unavailable};
use crate::files::{File, Upload};

const LISTING: &str = "listing of the bucket";
const DELETE: &str = "DeleteObjects";
/// Most objects that one call deletes.
const DELETIONS: usize = 1000;
/// How often a file is read that others write meanwhile.
const TRIES: usize = 5;
/// Longest line that can be told, in bytes. A row of an export has a few texts of turns, whose log has
/// 6 MB at most.
const LONGEST_LINE: usize = 32 * 1024 * 1024;

/// An object of the bucket, or a version of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its key.
    pub key: String,
    /// When it was stored, or deleted.
    pub modified: DateTime<Utc>,
}

/// A version of an object, or the mark of its deletion.
struct Version {
    listed: Listed,
    id: Option<String>,
    /// Whether it is what now lies there.
    current: bool,
}

/// Where versions are looked for.
#[derive(Clone, Copy)]
enum Place<'a> {
    Below(&'a str),
    At(&'a str),
}

impl Blobs {
    /// One page of the objects whose keys begin with `prefix` and come behind `after`, in the order of
    /// their keys; none if there is no more. One call.
    pub async fn list(&self, prefix: &str, after: Option<&str>) -> Result<Vec<Listed>, Error> {
        let mut next = None;
        loop {
            let page = self.client.list_objects_v2().bucket(&self.bucket);
            let page = page.prefix(prefix).set_continuation_token(next);
            let page = page.set_start_after(after.map(str::to_owned)).send().await;
            let page = page.map_err(|error| unavailable("ListObjectsV2", &error))?;
            let listed = page.contents().iter();
            let listed = listed.map(|object| listed_as(object.key(), object.last_modified()));
            let listed: Vec<_> = listed.collect::<Result<_, _>>()?;
            next = page.next_continuation_token;
            // A page may be empty though others follow.
            if !listed.is_empty() || next.is_none() {
                return Ok(listed);
            }
        }
    }

    /// Deletes for good every version and every mark of a deletion of the objects whose keys begin with
    /// `prefix`, but those that are spared. Answers how many. May be repeated. A call for each 1,000, and
    /// one for each 1,000 that are deleted.
    pub async fn delete_versions(
        &self,
        prefix: &str,
        spare: impl Fn(&Listed) -> bool,
    ) -> Result<u64, Error> {
        let chosen = |version: &Version| !spare(&version.listed);
        match self.delete_chosen(Place::Below(prefix), chosen).await? {
            Some(deleted) => Ok(deleted),
            None => self.delete_objects(prefix, &spare).await,
        }
    }

    /// Deletes for good what lay below `prefix` before what lies there now, but what is spared. Answers
    /// how many versions that were; none where no versions are kept. Calls as
    /// [`delete_versions`](Self::delete_versions).
    pub async fn delete_older_versions(
        &self,
        prefix: &str,
        spare: impl Fn(&Listed) -> bool,
    ) -> Result<u64, Error> {
        let chosen = |version: &Version| !version.current && !spare(&version.listed);
        let deleted = self.delete_chosen(Place::Below(prefix), chosen).await?;
        Ok(deleted.unwrap_or_default())
    }

    /// Deletes for good a file that was read, and what lay there before, but nothing that was stored
    /// since. Three calls, if it has not many versions.
    ///
    /// Where no versions are kept, another file is spared only if it was there a moment before.
    pub async fn remove_file(&self, file: &File) -> Result<(), Error> {
        // The older ones first: what is left when this ends halfway is found again.
        self.delete_older(&file.key).await?;
        if file.version.is_none() {
            let there = self.file(&file.key, None).await?;
            if there.is_none_or(|there| there.etag != file.etag) {
                return Ok(());
            }
        }
        self.delete_file(&file.key, file.version.as_deref()).await
    }

    /// Removes lines of a plain file. It is stored anew without those that belong, and what lay there
    /// before is deleted for good; if no line is left, there is no file any more. Nothing is written if
    /// no line belongs. Answers how many lines were removed: none of a file that is not there.
    ///
    /// A line comes without its end. One of more than 32 MiB belongs to nobody. Memory holds one line
    /// and one part of an upload. Whoever writes the file meanwhile is not written over: it is read again
    /// then. (The machine-local engine looks at the condition first and writes then, so that a write
    /// between the two is lost.) If this ends after the file was stored, a repeat finds no line, and
    /// older versions stay: [`delete_older_versions`](Self::delete_older_versions) deletes those.
    pub async fn remove_lines(
        &self,
        key: &str,
        belongs: impl Fn(&[u8]) -> bool,
    ) -> Result<u64, Error> {
        for tried in 0..TRIES {
            let Some((file, body)) = self.open(key).await? else {
                return Ok(0);
            };
            // A file is written only if it has to be, so it is read once more then.
            if !Sieve::new(&belongs, None).read(&file, body).await?.found() {
                // It may have been stored, and nobody was told.
                if tried > 0 {
                    self.delete_older(key).await?;
                }
                return Ok(0);
            }
            if let Some(removed) = self.try_to_remove(key, &belongs).await? {
                return Ok(removed);
            }
        }
        Err(Error::Unavailable {
            operation: "PutObject",
            code: "the file was replaced too often".to_owned(),
        })
    }

    /// Stores a file without the lines that belong; `None` if it was replaced meanwhile.
    async fn try_to_remove(
        &self,
        key: &str,
        belongs: &impl Fn(&[u8]) -> bool,
    ) -> Result<Option<u64>, Error> {
        let Some((file, body)) = self.open(key).await? else {
            return Ok(Some(0));
        };
        let upload = self.upload_over(file.clone());
        let sieve = Sieve::new(belongs, Some(upload));
        let read = sieve.read(&file, body).await?;
        if !read.found() {
            return Ok(Some(0));
        }
        let Some(upload) = read.into else {
            return Ok(None);
        };
        match upload.finish().await {
            Ok(()) => {
                self.delete_older(key).await?;
                Ok(Some(read.removed))
            }
            Err(Error::Unavailable { code, .. }) if is_replaced(&code) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn delete_older(&self, key: &str) -> Result<u64, Error> {
        let chosen = |version: &Version| !version.current;
        let deleted = self.delete_chosen(Place::At(key), chosen).await?;
        Ok(deleted.unwrap_or_default())
    }

    /// Deletes the versions that are chosen; `None` if the engine knows no versions.
    async fn delete_chosen(
        &self,
        place: Place<'_>,
        chosen: impl Fn(&Version) -> bool,
    ) -> Result<Option<u64>, Error> {
        let Some(mut page) = self.versions(place, None).await? else {
            return Ok(None);
        };
        let mut deleted = 0;
        loop {
            // A listing goes on behind a version, which has to be there for that.
            let next = if place.goes_on(&page) {
                self.versions(place, Some(&page)).await?
            } else {
                None
            };
            let versions = versions_of(&page)?.into_iter();
            let versions = versions.filter(|version| place.has(version) && chosen(version));
            let objects = versions.map(|version| (version.listed.key, version.id));
            deleted += self.delete_each(objects.collect()).await?;
            match next {
                Some(next) => page = next,
                None => return Ok(Some(deleted)),
            }
        }
    }

    /// A page of versions; `None` if the engine knows none.
    async fn versions(
        &self,
        place: Place<'_>,
        before: Option<&ListObjectVersionsOutput>,
    ) -> Result<Option<ListObjectVersionsOutput>, Error> {
        let (Place::Below(prefix) | Place::At(prefix)) = place;
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

    /// Deletes the objects below a prefix, where no versions are kept.
    async fn delete_objects(
        &self,
        prefix: &str,
        spare: &impl Fn(&Listed) -> bool,
    ) -> Result<u64, Error> {
        let mut deleted = 0;
        let mut after = None;
        loop {
            let page = self.list(prefix, after.as_deref()).await?;
            let Some(last) = page.last() else {
                return Ok(deleted);
            };
            after = Some(last.key.clone());
            let objects = page.into_iter().filter(|listed| !spare(listed));
            let objects = objects.map(|listed| (listed.key, None));
            deleted += self.delete_each(objects.collect()).await?;
        }
    }

    /// Deletes objects, each in one version if it has one.
    async fn delete_each(&self, objects: Vec<(String, Option<String>)>) -> Result<u64, Error> {
        let mut deleted = 0;
        for some in objects.chunks(DELETIONS) {
            let named = some.iter().map(|(key, version)| {
                let object = ObjectIdentifier::builder().key(key);
                object.set_version_id(version.clone()).build()
            });
            let named = named.collect::<Result<_, _>>().map_err(|_| not_built())?;
            // Only what failed is told of.
            let delete = Delete::builder().quiet(true).set_objects(Some(named));
            let told = self.client.delete_objects().bucket(&self.bucket);
            let told = told.delete(delete.build().map_err(|_| not_built())?);
            let told = told.send().await;
            let told = told.map_err(|error| unavailable(DELETE, &error))?;
            if let Some(failed) = told.errors().first() {
                return Err(Error::Unavailable {
                    operation: DELETE,
                    code: failed
                        .code()
                        .unwrap_or("an object was not deleted")
                        .to_owned(),
                });
            }
            deleted += u64::try_from(some.len()).unwrap_or(u64::MAX);
        }
        Ok(deleted)
    }
}

impl Place<'_> {
    fn has(&self, version: &Version) -> bool {
        match self {
            Place::Below(_) => true,
            Place::At(key) => version.listed.key == *key,
        }
    }

    /// Whether more may come behind a page. Versions come by their keys, so that an object's own come
    /// before those of longer keys.
    fn goes_on(&self, page: &ListObjectVersionsOutput) -> bool {
        let truncated = page.is_truncated() == Some(true);
        truncated
            && match self {
                Place::Below(_) => true,
                Place::At(key) => page.next_key_marker() == Some(*key),
            }
    }
}

/// The versions and marks of a page.
fn versions_of(page: &ListObjectVersionsOutput) -> Result<Vec<Version>, Error> {
    let versions = page.versions().iter().map(|version| {
        Ok(Version {
            listed: listed_as(version.key(), version.last_modified())?,
            id: version.version_id().map(str::to_owned),
            current: version.is_latest() == Some(true),
        })
    });
    let marks = page.delete_markers().iter().map(|mark| {
        Ok(Version {
            listed: listed_as(mark.key(), mark.last_modified())?,
            id: mark.version_id().map(str::to_owned),
            current: mark.is_latest() == Some(true),
        })
    });
    versions.chain(marks).collect()
}

fn listed_as(key: Option<&str>, modified: Option<&SdkDateTime>) -> Result<Listed, Error> {
    let key = key.ok_or_else(|| Error::unreadable(LISTING, "an object has no key"))?;
    Ok(Listed {
        key: key.to_owned(),
        modified: instant(modified)?,
    })
}

/// When an object was stored, as the bucket tells it.
pub(crate) fn instant(modified: Option<&SdkDateTime>) -> Result<DateTime<Utc>, Error> {
    modified
        .and_then(|at| DateTime::from_timestamp(at.secs(), at.subsec_nanos()))
        .ok_or_else(|| Error::unreadable(LISTING, "an object has no time"))
}

fn not_built() -> Error {
    Error::Unavailable {
        operation: DELETE,
        code: "request could not be built".to_owned(),
    }
}

/// Whether a file was not stored because another lies in the place of the one that was read, or none.
fn is_replaced(code: &str) -> bool {
    matches!(
        code,
        "PreconditionFailed" | "ConditionalRequestConflict" | "NoSuchKey"
    )
}

/// Holds lines back, and lets the rest of a file pass as it is.
struct Sieve<'a, B> {
    belongs: &'a B,
    into: Option<Upload>,
    line: Vec<u8>,
    /// Whether the line is too long, and what is left of it passes.
    passing: bool,
    removed: u64,
}

impl<'a, B: Fn(&[u8]) -> bool> Sieve<'a, B> {
    /// Without a place for what passes, it looks for the first line that does not.
    fn new(belongs: &'a B, into: Option<Upload>) -> Self {
        Self {
            belongs,
            into,
            line: Vec::new(),
            passing: false,
            removed: 0,
        }
    }

    fn found(&self) -> bool {
        self.removed > 0
    }

    async fn read(mut self, file: &File, mut body: ByteStream) -> Result<Self, Error> {
        let mut read = 0;
        while let Some(bytes) = body.next().await {
            let bytes = bytes.map_err(|_| body_not_read())?;
            read += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
                self.push(piece).await?;
            }
            if self.into.is_none() && self.found() {
                return Ok(self);
            }
        }
        self.end().await?;
        // What was cut off would be lost.
        if read == file.size {
            Ok(self)
        } else {
            Err(body_not_read())
        }
    }

    /// Takes a part of a line, which may be its last.
    async fn push(&mut self, piece: &[u8]) -> Result<(), Error> {
        let ends = piece.ends_with(b"\n");
        if self.passing {
            self.passing = !ends;
            return self.pass(piece).await;
        }
        self.line.extend_from_slice(piece);
        if ends {
            return self.end().await;
        }
        if self.line.len() > LONGEST_LINE {
            self.passing = true;
            let start = std::mem::take(&mut self.line);
            return self.pass(&start).await;
        }
        Ok(())
    }

    async fn end(&mut self) -> Result<(), Error> {
        let line = std::mem::take(&mut self.line);
        let content = line.strip_suffix(b"\n").unwrap_or(&line);
        let content = content.strip_suffix(b"\r").unwrap_or(content);
        if !content.is_empty() && (self.belongs)(content) {
            self.removed += 1;
        } else {
            self.pass(&line).await?;
        }
        // Its memory serves the next.
        self.line = line;
        self.line.clear();
        Ok(())
    }

    async fn pass(&mut self, bytes: &[u8]) -> Result<(), Error> {
        match &mut self.into {
            Some(upload) => upload.push(bytes).await,
            None => Ok(()),
        }
    }
}

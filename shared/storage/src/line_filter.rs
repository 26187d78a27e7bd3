//! Permanent removal of lines from files in the bucket.

use aws_sdk_s3::primitives::ByteStream;

use crate::Error;
use crate::blobs::{Blobs, body_not_read};
use crate::files::{File, Upload};

/// Attempts to change a file that other writers replace.
const TRIES: usize = 5;
/// Longest line that is examined, in bytes. A row of an export has a few texts of turns, whose log
/// has at most 6 MB.
const MAX_LINE_BYTES: usize = 32 * 1024 * 1024;

impl Blobs {
    /// Removes the lines of an unpacked file for which `belongs` is true, and returns their number.
    /// The file is replaced, and older versions are deleted permanently. Without such lines, or if
    /// the file does not exist, nothing is written.
    ///
    /// `belongs` receives a line without its line break. Lines of more than 32 MiB are kept. Memory
    /// holds one line and one part of an upload. If another writer replaces the file, it is read
    /// again. (The local engine checks the condition before it writes, not atomically, so a write
    /// between the two is lost.) If the call ends after the file was stored, a repeat finds no
    /// line, and older versions stay: [`delete_older_versions`](Self::delete_older_versions)
    /// deletes those.
    pub async fn remove_lines(
        &self,
        key: &str,
        belongs: impl Fn(&[u8]) -> bool,
    ) -> Result<u64, Error> {
        for attempt in 0..TRIES {
            let Some((file, body)) = self.open(key).await? else {
                return Ok(0);
            };
            // The first read decides whether the file must be written at all.
            if !LineFilter::new(&belongs, None)
                .read(&file, body)
                .await?
                .has_removed()
            {
                // The previous attempt may have stored it, and its response was lost.
                if attempt > 0 {
                    self.delete_older(key).await?;
                }
                return Ok(0);
            }
            if let Some(removed) = self.try_to_remove(key, &belongs).await? {
                return Ok(removed);
            }
        }
        Err(Error::failed(
            "PutObject",
            "the file was replaced too often",
        ))
    }

    /// Stores a file without the lines for which `belongs` is true; `None` if another writer
    /// replaced it.
    async fn try_to_remove(
        &self,
        key: &str,
        belongs: &impl Fn(&[u8]) -> bool,
    ) -> Result<Option<u64>, Error> {
        let Some((file, body)) = self.open(key).await? else {
            return Ok(Some(0));
        };
        let upload = self.upload_replacing(file.clone());
        let filter = LineFilter::new(belongs, Some(upload));
        let read = filter.read(&file, body).await?;
        if !read.has_removed() {
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
}

/// Whether a file was not stored because the one that was read was replaced or deleted.
fn is_replaced(code: &str) -> bool {
    matches!(
        code,
        "PreconditionFailed" | "ConditionalRequestConflict" | "NoSuchKey"
    )
}

/// Copies a file without the lines to remove.
struct LineFilter<'a, B> {
    belongs: &'a B,
    into: Option<Upload>,
    line: Vec<u8>,
    /// Whether the current line is too long, so that the rest of it is copied.
    copying: bool,
    removed: u64,
}

impl<'a, B: Fn(&[u8]) -> bool> LineFilter<'a, B> {
    /// Without an upload, reading stops after the chunk with the first line to remove.
    fn new(belongs: &'a B, into: Option<Upload>) -> Self {
        Self {
            belongs,
            into,
            line: Vec::new(),
            copying: false,
            removed: 0,
        }
    }

    fn has_removed(&self) -> bool {
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
            if self.into.is_none() && self.has_removed() {
                return Ok(self);
            }
        }
        self.end().await?;
        // If the body was cut off, the rest of the file would be lost.
        if read == file.size {
            Ok(self)
        } else {
            Err(body_not_read())
        }
    }

    /// Processes a part of a line, possibly the last one.
    async fn push(&mut self, piece: &[u8]) -> Result<(), Error> {
        let ends = piece.ends_with(b"\n");
        if self.copying {
            self.copying = !ends;
            return self.copy(piece).await;
        }
        self.line.extend_from_slice(piece);
        if ends {
            return self.end().await;
        }
        if self.line.len() > MAX_LINE_BYTES {
            self.copying = true;
            let start = std::mem::take(&mut self.line);
            return self.copy(&start).await;
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
            self.copy(&line).await?;
        }
        // Reuses the allocation.
        self.line = line;
        self.line.clear();
        Ok(())
    }

    async fn copy(&mut self, bytes: &[u8]) -> Result<(), Error> {
        match &mut self.into {
            Some(upload) => upload.push(bytes).await,
            None => Ok(()),
        }
    }
}

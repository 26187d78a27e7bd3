//! The mark of a part, which identifies the folder that it belongs to: of a database its application id, of the bucket
//! a file, of a key its fingerprint.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use sha2::{Digest, Sha256};

use super::RESTORE;
use super::part::FolderPart;
use crate::atomic::replace;

/// The file in the bucket's folder that contains the id of the data folder. Its name is not a valid bucket name.
pub(super) const BUCKET_MARK: &str = ".hearback-folder";

impl FolderPart {
    /// The part's current mark; `None` if the part does not exist.
    pub(super) fn mark(self, folder: &Path) -> Result<Option<String>> {
        let path = folder.join(self.name());
        let content = match self {
            Self::Manifest => return Ok(None),
            Self::Table | Self::Queues => {
                return if path.exists() {
                    stored_application_id(&path).map(|id| Some(mark_of(id)))
                } else {
                    Ok(None)
                };
            }
            Self::Bucket if !path.is_dir() => return Ok(None),
            Self::Bucket => read(&path.join(BUCKET_MARK))?.unwrap_or_default(),
            Self::PseudonymKey | Self::TokenKey | Self::KeyPair => {
                let content = read(&path)?;
                return Ok(content.map(|content| fingerprint(&content)));
            }
        };
        Ok(Some(String::from_utf8_lossy(&content).into_owned()))
    }

    /// The mark that the part has in the folder of this id; `None` if the part's mark cannot be set.
    pub(super) fn expected_mark(self, id: &str) -> Option<String> {
        match self {
            Self::Table | Self::Queues => Some(mark_of(application_id_for(id))),
            Self::Bucket => Some(id.to_owned()),
            Self::Manifest | Self::PseudonymKey | Self::TokenKey | Self::KeyPair => None,
        }
    }

    /// Sets the part's mark for the folder of this id, and returns the mark.
    pub(super) fn set_mark(self, folder: &Path, id: &str) -> Result<String> {
        let path = folder.join(self.name());
        let current = self.mark(folder)?;
        let expected = self.expected_mark(id);
        if expected.is_some() && expected != current {
            match self {
                Self::Table | Self::Queues => {
                    open(&path)?.pragma_update(None, "application_id", application_id_for(id))?;
                }
                Self::Bucket => replace(&path.join(BUCKET_MARK), id.as_bytes())?,
                Self::Manifest | Self::PseudonymKey | Self::TokenKey | Self::KeyPair => {}
            }
        }
        expected
            .or(current)
            .with_context(|| format!("{} does not exist", path.display()))
    }
}

/// The application id of a folder's databases, derived from the folder's id. It is never 0, which is SQLite's default.
fn application_id_for(id: &str) -> i32 {
    let digits = id.get(..7).unwrap_or_default();
    i32::from_str_radix(digits, 16).unwrap_or_default().max(1)
}

fn mark_of(id: i32) -> String {
    if id == 0 {
        String::new()
    } else {
        id.to_string()
    }
}

fn open(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)
        .with_context(|| format!("cannot open {}", path.display()))?;
    connection.busy_timeout(Duration::from_secs(5))?;
    Ok(connection)
}

/// The application id of a database. The file's is preferred: the write-ahead log of a replaced file is that of the
/// earlier database, and SQLite applies it without noticing.
fn stored_application_id(path: &Path) -> Result<i32> {
    match application_id_in_file(path)? {
        0 => application_id_with_log(path),
        id => Ok(id),
    }
}

/// The application id in the header of the file; 0 if there is none.
fn application_id_in_file(path: &Path) -> Result<i32> {
    let mut header = [0; 72];
    let mut file = File::open(path)?;
    match file.read_exact(&mut header) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
        read => read.with_context(|| format!("cannot read {}", path.display()))?,
    }
    let id = header
        .last_chunk()
        .filter(|_| header.starts_with(b"SQLite format 3\0"));
    Ok(id.map_or(0, |id| i32::from_be_bytes(*id)))
}

/// The application id that SQLite reads, without writing the log into the database.
fn application_id_with_log(path: &Path) -> Result<i32> {
    let database = open(path)?;
    database.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    let id = database.pragma_query_value(None, "application_id", |row| row.get(0));
    id.with_context(|| {
        format!(
            "{} is damaged and cannot be read. {RESTORE}",
            path.display()
        )
    })
}

/// Removes a write-ahead log that is not the database's.
pub(super) fn remove_log_of_another(path: &Path) -> Result<()> {
    let in_file = application_id_in_file(path)?;
    if in_file != 0 && in_file != application_id_with_log(path)? {
        for suffix in ["-wal", "-shm"] {
            let mut log = path.as_os_str().to_owned();
            log.push(suffix);
            std::fs::remove_file(&log).or_else(|error| match error.kind() {
                ErrorKind::NotFound => Ok(()),
                _ => Err(error),
            })?;
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    match std::fs::read(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Identifies a key without revealing it: the key has too many random bits to be guessed from this.
fn fingerprint(key: &[u8]) -> String {
    let digest = hex::encode(Sha256::digest(key));
    digest.get(..16).unwrap_or(&digest).to_owned()
}

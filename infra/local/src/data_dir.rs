//! The folder that holds everything: engines' files, keys, the relay's position.

use std::fs::{File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A folder that this process alone uses, as long as it holds this.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    _lock: File,
    /// Removed at the end, for a folder in memory.
    _temporary: Option<tempfile::TempDir>,
}

impl DataDir {
    /// Takes a folder, creating it where there is none. A folder in use is an error.
    pub fn open(path: &Path) -> Result<Self> {
        Self::lock(path.to_owned(), None)
    }

    /// A folder in memory where the system has one, else among temporary files. It is removed
    /// when it is dropped.
    pub fn in_memory() -> Result<Self> {
        let memory = Path::new("/dev/shm");
        let temporary = if memory.is_dir() {
            tempfile::Builder::new()
                .prefix("hearback-")
                .tempdir_in(memory)
        } else {
            tempfile::Builder::new().prefix("hearback-").tempdir()
        }
        .context("no temporary folder can be made")?;
        Self::lock(temporary.path().to_owned(), Some(temporary))
    }

    fn lock(path: PathBuf, temporary: Option<tempfile::TempDir>) -> Result<Self> {
        let shown = path.display().to_string();
        std::fs::create_dir_all(&path).with_context(|| format!("cannot create {shown}"))?;
        let lock =
            File::create(path.join("lock")).with_context(|| format!("cannot write to {shown}"))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self {
                path,
                _lock: lock,
                _temporary: temporary,
            }),
            Err(TryLockError::WouldBlock) => bail!(
                "{shown} is in use by another hearback; stop that one, or choose another folder with --data"
            ),
            Err(TryLockError::Error(error)) => {
                Err(error).with_context(|| format!("cannot lock {shown}"))
            }
        }
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A folder inside, created where there is none.
    pub fn folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.path.join(name);
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        Ok(folder)
    }
}

/// A secret of a folder, drawn when it is first asked for. Reading one needs no lock, so that
/// `hearback token` works while the bundle runs.
pub fn secret(folder: &Path, name: &str) -> Result<Vec<u8>> {
    let path = folder.join(name);
    let shown = path.display().to_string();
    if let Ok(secret) = std::fs::read(&path) {
        return Ok(secret);
    }
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot create {}", folder.display()))?;
    let drawn: String = (0..2)
        .map(|_| uuid::Uuid::new_v4().simple().to_string())
        .collect();
    // Whoever creates the file first decides; the other reads that.
    match new_private_file(&path).and_then(|mut file| {
        file.write_all(drawn.as_bytes())?;
        file.sync_all()
    }) {
        Ok(()) => Ok(drawn.into_bytes()),
        Err(_) => std::fs::read(&path).with_context(|| format!("cannot create {shown}")),
    }
}

fn new_private_file(path: &Path) -> std::io::Result<File> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Replaces a JSON file so that a crash leaves either the old one or the new one.
pub fn replace_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    serde_json::to_writer(&mut file, value)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

/// Reads a JSON file, if it is there.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    match std::fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map(Some)
            .with_context(|| format!("{} is damaged", path.display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

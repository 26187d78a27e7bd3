//! The data folder: the engines' files, keys, and the relay's position. It is private: no other user of the machine may
//! read it.

use std::fs::{DirBuilder, DirEntry, File, Permissions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::files::{LOCK_FILE, MANIFEST_FILE, TABLE_FILE, TOKEN_KEY_FILE};

/// Permission bits of the group and of others.
const OTHERS: u32 = 0o077;

/// Pauses of an attempt to lock a folder, half a second in all. A process that ends has the lock for a moment more, and so
/// has one that this process is starting, until it executes its program.
const LOCK_PAUSES: u32 = 10;
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// A data folder, locked for this process until the value is dropped.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    _lock: File,
    /// Removes a folder in memory when it is dropped.
    _temporary: Option<tempfile::TempDir>,
}

impl DataDir {
    /// Locks a folder, and creates it if it does not exist. Fails if the folder is in use.
    pub fn open(path: &Path) -> Result<Self> {
        Self::lock(path.to_owned(), None)
    }

    /// A folder in `/dev/shm` if the system has it, otherwise a temporary folder. It is removed on drop.
    pub fn in_memory() -> Result<Self> {
        let memory = Path::new("/dev/shm");
        let temporary = if memory.is_dir() {
            tempfile::Builder::new()
                .prefix("hearback-")
                .tempdir_in(memory)
        } else {
            tempfile::Builder::new().prefix("hearback-").tempdir()
        }
        .context("cannot create a temporary folder")?;
        Self::lock(temporary.path().to_owned(), Some(temporary))
    }

    fn lock(path: PathBuf, temporary: Option<tempfile::TempDir>) -> Result<Self> {
        let shown = path.display().to_string();
        create_private(&path)?;
        check_ours(&path)?;
        let lock = File::options()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(path.join(LOCK_FILE))
            .with_context(|| format!("cannot write to {shown}"))?;
        let mut pauses = 0..LOCK_PAUSES;
        loop {
            match lock.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if pauses.next().is_some() => sleep(LOCK_PAUSE),
                Err(TryLockError::WouldBlock) => bail!(
                    "{shown} is in use by another hearback; stop that one, or choose another folder with --data"
                ),
                Err(TryLockError::Error(error)) => {
                    return Err(error).with_context(|| format!("cannot lock {shown}"));
                }
            }
        }
        make_private(&path)?;
        Ok(Self {
            path,
            _lock: lock,
            _temporary: temporary,
        })
    }

    /// The path of the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A folder inside, created if it does not exist.
    pub fn folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.path.join(name);
        create_private(&folder)?;
        Ok(folder)
    }

    /// A private file inside, created empty if it does not exist. A library that opens it keeps its mode.
    pub fn file(&self, name: &str) -> Result<PathBuf> {
        let path = self.path.join(name);
        let options = File::options()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&path);
        options.with_context(|| format!("cannot write to {}", path.display()))?;
        Ok(path)
    }
}

pub(crate) fn create_private(folder: &Path) -> Result<()> {
    let created = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    created.with_context(|| format!("cannot create {}", folder.display()))
}

/// Every folder that was used before, or restored, has at least one of these files.
const KNOWN: [&str; 4] = [LOCK_FILE, TOKEN_KEY_FILE, TABLE_FILE, MANIFEST_FILE];
/// The root of a new file system contains this folder.
const LOST_AND_FOUND: &str = "lost+found";

/// Fails if the folder has files of other programs and others may read it: making it private would lock them out.
fn check_ours(folder: &Path) -> Result<()> {
    let shown = folder.display();
    let unreadable = || format!("cannot read {shown}");
    let private = mode(folder).with_context(unreadable)? & OTHERS == 0;
    if private || KNOWN.iter().any(|name| folder.join(name).exists()) {
        return Ok(());
    }
    let content = std::fs::read_dir(folder).with_context(unreadable)?;
    let mut names = content.filter_map(|entry| Some(entry.ok()?.file_name()));
    if names.all(|name| name == LOST_AND_FOUND) {
        return Ok(());
    }
    bail!(
        "{shown} has files that do not belong to Hearback, and other users of this machine can read it; choose \
         another folder with --data, or make this one private (`chmod go= {shown}`)"
    )
}

/// Removes all permissions of other users on a folder and its content: an older version, a copy or an archive may have
/// left some. The mode of an inner folder changes after that of its content, so a private folder needs no second look.
fn make_private(folder: &Path) -> Result<()> {
    let made = restrict(folder).and_then(|()| restrict_content(folder));
    // Some file systems have one mode for all files, and ignore a change without an error.
    let open = made.is_ok() && mode(folder)? & OTHERS != 0;
    made.and_then(|()| if open { Err(ErrorKind::Unsupported.into()) } else { Ok(()) })
        .with_context(|| {
            let shown = folder.display();
            format!(
                "other users of this machine can read {shown}, and its mode cannot be changed; have its owner run \
                 `chmod -R go= {shown}`, or choose another folder with --data"
            )
        })
}

fn restrict_content(folder: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        match restrict_entry(&entry?) {
            // SQLite removes a journal when its last connection closes, which may be after its bundle ended.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            restricted => restricted?,
        }
    }
    Ok(())
}

fn restrict_entry(entry: &DirEntry) -> std::io::Result<()> {
    let (path, found) = (entry.path(), entry.metadata()?);
    if found.is_symlink() || found.permissions().mode() & OTHERS == 0 {
        return Ok(());
    }
    if found.is_dir() {
        restrict_content(&path)?;
    }
    restrict(&path)
}

fn restrict(path: &Path) -> std::io::Result<()> {
    let mode = mode(path)?;
    if mode & OTHERS == 0 {
        return Ok(());
    }
    std::fs::set_permissions(path, Permissions::from_mode(mode & !OTHERS))
}

fn mode(path: &Path) -> std::io::Result<u32> {
    Ok(std::fs::metadata(path)?.permissions().mode())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_opens_once_the_process_before_has_ended() {
        let folder = tempfile::tempdir().unwrap();
        let before = DataDir::open(folder.path()).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                sleep(2 * LOCK_PAUSE);
                drop(before);
            });
            let now = DataDir::open(folder.path()).unwrap();
            DataDir::open(folder.path()).expect_err("it is in use");
            drop(now);
        });
    }

    #[test]
    fn a_folder_opens_while_its_files_are_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    for name in ["a-wal", "b-wal", "c-shm"] {
                        std::fs::write(folder.path().join(name), "").unwrap();
                    }
                    for name in ["a-wal", "b-wal", "c-shm"] {
                        std::fs::remove_file(folder.path().join(name)).unwrap();
                    }
                }
            });
            let opened = (0..2_000).try_for_each(|_| make_private(folder.path()));
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            opened.unwrap();
        });
    }
}

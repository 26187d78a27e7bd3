//! Secrets of a data folder, generated once.

use std::io::{ErrorKind, Write};
use std::path::Path;

use anyhow::{Context, Result};

use crate::data_dir::create_private;
use crate::manifest;
use crate::random::random_hex;

/// Returns a secret of a folder, and generates it on first use. This needs no lock, so `hearback token` works while the
/// bundle runs.
pub fn secret(folder: &Path, name: &str) -> Result<Vec<u8>> {
    create_once(folder, name, || random_hex(2).into_bytes())
}

/// Returns the content of a file that is created on first use. Fails if the folder had the file and lost it.
pub fn create_once(
    folder: &Path,
    name: &str,
    generate: impl FnOnce() -> Vec<u8>,
) -> Result<Vec<u8>> {
    let path = folder.join(name);
    let shown = path.display().to_string();
    let read = || std::fs::read(&path).with_context(|| format!("cannot read {shown}"));
    if !path.exists() {
        manifest::ensure_may_create(folder, name)?;
        create_private(folder)?;
        let content = generate();
        let mut file = tempfile::NamedTempFile::new_in(folder)
            .with_context(|| format!("cannot create {shown}"))?;
        file.write_all(&content)?;
        file.as_file().sync_all()?;
        // The first of two concurrent writers wins; the other reads the complete file.
        match file.persist_noclobber(&path) {
            Ok(_) => return Ok(content),
            Err(error) if error.error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error).with_context(|| format!("cannot create {shown}")),
        }
    }
    let content = read()?;
    anyhow::ensure!(
        !content.is_empty(),
        "{shown} is empty, which is not a secret"
    );
    Ok(content)
}

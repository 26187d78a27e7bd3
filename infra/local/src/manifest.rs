//! The manifest of a data folder, which detects missing and foreign parts.
//!
//! A start creates each file that does not exist, so without a manifest, a folder that lost a file would start as if
//! that file had always been empty. The manifest lists the folder's parts, each with a mark that identifies it, and a
//! start fails if the parts differ.
//!
//! A part is added to the manifest once it is complete and before anything is acknowledged on it. So a crash during the
//! first start leaves parts that the manifest does not list, and the next start continues with them.

mod finding;
mod mark;
mod part;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::atomic::{read_json, replace_json};
use crate::files::{MANIFEST_FILE, POSITION_FILE};
use crate::random::random_hex;
pub use finding::{PartFault, PartFinding};
use finding::{findings, rejection};
use mark::remove_log_of_another;
pub use part::FolderPart;

/// The format that this version writes, and the newest one that it reads.
const FORMAT: u32 = 1;

/// The content of the manifest.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Manifest {
    format: u32,
    /// Random id of the folder.
    id: String,
    /// The mark of each part that the folder has.
    parts: BTreeMap<FolderPart, String>,
}

/// What manifests of all formats have in common.
#[derive(Deserialize)]
struct ManifestVersion {
    format: u32,
}

/// What to do about a damaged or missing part.
pub(crate) const RESTORE: &str =
    "Restore the whole folder from one backup of it (docs/how-to/back-up-and-restore.md).";

impl Manifest {
    fn new() -> Self {
        Self {
            format: FORMAT,
            id: random_hex(1),
            parts: BTreeMap::new(),
        }
    }

    /// Reads the manifest of a folder; `None` if it does not exist, or if it is damaged and `optional`.
    fn of_folder(folder: &Path, optional: bool) -> Result<Option<Self>> {
        let path = folder.join(MANIFEST_FILE);
        let shown = path.display();
        if let Ok(Some(version)) = read_json::<ManifestVersion>(&path)
            && version.format > FORMAT
        {
            bail!(
                "{shown} has format {}, but this version of hearback reads formats up to {FORMAT}: a newer version wrote \
                 the folder. Use that version, or restore an older backup",
                version.format
            );
        }
        match read_json(&path) {
            Err(_) if optional => Ok(None),
            read => read.with_context(|| {
                let name = MANIFEST_FILE;
                format!("{RESTORE} To start with the current parts, add `--accept {name}` once")
            }),
        }
    }

    fn save(&self, folder: &Path) -> Result<()> {
        replace_json(&folder.join(MANIFEST_FILE), self)?;
        // Also persist the directory entry before anything relies on the file.
        File::open(folder)?.sync_all()?;
        Ok(())
    }
}

/// A folder whose parts match the manifest or were accepted. Call [`VerifiedFolder::complete`] once every part exists,
/// and before anything is acknowledged.
#[derive(Debug)]
#[must_use]
pub struct VerifiedFolder {
    folder: PathBuf,
    manifest: Manifest,
    used: Vec<FolderPart>,
}

/// Fails if one of the used parts is missing or foreign, unless it was accepted. A folder without a manifest is new, or
/// was written by a version without manifests.
pub fn verify(
    folder: &Path,
    used: &[FolderPart],
    accepted: &[FolderPart],
) -> Result<VerifiedFolder> {
    let shown = folder.display();
    let optional = accepted.contains(&FolderPart::Manifest);
    let known = Manifest::of_folder(folder, optional)?;
    let accept_marks = optional && known.is_none();
    let found = findings(folder, known.as_ref(), used, accept_marks)?;
    let (given_up, rejected): (Vec<PartFinding>, Vec<PartFinding>) = found
        .into_iter()
        .partition(|finding| accepted.contains(&finding.part));
    if !rejected.is_empty() {
        bail!(rejection(folder, &rejected));
    }
    let mut manifest = known.unwrap_or_else(Manifest::new);
    for PartFinding { part, fault } in &given_up {
        manifest.parts.remove(part);
        if matches!(part, FolderPart::Table | FolderPart::Queues) && *fault == PartFault::Foreign {
            remove_log_of_another(&folder.join(part.name()))?;
        }
        if *part == FolderPart::Table {
            // It is a position in the stream of the lost table.
            let position = folder.join(POSITION_FILE);
            if position.exists() {
                std::fs::remove_file(position)?;
            }
        }
        tracing::warn!(folder = %shown, part = part.name(), "started without a part of the data folder, as accepted");
    }
    manifest.save(folder)?;
    Ok(VerifiedFolder {
        folder: folder.to_owned(),
        manifest,
        used: used.to_vec(),
    })
}

/// Compares a folder with its manifest.
pub fn check(folder: &Path) -> Result<Vec<PartFinding>> {
    let manifest = Manifest::of_folder(folder, false)?;
    let used = FolderPart::ALL.into_iter().skip(1);
    let used = used.filter(|part| match &manifest {
        Some(manifest) => manifest.parts.contains_key(part),
        None => true,
    });
    let used: Vec<_> = used.collect();
    findings(folder, manifest.as_ref(), &used, false)
}

impl VerifiedFolder {
    /// Adds every used part to the manifest, with its current mark.
    pub fn complete(mut self) -> Result<()> {
        let before = self.manifest.clone();
        for part in self.used {
            let mark = part.set_mark(&self.folder, &self.manifest.id)?;
            self.manifest.parts.insert(part, mark);
        }
        if before.parts != self.manifest.parts {
            self.manifest.save(&self.folder)?;
        }
        Ok(())
    }
}

/// Fails if the folder had this key: a new one must not replace it.
pub(crate) fn ensure_may_create(folder: &Path, name: &str) -> Result<()> {
    let Some(manifest) = Manifest::of_folder(folder, false)? else {
        return Ok(());
    };
    let part = manifest.parts.keys().find(|part| part.name() == name);
    match part {
        Some(part) => bail!(rejection(
            folder,
            &[PartFinding {
                part: *part,
                fault: PartFault::Missing
            }]
        )),
        None => Ok(()),
    }
}

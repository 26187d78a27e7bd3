//! The parts of a folder that differ from its manifest.

use std::fmt::Write;
use std::path::Path;

use anyhow::Result;

use super::mark::BUCKET_MARK;
use super::part::FolderPart;
use super::{Manifest, RESTORE};
use crate::files::{BUCKET_FOLDER, ENDPOINTS_FILE, GATEWAY_FILE};

/// How a part differs from the manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartFault {
    /// The part does not exist.
    Missing,
    /// The part belongs to another folder, or is new.
    Foreign,
}

/// A part that differs from the manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartFinding {
    /// The part.
    pub part: FolderPart,
    /// The difference.
    pub fault: PartFault,
}

impl std::fmt::Display for PartFinding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = match self.fault {
            PartFault::Missing => "is missing",
            PartFault::Foreign => "does not belong to this folder",
        };
        write!(f, "{} {state} ({})", self.part.name(), self.part.content())
    }
}

/// `accept_marks` accepts parts of any folder, if there is no manifest.
pub(super) fn findings(
    folder: &Path,
    manifest: Option<&Manifest>,
    used: &[FolderPart],
    accept_marks: bool,
) -> Result<Vec<PartFinding>> {
    let mut found = Vec::new();
    for part in used.iter().copied() {
        let mark = part.mark(folder)?;
        let listed = manifest.and_then(|manifest| manifest.parts.get(&part));
        let expected = manifest.and_then(|manifest| part.expected_mark(&manifest.id));
        let is_settable = part.expected_mark("").is_some();
        let fault = match (listed, mark) {
            (Some(_), None) => Some(PartFault::Missing),
            (Some(listed), Some(mark)) => (*listed != mark).then_some(PartFault::Foreign),
            (None, None) => {
                (manifest.is_none() && existed(folder, part)).then_some(PartFault::Missing)
            }
            // Without a manifest, a mark proves that the folder had one.
            (None, Some(mark))
                if is_settable && !mark.is_empty() && expected.as_ref() != Some(&mark) =>
            {
                (!accept_marks).then_some(PartFault::Foreign)
            }
            (None, Some(_)) => None,
        };
        if let Some(fault) = fault {
            if manifest.is_none() && fault == PartFault::Foreign {
                let part = FolderPart::Manifest;
                let fault = PartFault::Missing;
                return Ok(vec![PartFinding { part, fault }]);
            }
            found.push(PartFinding { part, fault });
        }
    }
    Ok(found)
}

/// Whether a version without manifests had created this part: it wrote these files after the parts.
fn existed(folder: &Path, part: FolderPart) -> bool {
    let after = match part {
        FolderPart::Table | FolderPart::Queues | FolderPart::Bucket => ENDPOINTS_FILE,
        FolderPart::PseudonymKey | FolderPart::TokenKey => GATEWAY_FILE,
        // The first versions had no key pair. A marked bucket was written by a version that has one.
        FolderPart::KeyPair => return folder.join(BUCKET_FOLDER).join(BUCKET_MARK).exists(),
        FolderPart::Manifest => return false,
    };
    folder.join(after).exists()
}

pub(super) fn rejection(folder: &Path, rejected: &[PartFinding]) -> String {
    let (mut text, mut options) = (String::new(), String::new());
    for finding in rejected {
        let _ = write!(text, "\n  {finding}");
        let _ = write!(options, " --accept {}", finding.part.name());
    }
    let what = if rejected.len() == 1 {
        "this part"
    } else {
        "these parts"
    };
    format!(
        "{} is incomplete:{text}\n{RESTORE}\nTo start without {what}, and lose the listed content for good, add `{}` \
         once",
        folder.display(),
        options.trim_start()
    )
}

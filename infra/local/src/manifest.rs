//! The manifest of a data folder, which detects missing and foreign parts.
//!
//! A start creates each file that does not exist, so without a manifest, a folder that lost a file would start as if
//! that file had always been empty. The manifest lists the folder's parts, each with a mark that identifies it, and a
//! start fails if the parts differ.
//!
//! A part is added to the manifest once it is complete and before anything is acknowledged on it. So a crash during the
//! first start leaves parts that the manifest does not list, and the next start continues with them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::atomic::{read_json, replace, replace_json};
use crate::files::{
    BUCKET_FOLDER, CREDENTIALS_FILE, ENDPOINTS_FILE, GATEWAY_FILE, MANIFEST_FILE, POSITION_FILE,
    PSEUDONYM_KEY_FILE, QUEUES_FILE, TABLE_FILE, TOKEN_KEY_FILE,
};
use crate::random::random_hex;

/// The format that this version writes, and the newest one that it reads.
const FORMAT: u32 = 1;
/// The file in the bucket's folder that contains the id of the data folder. Its name is not a valid bucket name.
const BUCKET_MARK: &str = ".hearback-folder";

/// A part of a data folder, serialized as the name of its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum FolderPart {
    /// The manifest itself.
    #[serde(rename = "manifest.json")]
    Manifest,
    /// The DynamoDB engine's database.
    #[serde(rename = "dynamodb.sqlite")]
    Table,
    /// The SQS engine's database.
    #[serde(rename = "sqs.sqlite")]
    Queues,
    /// The S3 engine's folder.
    #[serde(rename = "s3")]
    Bucket,
    /// The key of pseudonyms and cursors.
    #[serde(rename = "pseudonym.key")]
    PseudonymKey,
    /// The key of tokens.
    #[serde(rename = "token.key")]
    TokenKey,
    /// The key pair of the engines.
    #[serde(rename = "credentials.json")]
    KeyPair,
}

impl FolderPart {
    /// Every part, the manifest first.
    pub const ALL: [Self; 7] = [
        Self::Manifest,
        Self::Table,
        Self::Queues,
        Self::Bucket,
        Self::PseudonymKey,
        Self::TokenKey,
        Self::KeyPair,
    ];
    /// The parts of a bundle without embedded engines.
    pub const KEYS: [Self; 2] = [Self::PseudonymKey, Self::TokenKey];

    /// The name of its file or folder.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Manifest => MANIFEST_FILE,
            Self::Table => TABLE_FILE,
            Self::Queues => QUEUES_FILE,
            Self::Bucket => BUCKET_FOLDER,
            Self::PseudonymKey => PSEUDONYM_KEY_FILE,
            Self::TokenKey => TOKEN_KEY_FILE,
            Self::KeyPair => CREDENTIALS_FILE,
        }
    }

    /// What is lost with the part.
    fn content(self) -> &'static str {
        match self {
            Self::Manifest => "the proof that all parts belong to this folder",
            Self::Table => "all feedback, turns, reactions and preferences",
            Self::Queues => {
                "messages in queues: feedback sent by queue, outcomes that no subscriber has read, dead letters, running \
                 imports and erasures"
            }
            Self::Bucket => "turn logs, exports, imported files and their reports",
            Self::PseudonymKey => {
                "the link between users and their anonymous feedback; later anonymous feedback gets other pseudonyms"
            }
            Self::TokenKey => "the validity of all tokens signed so far",
            Self::KeyPair => "the key pair that AWS tools were given",
        }
    }

    /// The part's current mark; `None` if the part does not exist.
    fn mark(self, folder: &Path) -> Result<Option<String>> {
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
    fn expected_mark(self, id: &str) -> Option<String> {
        match self {
            Self::Table | Self::Queues => Some(mark_of(application_id_for(id))),
            Self::Bucket => Some(id.to_owned()),
            Self::Manifest | Self::PseudonymKey | Self::TokenKey | Self::KeyPair => None,
        }
    }

    /// Sets the part's mark for the folder of this id, and returns the mark.
    fn set_mark(self, folder: &Path, id: &str) -> Result<String> {
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

impl std::str::FromStr for FolderPart {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|part| part.name() == text);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name);
            format!("the parts of a data folder are {}", names.join(", "))
        })
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
fn remove_log_of_another(path: &Path) -> Result<()> {
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

/// `accept_marks` accepts parts of any folder, if there is no manifest.
fn findings(
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

fn rejection(folder: &Path, rejected: &[PartFinding]) -> String {
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

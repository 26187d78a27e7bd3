//! The relay's position in the table's stream: a file in the data folder, and what maintenance may delete by it.
//!
//! Records up to the position are in the queues. Later ones exist only in the stream, so nothing is deleted before the
//! relay has reported its position.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::atomic::{read_json, replace_json};

/// The last relayed sequence number of each shard.
pub type ShardPositions = BTreeMap<String, String>;

#[derive(Debug, Default, Serialize, Deserialize)]
struct Content {
    shards: ShardPositions,
}

/// How far the relay has processed the stream, shared within this process.
#[derive(Debug, Clone, Default)]
pub struct RelayProgress(Arc<Mutex<ShardPositions>>);

impl RelayProgress {
    /// The last relayed sequence number of each shard that the relay has opened.
    #[must_use]
    pub fn shards(&self) -> ShardPositions {
        let shards = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shards.clone()
    }

    fn set(&self, shard: &str, sequence: &str) {
        let mut shards = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shards.insert(shard.to_owned(), sequence.to_owned());
    }
}

/// The durable position of the relay.
#[derive(Debug)]
pub struct RelayPosition {
    file: PathBuf,
    progress: RelayProgress,
}

impl RelayPosition {
    /// A position that is stored in this file, and shared through `progress`.
    #[must_use]
    pub fn new(file: PathBuf, progress: RelayProgress) -> Self {
        Self { file, progress }
    }

    /// Reads the position. A damaged file is renamed: the relay then begins with the oldest record and delivers some
    /// again, which changes nothing.
    pub fn read(&self) -> Result<ShardPositions> {
        let damaged = match read(&self.file) {
            Ok(shards) => return Ok(shards.unwrap_or_default()),
            Err(error) if error.is::<serde_json::Error>() => error,
            Err(error) => return Err(error),
        };
        let backup = damaged_name(&self.file);
        let shown = backup.display().to_string();
        std::fs::rename(&self.file, &backup).with_context(|| format!("cannot create {shown}"))?;
        tracing::warn!(
            kept_as = shown,
            "{damaged:#}; the relay begins with the oldest record, and delivers some again"
        );
        Ok(ShardPositions::default())
    }

    /// Shares the positions from which the stream was opened.
    pub fn opened(&self, shards: &ShardPositions) {
        for (shard, sequence) in shards {
            self.progress.set(shard, sequence);
        }
    }

    /// Moves the position of a shard.
    pub fn advance(&self, shard: &str, sequence: &str) -> Result<()> {
        let mut shards = self.progress.shards();
        shards.insert(shard.to_owned(), sequence.to_owned());
        replace_json(&self.file, &Content { shards })?;
        self.progress.set(shard, sequence);
        Ok(())
    }
}

/// Reads a stored position without changing anything; `None` if there is none.
pub fn read(file: &Path) -> Result<Option<ShardPositions>> {
    let content: Option<Content> = read_json(file)?;
    Ok(content.map(|content| content.shards))
}

fn damaged_name(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".damaged");
    PathBuf::from(name)
}

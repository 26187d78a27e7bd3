//! The error of an engine that could not start.

/// The reason why an engine could not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The database could not be opened, or the file is not a database.
    #[error("the queue database could not be opened")]
    Storage(#[from] rusqlite::Error),
    /// The database was written by another version of this engine.
    #[error("the queue database has schema version {found}, this engine reads version {expected}")]
    Schema {
        /// The version found in the file.
        found: i64,
        /// The version this engine reads and writes.
        expected: i64,
    },
    /// The operating system could not start the writer's thread.
    #[error("the queue writer's thread could not be started")]
    Thread(#[from] std::io::Error),
}

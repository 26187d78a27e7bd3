//! A connection to the DynamoDB engine's database, in addition to the engine's own.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use rusqlite::Connection;

/// Opens a connection that waits while others write.
pub(super) fn open(file: &Path) -> Result<Connection> {
    let connection =
        Connection::open(file).with_context(|| format!("cannot open {}", file.display()))?;
    connection.busy_timeout(Duration::from_secs(5))?;
    Ok(connection)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_bundled_sqlite_is_not_older_than_its_fix() {
        // CVE-2025-6965 is fixed in 3.50.2.
        let version = rusqlite::version_number();
        assert!(version >= 3_050_002, "{version}");
    }
}

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
    fn the_security_page_names_the_bundled_sqlite() {
        let page = include_str!("../../../../docs/security.md");
        let named = format!("bundle SQLite {},", rusqlite::version());
        assert!(page.contains(&named), "the page does not say {named:?}");
    }
}

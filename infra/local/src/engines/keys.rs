//! The key pair that the engines of a data folder accept. It is generated for each folder, so only users who can read
//! the folder can call its engines.

use std::path::Path;

use anyhow::{Context, Result};
use aws_credential_types::Credentials;
use serde::{Deserialize, Serialize};

use crate::files::CREDENTIALS_FILE;
use crate::random::random_hex;
use crate::secrets::create_once;

/// An AWS access key.
#[derive(Clone, Serialize, Deserialize)]
pub struct KeyPair {
    /// The access key id.
    pub access_key_id: String,
    /// The secret that signs requests.
    pub secret_access_key: String,
}

impl std::fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KeyPair({}, ..)", self.access_key_id)
    }
}

impl KeyPair {
    /// A random key pair.
    #[must_use]
    pub fn random() -> Self {
        let name = random_hex(1).to_ascii_uppercase();
        Self {
            // As long as an id of AWS, but with a prefix that AWS does not use.
            access_key_id: format!("LOCAL{}", name.get(..15).unwrap_or(&name)),
            secret_access_key: random_hex(2),
        }
    }

    /// The key pair of a folder, created on first use.
    pub fn of_folder(folder: &Path) -> Result<Self> {
        let stored = create_once(folder, CREDENTIALS_FILE, || {
            serde_json::to_vec(&Self::random()).unwrap_or_default()
        })?;
        serde_json::from_slice(&stored)
            .with_context(|| format!("{} is damaged", folder.join(CREDENTIALS_FILE).display()))
    }

    /// The key pair as credentials of SDK clients.
    #[must_use]
    pub fn credentials(&self) -> Credentials {
        Credentials::new(
            &self.access_key_id,
            &self.secret_access_key,
            None,
            None,
            "hearback",
        )
    }
}

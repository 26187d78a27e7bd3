//! The parts of a data folder.

use serde::{Deserialize, Serialize};

use crate::files::{
    BUCKET_FOLDER, CREDENTIALS_FILE, MANIFEST_FILE, PSEUDONYM_KEY_FILE, QUEUES_FILE, TABLE_FILE,
    TOKEN_KEY_FILE,
};

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
    pub(super) fn content(self) -> &'static str {
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

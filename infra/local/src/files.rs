//! The names of the files in a data folder.

/// The manifest, which lists the folder's parts.
pub const MANIFEST_FILE: &str = "manifest.json";
/// The DynamoDB engine's database.
pub const TABLE_FILE: &str = "dynamodb.sqlite";
/// The SQS engine's database.
pub const QUEUES_FILE: &str = "sqs.sqlite";
/// The S3 engine's folder.
pub const BUCKET_FOLDER: &str = "s3";
/// The key of pseudonyms and cursors.
pub const PSEUDONYM_KEY_FILE: &str = "pseudonym.key";
/// The key that signs local tokens.
pub const TOKEN_KEY_FILE: &str = "token.key";
/// The key pair that the engines accept.
pub const CREDENTIALS_FILE: &str = "credentials.json";
/// The relay's position in the table's stream.
pub const POSITION_FILE: &str = "relay.json";
/// The endpoints of the engines, for other commands.
pub const ENDPOINTS_FILE: &str = "endpoints.json";
/// The address of the gateway, for other commands.
pub const GATEWAY_FILE: &str = "gateway.json";
/// The lock file of the process that uses the folder.
pub const LOCK_FILE: &str = "lock";

//! What the table is. `template.yaml` declares the same for AWS; a test holds the two equal.

use std::time::Duration;

use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_dynamodb::operation::create_table::CreateTableError;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, CreateGlobalSecondaryIndexAction, GlobalSecondaryIndex,
    GlobalSecondaryIndexUpdate, IndexStatus, KeySchemaElement, KeyType, Projection, ProjectionType,
    ScalarAttributeType, StreamSpecification, StreamViewType, TableDescription,
    TimeToLiveSpecification,
};

use crate::{Error, Store};

/// The partition key.
pub const PK: &str = "PK";
/// The sort key.
pub const SK: &str = "SK";
/// When an item expires, in seconds since 1970.
pub const EXPIRES_AT: &str = "expires_at";

/// What message signals on one trace have in common.
pub const TRACE: &str = "trace";
/// What message signals of one day have in common.
pub const DAY: &str = "day";
/// Whose something is that lies elsewhere than with its user.
pub const AUTHOR: &str = "author";
/// How a turn was taken, with its project.
pub const STATUS: &str = "status";
/// When that turn was.
pub const STATUS_AT: &str = "status_at";
/// The index of message signals by their trace, sparse.
pub const BY_TRACE: &str = "by_trace";
/// The index of message signals by their day, sparse.
pub const BY_DAY: &str = "by_day";
/// The index of what lies elsewhere than with its user, by the user, sparse: for erasing a person.
pub const BY_AUTHOR: &str = "by_author";

/// The index of turns by how they were taken, in the order of their time, sparse: neutral ones are not
/// in it.
pub const BY_STATUS: &str = "by_status";

/// Indexes, each with the attribute that it goes by, and the one by which it is sorted. They hold keys
/// only.
pub const INDEXES: [(&str, &str, &str); 4] = [
    (BY_TRACE, TRACE, PK),
    (BY_DAY, DAY, PK),
    (BY_AUTHOR, AUTHOR, PK),
    (BY_STATUS, STATUS, STATUS_AT),
];

impl Store {
    /// Creates the table where there is none, for a machine-local engine and for tests; in AWS
    /// `template.yaml` does it. A table that an older version created gets the indexes that it
    /// lacks. Safe to repeat.
    pub async fn create_table(&self) -> Result<(), Error> {
        let mut create = self
            .client
            .create_table()
            .table_name(&self.table)
            .attribute_definitions(attribute(PK)?)
            .attribute_definitions(attribute(SK)?)
            .key_schema(key(PK, KeyType::Hash)?)
            .key_schema(key(SK, KeyType::Range)?)
            .billing_mode(BillingMode::PayPerRequest)
            .stream_specification(
                StreamSpecification::builder()
                    .stream_enabled(true)
                    .stream_view_type(StreamViewType::NewAndOldImages)
                    .build()
                    .map_err(unbuilt)?,
            );
        for (name, by, order) in INDEXES {
            let index = GlobalSecondaryIndex::builder()
                .index_name(name)
                .key_schema(key(by, KeyType::Hash)?)
                .key_schema(key(order, KeyType::Range)?)
                .projection(keys_only())
                .build()
                .map_err(unbuilt)?;
            if order != PK {
                create = create.attribute_definitions(attribute(order)?);
            }
            create = create
                .attribute_definitions(attribute(by)?)
                .global_secondary_indexes(index);
        }
        match create.send().await {
            Ok(_) => self.enable_expiry().await,
            Err(error)
                if error
                    .as_service_error()
                    .is_some_and(CreateTableError::is_resource_in_use_exception) =>
            {
                self.add_missing_indexes().await
            }
            Err(error) => Err(Error::unavailable("CreateTable", &error)),
        }
    }

    async fn add_missing_indexes(&self) -> Result<(), Error> {
        let known = self.describe().await?;
        let known = known.global_secondary_indexes.unwrap_or_default();
        for (name, by, order) in INDEXES {
            if known.iter().any(|index| index.index_name() == Some(name)) {
                continue;
            }
            let index = CreateGlobalSecondaryIndexAction::builder()
                .index_name(name)
                .key_schema(key(by, KeyType::Hash)?)
                .key_schema(key(order, KeyType::Range)?)
                .projection(keys_only())
                .build()
                .map_err(unbuilt)?;
            self.client
                .update_table()
                .table_name(&self.table)
                .attribute_definitions(attribute(order)?)
                .attribute_definitions(attribute(by)?)
                .global_secondary_index_updates(
                    GlobalSecondaryIndexUpdate::builder().create(index).build(),
                )
                .send()
                .await
                .map_err(|error| Error::unavailable("UpdateTable", &error))?;
            self.index_built(name).await?;
        }
        Ok(())
    }

    /// Waits until an index is built: a table takes one at a time.
    async fn index_built(&self, name: &str) -> Result<(), Error> {
        loop {
            let indexes = self.describe().await?.global_secondary_indexes;
            let built = indexes.iter().flatten().any(|index| {
                let active = index.index_status() == Some(&IndexStatus::Active);
                index.index_name() == Some(name) && active
            });
            if built {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    async fn enable_expiry(&self) -> Result<(), Error> {
        let specification = TimeToLiveSpecification::builder()
            .enabled(true)
            .attribute_name(EXPIRES_AT)
            .build()
            .map_err(unbuilt)?;
        self.client
            .update_time_to_live()
            .table_name(&self.table)
            .time_to_live_specification(specification)
            .send()
            .await
            .map(|_| ())
            .map_err(|error| Error::unavailable("UpdateTimeToLive", &error))
    }

    /// The stream of the table.
    pub async fn stream_arn(&self) -> Result<String, Error> {
        self.describe()
            .await?
            .latest_stream_arn
            .ok_or_else(|| Error::unreadable("table", "it has no stream"))
    }

    async fn describe(&self) -> Result<TableDescription, Error> {
        self.client
            .describe_table()
            .table_name(&self.table)
            .send()
            .await
            .map_err(|error| Error::unavailable("DescribeTable", &error))?
            .table
            .ok_or_else(|| Error::unreadable("table", "it is not described"))
    }
}

fn attribute(name: &str) -> Result<AttributeDefinition, Error> {
    AttributeDefinition::builder()
        .attribute_name(name)
        .attribute_type(ScalarAttributeType::S)
        .build()
        .map_err(unbuilt)
}

fn key(name: &str, kind: KeyType) -> Result<KeySchemaElement, Error> {
    KeySchemaElement::builder()
        .attribute_name(name)
        .key_type(kind)
        .build()
        .map_err(unbuilt)
}

fn keys_only() -> Projection {
    Projection::builder()
        .projection_type(ProjectionType::KeysOnly)
        .build()
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the shape that map_err takes"
)]
fn unbuilt(error: BuildError) -> Error {
    Error::unreadable("table", error.to_string())
}

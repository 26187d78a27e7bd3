//! The definition of the table. `template.yaml` declares the same for AWS; a test compares them.

use std::collections::BTreeSet;
use std::time::Duration;

use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_dynamodb::operation::create_table::CreateTableError;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, CreateGlobalSecondaryIndexAction, GlobalSecondaryIndex,
    GlobalSecondaryIndexUpdate, IndexStatus, KeySchemaElement, KeyType, Projection, ProjectionType,
    ScalarAttributeType, StreamSpecification, StreamViewType, TableDescription,
    TimeToLiveSpecification, TimeToLiveStatus,
};

use crate::attributes::{FACTS, IS_EXPLICIT, IS_INFERRED, RETRACTED};
use crate::{Error, Store};

/// The partition key.
pub const PK: &str = "PK";
/// The sort key.
pub const SK: &str = "SK";
/// When an item expires, in seconds since 1970.
pub const EXPIRES_AT: &str = "expires_at";

/// The index key of message signals on one trace.
pub const TRACE: &str = "trace";
/// The index key of message signals of one day.
pub const DAY: &str = "day";
/// The user of an item that is not in its user's partition.
pub const AUTHOR: &str = "author";
/// The status of a turn, with its project.
pub const STATUS: &str = "status";
/// The time of that turn.
pub const STATUS_AT: &str = "status_at";
/// The sparse index of message signals by trace.
pub const BY_TRACE: &str = "by_trace";
/// The sparse index of message signals by day.
pub const BY_DAY: &str = "by_day";
/// The author index: a sparse index of items outside their user's partition, for erasures.
pub const BY_AUTHOR: &str = "by_author";

/// The sparse index of turns by status and time, without neutral turns.
pub const BY_STATUS: &str = "by_status";

/// The index key of a shard of a tenant's day in the feed.
pub const FEED: &str = "feed";
/// The user of an entry of the feed.
pub const FEED_USER: &str = "feed_user";
/// The position of an entry of the feed.
pub const FEED_AT: &str = "feed_at";
/// The sparse index of the tenants' feeds.
pub const BY_FEED: &str = "by_feed";
/// The sparse index of the users' feeds.
pub const BY_FEED_USER: &str = "by_feed_user";

/// The index key of a shard of an hour of a project's events and turns.
pub const HOUR: &str = "hour";
/// The time of an event or a turn, and its id.
pub const OCCURRED_AT: &str = "occurred_at";
/// The sparse index of a project's events and turns by hour, with what insights count of them.
pub const BY_HOUR: &str = "by_hour";

/// An index.
#[derive(Debug, Clone, Copy)]
pub struct Index {
    /// Its name.
    pub name: &'static str,
    /// Its partition key.
    pub partition: &'static str,
    /// Its sort key.
    pub sort: &'static str,
    /// The attributes that it contains beside the keys.
    pub attributes: &'static [&'static str],
}

const fn keys_only(name: &'static str, partition: &'static str, sort: &'static str) -> Index {
    Index {
        name,
        partition,
        sort,
        attributes: &[],
    }
}

/// The indexes.
pub const INDEXES: [Index; 7] = [
    keys_only(BY_TRACE, TRACE, PK),
    keys_only(BY_DAY, DAY, PK),
    keys_only(BY_AUTHOR, AUTHOR, PK),
    keys_only(BY_STATUS, STATUS, STATUS_AT),
    keys_only(BY_FEED, FEED, FEED_AT),
    keys_only(BY_FEED_USER, FEED_USER, FEED_AT),
    Index {
        name: BY_HOUR,
        partition: HOUR,
        sort: OCCURRED_AT,
        attributes: &[FACTS, RETRACTED, IS_EXPLICIT, IS_INFERRED, EXPIRES_AT],
    },
];

impl Store {
    /// Creates the table if it does not exist, for a local engine and for tests; in AWS,
    /// `template.yaml` does. Adds missing indexes to a table of an older version. Idempotent.
    pub async fn create_table(&self) -> Result<(), Error> {
        let mut create = self
            .client
            .create_table()
            .table_name(&self.table)
            .key_schema(key(PK, KeyType::Hash)?)
            .key_schema(key(SK, KeyType::Range)?)
            .billing_mode(BillingMode::PayPerRequest)
            .stream_specification(
                StreamSpecification::builder()
                    .stream_enabled(true)
                    .stream_view_type(StreamViewType::NewAndOldImages)
                    .build()
                    .map_err(invalid_definition)?,
            );
        for index in INDEXES {
            let index = GlobalSecondaryIndex::builder()
                .index_name(index.name)
                .key_schema(key(index.partition, KeyType::Hash)?)
                .key_schema(key(index.sort, KeyType::Range)?)
                .projection(index.projection())
                .build()
                .map_err(invalid_definition)?;
            create = create.global_secondary_indexes(index);
        }
        let indexed = INDEXES
            .iter()
            .flat_map(|index| [index.partition, index.sort]);
        let attributes: BTreeSet<_> = indexed.chain([PK, SK]).collect();
        for name in attributes {
            create = create.attribute_definitions(attribute(name)?);
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

    /// Repairs a table whose creation was interrupted, for a local engine, which creates a table in
    /// several steps and its stream last. A table without a stream and without items is deleted.
    /// Call this before [`Store::create_table`].
    pub async fn repair_table(&self) -> Result<(), Error> {
        let described = match self.describe().await {
            Err(Error::Unavailable { code, .. }) if code == "ResourceNotFoundException" => {
                return Ok(());
            }
            described => described?,
        };
        if described.latest_stream_arn.is_some() {
            return self.ensure_expiry().await;
        }
        let scan = self.client.scan().table_name(&self.table).limit(1);
        // A table whose key schema is missing cannot be scanned.
        if scan.send().await.is_ok_and(|items| items.count() > 0) {
            return Ok(());
        }
        let delete = self.client.delete_table().table_name(&self.table);
        let deleted = delete.send().await;
        deleted.map_err(|error| Error::unavailable("DeleteTable", &error))?;
        Ok(())
    }

    async fn ensure_expiry(&self) -> Result<(), Error> {
        let describe = self
            .client
            .describe_time_to_live()
            .table_name(&self.table)
            .send();
        let described = describe
            .await
            .map_err(|error| Error::unavailable("DescribeTimeToLive", &error))?;
        let expiry = described.time_to_live_description;
        let status = expiry.and_then(|expiry| expiry.time_to_live_status);
        if matches!(
            status,
            Some(TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling)
        ) {
            return Ok(());
        }
        self.enable_expiry().await
    }

    async fn add_missing_indexes(&self) -> Result<(), Error> {
        let existing = self.describe().await?;
        let existing = existing.global_secondary_indexes.unwrap_or_default();
        for index in INDEXES {
            if existing
                .iter()
                .any(|known| known.index_name() == Some(index.name))
            {
                continue;
            }
            let create = CreateGlobalSecondaryIndexAction::builder()
                .index_name(index.name)
                .key_schema(key(index.partition, KeyType::Hash)?)
                .key_schema(key(index.sort, KeyType::Range)?)
                .projection(index.projection())
                .build()
                .map_err(invalid_definition)?;
            self.client
                .update_table()
                .table_name(&self.table)
                .attribute_definitions(attribute(index.sort)?)
                .attribute_definitions(attribute(index.partition)?)
                .global_secondary_index_updates(
                    GlobalSecondaryIndexUpdate::builder().create(create).build(),
                )
                .send()
                .await
                .map_err(|error| Error::unavailable("UpdateTable", &error))?;
            self.wait_for_index(index.name).await?;
        }
        Ok(())
    }

    /// Waits until an index is built: a table builds one at a time.
    async fn wait_for_index(&self, name: &str) -> Result<(), Error> {
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
            .map_err(invalid_definition)?;
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
            .ok_or_else(|| Error::unreadable("table", "the response has no description"))
    }
}

fn attribute(name: &str) -> Result<AttributeDefinition, Error> {
    AttributeDefinition::builder()
        .attribute_name(name)
        .attribute_type(ScalarAttributeType::S)
        .build()
        .map_err(invalid_definition)
}

fn key(name: &str, kind: KeyType) -> Result<KeySchemaElement, Error> {
    KeySchemaElement::builder()
        .attribute_name(name)
        .key_type(kind)
        .build()
        .map_err(invalid_definition)
}

impl Index {
    fn projection(&self) -> Projection {
        let projection = Projection::builder();
        if self.attributes.is_empty() {
            return projection.projection_type(ProjectionType::KeysOnly).build();
        }
        let attributes = self.attributes.iter().map(ToString::to_string);
        projection
            .projection_type(ProjectionType::Include)
            .set_non_key_attributes(Some(attributes.collect()))
            .build()
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the shape that map_err takes"
)]
fn invalid_definition(error: BuildError) -> Error {
    Error::unreadable("table", error.to_string())
}

//! What the table is. `template.yaml` declares the same for AWS; a test holds the two equal.

use aws_sdk_dynamodb::operation::create_table::CreateTableError;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType,
    StreamSpecification, StreamViewType, TimeToLiveSpecification,
};

use crate::{Error, Store};

/// The partition key.
pub const PK: &str = "PK";
/// The sort key.
pub const SK: &str = "SK";
/// When an item expires, in seconds since 1970.
pub const EXPIRES_AT: &str = "expires_at";

impl Store {
    /// Creates the table where there is none, for a machine-local engine and for tests; in AWS
    /// `template.yaml` does it. Safe to repeat.
    pub async fn create_table(&self) -> Result<(), Error> {
        let attribute = |name| {
            AttributeDefinition::builder()
                .attribute_name(name)
                .attribute_type(ScalarAttributeType::S)
                .build()
        };
        let key = |name, kind| {
            KeySchemaElement::builder()
                .attribute_name(name)
                .key_type(kind)
                .build()
        };
        let unbuilt = |error: aws_sdk_dynamodb::error::BuildError| {
            Error::unreadable("table", error.to_string())
        };
        let created = self
            .client
            .create_table()
            .table_name(&self.table)
            .attribute_definitions(attribute(PK).map_err(unbuilt)?)
            .attribute_definitions(attribute(SK).map_err(unbuilt)?)
            .key_schema(key(PK, KeyType::Hash).map_err(unbuilt)?)
            .key_schema(key(SK, KeyType::Range).map_err(unbuilt)?)
            .billing_mode(BillingMode::PayPerRequest)
            .stream_specification(
                StreamSpecification::builder()
                    .stream_enabled(true)
                    .stream_view_type(StreamViewType::NewAndOldImages)
                    .build()
                    .map_err(unbuilt)?,
            )
            .send()
            .await;
        match created {
            Ok(_) => self.enable_expiry().await,
            Err(error)
                if error
                    .as_service_error()
                    .is_some_and(CreateTableError::is_resource_in_use_exception) =>
            {
                Ok(())
            }
            Err(error) => Err(Error::unavailable("CreateTable", &error)),
        }
    }

    async fn enable_expiry(&self) -> Result<(), Error> {
        let specification = TimeToLiveSpecification::builder()
            .enabled(true)
            .attribute_name(EXPIRES_AT)
            .build()
            .map_err(|error| Error::unreadable("table", error.to_string()))?;
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
        self.client
            .describe_table()
            .table_name(&self.table)
            .send()
            .await
            .map_err(|error| Error::unavailable("DescribeTable", &error))?
            .table
            .and_then(|table| table.latest_stream_arn)
            .ok_or_else(|| Error::unreadable("table", "it has no stream"))
    }
}

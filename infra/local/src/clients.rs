//! SDK clients of DynamoDB, SQS and S3, for the embedded engines or another endpoint.

use std::time::Duration;

use aws_sdk_sqs::config::timeout::TimeoutConfig;
use hearback_lambda::aws::{Aws, Service};

use crate::engines::Access;

/// Clients of all services that the bundle uses.
#[derive(Debug, Clone)]
pub struct Clients {
    /// Client of DynamoDB.
    pub dynamodb: aws_sdk_dynamodb::Client,
    /// Client of DynamoDB Streams.
    pub streams: aws_sdk_dynamodbstreams::Client,
    /// Client of SQS.
    pub sqs: aws_sdk_sqs::Client,
    /// Client of S3.
    pub s3: aws_sdk_s3::Client,
}

impl Clients {
    /// Clients of the embedded engines.
    #[must_use]
    pub fn of_engines(access: &Access) -> Self {
        let (dynamodb, sqs, s3) = (access.dynamodb(), access.sqs(), access.s3());
        Self::new(&dynamodb.config(), &sqs.config(), &s3.config())
    }

    /// Clients of one endpoint for all services, or of AWS for `aws`, with the region and credentials of the
    /// environment.
    #[must_use]
    pub fn of_endpoint(url: &str) -> Self {
        let aws = Aws {
            endpoint_url: (url != "aws").then(|| url.to_owned()),
            ..Aws::from_env(Service::DynamoDb)
        };
        let config = aws.config();
        Self::new(&config, &config, &config)
    }

    fn new(
        dynamodb: &aws_types::SdkConfig,
        sqs: &aws_types::SdkConfig,
        s3: &aws_types::SdkConfig,
    ) -> Self {
        // A receive waits for messages for up to 20 seconds.
        let timeouts = TimeoutConfig::builder()
            .operation_attempt_timeout(Duration::from_secs(30))
            .operation_timeout(Duration::from_mins(1))
            .build();
        let long_polling = aws_sdk_sqs::config::Builder::from(sqs)
            .timeout_config(timeouts)
            .build();
        let path_style = aws_sdk_s3::config::Builder::from(s3)
            .force_path_style(true)
            .build();
        Self {
            dynamodb: aws_sdk_dynamodb::Client::new(dynamodb),
            streams: aws_sdk_dynamodbstreams::Client::new(dynamodb),
            sqs: aws_sdk_sqs::Client::from_conf(long_polling),
            s3: aws_sdk_s3::Client::from_conf(path_style),
        }
    }
}

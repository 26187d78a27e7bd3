//! Preference versions: an append-only log for each user.

use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity};
use hearback_domain::identity::identifier::UserRef;
use hearback_domain::learning::preferences::Version;

use crate::item::{self, Builder};
use crate::{Error, Store, Written, keys};

const VERSION: &str = "version";

/// How fresh a read must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// Eventually consistent, at half the price. Enough where a condition decides.
    Eventual,
    /// Strongly consistent.
    Latest,
}

impl Freshness {
    pub(crate) fn is_consistent(self) -> bool {
        match self {
            Self::Eventual => false,
            Self::Latest => true,
        }
    }
}

impl Store {
    /// The newest version, if the user has any. One call; one read for each 4 KB, or half.
    pub async fn newest_version(
        &self,
        owner: UserRef<'_>,
        freshness: Freshness,
    ) -> Result<Option<Version>, Error> {
        let range = VersionRange {
            after: 0,
            before: None,
            limit: Some(1),
            freshness,
        };
        Ok(self.versions(owner, range).await?.pop())
    }

    /// The versions in a range, the newest first.
    pub async fn versions(
        &self,
        owner: UserRef<'_>,
        range: VersionRange,
    ) -> Result<Vec<Version>, Error> {
        let newest = range
            .before
            .map_or(u64::MAX, |before| before.saturating_sub(1));
        let oldest = range.after.saturating_add(1);
        if newest < oldest {
            return Ok(Vec::new());
        }
        let mut versions = Vec::new();
        let mut resume = None;
        loop {
            let response = self
                .client
                .query()
                .table_name(&self.table)
                .key_condition_expression("PK = :pk AND SK BETWEEN :oldest AND :newest")
                .expression_attribute_values(":pk", AttributeValue::S(keys::preferences(owner)))
                .expression_attribute_values(":oldest", AttributeValue::S(keys::version(oldest)))
                .expression_attribute_values(
                    ":newest",
                    AttributeValue::S(keys::version(newest.min(MAX_VERSION))),
                )
                .scan_index_forward(false)
                .set_limit(range.limit)
                .consistent_read(range.freshness.is_consistent())
                .set_exclusive_start_key(resume)
                .return_consumed_capacity(ReturnConsumedCapacity::Total)
                .send()
                .await
                .map_err(|error| Error::unavailable("Query", &error))?;
            for item in response.items() {
                versions.push(item::json(item, "preference version", VERSION)?);
            }
            resume = response.last_evaluated_key;
            // A range with a limit is read by one call, which may return fewer.
            if resume.is_none() || range.limit.is_some() {
                return Ok(versions);
            }
        }
    }

    /// Appends a version, if its number is new (optimistic locking). One call, one write for each
    /// KB.
    pub async fn put_version(
        &self,
        owner: UserRef<'_>,
        version: &Version,
    ) -> Result<Written, Error> {
        let item = Builder::new(keys::preferences(owner), keys::version(version.number))
            .json("preference version", VERSION, version)?
            .build();
        self.insert(item).await
    }
}

/// Ten digits: a version a second for three centuries.
const MAX_VERSION: u64 = 9_999_999_999;

/// A range of versions to read.
#[derive(Debug, Clone, Copy)]
pub struct VersionRange {
    /// Only versions newer than this one; 0 for all.
    pub after: u64,
    /// Only versions older than this one.
    pub before: Option<u64>,
    /// The most versions to return, within 1 MB; `None` returns all.
    pub limit: Option<i32>,
    /// How fresh the read must be.
    pub freshness: Freshness,
}

//! Preference versions: an append-only log for each user.

use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity};
use hearback_domain::identity::identifier::UserRef;
use hearback_domain::learning::preferences::{NewestVersion, Version};

use crate::item::{self, Builder, Item};
use crate::table::SK;
use crate::{Error, Store, Written, keys};

/// Names the kind of row in errors and logs.
const KIND: &str = "preference version";
const VERSION: &str = "version";

/// A stored version.
#[derive(Debug, Clone)]
pub struct StoredVersion {
    /// Its number.
    pub number: u64,
    /// The version; `None` if it cannot be read.
    pub version: Option<Version>,
}

impl StoredVersion {
    /// The number is in the key, so it is known even if the row is damaged.
    fn read(item: &Item) -> Result<Self, Error> {
        let number = keys::version_of(item::string(item, KIND, SK)?);
        Ok(Self {
            number: number.ok_or_else(|| Error::unreadable(KIND, "its key has no number"))?,
            version: item::readable(item, item::json(item, KIND, VERSION)),
        })
    }
}

/// How fresh a read must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// Eventually consistent, at half the price. Enough where a conditional write checks the result.
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
    /// The newest version. A version that cannot be read is skipped with a warning, but its number stays in use, so
    /// that no other version is written under it. One call, and one for each skipped version; one read for each 4 KB,
    /// half of that if eventually consistent.
    pub async fn newest_version(
        &self,
        owner: UserRef<'_>,
        freshness: Freshness,
    ) -> Result<NewestVersion, Error> {
        let mut newest = NewestVersion::default();
        let mut before = None;
        loop {
            let range = VersionRange {
                after: 0,
                before,
                limit: Some(1),
                freshness,
            };
            let Some(StoredVersion { number, version }) = self.versions(owner, range).await?.pop()
            else {
                return Ok(newest);
            };
            newest.number = newest.number.max(number);
            if version.is_some() {
                return Ok(NewestVersion { version, ..newest });
            }
            before = Some(number);
        }
    }

    /// The versions in a range, the newest first.
    pub async fn versions(
        &self,
        owner: UserRef<'_>,
        range: VersionRange,
    ) -> Result<Vec<StoredVersion>, Error> {
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
                versions.push(StoredVersion::read(item)?);
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
            .json(KIND, VERSION, version)?
            .build();
        self.insert(item).await
    }
}

/// Ten digits: enough for a version a second for three centuries.
const MAX_VERSION: u64 = 9_999_999_999;

/// A range of versions to read.
#[derive(Debug, Clone, Copy)]
pub struct VersionRange {
    /// Only versions newer than this one; 0 for all.
    pub after: u64,
    /// Only versions older than this one.
    pub before: Option<u64>,
    /// The maximum number of versions to return, within 1 MB; `None` returns all.
    pub limit: Option<i32>,
    /// How fresh the read must be.
    pub freshness: Freshness,
}

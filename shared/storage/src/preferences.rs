//! Preference versions: an append-only log for each user.

use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity};
use hearback_domain::identifier::{TenantId, UserId};
use hearback_domain::preferences::Version;

use crate::item::{self, Builder};
use crate::{Error, Store, Written, keys};

const VERSION: &str = "version";

/// How fresh a read must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// Half the price; may miss what was written a moment ago. Enough where a condition decides.
    Eventual,
    /// Sees every write that was acknowledged.
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
        tenant: &TenantId,
        user: &UserId,
        freshness: Freshness,
    ) -> Result<Option<Version>, Error> {
        let page = Page {
            after: 0,
            before: None,
            limit: Some(1),
            freshness,
        };
        Ok(self.versions(tenant, user, page).await?.pop())
    }

    /// Versions from the newest to the oldest that a page asks for.
    pub async fn versions(
        &self,
        tenant: &TenantId,
        user: &UserId,
        page: Page,
    ) -> Result<Vec<Version>, Error> {
        let newest = page
            .before
            .map_or(u64::MAX, |before| before.saturating_sub(1));
        let oldest = page.after.saturating_add(1);
        if newest < oldest {
            return Ok(Vec::new());
        }
        let mut versions = Vec::new();
        let mut resume = None;
        loop {
            let found = self
                .client
                .query()
                .table_name(&self.table)
                .key_condition_expression("PK = :pk AND SK BETWEEN :oldest AND :newest")
                .expression_attribute_values(
                    ":pk",
                    AttributeValue::S(keys::preferences(tenant, user)),
                )
                .expression_attribute_values(":oldest", AttributeValue::S(keys::version(oldest)))
                .expression_attribute_values(
                    ":newest",
                    AttributeValue::S(keys::version(newest.min(MAX_VERSION))),
                )
                .scan_index_forward(false)
                .set_limit(page.limit)
                .consistent_read(page.freshness.is_consistent())
                .set_exclusive_start_key(resume)
                .return_consumed_capacity(ReturnConsumedCapacity::Total)
                .send()
                .await
                .map_err(|error| Error::unavailable("Query", &error))?;
            for found in found.items() {
                versions.push(item::json(found, "preference version", VERSION)?);
            }
            resume = found.last_evaluated_key;
            // A page with a limit is one call, and may hold fewer: the caller sees where it ends.
            if resume.is_none() || page.limit.is_some() {
                return Ok(versions);
            }
        }
    }

    /// Appends a version, if its number is new: the optimistic lock. One call, one write for
    /// each KB.
    pub async fn put_version(
        &self,
        tenant: &TenantId,
        user: &UserId,
        version: &Version,
    ) -> Result<Written, Error> {
        let item = Builder::new(
            keys::preferences(tenant, user),
            keys::version(version.number),
        )
        .json("preference version", VERSION, version)?
        .build();
        self.put_once(item).await
    }
}

/// Ten digits: a version a second for three centuries.
const MAX_VERSION: u64 = 9_999_999_999;

/// Which versions of a user to read.
#[derive(Debug, Clone, Copy)]
pub struct Page {
    /// Only versions newer than this one; 0 for all.
    pub after: u64,
    /// Only versions older than this one.
    pub before: Option<u64>,
    /// At most this many, or as many as fit into 1 MB; all of them without.
    pub limit: Option<i32>,
    /// How fresh the answer must be.
    pub freshness: Freshness,
}

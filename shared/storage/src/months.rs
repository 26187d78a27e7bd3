//! Month markers: the months in which a project has reactions. Reports skip all other months.
//!
//! A marker is written before the activity markers of its month. It names no user, and is never
//! deleted.

use std::collections::BTreeSet;

use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity};
use chrono::{Datelike, Months, NaiveDate};
use hearback_domain::feedback::reaction::ReactionCore;
use hearback_domain::identity::identifier::{ProjectId, TenantId};
use sha2::{Digest, Sha256};

use crate::item::{self, Builder};
use crate::table::SK;
use crate::{Error, Store, keys};

const MARKER: &str = "month marker";

/// The months of a project with reactions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ActiveMonths {
    /// The first day of each.
    marked: BTreeSet<NaiveDate>,
}

impl ActiveMonths {
    /// The latest day on which there may be activity, from `date` backwards.
    #[must_use]
    pub fn latest(&self, date: NaiveDate) -> Option<NaiveDate> {
        let month = first_of(date);
        if self.marked.contains(&month) {
            return Some(date);
        }
        last_of(*self.marked.range(..month).next_back()?)
    }
}

/// The first day of a day's month.
fn first_of(date: NaiveDate) -> NaiveDate {
    date.with_day(1).unwrap_or(date)
}

fn last_of(month: NaiveDate) -> Option<NaiveDate> {
    month.checked_add_months(Months::new(1))?.pred_opt()
}

impl Store {
    /// Writes the marker of the month of a reaction, unless this process has written it. One call
    /// and one write, or none.
    pub(crate) async fn mark_month_once(&self, reaction: &ReactionCore) -> Result<(), Error> {
        let at = &reaction.at.within;
        let pk = keys::months(&at.tenant, &at.project);
        let sk = keys::month(reaction.ts.date_naive());
        let digest: [u8; 32] = Sha256::digest(format!("{pk}\n{sk}")).into();
        if self.marked.has(&digest) {
            return Ok(());
        }
        self.client
            .put_item()
            .table_name(&self.table)
            .set_item(Some(Builder::new(pk, sk).build()))
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
            .send()
            .await
            .map_err(|error| Error::unavailable("PutItem", &error))?;
        self.marked.add(digest);
        Ok(())
    }

    /// The months of a project with reactions. One call, one read for each 4 KB: about forty
    /// months.
    pub async fn active_months(
        &self,
        tenant: &TenantId,
        project: &ProjectId,
    ) -> Result<ActiveMonths, Error> {
        let mut marked = BTreeSet::new();
        let mut resume = None;
        loop {
            let response = self
                .client
                .query()
                .table_name(&self.table)
                .key_condition_expression("PK = :pk")
                .expression_attribute_values(
                    ":pk",
                    AttributeValue::S(keys::months(tenant, project)),
                )
                .consistent_read(true)
                .set_exclusive_start_key(resume)
                .return_consumed_capacity(ReturnConsumedCapacity::Total)
                .send()
                .await
                .map_err(|error| Error::unavailable("Query", &error))?;
            for item in response.items() {
                let month = item::string(item, MARKER, SK)?;
                let day = NaiveDate::parse_from_str(&format!("{month}-01"), "%Y-%m-%d");
                marked
                    .insert(day.map_err(|_| Error::unreadable(MARKER, "its key is not a month"))?);
            }
            resume = response.last_evaluated_key;
            if resume.is_none() {
                return Ok(ActiveMonths { marked });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(date: &str) -> NaiveDate {
        date.parse().unwrap()
    }

    #[test]
    fn the_latest_active_day_is_at_the_end_of_the_previous_marked_month() {
        let marked = ["2024-02-01", "2026-03-01"].map(day).into();
        let months = ActiveMonths { marked };
        let latest = |date: &str| months.latest(day(date));
        assert_eq!(latest("2026-03-17"), Some(day("2026-03-17")));
        assert_eq!(latest("2026-02-28"), Some(day("2024-02-29")));
        assert_eq!(latest("2024-02-01"), Some(day("2024-02-01")));
        assert_eq!(latest("2024-01-31"), None);
    }
}

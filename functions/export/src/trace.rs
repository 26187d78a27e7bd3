//! The rows of one trace, as an answer.

use hearback_domain::evaluation::{Request, Row};
use hearback_domain::identifier::Label;
use hearback_storage::message_signals::Place;
use serde::Serialize;

use crate::{Exporter, Failure, LeftOut, ROWS_AT_ONCE, opened, sealed};

/// Bytes of rows after which an answer ends. Lambda hands on 6 MB at most.
const MAX_BYTES: usize = 5 * 1000 * 1000;

/// Rows of a trace.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TracePage {
    /// The rows, on each page the earliest first.
    pub rows: Vec<Row>,
    /// How many of the page's rows are not in it, and why.
    pub left_out: LeftOut,
    /// With which `resume` to ask for the rest; `null` at the end.
    pub resume: Option<String>,
}

impl Exporter {
    /// The rows of a trace, as many as an answer holds.
    pub(crate) async fn trace(
        &self,
        request: &Request,
        trace: &Label,
    ) -> Result<TracePage, Failure> {
        let after: Option<Place> = opened(request)?;
        let mut places = self.store.signals_on_trace(&request.tenant, trace).await?;
        places.retain(|place| after.as_ref().is_none_or(|after| place > after));
        let mut page = TracePage {
            rows: Vec::new(),
            left_out: LeftOut::default(),
            resume: None,
        };
        let mut bytes = 0;
        let mut left = places.as_slice();
        let mut step = ROWS_AT_ONCE;
        while !left.is_empty() {
            let (some, rest) = left.split_at(step.min(left.len()));
            let (rows, left_out) = self.rows(some).await?;
            let size: usize = rows.iter().map(size).sum();
            if bytes + size > MAX_BYTES {
                if step > 1 {
                    // Not all of these fit; maybe the first of them does.
                    step = 1;
                    continue;
                }
                if !page.rows.is_empty() {
                    break;
                }
            }
            bytes += size;
            page.rows.extend(rows);
            page.left_out += left_out;
            page.resume = some.last().map(|last| sealed(request, last));
            left = rest;
        }
        if left.is_empty() {
            page.resume = None;
        }
        page.rows.sort_by_key(|row| (row.ts, row.feedback_id));
        Ok(page)
    }
}

fn size(row: &Row) -> usize {
    serde_json::to_vec(row).map_or(0, |json| json.len())
}

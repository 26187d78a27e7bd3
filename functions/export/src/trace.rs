//! The rows of one trace, in the response.

use hearback_domain::export::evaluation::{EvaluationRequest, EvaluationRow};
use hearback_domain::identity::identifier::Label;
use hearback_storage::damage::unreadable;
use hearback_storage::message_signals::SignalPosition;
use serde::Serialize;

use crate::{Exporter, Failure, ROWS_AT_ONCE, SkippedRows, decode_resume, encode_resume};

/// Bytes of rows in a response, at most: Lambda returns up to 6 MB.
const MAX_BYTES: usize = 5 * 1000 * 1000;

/// A page of the rows of a trace.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TracePage {
    /// The rows, the earliest of the page first.
    pub rows: Vec<EvaluationRow>,
    /// How many rows of the page are left out.
    pub left_out: SkippedRows,
    /// `resume` of the request for the next page; `null` on the last page.
    pub resume: Option<String>,
}

impl Exporter {
    /// The next page of the rows of a trace.
    pub(crate) async fn trace(
        &self,
        request: &EvaluationRequest,
        trace: &Label,
    ) -> Result<TracePage, Failure> {
        let after: Option<SignalPosition> = decode_resume(request)?;
        let mut positions = self.store.signals_on_trace(&request.tenant, trace).await?;
        positions.retain(|position| after.as_ref().is_none_or(|after| position > after));
        let mut page = TracePage {
            rows: Vec::new(),
            left_out: SkippedRows::default(),
            resume: None,
        };
        let mut bytes = 0;
        let mut left = positions.as_slice();
        let mut step = ROWS_AT_ONCE;
        while !left.is_empty() {
            let (chunk, rest) = left.split_at(step.min(left.len()));
            let (rows, left_out) = self.rows(chunk).await?;
            let size: usize = rows.iter().map(size).sum();
            if bytes + size > MAX_BYTES {
                if step > 1 {
                    // They do not all fit, but the first of them may.
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
            page.resume = chunk.last().map(|last| encode_resume(request, last));
            left = rest;
        }
        if left.is_empty() {
            page.resume = None;
        }
        page.left_out.unreadable = unreadable();
        page.rows.sort_by_key(|row| (row.ts, row.feedback_id));
        Ok(page)
    }
}

fn size(row: &EvaluationRow) -> usize {
    serde_json::to_vec(row).map_or(0, |json| json.len())
}

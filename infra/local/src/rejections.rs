//! Counts rejected requests by reason and tenant, and logs the first and then a summary each minute.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::Response;
use hearback_lambda::Problem;
use hearback_lambda::http::LoggedTenant;
use tokio_util::sync::CancellationToken;

/// Time between two summaries.
const INTERVAL: Duration = Duration::from_mins(1);
/// Reasons and tenants that are counted separately in a minute.
const MAX_REASONS: usize = 32;

/// Status, error or engine's port and, if a token named it, tenant of a rejected request.
type Reason = (u16, &'static str, Option<String>);

/// Counts rejected requests.
#[derive(Debug, Clone, Default)]
pub struct RejectionLog(Arc<Mutex<Counts>>);

#[derive(Debug, Default)]
struct Counts {
    /// Rejections of this minute.
    by_reason: BTreeMap<Reason, u64>,
    /// Rejections that are not counted separately.
    others: u64,
    /// Whether a request was rejected in the last minute.
    is_continuing: bool,
}

/// Middleware that counts rejected requests.
pub async fn count(
    State(rejections): State<RejectionLog>,
    request: Request,
    next: Next,
) -> Response {
    let response = next.run(request).await;
    let status = response.status();
    if matches!(
        status,
        StatusCode::UNAUTHORIZED
            | StatusCode::FORBIDDEN
            | StatusCode::MISDIRECTED_REQUEST
            | StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::REQUEST_TIMEOUT
            | StatusCode::TOO_MANY_REQUESTS
            | StatusCode::SERVICE_UNAVAILABLE
    ) {
        let error = response.extensions().get::<Problem>().map(Problem::error);
        let tenant = response.extensions().get::<LoggedTenant>();
        let tenant = tenant.map(|tenant| tenant.0.clone());
        rejections.log((status.as_u16(), error.unwrap_or("unknown"), tenant));
    }
    response
}

impl RejectionLog {
    /// Counts a response of an engine's port if it rejects the request, which is not signed with the folder's key pair
    /// or has another method. Operations that the S3 engine lacks are requested by the bundle itself.
    pub fn count_at_port(&self, port: &'static str, status: StatusCode) {
        if matches!(
            status,
            StatusCode::FORBIDDEN | StatusCode::METHOD_NOT_ALLOWED
        ) {
            self.log((status.as_u16(), port, None));
        }
    }

    fn log(&self, reason: Reason) {
        if let Some(line) = self.rejected(reason) {
            tracing::warn!("requests are being rejected: {line}");
        }
    }

    /// Counts a rejection; returns a line to log if it is the first for a while.
    fn rejected(&self, reason: Reason) -> Option<String> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !counts.is_continuing {
            counts.is_continuing = true;
            return Some(summary(&[(reason, 1)].into(), 0));
        }
        if counts.by_reason.len() < MAX_REASONS || counts.by_reason.contains_key(&reason) {
            *counts.by_reason.entry(reason).or_default() += 1;
        } else {
            counts.others += 1;
        }
        None
    }

    /// Ends a minute; returns a line to log if a request was rejected in it.
    fn end_minute(&self) -> Option<String> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let by_reason = std::mem::take(&mut counts.by_reason);
        let others = std::mem::take(&mut counts.others);
        counts.is_continuing = !by_reason.is_empty();
        counts.is_continuing.then(|| summary(&by_reason, others))
    }

    /// Logs a summary each minute until `stop`.
    pub async fn report(self, stop: CancellationToken) {
        let sleep = || tokio::time::sleep(INTERVAL);
        while stop.run_until_cancelled(sleep()).await.is_some() {
            if let Some(line) = self.end_minute() {
                tracing::warn!("requests were rejected in the last minute: {line}");
            }
        }
    }
}

/// The most frequent reasons first.
fn summary(counts: &BTreeMap<Reason, u64>, others: u64) -> String {
    let mut sorted: Vec<_> = counts.iter().collect();
    sorted.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let mut line = String::new();
    for ((status, error, tenant), count) in sorted {
        let _ = write!(line, "{count} x {status} {error}");
        if let Some(tenant) = tenant {
            let _ = write!(line, " (tenant {tenant:?})");
        }
        line.push_str(", ");
    }
    if others > 0 {
        let _ = write!(line, "{others} x others, ");
    }
    line.truncate(line.trim_end_matches(", ").len());
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejections_are_logged_at_once_and_then_once_a_minute_with_counts() {
        let rejections = RejectionLog::default();
        let unauthorized = || (401, "unauthorized", None);
        let first = rejections.rejected(unauthorized());
        assert_eq!(first.as_deref(), Some("1 x 401 unauthorized"));
        for _ in 0..15_000 {
            assert_eq!(rejections.rejected(unauthorized()), None);
        }
        let forbidden = (403, "forbidden", Some("acme\n".to_owned()));
        assert_eq!(rejections.rejected(forbidden), None);
        assert_eq!(
            rejections.end_minute().as_deref(),
            Some(r#"15000 x 401 unauthorized, 1 x 403 forbidden (tenant "acme\n")"#)
        );
        assert_eq!(
            rejections.end_minute(),
            None,
            "a minute without rejections is not logged"
        );
        assert!(
            rejections.rejected(unauthorized()).is_some(),
            "the first one after a quiet minute is logged at once"
        );
    }

    #[test]
    fn an_unsupported_operation_is_not_counted_as_a_rejection() {
        let rejections = RejectionLog::default();
        rejections.count_at_port("at the S3 port", StatusCode::NOT_IMPLEMENTED);
        let unsigned = (403, "at the S3 port", None);
        assert!(rejections.rejected(unsigned).is_some(), "it is the first");
    }

    #[test]
    fn a_line_stays_short_however_many_tenants_are_rejected() {
        let rejections = RejectionLog::default();
        for tenant in 0..10_000 {
            rejections.rejected((403, "forbidden", Some(tenant.to_string())));
        }
        let line = rejections.end_minute().unwrap();
        assert!(line.ends_with(", 9967 x others"), "{line}");
    }
}

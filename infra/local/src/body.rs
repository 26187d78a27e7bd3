//! Reads a request's body: acquires slots for the bytes that have arrived, and rejects a body that arrives too slowly.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures::StreamExt;
use hearback_domain::text::payload;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::runtime::Handle;
use tokio::time::{Instant, Sleep, sleep, timeout};

use crate::slots::{Overloaded, RequestSlots};

/// The minimum rate of a body, in bytes a second. The largest bodies must be faster to arrive within the time limit of
/// a request.
const MIN_RATE: u64 = 16 * 1024;
/// Limits on what is read of a body that is discarded.
const DISCARD_TIME: Duration = Duration::from_secs(5);
const DISCARD_BYTES: usize = payload::MAX_BODY;

/// Why the rest of a body is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BodyError {
    #[error("too many requests are in progress")]
    Overloaded(Overloaded),
    #[error("the body arrives too slowly")]
    TooSlow,
}

/// Whether a body was rejected while it was read.
#[derive(Debug, Clone, Default)]
pub(crate) struct BodyStatus(Arc<OnceLock<BodyError>>);

impl BodyStatus {
    pub(crate) fn error(&self) -> Option<BodyError> {
        self.0.get().copied()
    }
}

/// A body that may lag behind [`MIN_RATE`] by at most `lag`. A client that is fast at first gains no time in which it
/// may stall.
struct PacedBody {
    /// `None` once it is rejected.
    body: Option<Body>,
    slots: RequestSlots,
    received: u64,
    lag: Duration,
    deadline: Pin<Box<Sleep>>,
    status: BodyStatus,
}

/// Wraps a body so that it is read under these limits.
pub(crate) fn paced(body: Body, slots: RequestSlots, lag: Duration) -> (Body, BodyStatus) {
    let status = BodyStatus::default();
    let paced = PacedBody {
        body: Some(body),
        slots,
        received: 0,
        lag,
        deadline: Box::pin(sleep(lag)),
        status: status.clone(),
    };
    (Body::new(paced), status)
}

impl PacedBody {
    fn reject(&mut self, error: BodyError) -> axum::Error {
        // The first error counts.
        let _ = self.status.0.set(error);
        if let Some(body) = self.body.take() {
            discard(body);
        }
        axum::Error::new(error)
    }

    fn count(&mut self, frame: &Frame<Bytes>) -> Result<(), Overloaded> {
        let bytes = frame.data_ref().map_or(0, Bytes::len);
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.received = self.received.saturating_add(bytes);
        let latest = Instant::now() + self.lag;
        let deadline = extended(self.deadline.deadline(), bytes).min(latest);
        self.deadline.as_mut().reset(deadline);
        self.slots.received(self.received)
    }
}

impl Drop for PacedBody {
    /// A handler that rejects a body stops reading it.
    fn drop(&mut self) {
        if let Some(body) = self.body.take() {
            discard(body);
        }
    }
}

/// The deadline for the next bytes: the bytes of a second at [`MIN_RATE`] extend it by a second.
fn extended(deadline: Instant, bytes: u64) -> Instant {
    let gained = Duration::from_micros(bytes.saturating_mul(1_000_000) / MIN_RATE);
    deadline.checked_add(gained).unwrap_or(deadline)
}

impl HttpBody for PacedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };
        let Poll::Ready(next) = Pin::new(body).poll_frame(context) else {
            ready!(self.deadline.as_mut().poll(context));
            return Poll::Ready(Some(Err(self.reject(BodyError::TooSlow))));
        };
        if let Some(Ok(frame)) = &next
            && let Err(overloaded) = self.count(frame)
        {
            return Poll::Ready(Some(Err(self.reject(BodyError::Overloaded(overloaded)))));
        }
        Poll::Ready(next)
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body
            .as_ref()
            .map_or_else(SizeHint::default, HttpBody::size_hint)
    }
}

/// Reads and discards the rest of a body. If the connection were closed while the client still sends, the client might
/// not see the response.
pub(crate) fn discard(body: Body) {
    let Ok(runtime) = Handle::try_current() else {
        return;
    };
    if body.is_end_stream() {
        return;
    }
    let discarded = async {
        let mut body = body.into_data_stream();
        let mut left = DISCARD_BYTES;
        while let Some(Ok(bytes)) = body.next().await
            && left >= bytes.len()
        {
            left -= bytes.len();
        }
    };
    runtime.spawn(timeout(DISCARD_TIME, discarded));
}

#[cfg(test)]
mod tests {
    use futures::stream;

    use super::*;
    use crate::slots::Slots;

    const KIB: usize = 1024;

    /// Reads a body that arrives in pieces, each after a pause; returns its size.
    async fn read(lag: Duration, pieces: Vec<(Duration, usize)>) -> Result<usize, BodyError> {
        let pieces = stream::iter(pieces).then(async |(pause, bytes)| {
            sleep(pause).await;
            Ok::<_, axum::Error>(Bytes::from(vec![b'x'; bytes]))
        });
        let slots = Slots::new(128).acquire().expect("a slot is free");
        let (body, status) = paced(Body::from_stream(pieces), slots, lag);
        let read = axum::body::to_bytes(body, usize::MAX).await;
        match (read, status.error()) {
            (Ok(bytes), None) => Ok(bytes.len()),
            (Err(_), Some(error)) => Err(error),
            other => panic!("the result and the status contradict each other: {other:?}"),
        }
    }

    #[tokio::test]
    async fn a_body_that_lags_within_the_limit_is_read() {
        let pieces = vec![(Duration::from_millis(20), KIB); 10];
        assert_eq!(read(Duration::from_mins(1), pieces).await, Ok(10 * KIB));
    }

    #[tokio::test]
    async fn a_body_that_stalls_or_trickles_is_rejected() {
        let lag = Duration::from_millis(100);
        let too_slow = Err(BodyError::TooSlow);
        let hour = Duration::from_hours(1);
        assert_eq!(read(lag, vec![(hour, 1)]).await, too_slow);
        let trickling = vec![(Duration::from_millis(20), 1); 1_000];
        assert_eq!(read(lag, trickling).await, too_slow);
        // Speed at first gains no time in which a body may stall.
        let fast_at_first = vec![(Duration::ZERO, 4_096 * KIB), (hour, 1)];
        assert_eq!(read(lag, fast_at_first).await, too_slow);
    }

    #[test]
    fn a_body_at_the_minimum_rate_never_times_out() {
        let start = Instant::now();
        let second = Duration::from_secs(1);
        assert_eq!(extended(start, MIN_RATE), start + second);
        assert_eq!(extended(start, MIN_RATE / 2), start + second / 2);
        assert_eq!(extended(start, 0), start);
    }

    #[tokio::test]
    async fn a_body_that_outgrows_the_free_slots_is_rejected() {
        let lag = Duration::from_mins(1);
        let slots = Slots::new(8);
        let _others: Vec<_> = (0..6).map(|_| slots.acquire()).collect();
        let request = slots.acquire().unwrap();
        let (body, status) = paced(Body::from(vec![b'x'; 16 * KIB]), request.clone(), lag);
        assert!(axum::body::to_bytes(body, usize::MAX).await.is_ok());
        assert_eq!(status.error(), None);
        let (body, status) = paced(Body::from(vec![b'x'; 17 * KIB]), request, lag);
        assert!(axum::body::to_bytes(body, usize::MAX).await.is_err());
        assert_eq!(status.error(), Some(BodyError::Overloaded(Overloaded::All)));
    }
}

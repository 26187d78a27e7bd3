//! Decompresses a file in the bucket while it is read.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use async_compression::tokio::bufread::{GzipDecoder, ZstdDecoder};
use aws_sdk_s3::primitives::{ByteStream, ByteStreamError};
use hearback_domain::events::import::Packing;
use pin_project_lite::pin_project;
use tokio::io::{AsyncBufRead, AsyncRead, AsyncReadExt, ReadBuf};

/// A decompressed file. Memory holds the window of the decoder: at most 128 MiB for Zstandard, 32
/// KiB for gzip.
pub struct Unpacked {
    bytes: Box<dyn AsyncRead + Send + Unpin>,
    failed: Arc<AtomicBool>,
}

/// Why reading a file failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnpackError {
    /// The bucket failed. The read can be retried.
    Body,
    /// The file is damaged or truncated.
    Packing,
}

/// Bytes that identify a packing.
const MAGIC: usize = 4;

/// The compression of a file, by its first bytes, which are read.
pub async fn packing_of(body: &mut ByteStream) -> Result<Packing, ByteStreamError> {
    let mut first = Vec::new();
    while first.len() < MAGIC
        && let Some(bytes) = body.next().await
    {
        first.extend_from_slice(&bytes?);
    }
    Ok(Packing::of(&first))
}

impl Unpacked {
    /// Decompresses a file from its first byte on.
    #[must_use]
    pub fn new(packing: Packing, body: ByteStream) -> Self {
        let failed = Arc::new(AtomicBool::new(false));
        let body = Body {
            bytes: body.into_async_read(),
            failed: failed.clone(),
        };
        Self {
            bytes: decoder(packing, body),
            failed,
        }
    }

    /// Reads the next bytes. Returns their number, 0 at the end.
    pub async fn read(&mut self, into: &mut [u8]) -> Result<usize, UnpackError> {
        (self.bytes.read(into).await).map_err(|_| {
            if self.failed.load(Ordering::Relaxed) {
                UnpackError::Body
            } else {
                UnpackError::Packing
            }
        })
    }
}

pin_project! {
    /// Records a failure of the bucket, which can be retried, unlike a malformed file.
    struct Body<B> {
        #[pin]
        bytes: B,
        failed: Arc<AtomicBool>,
    }
}

impl<B: AsyncRead> AsyncRead for Body<B> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let this = self.project();
        let read = this.bytes.poll_read(context, into);
        if matches!(read, Poll::Ready(Err(_))) {
            this.failed.store(true, Ordering::Relaxed);
        }
        read
    }
}

impl<B: AsyncBufRead> AsyncBufRead for Body<B> {
    fn poll_fill_buf(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<&[u8]>> {
        let this = self.project();
        let read = this.bytes.poll_fill_buf(context);
        if matches!(read, Poll::Ready(Err(_))) {
            this.failed.store(true, Ordering::Relaxed);
        }
        read
    }

    fn consume(self: Pin<&mut Self>, count: usize) {
        self.project().bytes.consume(count);
    }
}

fn decoder(
    packing: Packing,
    body: impl AsyncBufRead + Send + Unpin + 'static,
) -> Box<dyn AsyncRead + Send + Unpin> {
    match packing {
        Packing::Plain => Box::new(body),
        Packing::Gzip => {
            let mut decoder = GzipDecoder::new(body);
            decoder.multiple_members(true);
            Box::new(decoder)
        }
        Packing::Zstd => {
            let mut decoder = ZstdDecoder::new(body);
            decoder.multiple_members(true);
            Box::new(decoder)
        }
    }
}

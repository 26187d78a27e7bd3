//! A packed file in the bucket, unpacked while it is read.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use async_compression::tokio::bufread::{GzipDecoder, ZstdDecoder};
use aws_sdk_s3::primitives::ByteStream;
use hearback_domain::import::Packing;
use pin_project_lite::pin_project;
use tokio::io::{AsyncBufRead, AsyncRead, AsyncReadExt, ReadBuf};

/// What a file holds, in memory for what its packing looks back on: up to 128 MiB of a Zstandard frame
/// that says so, and for gzip 32 KiB.
pub struct Unpacked {
    bytes: Box<dyn AsyncRead + Send + Unpin>,
    broken: Arc<AtomicBool>,
}

/// Why no more of a file can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// The bucket failed. Worth another try.
    Body,
    /// It is not packed as it says, or cut off.
    Packing,
}

impl Unpacked {
    /// A file by its packing and its bytes from its start on.
    #[must_use]
    pub fn new(packing: Packing, body: ByteStream) -> Self {
        let broken = Arc::new(AtomicBool::new(false));
        let body = Body {
            bytes: body.into_async_read(),
            broken: broken.clone(),
        };
        Self {
            bytes: decoder(packing, body),
            broken,
        }
    }

    /// Reads what comes next, and answers how many bytes that are: none at the end.
    pub async fn read(&mut self, into: &mut [u8]) -> Result<usize, Broken> {
        (self.bytes.read(into).await).map_err(|_| {
            if self.broken.load(Ordering::Relaxed) {
                Broken::Body
            } else {
                Broken::Packing
            }
        })
    }
}

pin_project! {
    /// Notes when it is the bucket that failed, and not what it holds: that is worth another try.
    struct Body<B> {
        #[pin]
        bytes: B,
        broken: Arc<AtomicBool>,
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
            this.broken.store(true, Ordering::Relaxed);
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
            this.broken.store(true, Ordering::Relaxed);
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

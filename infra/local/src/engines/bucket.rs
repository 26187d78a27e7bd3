//! The S3 engine: objects as files.

use std::path::Path;

use anyhow::Result;
use axum::serve::Listener;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use s3s::HttpResponse;
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use s3s_fs::FileSystem;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::util::MapResponse;

/// Headers that tell a checksum of an object.
const CHECKSUMS: [&str; 5] = [
    "x-amz-checksum-crc32",
    "x-amz-checksum-crc32c",
    "x-amz-checksum-crc64nvme",
    "x-amz-checksum-sha1",
    "x-amz-checksum-sha256",
];

/// Serves the folder until `stop`.
pub(super) fn start(
    folder: &Path,
    mut listener: TcpListener,
    stop: &CancellationToken,
    tasks: &TaskTracker,
) -> Result<()> {
    let files = FileSystem::new(folder)
        .map_err(|error| anyhow::anyhow!("{} cannot be opened: {error:?}", folder.display()))?;
    let mut service = S3ServiceBuilder::new(files);
    // The credentials of `hearback_lambda::aws::Aws::local`.
    service.set_auth(SimpleAuth::from_single("local", "local"));
    let service = MapResponse::new(service.build(), without_old_checksums);
    let stop = stop.clone();
    tasks.spawn(async move {
        let server = Builder::new(TokioExecutor::new());
        let connections = GracefulShutdown::new();
        loop {
            // Not the socket's own: it fails as long as the process has no file left.
            let Some((socket, _)) = stop
                .run_until_cancelled(Listener::accept(&mut listener))
                .await
            else {
                break;
            };
            let connection = server
                .serve_connection(
                    TokioIo::new(socket),
                    TowerToHyperService::new(service.clone()),
                )
                .into_owned();
            let connection = connections.watch(connection);
            tokio::spawn(async move {
                // A client that goes away is no news.
                let _ = connection.await;
            });
        }
        connections.shutdown().await;
    });
    Ok(())
}

/// Of an object that was stored in parts the engine knows no checksum, and tells that of what lay in its
/// place before: whoever checks it could not read the object.
fn without_old_checksums(mut response: HttpResponse) -> HttpResponse {
    let etag = response.headers().get("etag");
    if etag.is_some_and(|etag| etag.as_bytes().contains(&b'-')) {
        for name in CHECKSUMS {
            response.headers_mut().remove(name);
        }
    }
    response
}

//! The S3 engine: objects as files.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use axum::http::{HeaderValue, Method, Request, StatusCode, header};
use axum::serve::Listener;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use percent_encoding::percent_decode_str;
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use s3s::{Body, HttpResponse};
use s3s_fs::FileSystem;
use tokio::net::TcpListener;
use tower::service_fn;

use super::EngineLifecycle;
use super::authentication::check_origin;
use super::keys::KeyPair;
use super::object_keys::ObjectKeys;
use super::rejection::EngineRejection;
use crate::connections::set_nodelay;
use crate::files::BUCKET_FOLDER;
use crate::object_metadata;
use crate::rejections::RejectionLog;

/// How often a failed read or deletion is repeated. The engine fails if another request deletes a file between two of
/// its own steps.
const RETRIES: usize = 5;
/// Response headers with a checksum of an object.
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
    (keys, rejections): (&KeyPair, RejectionLog),
    lifecycle: EngineLifecycle<'_>,
) -> Result<()> {
    let health = lifecycle.health.clone();
    let files = FileSystem::new(folder)
        .map_err(|error| anyhow::anyhow!("cannot open {}: {error:?}", folder.display()))?;
    let mut service = S3ServiceBuilder::new(files);
    service.set_auth(SimpleAuth::from_single(
        &keys.access_key_id,
        keys.secret_access_key.as_str(),
    ));
    service.set_access(ObjectKeys);
    let service = service.build();
    let root: Arc<Path> = folder.into();
    let service = service_fn(move |request: Request<Incoming>| {
        let (service, health) = (service.clone(), health.clone());
        let rejections = rejections.clone();
        let method = request.method().clone();
        let (root, path) = (root.clone(), request.uri().path().to_owned());
        async move {
            let response = match check_origin(request.uri(), request.headers()) {
                Ok(()) => {
                    let repeatable = matches!(method, Method::GET | Method::HEAD | Method::DELETE);
                    let again = repeatable.then(|| copy_of_head(&request));
                    let mut response = service.call(request.map(Body::from)).await;
                    for _ in 0..RETRIES {
                        if !is_failure(&response) {
                            break;
                        }
                        put_aside_damaged_metadata(&root, &path);
                        let Some(again) = &again else {
                            break;
                        };
                        response = service.call(copy_of_head(again)).await;
                    }
                    let response = response.map(without_old_checksums);
                    if is_failure(&response) {
                        // The engine gives no further details.
                        tracing::error!(%method, folder = BUCKET_FOLDER, "the S3 engine failed");
                        health.record_failure("bucket", "it failed to read or write a file");
                    }
                    response
                }
                Err(rejection) => Ok(rejected(rejection)),
            };
            if let Ok(response) = &response {
                rejections.count_at_port("at the S3 port", response.status());
            }
            response
        }
    });
    let stop = lifecycle.stop.clone();
    lifecycle.tasks.spawn(async move {
        let server = Builder::new(TokioExecutor::new());
        let connections = GracefulShutdown::new();
        loop {
            // Unlike the socket's own `accept`, this one waits while the process has no free file descriptor.
            let Some((mut socket, _)) = stop
                .run_until_cancelled(Listener::accept(&mut listener))
                .await
            else {
                break;
            };
            set_nodelay(&mut socket);
            let connection = server
                .serve_connection(
                    TokioIo::new(socket),
                    TowerToHyperService::new(service.clone()),
                )
                .into_owned();
            let connection = connections.watch(connection);
            tokio::spawn(async move {
                // A client may disconnect at any time.
                let _ = connection.await;
            });
        }
        connections.shutdown().await;
    });
    Ok(())
}

/// Whether the engine failed.
fn is_failure<E>(response: &Result<HttpResponse, E>) -> bool {
    let status = response.as_ref().map(HttpResponse::status);
    status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR) == StatusCode::INTERNAL_SERVER_ERROR
}

/// Without damaged metadata the engine reads an object, which is then not compared with its checksum.
fn put_aside_damaged_metadata(root: &Path, path: &str) {
    let path = percent_decode_str(path).decode_utf8_lossy();
    let Some((bucket, key)) = path.trim_start_matches('/').split_once('/') else {
        return;
    };
    match object_metadata::put_aside_damaged(root, bucket, key) {
        Ok(false) => {}
        Ok(true) => tracing::warn!(
            damaged = true,
            key,
            "the metadata of an object cannot be read and was put aside"
        ),
        Err(error) => tracing::error!(%error, key, "damaged metadata cannot be renamed"),
    }
}

/// The request without its body, which reads and deletions do not have.
fn copy_of_head<B>(request: &Request<B>) -> Request<Body> {
    let mut copy = Request::new(Body::empty());
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.version_mut() = request.version();
    *copy.headers_mut() = request.headers().clone();
    copy
}

/// A rejection in the format of S3.
fn rejected(rejection: EngineRejection) -> HttpResponse {
    let body = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>AccessDenied</Code><Message>{}</Message></Error>",
        rejection.message
    );
    let mut response = HttpResponse::new(Body::from(body));
    *response.status_mut() = StatusCode::FORBIDDEN;
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/xml"),
    );
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    response
}

/// Removes the checksums of a multipart object: the engine reports those of the object that it replaced, and a client
/// that compares them could not read it.
fn without_old_checksums(mut response: HttpResponse) -> HttpResponse {
    let etag = response.headers().get("etag");
    if etag.is_some_and(|etag| etag.as_bytes().contains(&b'-')) {
        for name in CHECKSUMS {
            response.headers_mut().remove(name);
        }
    }
    response
}

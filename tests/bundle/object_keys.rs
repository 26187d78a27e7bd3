//! Object keys that cannot be file names are rejected with a client error; reads and deletions survive concurrent
//! deletions.

use aws_sdk_s3::config::retry::RetryConfig;
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{Delete, ObjectIdentifier};
use hearback_tests::engine::Engine;

/// Hostile keys, each with the error code of the response.
fn hostile() -> Vec<(String, &'static str)> {
    let invalid = [
        "/etc/passwd",
        "//etc/passwd",
        "/",
        "a//b",
        "a//",
        "..",
        "../x",
        "a/../../x",
        "a/..",
        "./a",
        "a/./b",
        "../.bucket-x.internal.json",
        "a\0b",
    ];
    let invalid = invalid.map(|key| (key.to_owned(), "InvalidArgument"));
    let long = [300, 1_000].map(|length| ("x".repeat(length), "KeyTooLongError"));
    invalid.into_iter().chain(long).collect()
}

/// The status and code of a call.
fn status_and_code<T, E: ProvideErrorMetadata>(result: Result<T, SdkError<E>>) -> (u16, String) {
    match result {
        Ok(_) => (200, String::new()),
        Err(error) => {
            let status = error
                .raw_response()
                .map(|response| response.status().as_u16());
            let code = error.code().unwrap_or_default().to_owned();
            (status.unwrap_or_default(), code)
        }
    }
}

/// A client without retries, which would hide a failure.
fn without_retries(s3: &aws_sdk_s3::Client) -> aws_sdk_s3::Client {
    let once = s3.config().to_builder();
    aws_sdk_s3::Client::from_conf(once.retry_config(RetryConfig::disabled()).build())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_cannot_be_a_file_name_is_rejected() {
    let engine = Engine::start().await;
    let (s3, bucket) = (&engine.clients.s3, engine.names.bucket());
    let put = |key: &str| {
        s3.put_object()
            .bucket(&bucket)
            .key(key)
            .body(ByteStream::from_static(b"x"))
    };
    put("there").send().await.unwrap();
    for (key, code) in hostile() {
        let rejected = (400, code.to_owned());
        assert_eq!(
            status_and_code(put(&key).send().await),
            rejected,
            "put {key:?}"
        );
        let get = s3.get_object().bucket(&bucket).key(&key);
        assert_eq!(status_and_code(get.send().await), rejected, "get {key:?}");
        // A response to HEAD has no body with an error code.
        let head = s3.head_object().bucket(&bucket).key(&key);
        assert_eq!(status_and_code(head.send().await).0, 400, "head {key:?}");
        let delete = s3.delete_object().bucket(&bucket).key(&key);
        assert_eq!(
            status_and_code(delete.send().await),
            rejected,
            "delete {key:?}"
        );
        let upload = s3.create_multipart_upload().bucket(&bucket).key(&key);
        assert_eq!(
            status_and_code(upload.send().await),
            rejected,
            "upload {key:?}"
        );
        let copied = s3
            .copy_object()
            .bucket(&bucket)
            .key(&key)
            .copy_source(format!("{bucket}/there"));
        assert_eq!(
            status_and_code(copied.send().await),
            rejected,
            "copy to {key:?}"
        );
        if !key.contains('\0') {
            let encoded = key.replace('/', "%2F");
            let from = s3
                .copy_object()
                .bucket(&bucket)
                .key("copy")
                .copy_source(format!("{bucket}/{encoded}"));
            assert_eq!(
                status_and_code(from.send().await),
                rejected,
                "copy from {key:?}"
            );
            let objects = ObjectIdentifier::builder().key(&key).build().unwrap();
            let delete = Delete::builder().objects(objects).build().unwrap();
            let delete = s3.delete_objects().bucket(&bucket).delete(delete);
            assert_eq!(
                status_and_code(delete.send().await),
                rejected,
                "delete many {key:?}"
            );
        }
    }
    let listed = s3.list_objects_v2().bucket(&bucket).send().await.unwrap();
    let keys: Vec<_> = listed
        .contents()
        .iter()
        .filter_map(|object| object.key())
        .collect();
    assert_eq!(keys, ["there"], "no hostile key is stored");
    let listed = s3
        .list_objects_v2()
        .bucket(&bucket)
        .prefix("/")
        .send()
        .await;
    assert_eq!(status_and_code(listed).0, 200, "a prefix may be any text");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_longest_key_is_stored_and_a_longer_one_is_rejected() {
    let engine = Engine::start().await;
    let (s3, bucket) = (&engine.clients.s3, engine.names.bucket());
    let key = |length: usize| "k".repeat(length);
    let put = async |length| {
        let put = s3.put_object().bucket(&bucket).key(key(length));
        status_and_code(put.body(ByteStream::from_static(b"x")).send().await)
    };
    let upload = async |length| {
        let upload = s3
            .create_multipart_upload()
            .bucket(&bucket)
            .key(key(length));
        status_and_code(upload.send().await)
    };
    let stored = (200, String::new());
    let rejected = (400, "KeyTooLongError".to_owned());
    // A file name has 255 bytes. Besides the names of the bucket and the key, both in base64, it has 30 or 74 bytes.
    let name = bucket.len().div_ceil(3) * 4;
    assert_eq!(bucket.len() % 3, 0, "a length without padding");
    let longest = |overhead: usize| (255 - overhead - name) / 4 * 3;
    let (of_put, of_upload) = (longest(30), longest(74));
    assert_eq!(put(of_put).await, stored);
    assert_eq!(put(of_put + 3).await, rejected);
    assert_eq!(upload(of_upload).await, stored);
    assert_eq!(upload(of_upload + 3).await, rejected);
    for length in 1..=of_put + 3 {
        let (put, upload) = (put(length).await, upload(length).await);
        assert!(
            [&stored, &rejected].contains(&&put),
            "put {length}: {put:?}"
        );
        assert!(
            [&stored, &rejected].contains(&&upload),
            "upload {length}: {upload:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_is_deleted_during_a_read_is_no_failure() {
    let engine = Engine::start().await;
    let (s3, bucket) = (engine.clients.s3.clone(), engine.names.bucket());
    let churn = |writer: usize| {
        let (s3, bucket) = (s3.clone(), bucket.clone());
        async move {
            for round in 0..150 {
                let key = format!("{writer}/{}/x", round % 5);
                let body = ByteStream::from_static(b"x");
                let put = s3.put_object().bucket(&bucket).key(&key).body(body);
                put.send().await.unwrap();
                let delete = s3.delete_object().bucket(&bucket).key(&key);
                delete.send().await.unwrap();
            }
        }
    };
    let writers = futures::future::join_all((0..4).map(churn));
    let writing = tokio::spawn(writers);
    let reader = without_retries(&s3);
    let mut lists = 0;
    while !writing.is_finished() {
        let list = reader.list_objects_v2().bucket(&bucket).send().await;
        assert_eq!(status_and_code(list), (200, String::new()), "{lists}");
        lists += 1;
    }
    assert!(lists > 0);
    writing.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_others_delete_at_the_same_time_is_no_failure() {
    let engine = Engine::start().await;
    let (s3, bucket) = (&engine.clients.s3, engine.names.bucket());
    let once = without_retries(s3);
    for round in 0..100 {
        let body = ByteStream::from_static(b"x");
        let put = s3.put_object().bucket(&bucket).key("a/x").body(body);
        put.send().await.unwrap();
        let deletes = (0..8).map(|_| once.delete_object().bucket(&bucket).key("a/x").send());
        for deleted in futures::future::join_all(deletes).await {
            assert_eq!(status_and_code(deleted), (200, String::new()), "{round}");
        }
    }
}

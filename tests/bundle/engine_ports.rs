//! The engines accept only requests signed with the folder's key pair. Pages in a browser can send requests to every
//! local port, and are rejected.

use aws_sdk_dynamodb::error::ProvideErrorMetadata;
use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_s3::primitives::ByteStream;
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use hearback_local::clients::Clients;
use hearback_local::engines::{Access, KeyPair};
use hearback_storage::table::{PK, SK};
use hearback_tests::engine::Engine;
use reqwest::{Method, StatusCode};

/// The name of the item, queue and object that the tests try to create.
const PLANTED: &str = "planted";

fn value(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

/// Writes to each engine with requests changed before signing; returns the error codes.
async fn write(
    engine: &Engine,
    clients: &Clients,
    change: impl Fn(&mut HttpRequest) + Clone + Send + Sync + 'static,
) -> [Option<String>; 3] {
    let (first, second, third) = (change.clone(), change.clone(), change);
    let put = clients.dynamodb.put_item().table_name(engine.names.table());
    let put = put
        .item(PK, value(PLANTED))
        .item(SK, value(PLANTED))
        .customize();
    let put = put
        .mutate_request(move |request| first(request))
        .send()
        .await;
    let create = clients.sqs.create_queue().queue_name(PLANTED).customize();
    let create = create
        .mutate_request(move |request| second(request))
        .send()
        .await;
    let object = clients
        .s3
        .put_object()
        .bucket(engine.names.bucket())
        .key(PLANTED);
    let object = object.body(ByteStream::from_static(b"planted")).customize();
    let object = object
        .mutate_request(move |request| third(request))
        .send()
        .await;
    [
        put.err().and_then(|error| error.code().map(str::to_owned)),
        create
            .err()
            .and_then(|error| error.code().map(str::to_owned)),
        object
            .err()
            .and_then(|error| error.code().map(str::to_owned)),
    ]
}

/// Whether the write succeeded in each engine.
async fn was_written(engine: &Engine) -> [bool; 3] {
    let get = engine
        .clients
        .dynamodb
        .get_item()
        .table_name(engine.names.table());
    let item = get
        .key(PK, value(PLANTED))
        .key(SK, value(PLANTED))
        .send()
        .await
        .unwrap();
    let queue = engine
        .clients
        .sqs
        .get_queue_url()
        .queue_name(PLANTED)
        .send()
        .await;
    let object = engine
        .clients
        .s3
        .head_object()
        .bucket(engine.names.bucket())
        .key(PLANTED);
    [
        item.item.is_some(),
        queue.is_ok(),
        object.send().await.is_ok(),
    ]
}

fn ports(engine: &Engine) -> [&str; 3] {
    let endpoints = &engine.access.endpoints;
    [&endpoints.dynamodb, &endpoints.sqs, &endpoints.s3]
}

fn codes(codes: [&str; 3]) -> [Option<String>; 3] {
    codes.map(|code| Some(code.to_owned()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_with_the_key_pair_is_accepted() {
    let engine = Engine::start().await;
    assert_eq!(
        write(&engine, &engine.clients, |_| {}).await,
        [None, None, None]
    );
    assert_eq!(was_written(&engine).await, [true; 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signed_request_from_a_web_page_is_rejected() {
    let engine = Engine::start().await;
    let own = engine.access.endpoints.dynamodb.clone();
    for origin in ["https://evil.example", "null", &own] {
        let origin = origin.to_owned();
        let from_page = move |request: &mut HttpRequest| {
            request.headers_mut().insert("origin", origin.clone());
        };
        let refused = write(&engine, &engine.clients, from_page).await;
        let denied = "AccessDeniedException";
        assert_eq!(refused, codes([denied, denied, "AccessDenied"]));
    }
    assert_eq!(was_written(&engine).await, [false; 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signed_request_for_another_host_is_rejected() {
    let engine = Engine::start().await;
    for host in [
        "evil.example",
        "127.0.0.1.evil.example:3001",
        "192.168.1.2:3001",
    ] {
        let for_host = move |request: &mut HttpRequest| {
            request.headers_mut().insert("host", host);
        };
        let rejected = write(&engine, &engine.clients, for_host).await;
        let denied = "AccessDeniedException";
        assert_eq!(rejected, codes([denied, denied, "AccessDenied"]), "{host}");
    }
    assert_eq!(was_written(&engine).await, [false; 3]);
    for host in ["localhost:3001", "[::1]", "127.99.0.1:1"] {
        let for_host = move |request: &mut HttpRequest| {
            request.headers_mut().insert("host", host);
        };
        let accepted = write(&engine, &engine.clients, for_host).await;
        assert_eq!(accepted, [None, None, None], "{host}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn request_signed_with_other_keys_is_rejected() {
    let engine = Engine::start().await;
    let with = |keys: KeyPair| {
        let endpoints = engine.access.endpoints.clone();
        Clients::of_engines(&Access { endpoints, keys })
    };
    let fixed = KeyPair {
        access_key_id: "local".to_owned(),
        secret_access_key: "local".to_owned(),
    };
    for keys in [KeyPair::random(), fixed] {
        let rejected = write(&engine, &with(keys), |_| {}).await;
        let unknown = "UnrecognizedClientException";
        assert_eq!(rejected, codes([unknown, unknown, "NotSignedUp"]));
    }
    let another_secret = KeyPair {
        secret_access_key: KeyPair::random().secret_access_key,
        ..engine.access.keys.clone()
    };
    let rejected = write(&engine, &with(another_secret), |_| {}).await;
    let invalid = "InvalidSignatureException";
    assert_eq!(rejected, codes([invalid, invalid, "SignatureDoesNotMatch"]));
    assert_eq!(was_written(&engine).await, [false; 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn unsigned_requests_are_rejected_and_responses_are_unreadable_for_web_pages() {
    let engine = Engine::start().await;
    let client = reqwest::Client::new();
    let item = format!(
        r#"{{"TableName": "{}", "Item": {{"PK": {{"S": "planted"}}, "SK": {{"S": "planted"}}}}}}"#,
        engine.names.table()
    );
    let object = format!("/{}/{PLANTED}", engine.names.bucket());
    let methods = [
        Method::OPTIONS,
        Method::GET,
        Method::HEAD,
        Method::POST,
        Method::PUT,
        Method::DELETE,
    ];
    for port in ports(&engine) {
        for method in &methods {
            for path in ["/", &object, "/000000000000/planted", "/health"] {
                for origin in [None, Some("https://evil.example"), Some("null")] {
                    let mut request = client
                        .request(method.clone(), format!("{port}{path}"))
                        .header("content-type", "application/x-amz-json-1.0")
                        .header("x-amz-target", "DynamoDB_20120810.PutItem")
                        .header("access-control-request-method", "POST")
                        .header(
                            "access-control-request-headers",
                            "x-amz-target, authorization",
                        )
                        .header("access-control-request-private-network", "true")
                        .body(item.clone());
                    if let Some(origin) = origin {
                        request = request.header("origin", origin);
                    }
                    let response = request.send().await.unwrap();
                    let at = format!("{method} {port}{path} by {origin:?}");
                    // The S3 engine rejects some methods before it verifies the signature.
                    let refused = [
                        StatusCode::FORBIDDEN,
                        StatusCode::NOT_IMPLEMENTED,
                        StatusCode::METHOD_NOT_ALLOWED,
                    ];
                    assert!(
                        refused.contains(&response.status()),
                        "{at}: {}",
                        response.status()
                    );
                    assert!(
                        origin.is_none() || response.status() == StatusCode::FORBIDDEN,
                        "{at}"
                    );
                    let mut names = response.headers().keys();
                    let opened = names.any(|name| name.as_str().starts_with("access-control-"));
                    assert!(!opened, "{at}: {:?}", response.headers());
                }
            }
        }
    }
    assert_eq!(was_written(&engine).await, [false; 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_on_a_web_page_cannot_store_an_object() {
    let engine = Engine::start().await;
    let url = format!("{}/{}", engine.access.endpoints.s3, engine.names.bucket());
    let boundary = "form";
    let field = |name: &str, content: &str| {
        format!(
            "--{boundary}\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{content}\r\n"
        )
    };
    let file = "content-disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\nplanted\r\n";
    let body = format!(
        "{}--{boundary}\r\n{file}--{boundary}--\r\n",
        field("key", PLANTED)
    );
    for origin in [None, Some("https://evil.example"), Some("null")] {
        let mut request = reqwest::Client::new()
            .post(&url)
            .header(
                "content-type",
                format!("multipart/form-data; boundary={boundary}"),
            )
            .body(body.clone());
        if let Some(origin) = origin {
            request = request.header("origin", origin);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), StatusCode::FORBIDDEN, "{origin:?}");
    }
    assert_eq!(was_written(&engine).await, [false; 3]);
}

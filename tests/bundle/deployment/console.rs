//! The function `console`.

use std::io::Read;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use flate2::read::GzDecoder;

use super::*;

/// The event of a route without an authorizer.
fn open(path: &str) -> Value {
    let mut request = request("GET", path, &Value::Null);
    request.as_object_mut().unwrap().remove("body");
    let context = request["requestContext"].as_object_mut().unwrap();
    context.remove("authorizer");
    request
}

#[tokio::test]
async fn the_console_and_its_files_need_no_token() {
    let engine = Engine::start().await;
    let console = start(&engine, "console", &[]).await;
    let page = console.invoke(&open("/console/overview")).await.unwrap();
    assert_eq!(page["statusCode"], 200, "{page}");
    let policy = page["headers"]["content-security-policy"].as_str().unwrap();
    assert!(policy.starts_with("default-src 'self';"), "{policy}");
    let html = page["body"].as_str().unwrap();
    let addresses: Vec<_> = html
        .split('"')
        .filter(|text| text.starts_with("/console/assets/"))
        .collect();
    let names: Vec<_> = addresses
        .iter()
        .filter_map(|address| address.rsplit('/').next())
        .collect();
    assert_eq!(names, ["icon.svg", "console.css", "console.js"]);
    for address in addresses {
        let mut request = open(address);
        request["headers"]["accept-encoding"] = json!("gzip, deflate, br");
        let file = console.invoke(&request).await.unwrap();
        assert_eq!(file["headers"]["content-encoding"], "gzip", "{address}");
        assert_eq!(file["isBase64Encoded"], true, "{address}");
        let bytes = BASE64_STANDARD
            .decode(file["body"].as_str().unwrap())
            .unwrap();
        let mut content = String::new();
        GzDecoder::new(bytes.as_slice())
            .read_to_string(&mut content)
            .unwrap();
        assert!(content.len() > 100, "{address}");
    }
    let other = console
        .invoke(&open("/console/assets/0123456789abcdef/console.js"))
        .await
        .unwrap();
    assert_eq!(other["statusCode"], 404);
}

//! API Gateway's HTTP APIs decode the path of an event. It is encoded again here, because a decoded
//! `#`, `?` or `%` in an id would truncate or change it.

use lambda_http::http::Uri;
use lambda_http::{Request, RequestExt};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Characters to escape in a path: all but the unreserved ones (RFC 3986) and `/`.
const PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/');
/// Characters to escape in a segment or a query.
const SEGMENT: &AsciiSet = &PATH.add(b'/');

/// Escapes a name for a segment of a path.
#[must_use]
pub fn segment(name: &str) -> String {
    utf8_percent_encode(name, SEGMENT).to_string()
}

/// Sets the URI of a request to the encoded path and query of its event.
pub(crate) fn with_encoded_uri(mut request: Request) -> Request {
    let path = utf8_percent_encode(request.raw_http_path(), PATH).to_string();
    let parameters = request.query_string_parameters();
    let query: Vec<_> = parameters
        .iter()
        .map(|(name, value)| {
            let encoded = |text| utf8_percent_encode(text, SEGMENT);
            format!("{}={}", encoded(name), encoded(value))
        })
        .collect();
    let uri = if query.is_empty() {
        path
    } else {
        format!("{path}?{}", query.join("&"))
    };
    if let Ok(uri) = uri.parse::<Uri>() {
        *request.uri_mut() = uri;
    }
    request
}

#[cfg(test)]
mod tests {
    use lambda_http::request::from_str;

    use super::*;

    fn uri(path: &str, query: &str) -> String {
        let event = serde_json::json!({
            "version": "2.0", "rawPath": path, "rawQueryString": query, "headers": {"host": "x.y"},
            "requestContext": {"http": {"method": "GET", "path": path}, "stage": "$default"},
            "isBase64Encoded": false
        });
        with_encoded_uri(from_str(&event.to_string()).unwrap())
            .uri()
            .to_string()
    }

    #[test]
    fn a_decoded_path_is_encoded_again() {
        assert_eq!(uri("/turns/a#b", ""), "/turns/a%23b");
        assert_eq!(uri("/turns/x%41 y", ""), "/turns/x%2541%20y");
        assert_eq!(uri("/turns/é🙂?", ""), "/turns/%C3%A9%F0%9F%99%82%3F");
        assert_eq!(uri("/v1/feedback/submit", ""), "/v1/feedback/submit");
    }

    #[test]
    fn a_query_is_kept() {
        assert_eq!(uri("/v1/x#y", "limit=a%20b%26"), "/v1/x%23y?limit=a%20b%26");
    }
}

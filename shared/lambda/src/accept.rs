//! Content negotiation by `Accept` (RFC 9110, section 12.5.1).

use axum::http::header::{ACCEPT, VARY};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::Problem;

/// The offered media type that the request prefers; `None` if it accepts none. `offered` begins
/// with the default, which is returned without an `Accept` header.
#[must_use]
pub fn preferred(headers: &HeaderMap, offered: &[&'static str]) -> Option<&'static str> {
    let lines = headers.get_all(ACCEPT).iter();
    let ranges: Vec<Range<'_>> = lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','))
        .filter_map(Range::parse)
        .collect();
    if ranges.is_empty() {
        return offered.first().copied();
    }
    let mut best: Option<(&'static str, f32)> = None;
    for media_type in offered {
        let quality = quality(&ranges, media_type);
        if quality > 0.0 && best.is_none_or(|(_, highest)| quality > highest) {
            best = Some((media_type, quality));
        }
    }
    best.map(|(media_type, _)| media_type)
}

/// 406: the request accepts no offered media type.
#[must_use]
pub fn not_acceptable(offered: &[&'static str]) -> Response {
    let detail = format!("This is offered as {}.", offered.join(" and "));
    let problem = Problem::new(StatusCode::NOT_ACCEPTABLE, "not_acceptable").detail(detail);
    varying(problem.into_response())
}

/// Adds `Vary: accept` to a response.
#[must_use]
pub fn varying(mut response: Response) -> Response {
    let accept = HeaderValue::from_static("accept");
    response.headers_mut().append(VARY, accept);
    response
}

/// A media range with its quality.
struct Range<'a> {
    kind: &'a str,
    subtype: &'a str,
    quality: f32,
}

impl<'a> Range<'a> {
    /// Parses a media range; `None` if it is malformed.
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let (kind, subtype) = parts.next()?.split_once('/')?;
        let mut quality = 1.0;
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            if name.trim().eq_ignore_ascii_case("q") {
                let value: f32 = value.trim().parse().ok()?;
                quality = Some(value).filter(|value| (0.0..=1.0).contains(value))?;
            }
        }
        Some(Self {
            kind: kind.trim(),
            subtype: subtype.trim(),
            quality,
        })
    }

    /// The specificity with which this range matches a media type, if it does.
    fn specificity(&self, media_type: &str) -> Option<u8> {
        let (kind, subtype) = media_type.split_once('/')?;
        match (self.kind, self.subtype) {
            ("*", "*") => Some(0),
            (own, "*") if own.eq_ignore_ascii_case(kind) => Some(1),
            (own, subtype_range)
                if own.eq_ignore_ascii_case(kind)
                    && subtype_range.eq_ignore_ascii_case(subtype) =>
            {
                Some(2)
            }
            _ => None,
        }
    }
}

/// The quality of a media type: that of the most specific range that matches it.
fn quality(ranges: &[Range<'_>], media_type: &str) -> f32 {
    let matching = ranges
        .iter()
        .filter_map(|range| Some((range.specificity(media_type)?, range.quality)));
    let most_specific = matching.max_by(|(one, _), (other, _)| one.cmp(other));
    most_specific.map_or(0.0, |(_, quality)| quality)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFFERED: [&str; 2] = ["application/json", "text/markdown"];

    #[test]
    fn the_type_with_the_highest_quality_is_preferred_and_the_default_among_equals() {
        for (accept, expected) in [
            (None, Some("application/json")),
            (Some(""), Some("application/json")),
            (Some("*/*"), Some("application/json")),
            (Some("application/json"), Some("application/json")),
            (
                Some("Application/JSON; charset=utf-8"),
                Some("application/json"),
            ),
            (
                Some("text/*;q=0.5, application/json;q=0.6"),
                Some("application/json"),
            ),
            (Some("text/html, */*;q=0.1"), Some("application/json")),
            (Some("*/*, application/json;q=0"), Some("text/markdown")),
            (Some("application/*"), Some("application/json")),
            (Some("text/*"), Some("text/markdown")),
            (Some("text/html"), None),
            (Some("application/json;q=0"), None),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(accept) = accept {
                headers.insert(ACCEPT, HeaderValue::from_static(accept));
            }
            assert_eq!(preferred(&headers, &OFFERED), expected, "{accept:?}");
        }
    }
}

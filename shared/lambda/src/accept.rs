//! Which of several media types a request would rather have (RFC 9110, section 12.5.1).

use axum::http::header::{ACCEPT, VARY};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::Problem;

/// The media type to answer with, of those offered, the default first; `None` if the request accepts none.
/// Without a header `Accept`, the default.
#[must_use]
pub fn preferred(headers: &HeaderMap, offered: &[&'static str]) -> Option<&'static str> {
    let lines = headers.get_all(ACCEPT).iter();
    let ranges: Vec<Range<'_>> = lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','))
        .filter_map(Range::read)
        .collect();
    if ranges.is_empty() {
        return offered.first().copied();
    }
    let mut best: Option<(&'static str, f32)> = None;
    for media_type in offered {
        let quality = quality(&ranges, media_type);
        if quality > 0.0 && best.is_none_or(|(_, most)| quality > most) {
            best = Some((media_type, quality));
        }
    }
    best.map(|(media_type, _)| media_type)
}

/// 406: the request accepts nothing that is offered.
#[must_use]
pub fn not_acceptable(offered: &[&'static str]) -> Response {
    let detail = format!("This is offered as {}.", offered.join(" and "));
    let problem = Problem::new(StatusCode::NOT_ACCEPTABLE, "not_acceptable").detail(detail);
    varying(problem.into_response())
}

/// The same answer, marked as one that depends on `Accept`.
#[must_use]
pub fn varying(mut response: Response) -> Response {
    let accept = HeaderValue::from_static("accept");
    response.headers_mut().append(VARY, accept);
    response
}

/// A range of media types, and how much it is wanted.
struct Range<'a> {
    kind: &'a str,
    subtype: &'a str,
    quality: f32,
}

impl<'a> Range<'a> {
    /// Reads one; what is none is passed over.
    fn read(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let (kind, subtype) = parts.next()?.split_once('/')?;
        let mut quality = 1.0;
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            if name.trim().eq_ignore_ascii_case("q") {
                let given: f32 = value.trim().parse().ok()?;
                quality = Some(given).filter(|given| (0.0..=1.0).contains(given))?;
            }
        }
        Some(Self {
            kind: kind.trim(),
            subtype: subtype.trim(),
            quality,
        })
    }

    /// How narrowly this range names a media type, if it does.
    fn names(&self, media_type: &str) -> Option<u8> {
        let (kind, subtype) = media_type.split_once('/')?;
        match (self.kind, self.subtype) {
            ("*", "*") => Some(0),
            (own, "*") if own.eq_ignore_ascii_case(kind) => Some(1),
            (own, narrow)
                if own.eq_ignore_ascii_case(kind) && narrow.eq_ignore_ascii_case(subtype) =>
            {
                Some(2)
            }
            _ => None,
        }
    }
}

/// How much a media type is wanted: as the narrowest range says that names it.
fn quality(ranges: &[Range<'_>], media_type: &str) -> f32 {
    let named = ranges
        .iter()
        .filter_map(|range| Some((range.names(media_type)?, range.quality)));
    let narrowest = named.max_by(|(one, _), (other, _)| one.cmp(other));
    narrowest.map_or(0.0, |(_, quality)| quality)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFFERED: [&str; 2] = ["text/markdown", "application/json"];

    #[test]
    fn the_type_that_is_wanted_most_is_answered_and_the_default_where_all_are_equal() {
        for (accept, expected) in [
            (None, Some("text/markdown")),
            (Some(""), Some("text/markdown")),
            (Some("*/*"), Some("text/markdown")),
            (Some("application/json"), Some("application/json")),
            (
                Some("Application/JSON; charset=utf-8"),
                Some("application/json"),
            ),
            (
                Some("text/*;q=0.5, application/json;q=0.6"),
                Some("application/json"),
            ),
            (Some("text/html, */*;q=0.1"), Some("text/markdown")),
            (Some("*/*, text/markdown;q=0"), Some("application/json")),
            (Some("application/*"), Some("application/json")),
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

//! IP addresses of both versions.
//!
//! A port or a prefix length after an address is kept; a zone is replaced, since it names a device.

use std::net::Ipv6Addr;
use std::ops::Range;

use crate::context::{self, Hint};
use crate::glyphs::Glyphs;
use crate::steps;

/// Longest written address: eight groups, the last two in the form of version 4.
const LONGEST: usize = 45;

/// Finds addresses of version 6 first: they may end in one of version 4.
pub(crate) fn find(glyphs: &Glyphs) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < glyphs.len() {
        if !is_of_address(glyphs.at(at)) {
            at += 1;
            continue;
        }
        let end = glyphs.run(at, is_of_address);
        if let Some(address) = version_6(glyphs, at..end) {
            at = address.end.max(end);
            found.push(address);
        } else {
            versions_4(glyphs, at..end, &mut found);
            at = end;
        }
    }
    found
}

fn is_of_address(glyph: char) -> bool {
    glyph.is_ascii_hexdigit() || matches!(glyph, ':' | '.')
}

fn is_of_word(glyph: char) -> bool {
    glyph.is_ascii_alphanumeric() || glyph == '_'
}

/// The address in a run of hexadecimal digits, colons and dots, whole or after a label (`ip:2001:db8::1`), without the
/// punctuation after it.
fn version_6(glyphs: &Glyphs, run: Range<usize>) -> Option<Range<usize>> {
    let points = glyphs.chars(run.clone()).rev();
    let points = points.take_while(|glyph| *glyph == '.').count();
    let end = run.end - points;
    if is_of_word(glyphs.at(run.end)) {
        return None;
    }
    let colon = glyphs.run_within(run.start, run.len(), |glyph| glyph != ':');
    // An address has at least two colons.
    if colon + 1 >= end {
        return None;
    }
    let label = colon + 1;
    for start in [run.start, label] {
        let joined = start == run.start && is_of_word(glyphs.before(start, 1));
        for end in [end, end.saturating_sub(1)] {
            let short = start < end && end - start <= LONGEST;
            let whole = end == run.end - points || glyphs.at(end) == ':';
            if short && whole && !joined && is_version_6(glyphs, start..end) {
                return Some(with_brackets(glyphs, start..with_zone(glyphs, end)));
            }
        }
    }
    None
}

/// Whether it is an address and nothing else with colons: `a::b` is a path in program code, `x[1::2]` a slice, and
/// eight pairs of digits the address of a network card.
fn is_version_6(glyphs: &Glyphs, range: Range<usize>) -> bool {
    let written: String = glyphs.chars(range.clone()).collect();
    steps::count(written.len());
    if written.parse::<Ipv6Addr>().is_err() {
        return false;
    }
    let groups: Vec<&str> = written
        .split(':')
        .filter(|group| !group.is_empty())
        .collect();
    let has_digit = |group: &&str| group.bytes().any(|byte| byte.is_ascii_digit());
    let first = groups.first().copied().unwrap_or_default();
    if !written.contains("::") {
        return groups.iter().any(has_digit) && groups.iter().any(|group| group.len() != 2);
    }
    if written.starts_with("::") {
        // After these, `::` is part of a path.
        let path = matches!(glyphs.before(range.start, 1), '>' | ')' | ']');
        return !path
            && !is_slice(glyphs, &range)
            && match groups.as_slice() {
                [only] => only.starts_with(|c: char| c.is_ascii_digit()),
                all => all.iter().any(has_digit),
            };
    }
    let reserved = ["fe8", "fe9", "fea", "feb", "fc", "fd", "ff"];
    let lower = first.to_ascii_lowercase();
    let known = first.len() == 4 && reserved.iter().any(|start| lower.starts_with(start));
    (known || first.starts_with(|c: char| c.is_ascii_digit())) && !is_slice(glyphs, &range)
}

/// Whether it is a slice of a list with a step, `x[10::2]`.
fn is_slice(glyphs: &Glyphs, range: &Range<usize>) -> bool {
    let indexed = matches!(glyphs.before(range.start, 2), ']' | ')' | '_')
        || glyphs.before(range.start, 2).is_alphanumeric();
    let decimal = |glyph: char| glyph.is_ascii_digit() || glyph == ':';
    let colons = glyphs.chars(range.clone()).filter(|g| *g == ':').count();
    glyphs.before(range.start, 1) == '['
        && indexed
        && colons == 2
        && glyphs.chars(range.clone()).all(decimal)
}

fn with_zone(glyphs: &Glyphs, end: usize) -> usize {
    if glyphs.at(end) != '%' {
        return end;
    }
    let zone = glyphs.run(end + 1, |glyph| {
        glyph.is_ascii_alphanumeric() || matches!(glyph, '-' | '_' | '.')
    });
    let points = glyphs.chars(end + 1..zone).rev();
    let zone = zone - points.take_while(|glyph| *glyph == '.').count();
    if zone == end + 1 { end } else { zone }
}

/// The brackets around an address in a URL are replaced with it; the placeholder has its own.
fn with_brackets(glyphs: &Glyphs, range: Range<usize>) -> Range<usize> {
    if glyphs.before(range.start, 1) == '[' && glyphs.at(range.end) == ']' {
        range.start - 1..range.end + 1
    } else {
        range
    }
}

/// Adds the addresses of version 4 of a run.
fn versions_4(glyphs: &Glyphs, run: Range<usize>, found: &mut Vec<Range<usize>>) {
    let mut at = run.start;
    while at < run.end {
        let is_of_number = |glyph: char| glyph.is_ascii_hexdigit() || glyph == '.';
        let end = glyphs.run(at, is_of_number).min(run.end);
        if end == at {
            at += 1;
            continue;
        }
        let points = glyphs.chars(at..end).rev();
        let last = end - points.take_while(|glyph| *glyph == '.').count();
        let first = glyphs.run(at, |glyph| glyph == '.').min(last);
        if is_version_4(glyphs, first..last) && is_not_version(glyphs, first..last, end) {
            found.push(first..last);
        }
        at = end;
    }
}

/// Four numbers from 0 to 255. `10.0.19045.3803` and `1.2.3.4.5` are versions.
fn is_version_4(glyphs: &Glyphs, range: Range<usize>) -> bool {
    if !(7..=15).contains(&range.len()) {
        return false;
    }
    let written: String = glyphs.chars(range).collect();
    let mut parts = 0;
    written.split('.').all(|part| {
        parts += 1;
        let short = part.len() <= 3 && part.bytes().all(|byte| byte.is_ascii_digit());
        short && part.parse::<u8>().is_ok()
    }) && parts == 4
}

/// Whether neither adjacent characters nor the word before it show that it is a version: `lib-1.2.3.4`, `1.2.3.4-rc1`,
/// `version 1.2.3.4`, `§ 1.2.3.4`. What may be either is replaced.
fn is_not_version(glyphs: &Glyphs, range: Range<usize>, end: usize) -> bool {
    let before = glyphs.before(range.start, 1);
    let name = matches!(before, '-' | '.') && glyphs.before(range.start, 2).is_alphabetic();
    let after = glyphs.at(end);
    let suffix = after == '-' && glyphs.at(end + 1).is_alphabetic();
    !is_of_word(before)
        && !is_of_word(after)
        && !name
        && !suffix
        && context::nearest(glyphs, range.start) != Some(Hint::Version)
}

//! E-mail addresses, with letters of any script.

use std::ops::Range;

use crate::glyphs::{Glyphs, is_unspaced};

/// Longest quoted name that is found: `"ada lovelace"@example.com`.
const QUOTED: usize = 64;

/// Finds the addresses by their `@`, or `%40` within a URL.
pub(crate) fn find(glyphs: &Glyphs) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    // Nothing before this belongs to the next address, so that every glyph is read at most twice.
    let mut floor = 0;
    let mut at = 0;
    while at < glyphs.len() {
        let width = match glyphs.at(at) {
            '@' => 1,
            '%' if glyphs.starts(at, "%40") => 3,
            _ => {
                at += 1;
                continue;
            }
        };
        let host = at + width;
        let start = name_start(glyphs, floor, at);
        let end = start.and_then(|start| Some((start, host_end(glyphs, host)?)));
        floor = host;
        if let Some((start, end)) = end
            && !is_code(glyphs, start..at, host..end)
        {
            found.push(start..end);
            floor = end;
        }
        at = floor;
    }
    found
}

/// Where the name before the `@` at `sign` starts.
fn name_start(glyphs: &Glyphs, floor: usize, sign: usize) -> Option<usize> {
    if glyphs.before(sign, 1) == '"' {
        let lowest = sign.saturating_sub(QUOTED).max(floor);
        let mut open = (lowest..sign.saturating_sub(1)).rev();
        return open.find(|at| glyphs.at(*at) == '"' && glyphs.before(*at, 1) != '\\');
    }
    let unspaced = is_unspaced(glyphs.before(sign, 1));
    let mut start = sign;
    let mut crossed = false;
    while start > floor {
        let glyph = glyphs.before(start, 1);
        let joins = start < sign && start - 1 > floor && {
            let (left, right) = (glyphs.before(start, 2), glyphs.at(start));
            is_name(left) && is_name(right)
        };
        let belongs = match glyph {
            // `请联系ada@example.com`: the sentence before the name is not part of it.
            _ if is_unspaced(glyph) => unspaced,
            '!' | '#' | '$' | '^' | '\'' | '’' => joins,
            // A bounce address: `bounces+ada=example.com@lists.example.org`.
            '=' => joins && !crossed && has_plus(glyphs, floor, start - 1),
            _ => is_name(glyph),
        };
        if !belongs {
            break;
        }
        crossed |= glyph == '=';
        start -= 1;
    }
    // These do not start a name.
    let start = glyphs.run(start, |glyph| matches!(glyph, '.' | '-' | '%' | '&'));
    (start < sign).then_some(start)
}

fn is_name(glyph: char) -> bool {
    glyph.is_alphanumeric() || matches!(glyph, '.' | '_' | '%' | '+' | '-' | '&') || is_mark(glyph)
}

/// An accent, or a vowel sign, as a character of its own.
fn is_mark(glyph: char) -> bool {
    matches!(glyph, '\u{300}'..='\u{36f}' | '\u{900}'..='\u{d7f}')
}

fn has_plus(glyphs: &Glyphs, floor: usize, end: usize) -> bool {
    let lowest = end.saturating_sub(QUOTED).max(floor);
    let word = glyphs.chars(lowest..end).rev();
    word.take_while(|glyph| is_name(*glyph))
        .any(|glyph| glyph == '+')
}

/// Where the host that starts at `from` ends: it has at least two labels, the last one a word.
fn host_end(glyphs: &Glyphs, from: usize) -> Option<usize> {
    if glyphs.at(from) == '[' {
        let end = glyphs.run(from + 1, |glyph| {
            glyph.is_ascii_alphanumeric() || matches!(glyph, ':' | '.' | '-')
        });
        let literal = end > from + 4 && glyphs.at(end) == ']';
        return (literal && glyphs.chars(from..end).any(|g| g.is_ascii_digit())).then_some(end + 1);
    }
    let mut best = None;
    let mut label = from;
    let mut first = true;
    loop {
        let is_of_label = |glyph: char| glyph.is_alphanumeric() || glyph == '-' || is_mark(glyph);
        let whole = glyphs.run(label, is_of_label);
        // `ada@example.com谢谢`: the top-level domain has one script.
        let spaced = glyphs.run(label, |glyph| is_of_label(glyph) && !is_unspaced(glyph));
        let cut = !first && spaced > label && spaced < whole && is_top(glyphs, label..spaced);
        let end = if cut { spaced } else { whole };
        let word = trimmed(glyphs, label..end);
        if word.is_empty() || (word.end < end && glyphs.at(end) == '.') {
            break;
        }
        if !first && is_top(glyphs, word.clone()) {
            best = Some(word.end);
        }
        if cut || glyphs.at(end) != '.' {
            break;
        }
        first = false;
        label = end + 1;
    }
    best
}

/// A label without the dashes after it.
fn trimmed(glyphs: &Glyphs, label: Range<usize>) -> Range<usize> {
    let dashes = glyphs.chars(label.clone()).rev();
    let dashes = dashes.take_while(|glyph| *glyph == '-').count();
    label.start..label.end - dashes
}

fn is_top(glyphs: &Glyphs, label: Range<usize>) -> bool {
    if glyphs.starts(label.start, "xn--") {
        return true;
    }
    let letters = |glyph: char| glyph.is_alphabetic() || is_mark(glyph);
    label.len() >= 2 && glyphs.chars(label).all(letters)
}

/// Whether an apparent address is program code.
fn is_code(glyphs: &Glyphs, name: Range<usize>, host: Range<usize>) -> bool {
    let is = |word: &str| name.len() == word.len() && glyphs.starts(name.start, word);
    // `git@host:org/repo` and `ssh://git@host/org` are addresses of repositories. Any other user may be a person.
    let after = glyphs.at(host.end);
    let short = after == ':' && is_name(glyphs.at(host.end + 1));
    let repository = is("git") && (short || glyphs.before(name.start, 1) == '/');
    // A label in Kotlin, and a call on the product of two matrices.
    let label = is("this") || is("super");
    let call = after == '(' && glyphs.at(host.end + 1) == ')';
    repository || label || call || is_version(glyphs, &host)
}

/// Whether it is a version, `react@18.2.0-rc.next`, or an image, `icon@2x.png`.
fn is_version(glyphs: &Glyphs, host: &Range<usize>) -> bool {
    let digits = glyphs.run(host.start, |glyph| glyph.is_ascii_digit());
    if digits > host.start && glyphs.starts(digits, "x.") {
        return true;
    }
    let v = usize::from(matches!(glyphs.at(host.start), 'v' | 'V'));
    let major = glyphs.run(host.start + v, |glyph| glyph.is_ascii_digit());
    let minor = glyphs.run(major + 1, |glyph| glyph.is_ascii_digit());
    major > host.start + v
        && glyphs.at(major) == '.'
        && minor > major + 1
        && matches!(glyphs.at(minor), '.' | '-')
}

//! The user and the password within a URL: `postgres://ada:secret@db.example.com`.

use std::ops::Range;

use crate::glyphs::Glyphs;

/// Finds `user:password@` after the `//` of a URL, up to the last `@` before its path, or `user@` alone,
/// percent-encoded or not. `git` without a password is kept: it is the usual user of repositories, and identifies
/// no person.
pub(crate) fn find(glyphs: &Glyphs) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    // Caches the next `@`: repeated `//` must not search the same text again.
    let mut lookahead = Lookahead::default();
    while at < glyphs.len() {
        let Some(from) = after_slashes(glyphs, at) else {
            at += 1;
            continue;
        };
        let end = glyphs.run(from, |glyph| is_of_url(glyph) && !ends_authority(glyph));
        let sign = (from..end).rev().find(|at| glyphs.at(*at) == '@');
        let sign = sign.or_else(|| {
            // A password may contain a `/`, `?` or `#` that is not encoded. Then the apparent port is not a number.
            has_odd_port(glyphs, from..end)
                .then(|| lookahead.sign(glyphs, end))
                .flatten()
        });
        at = match sign {
            Some(sign) if sign > from => {
                if !is_git(glyphs, from..sign) {
                    found.push(from..sign + 1);
                }
                sign + 1
            }
            _ => end.max(from),
        };
    }
    found
}

/// The position after `://`, which may be escaped as in JSON.
fn after_slashes(glyphs: &Glyphs, at: usize) -> Option<usize> {
    if glyphs.at(at) != ':' {
        return None;
    }
    let mut from = at + 1;
    for _ in 0..2 {
        from = glyphs.run(from, |glyph| glyph == '\\');
        if from > at + 4 || glyphs.at(from) != '/' {
            return None;
        }
        from += 1;
    }
    Some(from)
}

fn is_of_url(glyph: char) -> bool {
    !matches!(glyph, '\0' | '"' | '<' | '>' | '`' | '\u{2018}'..='\u{201f}' | '\u{3000}'..='\u{303f}' | '\u{ff00}'..='\u{ff65}')
        && !glyph.is_whitespace()
        && !glyph.is_control()
}

fn ends_authority(glyph: char) -> bool {
    matches!(glyph, '/' | '?' | '#' | '\\')
}

fn has_odd_port(glyphs: &Glyphs, authority: Range<usize>) -> bool {
    let start = authority.start;
    let colon = (start..authority.end).find(|at| glyphs.at(*at) == ':');
    colon.is_some_and(|colon| {
        colon > start
            && glyphs.at(start) != '['
            && colon + 1 < authority.end
            && glyphs
                .chars(colon + 1..authority.end)
                .any(|glyph| !glyph.is_ascii_digit())
    })
}

fn is_git(glyphs: &Glyphs, user: Range<usize>) -> bool {
    user.len() == 3 && glyphs.starts(user.start, "git")
}

/// Caches the next `@` of a word.
#[derive(Default)]
struct Lookahead {
    until: usize,
    sign: Option<usize>,
}

impl Lookahead {
    fn sign(&mut self, glyphs: &Glyphs, from: usize) -> Option<usize> {
        if self.sign.is_some_and(|sign| sign >= from) || from < self.until {
            return self.sign.filter(|sign| *sign >= from);
        }
        self.until = glyphs.run(from, |glyph| is_of_url(glyph) && glyph != '@');
        self.sign = (glyphs.at(self.until) == '@').then_some(self.until);
        self.sign
    }
}

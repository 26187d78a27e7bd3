//! Private keys as text (RFC 7468), of OpenSSH and PGP too.

use std::ops::Range;

use crate::glyphs::Glyphs;

/// The minimum number of dashes before and after a title.
const DASHES: usize = 4;
/// The maximum number of characters of a title.
const TITLE: usize = 48;
/// The minimum number of characters of a line of a key that has no last line.
const LINE: usize = 16;

/// Finds keys in order, and caches that there is no further end.
#[derive(Default)]
pub(super) struct Keys {
    /// From here on there is no end.
    endless: Option<usize>,
}

impl Keys {
    /// The key whose first line starts at a dash, to its last line. Without a last line, all lines that may belong to
    /// it.
    pub(super) fn at(&mut self, glyphs: &Glyphs, at: usize) -> Option<Range<usize>> {
        let title = title(glyphs, at, "begin")?;
        let written: String = glyphs.chars(title.clone()).collect();
        if !written.to_ascii_lowercase().contains("private key") {
            return None;
        }
        let body = dashes(glyphs, title.end);
        let end = self.end(glyphs, body);
        Some(at..end.unwrap_or_else(|| lines(glyphs, body)))
    }

    /// The end of the next last line.
    fn end(&mut self, glyphs: &Glyphs, from: usize) -> Option<usize> {
        if self.endless.is_some_and(|endless| endless <= from) {
            return None;
        }
        let mut at = from;
        while at < glyphs.len() {
            at = glyphs.run(at, |glyph| glyph != '-');
            if let Some(title) = title(glyphs, at, "end") {
                return Some(dashes(glyphs, title.end));
            }
            at = dashes(glyphs, at).max(at + 1);
        }
        self.endless = Some(from);
        None
    }
}

fn dashes(glyphs: &Glyphs, at: usize) -> usize {
    glyphs.run(at, |glyph| glyph == '-')
}

/// The title of a line that starts with dashes and a word.
fn title(glyphs: &Glyphs, at: usize, word: &str) -> Option<Range<usize>> {
    let after = dashes(glyphs, at);
    let from = glyphs.run_within(after, 1, |glyph| glyph == ' ');
    if after < at + DASHES || !glyphs.starts(from, word) {
        return None;
    }
    let end = glyphs.run_within(from, TITLE, |glyph| {
        glyph.is_ascii_alphanumeric() || glyph == ' '
    });
    Some(from..end)
}

/// The end of the lines of a key that has no last line.
fn lines(glyphs: &Glyphs, body: usize) -> usize {
    let is_space = |glyph: char| glyph.is_ascii_whitespace();
    let is_of_key = |glyph: char| glyph.is_ascii_alphanumeric() || matches!(glyph, '+' | '/' | '=');
    let mut end = body;
    loop {
        let mut from = glyphs.run(end, is_space);
        if glyphs.starts_exactly(from, "\\n") {
            from += 2;
        }
        let headers = ["proc-type:", "dek-info:", "version:", "comment:"];
        let header = headers.iter().any(|header| glyphs.starts(from, header));
        let line = if header {
            glyphs.run(from, |glyph| glyph != '\n')
        } else {
            glyphs.run(from, is_of_key)
        };
        // A truncated line is the last one.
        let last = end > body && glyphs.at(line) == '\0';
        if line == from || !(header || last || line - from >= LINE) {
            return end;
        }
        end = line;
    }
}

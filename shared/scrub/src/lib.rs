//! Replaces personal data and secrets in free text by their kind: `[email]`, `[phone]`.
//!
//! docs/reference/anonymization.md lists what is found; decision 21 explains why. The finders look at the form of a
//! text and at a few words before it. An ambiguous form is replaced; a form with a shape or a check digit of its own is
//! kept: versions, ISBNs, dates, UUIDs, order numbers. Names, postal addresses and deliberately disguised addresses
//! ("ada at example dot com") are not found.
//!
//! | to change | look in |
//! |---|---|
//! | which characters count as a digit, a dash, a space | `glyphs` |
//! | how groups of digits belong together | `digits` |
//! | what is never personal | `shield` |
//! | which words before a number show its kind | `context` |
//! | how a kind is found | the file of its name; `national` has national identity numbers |
//! | what the finders may cost | `steps`, and `cost` among the tests |
//!
//! Of our crates it imports `text`.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::ops::Range;

use serde_json::Value;

mod card;
mod context;
mod credentials;
mod digits;
mod email;
mod glyphs;
mod iban;
mod ip;
mod national;
mod phone;
mod secrets;
mod shield;
mod short;
mod steps;
mod tax;
#[cfg(test)]
mod tests;

use glyphs::Glyphs;

/// Replaces free text that was removed. Shows that there was text, without its content.
pub const REMOVED: &str = "[removed]";

/// The maximum number of passes over a text. A replacement may reveal another match, such as a number that seemed to be
/// part of a longer one. In ordinary text the second pass finds nothing.
const PASSES: usize = 8;

/// The maximum number of passes over the texts of one event, on average.
const AVERAGE_PASSES: usize = 4;

/// Added to the budget, so that short texts get all passes.
const SPARE: usize = 4 * 1024;

/// Finds one kind of personal data, in order and without overlaps.
type Finder = fn(&Glyphs) -> Vec<Range<usize>>;

/// Every kind with its placeholder. Finders run in this order and the first match wins: an address may contain digits,
/// and a check digit is stronger evidence than the form of a telephone number.
const KINDS: [&[(Finder, &str)]; 2] = [
    &[
        (secrets::find, "[secret]"),
        (credentials::find, "[credentials]"),
        (email::find, "[email]"),
        (ip::find, "[ip]"),
        (iban::find, "[iban]"),
    ],
    // Numbers, except those that are not personal.
    &[
        (tax::find, "[tax-id]"),
        (national::find, "[ssn]"),
        (card::find, "[card]"),
        (card::find_separated, "[card]"),
        (phone::find, "[phone]"),
    ],
];

/// How many bytes may still be scanned for the texts of one event.
///
/// A pass over a text costs its length. An event may cost four times the length of all its texts, and 4 KiB. Ordinary
/// text needs two passes. Only adversarial input exceeds the budget; such a text becomes `[removed]`.
#[derive(Debug)]
pub struct Budget {
    bytes: usize,
}

impl Budget {
    /// The budget for texts of this many bytes in total.
    #[must_use]
    pub fn of(bytes: usize) -> Self {
        let bytes = bytes.saturating_mul(AVERAGE_PASSES);
        Self {
            bytes: bytes.saturating_add(SPARE),
        }
    }

    /// The text with a placeholder for each e-mail address, telephone number, payment card, IBAN, IP address, national
    /// identity or taxpayer number, and secret, and for the user and the password in a URL. It is borrowed if there are
    /// none. Otherwise it is at most four times as long, since a placeholder may be longer than what it replaces.
    ///
    /// Scrubbing a second time changes nothing. A pass is linear in the text.
    pub fn scrub<'a>(&mut self, text: &'a str) -> Cow<'a, str> {
        let mut scrubbed = Cow::Borrowed(text);
        for _ in 0..PASSES {
            if !may_hold(&scrubbed) {
                return scrubbed;
            }
            let Some(left) = self.bytes.checked_sub(scrubbed.len()) else {
                break;
            };
            self.bytes = left;
            match once(&scrubbed) {
                Some(next) => scrubbed = Cow::Owned(next),
                None => return scrubbed,
            }
        }
        // Only adversarial input exceeds the budget or the number of passes. It may still contain personal data.
        Cow::Owned(REMOVED.to_owned())
    }
}

/// Scrubs a text that has a budget of its own; see [`Budget::scrub`].
#[must_use]
pub fn scrub(text: &str) -> Cow<'_, str> {
    Budget::of(text.len()).scrub(text)
}

/// Scrubs every string of a value, keys included. A number that is personal data as a string is replaced by the
/// scrubbed string. Of keys that become equal, one is kept.
pub fn scrub_json(value: &mut Value) {
    match value {
        Value::Null | Value::Bool(_) => {}
        Value::Number(number) => {
            let written = number.to_string();
            if let Cow::Owned(scrubbed) = scrub(&written) {
                *value = Value::String(scrubbed);
            }
        }
        Value::String(text) => {
            if let Cow::Owned(scrubbed) = scrub(text) {
                *text = scrubbed;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(scrub_json),
        Value::Object(members) => {
            let scrubbed = std::mem::take(members)
                .into_iter()
                .map(|(key, mut member)| {
                    scrub_json(&mut member);
                    (scrub(&key).into_owned(), member)
                });
            *members = scrubbed.collect();
        }
    }
}

/// The text after one pass; `None` if nothing was found.
fn once(text: &str) -> Option<String> {
    let mut glyphs = Glyphs::read(text);
    let mut found: Vec<(Range<usize>, &str)> = Vec::new();
    for (numbers, kinds) in [false, true].into_iter().zip(KINDS) {
        if numbers {
            shield::cover(&mut glyphs);
        }
        for (find, placeholder) in kinds {
            for range in find(&glyphs) {
                found.extend(glyphs.bytes(&range).map(|bytes| (bytes, *placeholder)));
                glyphs.cover(range);
            }
        }
    }
    if found.is_empty() {
        return None;
    }
    // A range that contains an earlier match replaces it.
    found.sort_unstable_by_key(|(bytes, _)| (bytes.start, Reverse(bytes.end)));
    let mut scrubbed = String::with_capacity(text.len());
    let mut from = 0;
    for (bytes, placeholder) in found {
        if bytes.start >= from {
            scrubbed.push_str(text.get(from..bytes.start).unwrap_or_default());
            scrubbed.push_str(placeholder);
        }
        from = from.max(bytes.end);
    }
    scrubbed.push_str(text.get(from..).unwrap_or_default());
    Some(scrubbed)
}

/// Whether a text may contain a match: it has a digit, a character of an address or a query, the dashes of a private
/// key, a word that is long enough for a token, or a non-ASCII character, which may be a variant of one of these. Most
/// short texts have none and need no pass.
fn may_hold(text: &str) -> bool {
    let required = |byte: u8| matches!(byte, b'@' | b'%' | b'=') || byte.is_ascii_digit();
    text.bytes().any(required)
        || !text.is_ascii()
        || text.contains("----")
        || text
            .split_ascii_whitespace()
            .any(|word| word.len() >= secrets::SHORTEST)
}

/// Whether a placeholder starts here, and where it ends.
fn placeholder_at(glyphs: &Glyphs, at: usize) -> Option<usize> {
    let kinds = KINDS.iter().flat_map(|kinds| kinds.iter());
    let mut placeholders = kinds.map(|(_, placeholder)| *placeholder).chain([REMOVED]);
    let found = placeholders.find(|placeholder| glyphs.starts_exactly(at, placeholder));
    found.map(|placeholder| at + placeholder.len())
}

/// The start of the placeholder that ends here.
fn placeholder_before(glyphs: &Glyphs, end: usize) -> Option<usize> {
    let is_of_name = |glyph: char| glyph.is_ascii_lowercase() || glyph == '-';
    let name = glyphs.run_back(end.checked_sub(1)?, LONGEST_NAME, is_of_name);
    let start = name.checked_sub(1)?;
    (placeholder_at(glyphs, start)? == end).then_some(start)
}

/// Longest name of a placeholder.
const LONGEST_NAME: usize = 11;

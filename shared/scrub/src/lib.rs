//! Replaces personal data and secrets in free text by their kind: `[email]`, `[phone]`.
//!
//! docs/reference/anonymization.md lists what is found; decision 21 explains why. The finders look at the form of a text
//! and at a few words before it. An ambiguous form is replaced; a form with a shape or a check digit of its own is kept:
//! versions, ISBNs, dates, UUIDs, order numbers. Names, postal addresses and deliberately disguised addresses ("ada at
//! example dot com") are not found.
//!
//! | to change | look in |
//! |---|---|
//! | which characters count as a digit, a dash, a space | `glyphs` |
//! | how groups of digits belong together | `digits` |
//! | what is never personal | `shield` |
//! | which words before a number tell what it is | `context` |
//! | how a kind is found | the file of its name; numbers that a state gives are in `national` |
//! | what the finders may cost | `steps`, and `cost` among the tests |

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

/// What replaces free text that was removed. It tells that something was written, not what.
pub const REMOVED: &str = "[removed]";

/// How often a text is looked through at most. What was found may have hidden something else, as
/// a number that seemed to be part of a longer one; ordinary text has none of that, and settles at
/// the second look.
const LOOKS: usize = 8;

/// How often the texts of one event are looked through on average, at most.
const LOOKS_OF_ALL: usize = 4;

/// Bytes that may be looked through besides, so that short texts have all their looks.
const SPARE: usize = 4 * 1024;

/// Finds one kind of personal data, in order and without overlaps.
type Finder = fn(&Glyphs) -> Vec<Range<usize>>;

/// Every kind with its placeholder. The first one to find something has it: an address holds what
/// looks like numbers, and a number with a check digit tells more than a telephone's.
const KINDS: [&[(Finder, &str)]; 2] = [
    &[
        (secrets::find, "[secret]"),
        (credentials::find, "[credentials]"),
        (email::find, "[email]"),
        (ip::find, "[ip]"),
        (iban::find, "[iban]"),
    ],
    // What is all digits, apart from numbers that are not personal.
    &[
        (tax::find, "[tax-id]"),
        (national::find, "[ssn]"),
        (card::find, "[card]"),
        (card::find_separated, "[card]"),
        (phone::find, "[phone]"),
    ],
];

/// How much may still be looked through for the texts of one event, in bytes.
///
/// A text that is looked through once more costs its length. An event may cost four times the length of all
/// its texts, and 4 KiB. Ordinary text needs two looks. A text for which nothing is left becomes `[removed]`:
/// who wrote it meant it to be looked through again and again.
#[derive(Debug)]
pub struct Budget {
    bytes: usize,
}

impl Budget {
    /// The budget for texts that have so many bytes together.
    #[must_use]
    pub fn of(bytes: usize) -> Self {
        let bytes = bytes.saturating_mul(LOOKS_OF_ALL);
        Self {
            bytes: bytes.saturating_add(SPARE),
        }
    }

    /// The text with a placeholder for each e-mail address, telephone number, payment card, IBAN, IP
    /// address, number of a citizen or a taxpayer, and secret, and for the user and the password within a URL.
    /// It is borrowed if there are none. Otherwise it is at most four times as long, since a placeholder may
    /// be longer than what it stands for.
    ///
    /// To scrub a second time changes nothing. A look is linear in the text.
    pub fn scrub<'a>(&mut self, text: &'a str) -> Cow<'a, str> {
        let mut scrubbed = Cow::Borrowed(text);
        for _ in 0..LOOKS {
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
        // Only a text that was made for it gets here. Nobody can tell what is left in it.
        Cow::Owned(REMOVED.to_owned())
    }
}

/// Scrubs a text that has a budget of its own; see [`Budget::scrub`].
#[must_use]
pub fn scrub(text: &str) -> Cow<'_, str> {
    Budget::of(text.len()).scrub(text)
}

/// Scrubs every string within, keys included. A number that is personal data if it is written as
/// a string is replaced by that string. Of keys that become the same, one is kept.
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

/// The text after one look; `None` if nothing was found.
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
    // What holds something that was found before it is one with it.
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

/// Whether there is anything without which no kind can be: a digit, a sign of an address, of a query or of
/// a private key, a word that is long enough for a token, or a character that may stand for one of these.
/// Most short texts have none, and need no closer look.
fn may_hold(text: &str) -> bool {
    let telling = |byte: u8| matches!(byte, b'@' | b'%' | b'=') || byte.is_ascii_digit();
    text.bytes().any(telling)
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

/// Where the placeholder starts that ends here.
fn placeholder_before(glyphs: &Glyphs, end: usize) -> Option<usize> {
    let is_of_name = |glyph: char| glyph.is_ascii_lowercase() || glyph == '-';
    let name = glyphs.run_back(end.checked_sub(1)?, LONGEST_NAME, is_of_name);
    let start = name.checked_sub(1)?;
    (placeholder_at(glyphs, start)? == end).then_some(start)
}

/// Longest name of a placeholder.
const LONGEST_NAME: usize = 11;

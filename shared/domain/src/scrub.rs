//! Personal data in free text, replaced by what kind of it stood there: `[email]`, `[phone]`.
//!
//! Source: product specification, section 7, "anonymize"; decision 21. Only the shape of what was
//! written and a few words before it are looked at. Where a form may be personal or not, it goes;
//! what has a shape or a check digit of its own stays: versions, ISBNs, dates, UUIDs, order
//! numbers. Names, postal addresses and what was disguised on purpose ("ada at example dot com")
//! are not found.
//!
//! | to change | look in |
//! |---|---|
//! | which characters count as a digit, a dash, a space | `glyphs` |
//! | how groups of digits belong together | `digits` |
//! | what is never personal | `shield` |
//! | which words before a number tell what it is | `context` |
//! | how a kind is found | the file of its name; numbers that a state gives are in `national` |

use std::borrow::Cow;
use std::ops::Range;

use serde_json::Value;

use crate::privacy::REMOVED;

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
mod shield;
#[cfg(test)]
mod tests;

use glyphs::Glyphs;

/// How often a text is looked through at most. What was found may have hidden something else, as
/// a number that seemed to be part of a longer one; ordinary text has none of that, and settles at
/// the second look.
const LOOKS: usize = 8;

/// Finds one kind of personal data, in order and without overlaps.
type Finder = fn(&Glyphs) -> Vec<Range<usize>>;

/// Every kind with its placeholder. The first one to find something has it: an address holds what
/// looks like numbers, and a number with a check digit tells more than a telephone's.
const KINDS: [&[(Finder, &str)]; 2] = [
    &[
        (credentials::find, "[credentials]"),
        (email::find, "[email]"),
        (ip::find, "[ip]"),
        (iban::find, "[iban]"),
    ],
    // What is all digits, apart from numbers that are nobody's.
    &[
        (national::find, "[ssn]"),
        (card::find, "[card]"),
        (phone::find, "[phone]"),
    ],
];

/// The text with a placeholder for each e-mail address, telephone number, payment card, IBAN, IP
/// address and number of a citizen, and for the user and the password within a URL. It is borrowed
/// if there are none. Otherwise it is at most four times as long, since a placeholder may be longer
/// than what it stands for.
///
/// To scrub a second time changes nothing. The time is linear in the text.
#[must_use]
pub fn scrub(text: &str) -> Cow<'_, str> {
    let mut scrubbed = Cow::Borrowed(text);
    for _ in 0..LOOKS {
        match once(&scrubbed) {
            Some(next) => scrubbed = Cow::Owned(next),
            None => return scrubbed,
        }
    }
    // Only a text that was made for it gets here. Nobody can tell what is left in it.
    Cow::Borrowed(REMOVED)
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
    if !may_hold(text) {
        return None;
    }
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
    found.sort_unstable_by_key(|(bytes, _)| bytes.start);
    let mut scrubbed = String::with_capacity(text.len());
    let mut from = 0;
    for (bytes, placeholder) in found {
        scrubbed.push_str(text.get(from..bytes.start).unwrap_or_default());
        scrubbed.push_str(placeholder);
        from = bytes.end;
    }
    scrubbed.push_str(text.get(from..).unwrap_or_default());
    Some(scrubbed)
}

/// Whether there is a character without which no kind can be. Most texts have none, and need no
/// closer look.
fn may_hold(text: &str) -> bool {
    let telling = |byte: u8| byte == b'@' || byte == b'%' || byte.is_ascii_digit();
    text.bytes().any(telling) || !text.is_ascii()
}

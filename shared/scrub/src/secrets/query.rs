//! Parameters and settings that are named as a token or a password: `?token=…`, `&password=…`, `API_KEY=…`.

use std::ops::Range;

use super::{DECISIVE, Glyphs, is_unspaced, placeholder_at, steps};

/// Longest name that is read.
const NAME: usize = 40;

/// Names of a secret, without dashes and underscores.
const NAMES: [&str; 26] = [
    "accesskey",
    "apikey",
    "auth",
    "authtoken",
    "authorization",
    "clientsecret",
    "credential",
    "credentials",
    "jwt",
    "otp",
    "pass",
    "passcode",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "pwd",
    "secret",
    "secretkey",
    "session",
    "sessionid",
    "sid",
    "sig",
    "signature",
    "token",
    "xapikey",
];

/// Endings of longer names: `access_token`, `X-Amz-Signature`.
const ENDINGS: [&str; 7] = [
    "token",
    "password",
    "secret",
    "apikey",
    "accesskey",
    "signature",
    "credential",
];

/// The value of the parameter whose name starts here, after `?`, `&`, `#` or `;`.
pub(super) fn parameter(glyphs: &Glyphs, at: usize) -> Option<Range<usize>> {
    let value = value_of(glyphs, at)?;
    let end = glyphs.run(value, |glyph| {
        !glyph.is_whitespace()
            && !is_unspaced(glyph)
            && !matches!(
                glyph,
                '\0' | '&' | '#' | ';' | '"' | '<' | '>' | '`' | '，' | '。'
            )
    });
    let marks = |glyph| matches!(glyph, '.' | ',' | ')' | ']' | '\'' | '!' | '?' | ':' | '*');
    let end = glyphs.run_back(end, end - value, marks);
    unless_replaced(glyphs, value..end)
}

/// The value of the setting whose name starts here, outside of a query. It mixes letters and digits; in code it would
/// be an expression (`token=None`, `password=os.environ[…]`).
pub(super) fn setting(glyphs: &Glyphs, at: usize) -> Option<Range<usize>> {
    let value = value_of(glyphs, at)?;
    let is_of_value = |glyph: char| {
        glyph.is_ascii_alphanumeric()
            || matches!(
                glyph,
                '_' | '+' | '/' | '=' | '~' | '!' | '$' | '%' | '^' | '-'
            )
    };
    let first = glyphs.run_within(value, DECISIVE, is_of_value);
    let has = |is: fn(&char) -> bool| glyphs.chars(value..first).any(|glyph| is(&glyph));
    let dotted = glyphs.at(first) == '.' && is_of_value(glyphs.at(first + 1));
    let call = dotted || matches!(glyphs.at(first), '(' | '[');
    let mixed = has(char::is_ascii_digit) && has(char::is_ascii_alphabetic);
    if first < value + 6 || call || !mixed {
        return None;
    }
    unless_replaced(glyphs, value..glyphs.run(first, is_of_value))
}

/// Where the value of a secret starts whose name starts here.
fn value_of(glyphs: &Glyphs, at: usize) -> Option<usize> {
    let is_of_name =
        |glyph: char| glyph.is_ascii_alphanumeric() || matches!(glyph, '_' | '-' | '.');
    let end = glyphs.run_within(at, NAME, is_of_name);
    if glyphs.at(end) != '=' {
        return None;
    }
    let name = glyphs.chars(at..end).filter(char::is_ascii_alphanumeric);
    let name: String = name.map(|glyph| glyph.to_ascii_lowercase()).collect();
    steps::count(NAMES.len() + ENDINGS.len());
    let secret = NAMES.contains(&&*name) || ENDINGS.iter().any(|ending| name.ends_with(ending));
    secret.then_some(end + 1)
}

/// A value, unless it is already a placeholder.
fn unless_replaced(glyphs: &Glyphs, value: Range<usize>) -> Option<Range<usize>> {
    // Its closing bracket may have been trimmed.
    let replaced = placeholder_at(glyphs, value.start).is_some_and(|end| end >= value.end);
    (!value.is_empty() && !replaced).then_some(value)
}

//! Secrets: keys and tokens with a known form, the token after `Bearer`, private keys, and parameters that are named as
//! a token or a password.
//!
//! A form is the issuer's prefix with enough characters after it, so that `sk-learn` and `xoxb-` in a sentence are
//! kept.

use std::ops::Range;

use crate::glyphs::{Glyphs, is_unspaced};
use crate::{placeholder_at, steps};

mod private_key;
mod query;

/// The minimum number of characters of a word that is or names a secret, if the text has neither a digit nor `=`.
pub(crate) const SHORTEST: usize = 12;

/// How many characters are read to decide whether it is a secret.
const DECISIVE: usize = 64;

/// What a token has after its prefix.
struct Form {
    prefix: &'static str,
    /// The minimum number of characters after the prefix.
    least: usize,
    /// Which characters these are.
    belongs: fn(char) -> bool,
    /// Whether there must be a digit among them, because the prefix may start an ordinary word.
    needs_digit: bool,
}

const fn form(prefix: &'static str, least: usize, belongs: fn(char) -> bool) -> Form {
    Form {
        prefix,
        least,
        belongs,
        needs_digit: false,
    }
}

/// The issuers' prefixes, as they document them.
const FORMS: [Form; 28] = [
    // Amazon Web Services: access keys, long-term and temporary.
    form("AKIA", 16, is_capital),
    form("ASIA", 16, is_capital),
    // GitHub
    form("ghp_", 16, is_word),
    form("gho_", 16, is_word),
    form("ghu_", 16, is_word),
    form("ghs_", 16, is_dotted),
    form("ghr_", 16, is_word),
    form("github_pat_", 16, is_word),
    // GitLab
    form("glpat-", 16, is_dotted),
    // Slack
    form("xoxa-", 8, is_dashed),
    form("xoxb-", 8, is_dashed),
    form("xoxc-", 8, is_dashed),
    form("xoxd-", 8, is_escaped),
    form("xoxe-", 8, is_dashed),
    form("xoxo-", 8, is_dashed),
    form("xoxp-", 8, is_dashed),
    form("xoxr-", 8, is_dashed),
    form("xoxs-", 8, is_dashed),
    form("xapp-", 8, is_dashed),
    // Stripe
    form("sk_live_", 10, is_word),
    form("sk_test_", 10, is_word),
    form("rk_live_", 10, is_word),
    form("whsec_", 16, is_word),
    // OpenAI, Anthropic
    Form {
        prefix: "sk-",
        least: 20,
        belongs: is_dashed,
        needs_digit: true,
    },
    // Google
    form("AIza", 30, is_dashed),
    // npm, PyPI, Hugging Face
    form("npm_", 30, is_alphanumeric),
    form("pypi-", 40, is_dashed),
    form("hf_", 30, is_alphanumeric),
];

fn is_alphanumeric(glyph: char) -> bool {
    glyph.is_ascii_alphanumeric()
}

fn is_capital(glyph: char) -> bool {
    glyph.is_ascii_uppercase() || glyph.is_ascii_digit()
}

fn is_word(glyph: char) -> bool {
    glyph.is_ascii_alphanumeric() || glyph == '_'
}

fn is_dashed(glyph: char) -> bool {
    is_word(glyph) || glyph == '-'
}

fn is_dotted(glyph: char) -> bool {
    is_dashed(glyph) || glyph == '.'
}

fn is_escaped(glyph: char) -> bool {
    is_dashed(glyph) || glyph == '%'
}

/// Whether a token of any issuer may have this character (RFC 6750, `b64token`).
fn is_token(glyph: char) -> bool {
    is_dotted(glyph) || matches!(glyph, '~' | '+' | '/' | '=')
}

/// Finds all secrets, in order.
pub(crate) fn find(glyphs: &Glyphs) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut keys = private_key::Keys::default();
    let mut without_dot = 0;
    let mut at = 0;
    let mut before = '\0';
    while at < glyphs.len() {
        let glyph = glyphs.at(at);
        let secret = match glyph {
            '-' if before != '-' => keys.at(glyphs, at),
            '?' | '&' | '#' | ';' => query::parameter(glyphs, at + 1),
            _ if glyph.is_ascii_alphabetic() && !is_alphanumeric(before) => {
                word(glyphs, at, before, &mut without_dot)
            }
            _ => None,
        };
        at = secret.as_ref().map_or(at + 1, |secret| secret.end);
        before = if secret.is_some() { ']' } else { glyph };
        found.extend(secret);
    }
    found
}

/// The secret that a word is or introduces.
fn word(glyphs: &Glyphs, at: usize, before: char, without_dot: &mut usize) -> Option<Range<usize>> {
    match glyphs.at(at) {
        'b' | 'B' if glyphs.starts(at, "bearer") => bearer(glyphs, at + 6),
        'a' | 'A' if glyphs.starts(at, "authorization") => header(glyphs, at + 13),
        _ => token(glyphs, at)
            .or_else(|| web_token(glyphs, at, without_dot))
            .or_else(|| {
                (before != '_')
                    .then(|| query::setting(glyphs, at))
                    .flatten()
            }),
    }
}

/// A token with the prefix of its issuer.
fn token(glyphs: &Glyphs, at: usize) -> Option<Range<usize>> {
    let first = glyphs.at(at);
    let mut forms = FORMS.iter().filter(|form| form.prefix.starts_with(first));
    forms.find_map(|form| {
        if !glyphs.starts_exactly(at, form.prefix) {
            return None;
        }
        let from = at + form.prefix.len();
        // Not the whole run: if it is no token, the next words would read it again.
        let first = glyphs.run_within(from, DECISIVE, form.belongs);
        let digit = || {
            glyphs
                .chars(from..first)
                .any(|glyph| glyph.is_ascii_digit())
        };
        if form.needs_digit && !digit() {
            return None;
        }
        let end = trimmed(glyphs, from..glyphs.run(first, form.belongs));
        (end - from >= form.least).then_some(at..end)
    })
}

/// A JSON Web Token (RFC 7519): parts in base64 with dots between them, of which the first is an object.
fn web_token(glyphs: &Glyphs, at: usize, without_dot: &mut usize) -> Option<Range<usize>> {
    if !glyphs.starts_exactly(at, "eyJ") {
        return None;
    }
    // A run without a dot after it contains no token.
    if at < *without_dot {
        return None;
    }
    let header = glyphs.run(at, is_dashed);
    if glyphs.at(header) != '.' {
        *without_dot = header;
        return None;
    }
    if header < at + 10 {
        return None;
    }
    let end = trimmed(glyphs, at..glyphs.run(header, is_dotted));
    (end >= header + 6).then_some(at..end)
}

/// The token after `Bearer`, but not a word of a sentence ("bearer of bad news").
fn bearer(glyphs: &Glyphs, after: usize) -> Option<Range<usize>> {
    let from = glyphs.run_within(after, 3, |glyph| matches!(glyph, ' ' | ':' | '\t'));
    if from == after {
        return None;
    }
    let end = trimmed(glyphs, from..glyphs.run(from, is_token));
    let length = end - from;
    let has = |is: fn(char) -> bool| glyphs.chars(from..end).any(is);
    let mixed =
        || has(|glyph| glyph.is_ascii_lowercase()) && has(|glyph| glyph.is_ascii_uppercase());
    let long = length >= 24
        || length >= 8 && has(|glyph| glyph.is_ascii_digit())
        || length >= 12 && mixed();
    long.then_some(from..end)
}

/// What follows `Authorization:` and the name of a scheme, in any form.
fn header(glyphs: &Glyphs, after: usize) -> Option<Range<usize>> {
    let is_mark = |glyph| matches!(glyph, ' ' | ':' | '=' | '"' | '\'' | '\\');
    let scheme = glyphs.run_within(after, 6, is_mark);
    let schemes = ["bearer", "basic", "token", "apikey"];
    let scheme = scheme
        + schemes
            .iter()
            .find(|name| glyphs.starts(scheme, name))?
            .len();
    let from = glyphs.run_within(scheme, 2, |glyph| glyph == ' ');
    if from == scheme {
        return None;
    }
    let end = trimmed(glyphs, from..glyphs.run(from, is_token));
    (end >= from + 6).then_some(from..end)
}

/// The end of a range without punctuation at its end.
fn trimmed(glyphs: &Glyphs, range: Range<usize>) -> usize {
    let marks = |glyph| matches!(glyph, '.' | '-' | '_' | '~' | '/');
    glyphs.run_back(range.end, range.len(), marks)
}

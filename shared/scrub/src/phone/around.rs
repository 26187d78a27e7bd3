//! What may precede and follow a telephone number.

use crate::context::{self, Hint};
use crate::glyphs::Glyphs;

/// Words before an extension, longest first.
const EXTENSIONS: [&str; 8] = [
    "extension",
    "durchwahl",
    "extn",
    "poste",
    "доб",
    "ext",
    "dw",
    "x",
];

/// Whether a number may start here, with its sign. It is part of something else after a letter, a currency or a number
/// sign, and in the middle of `ORD-555`, `12:34` or `1,234`.
pub(super) fn starts(glyphs: &Glyphs, start: usize, signed: bool) -> bool {
    let before = glyphs.before(start, 1);
    let mark = start.saturating_sub(1);
    let joined = glyphs.before(start, 2).is_ascii_alphanumeric();
    let named = |hint| matches!(hint, Some(Hint::Phone | Hint::Contact));
    match before {
        // Before a plus sign these belong to a sum.
        '+' | ')' | ']' if signed => false,
        '+' | '#' | '$' | '€' | '£' | '¥' | '₹' | '\\' | '_' => false,
        // `wa.me/49...`
        '/' if joined => context::nearest(glyphs, start) == Some(Hint::Phone),
        '.' | '-' | '/' | '@' => !joined && before != '.' || named(context::attached(glyphs, mark)),
        ':' => !glyphs.before(start, 2).is_ascii_digit(),
        // In a list of numbers, not in a decimal fraction.
        ',' => {
            !glyphs.before(start, 2).is_ascii_digit() || glyphs.before(start, 5).is_ascii_digit()
        }
        _ if before.is_ascii_alphanumeric() => named(context::attached(glyphs, start)),
        _ => true,
    }
}

/// Whether a number may end here: no unit, fraction or rest of a word follows.
pub(super) fn ends(glyphs: &Glyphs, end: usize) -> bool {
    let after = glyphs.at(end);
    let rest = after.is_ascii_alphanumeric() || after == '_';
    let digits = || glyphs.run_within(end + 1, 4, |glyph| glyph.is_ascii_digit()) - end - 1;
    let amount = match after {
        ',' => matches!(digits(), 1 | 2),
        ':' => digits() > 0,
        _ => is_currency(glyphs, end + usize::from(after == ' ')),
    };
    !(rest || amount) || extension(glyphs, end).is_some()
}

fn is_currency(glyphs: &Glyphs, at: usize) -> bool {
    let sign = glyphs.at(at);
    let code = matches!(sign, 'e' | 'E' | 'u' | 'U' | 'g' | 'G' | 'c' | 'C');
    matches!(sign, '€' | '$' | '£' | '¥' | '₹' | '%' | '°')
        || code
            && ["eur", "usd", "gbp", "chf"].iter().any(|code| {
                glyphs.starts(at, code) && !glyphs.at(at + code.len()).is_ascii_alphanumeric()
            })
}

/// Units after a count.
const COUNTED: [&str; 24] = [
    "b", "kb", "mb", "gb", "byte", "bytes", "ns", "us", "ms", "s", "sec", "seconds", "km", "m",
    "users", "rows", "records", "items", "lines", "tokens", "people", "points", "requests",
    "times",
];

/// Whether the word after a number is a unit.
pub(super) fn is_counted(glyphs: &Glyphs, end: usize) -> bool {
    if glyphs.at(end) != ' ' {
        return false;
    }
    let word = glyphs.run_within(end + 1, 10, |glyph| glyph.is_ascii_alphabetic());
    let word: String = glyphs.chars(end + 1..word).collect();
    COUNTED.contains(&word.to_ascii_lowercase().as_str())
}

/// The end of the extension after a number: `ext. 12`, `x12`, `;ext=12`.
pub(super) fn extension(glyphs: &Glyphs, end: usize) -> Option<usize> {
    let is_mark = |glyph| matches!(glyph, ' ' | ',' | ';' | '(' | '-');
    let word = glyphs.run_within(end, 3, is_mark);
    if !matches!(
        glyphs.at(word),
        'e' | 'E' | 'd' | 'D' | 'p' | 'P' | 'д' | 'x' | 'X'
    ) {
        return None;
    }
    let named = EXTENSIONS.iter().find(|named| glyphs.starts(word, named))?;
    let after = word + named.chars().count();
    let digits = glyphs.run_within(after, 3, |glyph| matches!(glyph, '.' | ' ' | ':' | '='));
    let extended = glyphs.run_within(digits, 7, |glyph| glyph.is_ascii_digit());
    let length = extended - digits;
    let whole = !glyphs.at(extended).is_ascii_alphanumeric();
    ((1..=6).contains(&length) && whole).then_some(extended)
}

//! What may stand before a telephone number and behind it.

use super::super::context::{self, Hint};
use super::super::glyphs::Glyphs;

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

/// Whether a number may start here, its sign included. It is a part of something else behind a
/// letter, a currency or a number sign, and in the middle of `ORD-555`, `12:34` or `1,234`.
pub(super) fn starts(glyphs: &Glyphs, start: usize, signed: bool) -> bool {
    let before = glyphs.before(start, 1);
    let mark = start.saturating_sub(1);
    let joined = glyphs.before(start, 2).is_ascii_alphanumeric();
    let named = |hint| matches!(hint, Some(Hint::Phone | Hint::Contact));
    match before {
        // Before a sign this is a sum.
        '+' | ')' | ']' if signed => false,
        '+' | '#' | '$' | '€' | '£' | '¥' | '₹' | '\\' | '_' => false,
        // `wa.me/49...`
        '/' if joined => context::nearest(glyphs, start) == Some(Hint::Phone),
        '.' | '-' | '/' | '@' => !joined && before != '.' || named(context::attached(glyphs, mark)),
        ':' => !glyphs.before(start, 2).is_ascii_digit(),
        // A list of numbers, not the fraction of one.
        ',' => {
            !glyphs.before(start, 2).is_ascii_digit() || glyphs.before(start, 5).is_ascii_digit()
        }
        _ if before.is_ascii_alphanumeric() => named(context::attached(glyphs, start)),
        _ => true,
    }
}

/// Whether a number may end here. Behind it may stand no unit, no fraction and no rest of a word.
pub(super) fn ends(glyphs: &Glyphs, end: usize) -> bool {
    if extension(glyphs, end).is_some() {
        return true;
    }
    let behind = glyphs.at(end);
    let unit = end + usize::from(behind == ' ');
    let currency = matches!(glyphs.at(unit), '€' | '$' | '£' | '¥' | '₹' | '%' | '°')
        || ["eur", "usd", "gbp", "chf"].iter().any(|code| {
            glyphs.starts(unit, code) && !glyphs.at(unit + code.len()).is_ascii_alphanumeric()
        });
    let fraction = glyphs
        .run(end + 1, |glyph| glyph.is_ascii_digit())
        .min(end + 5)
        - end
        - 1;
    let rest = behind.is_ascii_alphanumeric() || behind == '_';
    let amount = behind == ',' && matches!(fraction, 1 | 2);
    let time = behind == ':' && fraction > 0;
    !(rest || currency || amount || time)
}

/// The end of the extension behind a number: `ext. 12`, `x12`, `;ext=12`.
pub(super) fn extension(glyphs: &Glyphs, end: usize) -> Option<usize> {
    let word = glyphs
        .run(end, |glyph| matches!(glyph, ' ' | ',' | ';' | '(' | '-'))
        .min(end + 3);
    let named = EXTENSIONS.iter().find(|named| glyphs.starts(word, named))?;
    let behind = word + named.chars().count();
    let digits = glyphs
        .run(behind, |glyph| matches!(glyph, '.' | ' ' | ':' | '='))
        .min(behind + 3);
    let extended = glyphs
        .run(digits, |glyph| glyph.is_ascii_digit())
        .min(digits + 7);
    let length = extended - digits;
    let whole = !glyphs.at(extended).is_ascii_alphanumeric();
    ((1..=6).contains(&length) && whole).then_some(extended)
}

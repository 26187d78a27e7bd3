//! International bank account numbers, in one piece or in groups, in capitals or not.

use std::ops::Range;

use iban::Iban;

use super::glyphs::Glyphs;

/// Shortest and longest number of a country, in characters (ISO 13616).
const LENGTHS: std::ops::RangeInclusive<usize> = 15..=34;

/// Fewest digits of an account. A sentence that starts as one does ("ro 20 ...") has fewer.
const DIGITS: usize = 8;

/// Finds what has a country, that country's form, and the right check digits. A number may follow
/// right upon another.
pub(super) fn find(glyphs: &Glyphs) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    while at < glyphs.len() {
        let touches = found.last().is_some_and(|last| last.end == at);
        let starts = touches || !glyphs.before(at, 1).is_ascii_alphanumeric();
        match starts.then(|| account(glyphs, at)).flatten() {
            Some(end) => {
                found.push(at..end);
                at = end;
            }
            None => at += 1,
        }
    }
    found
}

/// The end of the account that starts here.
fn account(glyphs: &Glyphs, start: usize) -> Option<usize> {
    let letter = |at: usize| glyphs.at(at).is_ascii_alphabetic();
    let digit = |at: usize| glyphs.at(at).is_ascii_digit();
    let check = start + 2 + usize::from(is_gap(glyphs.at(start + 2)));
    if !(letter(start) && letter(start + 1) && digit(check) && digit(check + 1)) {
        return None;
    }
    let mut written = String::with_capacity(*LENGTHS.end());
    let mut end = None;
    let mut at = start;
    while written.len() < *LENGTHS.end() {
        let glyph = glyphs.at(at);
        if glyph.is_ascii_alphanumeric() {
            written.push(glyph.to_ascii_uppercase());
            let digits = written.bytes().filter(u8::is_ascii_digit).count();
            let long = LENGTHS.contains(&written.len()) && digits >= DIGITS;
            if long && written.parse::<Iban>().is_ok() {
                end = Some(at + 1);
            }
        } else if !(is_gap(glyph) && glyphs.at(at + 1).is_ascii_alphanumeric()) {
            break;
        }
        at += 1;
    }
    end
}

fn is_gap(glyph: char) -> bool {
    matches!(glyph, ' ' | '-' | '.')
}

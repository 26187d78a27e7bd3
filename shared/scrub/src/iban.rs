//! International bank account numbers, with or without gaps, in any case.

use std::ops::Range;

use iban::Iban;

use crate::glyphs::Glyphs;
use crate::steps;

/// Shortest and longest number of a country, in characters (ISO 13616).
const LENGTHS: std::ops::RangeInclusive<usize> = 15..=34;

/// The minimum number of digits of an account number. A sentence that starts like one ("ro 20 ...") has fewer.
const DIGITS: usize = 8;

/// Finds numbers with a country, the format of that country, and valid check digits. A number may directly follow
/// another one.
pub(crate) fn find(glyphs: &Glyphs) -> Vec<Range<usize>> {
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
    // In lower case they are a word: "va 41 ...".
    let capital = |at: usize| glyphs.at(at).is_ascii_uppercase();
    let apart = is_gap(glyphs.at(start + 2)) && capital(start) && capital(start + 1);
    let check = start + 2 + usize::from(apart);
    if !(letter(start) && letter(start + 1) && digit(check) && digit(check + 1)) {
        return None;
    }
    let mut written = String::with_capacity(*LENGTHS.end());
    let mut digits = 0;
    let mut remainder = Remainder::default();
    let mut end = None;
    let mut at = start;
    while written.len() < *LENGTHS.end() {
        let glyph = glyphs.at(at);
        if glyph.is_ascii_alphanumeric() {
            written.push(glyph.to_ascii_uppercase());
            digits += usize::from(glyph.is_ascii_digit());
            remainder.add(glyph);
            let long = LENGTHS.contains(&written.len()) && digits >= DIGITS;
            if long && remainder.is_valid() && parses(&written) {
                end = Some(at + 1);
            }
        } else if !(is_gap(glyph) && glyphs.at(at + 1).is_ascii_alphanumeric()) {
            break;
        }
        at += 1;
    }
    end
}

/// Whether it has the format of its country.
fn parses(written: &str) -> bool {
    steps::count(written.len());
    written.parse::<Iban>().is_ok()
}

fn is_gap(glyph: char) -> bool {
    matches!(glyph, ' ' | '-' | '.' | '_' | '/' | ',')
}

/// The remainder modulo 97, updated with each character. It is 1 for a valid number with its first four characters
/// moved to the end (ISO 7064). Most other numbers need not be parsed.
#[derive(Default)]
struct Remainder {
    /// Characters so far.
    length: usize,
    /// The country and the check digits, as a number of six digits.
    first: u32,
    /// The remainder of the others.
    others: u32,
}

impl Remainder {
    fn add(&mut self, character: char) {
        let value = character.to_digit(36).unwrap_or_default();
        let number = if self.length < 4 {
            &mut self.first
        } else {
            &mut self.others
        };
        *number = *number * if value < 10 { 10 } else { 100 } + value;
        self.others %= 97;
        self.length += 1;
    }

    fn is_valid(&self) -> bool {
        // A million is 27 more than a multiple of 97.
        (self.others * (1_000_000 % 97) + self.first) % 97 == 1
    }
}

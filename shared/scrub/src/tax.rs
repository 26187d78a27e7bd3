//! German taxpayer numbers (Steuer-ID), by their check digit; other taxpayer numbers by the word before them.

use std::ops::{Range, RangeInclusive};

use crate::context::{self, Hint};
use crate::digits::{Gap, Groups, for_each_stretch};
use crate::glyphs::Glyphs;
use crate::national::may_start;
use crate::steps;

/// The gaps that are allowed between the groups of a number.
const GAPS: [Gap; 5] = [Gap::Space, Gap::Dash, Gap::Slash, Gap::Dot, Gap::Underscore];

/// Maximum groups of digits in a number.
const GROUPS: usize = 4;

/// How many digits a number has that is recognised by the word before it: a Steuernummer has ten to thirteen.
const NAMED: RangeInclusive<u8> = 10..=13;

/// Finds `86 095 742 719`, `86095742719`, and numbers after a word that means taxpayer number.
pub(crate) fn find(glyphs: &Glyphs) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for_each_stretch(glyphs, |stretch| {
        let mut at = 0;
        while at < stretch.len() {
            let next = number(glyphs, stretch.from(at));
            found.extend(next.map(Groups::span));
            at += next.map_or(1, Groups::len);
        }
    });
    found
}

/// The groups of a number that starts with the first of `rest`.
fn number<'a>(glyphs: &Glyphs, rest: Groups<'a>) -> Option<Groups<'a>> {
    let sums = rest.sums(GROUPS, *NAMED.end());
    if !sums.last().is_some_and(|most| NAMED.contains(most)) || !may_start(glyphs, rest) {
        return None;
    }
    let mut hint = None;
    sums.iter().enumerate().rev().find_map(|(last, sum)| {
        let count = last + 1;
        let groups = rest.upto(count).filter(|_| NAMED.contains(sum))?;
        let range = groups.span();
        let goes_on = rest.get(count).is_some_and(|group| group.gap.is_tight());
        let after = glyphs.at(range.end);
        let ends = !(goes_on || after.is_ascii_alphanumeric() || after == '_');
        if !(ends && groups.are_joined_by(&GAPS)) {
            return None;
        }
        let hint = *hint.get_or_insert_with(|| context::nearest(glyphs, range.start));
        let valid = || {
            !matches!(hint, Some(Hint::Phone | Hint::Thing))
                && matches!(&*groups.lengths(), [11] | [2, 3, 3, 3])
                && is_valid(&glyphs.digits(range))
        };
        (hint == Some(Hint::Tax) || valid()).then_some(groups)
    })
}

/// Whether eleven digits are a valid Steuer-ID: the first is not zero, exactly one digit of the first ten occurs more
/// than once, at most three times, and the check digit is valid (ISO 7064, mod 11, 10).
fn is_valid(digits: &[u8]) -> bool {
    steps::count(digits.len());
    let Some((check, first)) = digits.split_last() else {
        return false;
    };
    let mut times = [0_u8; 10];
    let mut product = 10;
    for digit in first {
        if let Some(times) = times.get_mut(usize::from(*digit)) {
            *times += 1;
        }
        let sum = (u32::from(*digit) + product) % 10;
        product = (if sum == 0 { 10 } else { sum }) * 2 % 11;
    }
    let repeated = times.iter().filter(|times| **times > 1).count();
    digits.len() == 11
        && !first.starts_with(&[0])
        && repeated == 1
        && times.iter().all(|times| *times <= 3)
        && (11 - product) % 10 == u32::from(*check)
}

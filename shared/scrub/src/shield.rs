//! Numbers that have a shape of their own and are not personal: books, dates, UUIDs, tracking numbers.

use std::ops::Range;

use crate::context::{self, Hint};
use crate::digits::{Gap, Groups, ean, for_each_stretch, number};
use crate::glyphs::Glyphs;

/// Lengths of the parts of a UUID.
const UUID: [usize; 5] = [8, 4, 4, 4, 12];

/// Hides them from the finders of numbers.
pub(crate) fn cover(glyphs: &mut Glyphs) {
    let mut hidden = uuids(glyphs);
    hidden.extend((0..glyphs.len()).filter_map(|at| parcel(glyphs, at)));
    for_each_stretch(glyphs, |stretch| {
        let signed = glyphs.before(stretch.span().start, 1) == '+';
        let mut at = 0;
        while at < stretch.len() {
            let rest = stretch.from(at);
            let next = book_13(glyphs, rest)
                .or_else(|| book_10(glyphs, rest))
                // After a plus sign, the country code and what follows it are not a date.
                .or_else(|| (!signed || at > 1).then(|| date(glyphs, rest)).flatten());
            if let Some((range, groups)) = next {
                hidden.push(range);
                at += groups;
            } else {
                at += 1;
            }
        }
    });
    for range in hidden {
        glyphs.shield(range);
    }
}

fn uuids(glyphs: &Glyphs) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < glyphs.len() {
        let word = glyphs.run(at, |glyph| glyph.is_ascii_hexdigit());
        if word - at == 8 && !glyphs.before(at, 1).is_ascii_alphanumeric() {
            let mut end = at;
            let whole = UUID.iter().enumerate().all(|(index, length)| {
                let from = end + usize::from(index > 0);
                let dashed = index == 0 || glyphs.at(end) == '-';
                end = glyphs.run_within(from, 13, |glyph| glyph.is_ascii_hexdigit());
                dashed && end - from == *length
            });
            if whole {
                found.push(at..end);
            }
        }
        at = word.max(at + 1);
    }
    found
}

/// A tracking number that starts with `1Z`, with or without spaces.
fn parcel(glyphs: &Glyphs, start: usize) -> Option<Range<usize>> {
    if !glyphs.starts(start, "1z") || glyphs.before(start, 1).is_ascii_alphanumeric() {
        return None;
    }
    let mut end = start;
    for _ in 0..18 {
        end += usize::from(end > start && glyphs.at(end) == ' ');
        if !glyphs.at(end).is_ascii_alphanumeric() {
            return None;
        }
        end += 1;
    }
    (!glyphs.at(end).is_ascii_alphanumeric()).then_some(start..end)
}

/// An ISBN-13, with or without gaps: the prefix of books and a valid check digit.
fn book_13(glyphs: &Glyphs, groups: Groups<'_>) -> Option<(Range<usize>, usize)> {
    let first = groups.first()?;
    if glyphs.before(first.at().start, 1) == '+' || matches!(first.gap, Gap::Dash | Gap::Dot) {
        return None;
    }
    // `978` or `979`; most numbers start otherwise.
    if glyphs.at(first.at().start) != '9' {
        return None;
    }
    let sums = groups.sums(6, 13);
    let count = sums.iter().position(|sum| *sum == 13)? + 1;
    let book = groups.upto(count)?;
    if !book.are_joined_by(&[Gap::Dash, Gap::Space]) {
        return None;
    }
    let digits = glyphs.digits(book.span());
    let prefix = digits.starts_with(&[9, 7, 8]) || digits.starts_with(&[9, 7, 9]);
    let shape = count == 1 || first.len() == 3 || (count == 2 && first.len() == 12);
    (prefix && shape && ean(&digits) && ends(glyphs, groups, count)).then(|| (book.span(), count))
}

/// An ISBN-10 with a valid check digit, which may be an X: without gaps, or in groups of which the last is the check
/// digit. A word for a telephone before it excludes it.
fn book_10(glyphs: &Glyphs, groups: Groups<'_>) -> Option<(Range<usize>, usize)> {
    let first = groups.first()?;
    if glyphs.before(first.at().start, 1) == '+' || first.gap.is_tight() {
        return None;
    }
    let x = |at: usize| matches!(glyphs.at(at), 'x' | 'X');
    let sums = groups.sums(4, 10);
    for count in [1, 3, 4] {
        if !matches!(sums.get(count - 1), Some(9 | 10)) {
            continue;
        }
        let book = groups.upto(count)?;
        let mut range = book.span();
        let mut digits = glyphs.digits(range.clone());
        let tail = range.end;
        if digits.len() == 9 {
            let dashed = usize::from(matches!(glyphs.at(tail), '-' | ' '));
            if x(tail + dashed) && (count != 1 || dashed == 0) {
                digits.push(10);
                range.end = tail + dashed + 1;
            }
        }
        let alone = book.lengths().last() == Some(&1);
        let written = range.end > tail || count == 1 || (count == 4 && alone);
        let valid = written
            && is_book(&digits)
            && book.are_joined_by(&[Gap::Dash, Gap::Space])
            && !glyphs.at(range.end).is_ascii_alphanumeric()
            && (range.end > tail || ends(glyphs, groups, count));
        let hint = || context::nearest(glyphs, range.start);
        if valid && !matches!(hint(), Some(Hint::Phone | Hint::Contact)) {
            return Some((range, count));
        }
    }
    None
}

/// Whether there are ten digits with a valid check digit of an ISBN-10, which is 10 for an X.
fn is_book(digits: &[u8]) -> bool {
    let weighed = digits.iter().zip((1..=10).rev());
    let sum: u32 = weighed
        .map(|(digit, weight)| u32::from(*digit) * weight)
        .sum();
    digits.len() == 10 && sum.is_multiple_of(11)
}

/// A date of day, month and year, or the other way round.
fn date(glyphs: &Glyphs, groups: Groups<'_>) -> Option<(Range<usize>, usize)> {
    let date = groups.upto(3)?;
    if !(groups.get(1)?.gap.is_tight() && groups.get(2)?.gap.is_tight()) {
        return None;
    }
    let order = match *date.lengths() {
        [4, 1..=2, 1..=2] => [0, 1, 2],
        [1..=2, 1..=2, 4] => [2, 1, 0],
        _ => return None,
    };
    let tight = match *date.gaps() {
        [second, third] => second == third && !date.first()?.gap.is_tight(),
        _ => false,
    };
    let value = |place| Some(number(glyphs, date.get(place)?.at()));
    let [year, month, day] = order.map(value);
    let known =
        (1900..2100).contains(&year?) && (1..=31).contains(&month?) && (1..=31).contains(&day?);
    (tight && known && ends(glyphs, groups, 3)).then(|| (date.span(), 3))
}

/// Whether the number ends with the group before `count`.
fn ends(glyphs: &Glyphs, groups: Groups<'_>, count: usize) -> bool {
    let end = groups.upto(count).map_or(0, |groups| groups.span().end);
    let next = groups.get(count).map(|group| group.gap);
    !next.is_some_and(Gap::is_tight) && !glyphs.at(end).is_ascii_digit()
}

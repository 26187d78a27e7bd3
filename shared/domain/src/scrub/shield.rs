//! Numbers that have a shape of their own and are nobody's: books, dates, UUIDs, parcels.

use std::ops::Range;

use super::context::{self, Hint};
use super::digits::{Gap, Group, ean, joined_by, lengths, number, span, stretches};
use super::glyphs::Glyphs;

/// Lengths of the parts of a UUID.
const UUID: [usize; 5] = [8, 4, 4, 4, 12];

/// Hides them from all that look for numbers.
pub(super) fn cover(glyphs: &mut Glyphs) {
    let mut hidden = uuids(glyphs);
    hidden.extend((0..glyphs.len()).filter_map(|at| parcel(glyphs, at)));
    for stretch in stretches(glyphs) {
        let signed = glyphs.before(span(&stretch).start, 1) == '+';
        let mut at = 0;
        while at < stretch.len() {
            let rest = stretch.get(at..).unwrap_or_default();
            let next = book_13(glyphs, rest)
                .or_else(|| book_10(glyphs, rest))
                // Right behind its country no part of a number is a date.
                .or_else(|| (!signed || at > 1).then(|| date(glyphs, rest)).flatten());
            if let Some((range, groups)) = next {
                hidden.push(range);
                at += groups;
            } else {
                at += 1;
            }
        }
    }
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
                end = glyphs
                    .run(from, |glyph| glyph.is_ascii_hexdigit())
                    .min(from + 13);
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

/// A parcel that starts with `1Z`, which is written in groups.
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

/// An ISBN-13, or the same in one piece: the prefix of books and a valid check digit.
fn book_13(glyphs: &Glyphs, groups: &[Group]) -> Option<(Range<usize>, usize)> {
    let first = groups.first()?;
    if glyphs.before(first.at.start, 1) == '+' || matches!(first.gap, Gap::Dash | Gap::Dot) {
        return None;
    }
    let count = whole(groups, 13)?;
    let book = groups.get(..count)?;
    let digits = glyphs.digits(span(book));
    let prefix = digits.starts_with(&[9, 7, 8]) || digits.starts_with(&[9, 7, 9]);
    let shape = count == 1 || first.len() == 3 || (count == 2 && first.len() == 12);
    (prefix && shape && ean(&digits) && ends(glyphs, groups, count)).then(|| (span(book), count))
}

/// An ISBN-10: in one piece, or as four groups with the check digit alone; with a valid check
/// digit, which may be an X. The word for a telephone before it says otherwise.
fn book_10(glyphs: &Glyphs, groups: &[Group]) -> Option<(Range<usize>, usize)> {
    let first = groups.first()?;
    if glyphs.before(first.at.start, 1) == '+' || first.gap.is_tight() {
        return None;
    }
    let x = |at: usize| matches!(glyphs.at(at), 'x' | 'X');
    for count in [1, 3, 4] {
        let Some(book) = groups.get(..count) else {
            break;
        };
        let mut range = span(book);
        let mut digits = glyphs.digits(range.clone());
        let parts = lengths(book);
        let tail = range.end;
        let dashed = usize::from(matches!(glyphs.at(tail), '-' | ' '));
        if digits.len() == 9 && x(tail + dashed) && (count != 1 || dashed == 0) {
            digits.push(10);
            range.end = tail + dashed + 1;
        } else if count == 3 || (count == 4 && parts.last() != Some(&1)) {
            continue;
        }
        let weighed = digits.iter().zip((1..=10).rev());
        let sum: u32 = weighed
            .map(|(digit, weight)| u32::from(*digit) * weight)
            .sum();
        let valid = digits.len() == 10
            && sum.is_multiple_of(11)
            && joined_by(book, &[Gap::Dash, Gap::Space])
            && !glyphs.at(range.end).is_ascii_alphanumeric()
            && (range.end > tail || ends(glyphs, groups, count));
        let hint = context::nearest(glyphs, range.start);
        if valid && !matches!(hint, Some(Hint::Phone | Hint::Contact)) {
            return Some((range, count));
        }
    }
    None
}

/// A date of day, month and year, or the other way round.
fn date(glyphs: &Glyphs, groups: &[Group]) -> Option<(Range<usize>, usize)> {
    let date = groups.get(..3)?;
    let [first, second, third] = date else {
        return None;
    };
    let tight = second.gap.is_tight() && second.gap == third.gap && !first.gap.is_tight();
    let values = date.iter().map(|group| number(glyphs, group.at.clone()));
    let values: Vec<u64> = values.collect();
    let day = |value: &u64| (1..=31).contains(value);
    let year = |value: &u64| (1900..2100).contains(value);
    let known = match (lengths(date).as_slice(), values.as_slice()) {
        ([4, 1..=2, 1..=2], [first, second, third]) => year(first) && day(second) && day(third),
        ([1..=2, 1..=2, 4], [first, second, third]) => day(first) && day(second) && year(third),
        _ => false,
    };
    (tight && known && ends(glyphs, groups, 3)).then(|| (span(date), 3))
}

/// How many groups have exactly so many digits together.
fn whole(groups: &[Group], digits: usize) -> Option<usize> {
    let mut sum = 0;
    for (index, group) in groups.iter().enumerate().take(6) {
        let joins = index == 0 || matches!(group.gap, Gap::Dash | Gap::Space);
        sum += group.len();
        if !joins || sum > digits {
            return None;
        }
        if sum == digits {
            return Some(index + 1);
        }
    }
    None
}

/// Whether the number ends with the group before `count`.
fn ends(glyphs: &Glyphs, groups: &[Group], count: usize) -> bool {
    let end = span(groups.get(..count).unwrap_or_default()).end;
    let next = groups.get(count).map(|group| group.gap);
    !next.is_some_and(Gap::is_tight) && !glyphs.at(end).is_ascii_digit()
}

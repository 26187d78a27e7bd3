//! National identity numbers, recognised by their shape or check digit: of the United States, Canada, the United
//! Kingdom, France, Italy, Spain, Switzerland, Sweden, Finland, Brazil, Korea and China. Others by the word before
//! them.

use std::ops::Range;

use crate::context::{self, Hint};
use crate::digits::{Gap, Groups, ean, for_each_stretch, luhn};
use crate::glyphs::Glyphs;

/// The maximum number of groups in a number.
const GROUPS: usize = 7;

/// Digits of a number that is recognised by the word before it.
const NAMED: std::ops::RangeInclusive<u8> = 8..=18;

/// Finds numbers of digits alone, then those with letters.
pub(crate) fn find(glyphs: &Glyphs) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for_each_stretch(glyphs, |stretch| {
        let mut at = 0;
        while at < stretch.len() {
            let next = of_digits(glyphs, stretch.from(at), at == 0);
            found.extend(next.map(Groups::span));
            at += next.map_or(1, Groups::len);
        }
    });
    let mut at = 0;
    let mut covered = found.clone().into_iter().peekable();
    while at < glyphs.len() {
        if let Some(range) = covered.next_if(|range| range.start <= at) {
            at = at.max(range.end);
            continue;
        }
        let starts = glyphs.at(at).is_ascii_alphanumeric()
            && !glyphs.before(at, 1).is_ascii_alphanumeric()
            && !matches!(glyphs.before(at, 1), '_' | '-');
        match starts.then(|| with_letters(glyphs, at)).flatten() {
            Some(end) => {
                found.push(at..end);
                at = end;
            }
            None => at += 1,
        }
    }
    found.sort_unstable_by_key(|range| range.start);
    found
}

/// The groups of a number that starts with the first of `rest`.
fn of_digits<'a>(glyphs: &Glyphs, rest: Groups<'a>, first: bool) -> Option<Groups<'a>> {
    let sums = rest.sums(GROUPS, *NAMED.end());
    if !sums.last().is_some_and(|most| NAMED.contains(most)) || !may_start(glyphs, rest) {
        return None;
    }
    let mut hint = None;
    // The longest first.
    for (last, sum) in sums.iter().enumerate().rev() {
        if sum < NAMED.start() {
            break;
        }
        let count = last + 1;
        let groups = rest.upto(count)?;
        let range = groups.span();
        let next = rest.get(count).map(|group| group.gap);
        let after = glyphs.at(range.end);
        if next.is_some_and(Gap::is_tight) || after.is_ascii_alphanumeric() || after == '_' {
            continue;
        }
        let hint = hint.get_or_insert_with(|| context::nearest(glyphs, range.start));
        let named = *hint == Some(Hint::Citizen)
            && groups.are_joined_by(&[Gap::Space, Gap::Dash, Gap::Dot]);
        if named || is_national(glyphs, groups, first && next.is_none()) {
            return Some(groups);
        }
    }
    None
}

/// Whether a number may start with the first group: it is not part of a word or of a longer number.
pub(crate) fn may_start(glyphs: &Glyphs, rest: Groups<'_>) -> bool {
    let Some(start) = rest.first() else {
        return false;
    };
    let before = glyphs.before(start.at().start, 1);
    let joined =
        before.is_ascii_alphanumeric() || matches!(before, '_' | '#' | '+' | '$' | '€' | '£');
    let named = matches!(before, '-' | '.' | '/')
        && glyphs.before(start.at().start, 2).is_ascii_alphanumeric();
    !(joined || named || start.gap.is_tight())
}

/// `alone`: no other groups are next to it, which excludes a row of a table.
fn is_national(glyphs: &Glyphs, groups: Groups<'_>, alone: bool) -> bool {
    let lengths = groups.lengths();
    let joined: fn(&[Gap]) -> bool = match &*lengths {
        // Social security number and taxpayer number of the United States.
        [3, 2, 4] if alone => {
            |gaps| are(gaps, &[Gap::Space, Gap::Dash]) || are(gaps, &[Gap::Underscore])
        }
        [3, 2, 4] => |gaps| are(gaps, &[Gap::Dash]) || are(gaps, &[Gap::Underscore]),
        // Social insurance number of Canada, which with spaces could also be an amount. Resident numbers of Korea and
        // Sweden.
        [3, 3, 3] | [6, 7] | [6 | 8, 4] => |gaps| are(gaps, &[Gap::Dash]),
        // Cadastro de Pessoas Físicas of Brazil.
        [3, 3, 3, 2] => |gaps| *gaps == [Gap::Dot, Gap::Dot, Gap::Dash],
        // AHV number of Switzerland.
        [3, 4, 4, 2] => |gaps| are(gaps, &[Gap::Dot]),
        // Resident identity number of China.
        [18] => |_| true,
        // Numéro de sécurité sociale of France.
        [15] | [13, 2] | [1, 2, 2, 2, 3, 3, 2] => |gaps| are(gaps, &[Gap::Space, Gap::Dash]),
        _ => return false,
    };
    joined(&groups.gaps()) && is_valid(&lengths, &glyphs.digits(groups.span()))
}

fn are(gaps: &[Gap], allowed: &[Gap]) -> bool {
    gaps.iter().all(|gap| allowed.contains(gap))
}

/// Whether the check digit and the date of birth in the number are valid.
fn is_valid(lengths: &[u8], digits: &[u8]) -> bool {
    let value = |from: usize, length: usize| {
        let digits = digits.iter().skip(from).take(length);
        digits.fold(0_u64, |number, digit| number * 10 + u64::from(*digit))
    };
    match lengths {
        [3, 3, 3] => luhn(digits),
        [3, 4, 4, 2] => value(0, 3) == 756 && ean(digits),
        [6, 7] => is_date(value(2, 2), value(4, 2)) && (1..=8).contains(&value(6, 1)),
        [6, 4] => is_date(value(2, 2), value(4, 2)) && luhn(digits),
        [8, 4] => is_date(value(4, 2), value(6, 2)) && luhn(digits.get(2..).unwrap_or_default()),
        [18] => is_resident(digits.get(..17).unwrap_or_default(), digits.last().copied()),
        [15] | [13, 2] | [1, 2, 2, 2, 3, 3, 2] => {
            matches!(value(0, 1), 1..=4 | 7 | 8)
                && matches!(value(3, 2), 1..=12 | 20..=42)
                && 97 - value(0, 13) % 97 == value(13, 2)
        }
        _ => true,
    }
}

fn is_date(month: u64, day: u64) -> bool {
    (1..=12).contains(&month) && (1..=31).contains(&day)
}

/// The weights of the first 17 digits of a resident identity number.
const WEIGHTS: [u32; 17] = [7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2];

/// Whether 17 digits contain a date of birth and have this check digit, 10 for an X (ISO 7064).
fn is_resident(digits: &[u8], check: Option<u8>) -> bool {
    let value = |from: usize, length: usize| {
        let digits = digits.iter().skip(from).take(length);
        digits.fold(0_u64, |number, digit| number * 10 + u64::from(*digit))
    };
    let weighed = digits.iter().zip(WEIGHTS);
    let sum: u32 = weighed
        .map(|(digit, weight)| u32::from(*digit) * weight)
        .sum();
    let expected = (12 - sum % 11) % 11;
    digits.len() == 17
        && (1900..2100).contains(&value(6, 4))
        && is_date(value(10, 2), value(12, 2))
        && check.map(u32::from) == Some(expected)
}

/// Whether a number that has a shape is valid. Without separators.
type Check = fn(&str) -> bool;

/// The shapes with letters: `A` is a capital letter, `a` any letter, `9` a digit, `*` a letter or a digit.
const SHAPES: [(&str, Check); 11] = [
    ("AA999999A", is_insured),
    ("AA 999999 A", is_insured),
    ("AA 99 99 99 A", is_insured),
    ("aaaaaa99a99a999a", is_fiscal),
    ("99999999A", is_identity),
    ("99999999-A", is_identity),
    ("99.999.999-A", is_identity),
    ("A9999999A", is_identity),
    ("A-9999999-A", is_identity),
    ("999999-999*", is_finnish),
    ("99999999999999999a", |written| {
        let digits: Vec<u8> = written
            .bytes()
            .filter_map(|byte| byte.checked_sub(b'0'))
            .collect();
        written.ends_with(['x', 'X']) && is_resident(digits.get(..17).unwrap_or_default(), Some(10))
    }),
];

fn with_letters(glyphs: &Glyphs, at: usize) -> Option<usize> {
    let digits = glyphs.run_within(at, 18, |glyph| glyph.is_ascii_digit()) - at;
    // Excludes most numbers at once.
    if !matches!(digits, 0 | 2 | 6 | 8 | 17) {
        return None;
    }
    SHAPES.iter().find_map(|(shape, is_valid)| {
        let end = at + shape.len();
        let mut places = shape.chars().zip(at..);
        let fits = places.all(|(expected, at)| {
            let glyph = glyphs.at(at);
            match expected {
                'A' => glyph.is_ascii_uppercase(),
                'a' => glyph.is_ascii_alphabetic(),
                '9' => glyph.is_ascii_digit(),
                '*' => glyph.is_ascii_alphanumeric(),
                mark => glyph == mark,
            }
        });
        let ends = !glyphs.at(end).is_ascii_alphanumeric() && glyphs.at(end) != '_';
        let plain = || -> String {
            let glyphs = glyphs.chars(at..end);
            glyphs.filter(char::is_ascii_alphanumeric).collect()
        };
        (fits && ends && is_valid(&plain())).then_some(end)
    })
}

/// National Insurance number of the United Kingdom. `QQ` is the prefix of examples.
fn is_insured(written: &str) -> bool {
    let mut letters = written.chars();
    let first = letters
        .next()
        .is_some_and(|letter| !"DFIUV".contains(letter));
    let second = letters
        .next()
        .is_some_and(|letter| !"DFIOUV".contains(letter));
    first && second && written.ends_with(['A', 'B', 'C', 'D'])
}

/// Codice fiscale of Italy: the ninth character is the month.
fn is_fiscal(written: &str) -> bool {
    let month = written
        .chars()
        .nth(8)
        .map(|letter| letter.to_ascii_uppercase());
    month.is_some_and(|letter| "ABCDEHLMPRST".contains(letter))
}

/// DNI and NIE of Spain: the last letter is a remainder.
fn is_identity(written: &str) -> bool {
    let Some((body, letter)) = written.split_at_checked(written.len().saturating_sub(1)) else {
        return false;
    };
    let body = match body.chars().next() {
        Some('X') => body.replacen('X', "0", 1),
        Some('Y') => body.replacen('Y', "1", 1),
        Some('Z') => body.replacen('Z', "2", 1),
        _ => body.to_owned(),
    };
    let remainder = body.parse::<usize>().ok().map(|number| number % 23);
    let expected = remainder.and_then(|at| "TRWAGMYFPDXBNJZSQVHLCKE".get(at..=at));
    expected == Some(letter)
}

/// Henkilötunnus of Finland: a date of birth, three digits, and a remainder.
fn is_finnish(written: &str) -> bool {
    let part = |range: Range<usize>| written.get(range).and_then(|part| part.parse::<u64>().ok());
    let date = part(0..2).zip(part(2..4));
    let remainder = part(0..9).and_then(|number| usize::try_from(number % 31).ok());
    let expected = remainder.and_then(|at| "0123456789ABCDEFHJKLMNPRSTUVWXY".get(at..=at));
    date.is_some_and(|(day, month)| is_date(month, day))
        && expected.is_some_and(|expected| written.to_ascii_uppercase().ends_with(expected))
}

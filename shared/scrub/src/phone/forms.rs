//! The forms of a telephone number. Each function returns the number of groups that match.

use std::ops::RangeInclusive;

use super::{Candidate, around};
use crate::context::Hint;
use crate::digits::Gap;
use crate::glyphs::{Glyphs, is_unspaced};

/// Digits of a number with its country code: the minimum of all countries, and the maximum (E.164).
const WORLD: RangeInclusive<u8> = 8..=15;

impl Candidate<'_> {
    /// `+49 (0)30 123456-78`. North America and Russia have eleven digits. With a single dot it is a decimal number,
    /// with dots and dashes a pair of coordinates.
    pub(super) fn signed(&self) -> Option<usize> {
        let leading = self.leading(1);
        let count = match leading {
            [1 | 7] => self.longest(11..=11),
            [0] => None,
            _ => self.longest(WORLD),
        }?;
        let gaps = self.gaps(count);
        let dots = gaps.iter().filter(|gap| **gap == Gap::Dot).count();
        let decimal = dots == 1 && gaps.len() == 1 || dots > 0 && gaps.contains(&Gap::Dash);
        let american = leading == [1] && self.digits(count) == 11;
        (!decimal || american || self.is_named()).then_some(count)
    }

    /// `0049 30 123456`, `011 44 20 7946 0958`. Without gaps, a full number must follow the zeros: fewer digits are a
    /// small number padded with zeros.
    pub(super) fn foreign(&self) -> Option<usize> {
        let country = match self.leading(4) {
            [0, 0, 1..=9, _] if self.groups.first()?.len() >= 2 => 2,
            [0, 1, 1, 1..=9] if self.groups.first().is_some_and(|group| group.len() == 3) => 3,
            _ => return None,
        };
        let count = self.longest(country + WORLD.start()..=country + WORLD.end())?;
        let digits = self.digits(count) - usize::from(country);
        let pairs = self.are_pairs(count);
        let one_piece = count == 1 && (digits < 10 || self.is_thing());
        (!pairs && !one_piece || self.is_named()).then_some(count)
    }

    /// `(030) 123456-78`, `(555) 123-4567`. A year in parentheses is no area code.
    pub(super) fn in_parentheses(&self) -> Option<usize> {
        if !self.open {
            return None;
        }
        let area = self.groups.first()?.len();
        let leading = self.leading(2);
        let zero = leading.starts_with(&[0]);
        let year = area == 4 && matches!(leading, [1, 9] | [2, 0]);
        if year || area > 5 || (area == 1 && !zero) {
            return None;
        }
        if self.lengths(3) == [3, 3, 4] && self.may_end(3) {
            return Some(3);
        }
        let digits = if zero { 8..=12 } else { 9..=12 };
        let count = self.longest(digits)?;
        (self.digits(count) >= area + 5).then_some(count)
    }

    /// `555-123-4567`, `1 (555) 123-4567`, `555 123 4567`: three, three and four digits. With spaces only, it must not
    /// be part of a table row.
    pub(super) fn american(&self) -> Option<usize> {
        let country = usize::from(self.leading(1) == [1] && self.groups.first()?.len() == 1);
        let count = country + 3;
        if self.lengths(count).get(country..)? != [3, 3, 4] || !self.may_end(count) {
            return None;
        }
        let area = self.glyphs.at(self.groups.get(country)?.at().start);
        let gaps = self.gaps(count);
        let alone = self.is_named() || (self.is_isolated(count) && matches!(area, '2'..='9'));
        let written = match gaps.get(country..)? {
            [Gap::Dash | Gap::Slash | Gap::Space | Gap::Close, Gap::Dash]
            | [Gap::Dot | Gap::Close, Gap::Dot]
            | [Gap::Close, Gap::Space | Gap::WideDash]
            | [Gap::Underscore, Gap::Underscore] => true,
            [Gap::Space, Gap::Space] => alone && !self.is_thing(),
            [Gap::WideDash, Gap::WideDash] => self.is_named(),
            _ => false,
        };
        written.then_some(count)
    }

    /// `138 0013 8000`, with or without `86`. Without gaps, only in Chinese text or after a word for a telephone.
    pub(super) fn chinese(&self) -> Option<usize> {
        let first = self.groups.first()?;
        let code = self.leading(4);
        let (country, mobile) = match code {
            [8, 6, 1, 3..=9] => (2, true),
            [1, 3..=9, _, _] => (0, true),
            _ => (0, false),
        };
        if !mobile {
            return None;
        }
        if first.len() == country + 11 && self.may_end(1) {
            let adjacent = is_unspaced(self.glyphs.before(self.start, 1))
                || is_unspaced(self.glyphs.before(self.start, 2))
                || is_unspaced(self.glyphs.at(first.at().end));
            return (self.is_named() || (adjacent && self.hint().is_none())).then_some(1);
        }
        let extra = usize::from(country > 0);
        let shape: &[u8] = if extra == 0 {
            &[3, 4, 4]
        } else {
            &[2, 3, 4, 4]
        };
        let shape = self.lengths(extra + 3) == shape;
        let gaps = self.gaps(extra + 3);
        let separate = gaps.iter().all(|gap| matches!(gap, Gap::Space | Gap::Dash));
        (shape && separate && self.may_end(extra + 3)).then_some(extra + 3)
    }

    /// `07700 900123`, `030/123456`, `06 12 34 56 78`: the national form in most countries.
    pub(super) fn with_zero(&self) -> Option<usize> {
        let leading = self.leading(3);
        if !matches!(leading, [0, 1..=9, _]) || self.groups.first()?.len() < 2 {
            return None;
        }
        let count = self.longest(9..=12)?;
        if count == 1 {
            let long = self.digits(1) == 12 && matches!(leading, [0, 1, 5..=7]);
            let usual = matches!(self.digits(1), 9..=11);
            return ((usual || long) && !self.is_thing()).then_some(1);
        }
        let gaps = self.gaps(count);
        if self.are_pairs(count) {
            let french = gaps.len() >= 4 && gaps.iter().all(|gap| Some(gap) == gaps.first());
            return (french && (self.is_isolated(5) || self.is_named())).then_some(5);
        }
        let dots = gaps.iter().filter(|gap| **gap == Gap::Dot).count();
        (dots == 0 || dots == gaps.len()).then_some(count)
    }

    /// `98765 43210` of India, `495 123-45-67` of Russia and Turkey, and three groups of three with dashes, which with
    /// spaces would be an amount.
    pub(super) fn shaped(&self) -> Option<usize> {
        let leading = self.leading(1);
        if self.lengths(2) == [5, 5] && matches!(leading, [6..=9]) {
            let gap = self.gaps(2);
            let written = *gap == [Gap::Dash] || (*gap == [Gap::Space] && self.is_isolated(2));
            return (written && self.may_end(2) && !self.is_thing()).then_some(2);
        }
        let trunk = usize::from(leading == [8] && self.lengths(1) == [1]);
        if self.lengths(trunk + 4).get(trunk..) == Some(&[3, 3, 2, 2]) && self.may_end(trunk + 4) {
            let gaps = self.gaps(trunk + 4);
            let dashed = gaps.ends_with(&[Gap::Dash, Gap::Dash]);
            let spaced = gaps.iter().all(|gap| *gap == Gap::Space) && self.is_isolated(trunk + 4);
            return ((dashed || spaced) && !self.is_thing()).then_some(trunk + 4);
        }
        let dashed = self.lengths(3) == [3, 3, 3] && *self.gaps(3) == [Gap::Dash, Gap::Dash];
        (dashed && self.may_end(3) && !self.is_thing()).then_some(3)
    }

    /// `612345678`, `15551234567`: nine or eleven digits without gaps, as in mobile numbers of many countries and in
    /// few other numbers. Only with certain first digits, and only in a sentence: not in code, and not before a unit.
    pub(super) fn bare(&self) -> Option<usize> {
        let first = self.groups.first()?;
        let mobile = matches!(
            (first.len(), self.leading(4)),
            (9, [6 | 7 | 9, ..])
                | (
                    11,
                    [1, 2..=9, ..]
                        | [1, 1, 9, _]
                        | [7 | 8, 9, ..]
                        | [7 | 8, 4, 9, _]
                        | [8, 8, 0, 0]
                )
        );
        let end = first.at().end;
        let written = mobile
            && !is_code(self.glyphs, self.start)
            && self.may_end(1)
            && !around::is_counted(self.glyphs, end);
        (written && !self.is_thing()).then_some(1)
    }

    /// Any digits after a word for a telephone: `call 555-0199`. Some of the words often mean something else ("the text
    /// has 1000 2000 3000 rows"): after them it must not be part of a row.
    pub(super) fn hinted(&self) -> Option<usize> {
        let hint = self.hint()?;
        if !matches!(hint, Hint::Phone | Hint::Contact) {
            return None;
        }
        let count = self.longest(7..=15)?;
        let gaps = self.gaps(count);
        let more = self.passed > 0 || count < self.groups.len();
        let row = more && gaps.iter().all(|gap| *gap == Gap::Space);
        let enough = match count {
            _ if hint == Hint::Phone => true,
            1 => (9..=12).contains(&self.digits(1)),
            _ => !row,
        };
        (enough && *gaps != [Gap::Dot]).then_some(count)
    }
}

/// Whether a number is a value or an argument: `n = 612345678`, `f(612345678)`, `a[612345678]`.
fn is_code(glyphs: &Glyphs, start: usize) -> bool {
    let space = usize::from(glyphs.before(start, 1) == ' ');
    match glyphs.before(start, 1 + space) {
        '=' | '[' => true,
        '(' => glyphs.before(start, 2 + space).is_ascii_alphanumeric(),
        _ => false,
    }
}

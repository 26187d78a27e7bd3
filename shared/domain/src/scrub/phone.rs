//! Telephone numbers, as people write them in any country.
//!
//! There is no list of what numbers exist: a plan of numbers tells which are assigned, not what is
//! meant. What counts is a plus sign, a leading zero, a shape, or a word before.

use std::cell::OnceCell;
use std::ops::Range;

use super::context::{self, Hint};
use super::digits::{Gap, Group, stretches};
use super::glyphs::Glyphs;

mod around;
mod forms;

/// Finds numbers with what dials an extension behind them.
pub(super) fn find(glyphs: &Glyphs) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for stretch in stretches(glyphs) {
        let mut at = 0;
        while at < stretch.len() {
            let next =
                Candidate::new(glyphs, &stretch, at).and_then(|candidate| candidate.number());
            found.extend(next.iter().map(|(range, _)| range.clone()));
            at += next.map_or(1, |(_, groups)| groups);
        }
    }
    found
}

/// A place where a number may start.
struct Candidate<'a> {
    glyphs: &'a Glyphs,
    /// The groups of digits from there on.
    groups: &'a [Group],
    /// How many groups are before.
    passed: usize,
    /// Where it starts, with its plus sign or parenthesis.
    start: usize,
    /// Whether there is a plus sign.
    plus: bool,
    /// Whether there is an area in parentheses.
    open: bool,
    /// Whether there is a parenthesis before the plus sign.
    around: bool,
    /// What the words before say, once that was asked for.
    hint: OnceCell<Option<Hint>>,
}

impl<'a> Candidate<'a> {
    fn new(glyphs: &'a Glyphs, stretch: &'a [Group], at: usize) -> Option<Self> {
        let groups = stretch.get(at..)?;
        let mut start = groups.first()?.at.start;
        // Otherwise it is one around the whole number, and stays.
        let closed = |group: &Group| group.gap == Gap::Close;
        let open = glyphs.before(start, 1) == '(' && groups.get(1).is_some_and(closed);
        start -= usize::from(open);
        let plus = glyphs.before(start, 1) == '+';
        start -= usize::from(plus);
        // `(+49 30) 123456`
        let around = plus && !open && glyphs.before(start, 1) == '(' && closes(groups);
        start -= usize::from(around);
        Some(Self {
            glyphs,
            groups,
            passed: at,
            start,
            plus,
            open,
            around,
            hint: OnceCell::new(),
        })
    }

    /// Where the number is, and how many groups it has.
    fn number(&self) -> Option<(Range<usize>, usize)> {
        if !self.may_start() {
            return None;
        }
        let count = if self.plus {
            self.signed()
        } else {
            self.foreign()
                .or_else(|| self.in_parentheses())
                .or_else(|| self.american())
                .or_else(|| self.chinese())
                .or_else(|| self.with_zero())
                .or_else(|| self.shaped())
        };
        let count = count.or_else(|| self.hinted())?;
        let end = self.groups.get(count.checked_sub(1)?)?.at.end;
        let extended = around::extension(self.glyphs, end).unwrap_or(end);
        let lost = self.around && !closes(self.groups.get(..count)?);
        let start = self.start + usize::from(lost);
        let covered = self.groups.iter().filter(|group| group.at.start < extended);
        Some((start..extended, covered.count().max(count)))
    }

    /// What the words before say.
    fn hint(&self) -> Option<Hint> {
        *self
            .hint
            .get_or_init(|| context::nearest(self.glyphs, self.start))
    }

    /// Whether a word says that it is a telephone number.
    fn is_named(&self) -> bool {
        matches!(self.hint(), Some(Hint::Phone | Hint::Contact))
    }

    /// Whether a word says that it is the number of a thing.
    fn is_thing(&self) -> bool {
        matches!(self.hint(), Some(Hint::Thing | Hint::Version))
    }

    /// How many digits the first `count` groups have.
    fn digits(&self, count: usize) -> usize {
        self.groups.iter().take(count).map(Group::len).sum()
    }

    /// The first `count` digits of the number.
    fn leading(&self, count: usize) -> Vec<u8> {
        let mut digits = Vec::with_capacity(count);
        for group in self.groups.iter().take(count) {
            let end = group.at.end.min(group.at.start + count);
            digits.extend(self.glyphs.digits(group.at.start..end));
        }
        digits.truncate(count);
        digits
    }

    /// The gaps between the first `count` groups.
    fn gaps(&self, count: usize) -> Vec<Gap> {
        let groups = self.groups.iter().take(count);
        groups.skip(1).map(|group| group.gap).collect()
    }

    /// Whether the number may end with the group before `count`.
    fn may_end(&self, count: usize) -> bool {
        let Some(last) = count.checked_sub(1).and_then(|last| self.groups.get(last)) else {
            return false;
        };
        let next = self.groups.get(count).map(|group| group.gap);
        // Behind a slash there may be another number.
        let goes_on = next.is_some_and(|gap| gap.is_tight() && gap != Gap::Slash);
        !goes_on && around::ends(self.glyphs, last.at.end)
    }

    /// Whether it is not a part of what stands before it.
    fn may_start(&self) -> bool {
        let gap = self.groups.first().map_or(Gap::Start, |group| group.gap);
        !gap.is_tight() && around::starts(self.glyphs, self.start, self.plus)
    }

    /// Whether no further group of a table or a list is beside it.
    fn is_isolated(&self, count: usize) -> bool {
        self.passed == 0 && self.groups.get(count).is_none()
    }

    /// The most groups that have a number of digits in `digits`, and end where a number may.
    fn longest(&self, digits: std::ops::RangeInclusive<usize>) -> Option<usize> {
        let mut sum = 0;
        let mut longest = None;
        for (index, group) in self.groups.iter().enumerate() {
            sum += group.len();
            if sum > *digits.end() {
                break;
            }
            if digits.contains(&sum) && self.may_end(index + 1) {
                longest = Some(index + 1);
            }
        }
        longest
    }
}

/// Whether these groups close a parenthesis that they do not open.
fn closes(groups: &[Group]) -> bool {
    let mut gaps = groups.iter().skip(1).map(|group| group.gap);
    gaps.find(|gap| matches!(gap, Gap::Open | Gap::Close)) == Some(Gap::Close)
}

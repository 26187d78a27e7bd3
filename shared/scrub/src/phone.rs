//! Telephone numbers, as people write them in any country.
//!
//! There is no list of existing numbers: a numbering plan shows which numbers are assigned, not what a text means. A
//! number is recognised by a plus sign, a leading zero, a shape, or a word before it.

use std::cell::OnceCell;
use std::ops::{Range, RangeInclusive};

use crate::context::{self, Hint};
use crate::digits::{Gap, Groups, for_each_stretch};
use crate::glyphs::Glyphs;
use crate::short::Short;

mod around;
mod forms;

/// Maximum number of digits, and so of groups.
const MOST: usize = 18;

/// Finds numbers, with their extensions.
pub(crate) fn find(glyphs: &Glyphs) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for_each_stretch(glyphs, |stretch| {
        let mut at = 0;
        while at < stretch.len() {
            let candidate = Candidate::new(glyphs, stretch, at);
            let next = candidate.and_then(|candidate| candidate.number());
            at += next.as_ref().map_or(1, |(_, groups)| *groups);
            found.extend(next.map(|(range, _)| range));
        }
    });
    found
}

/// A place where a number may start.
struct Candidate<'a> {
    glyphs: &'a Glyphs<'a>,
    /// The groups of digits from there on.
    groups: Groups<'a>,
    /// How many groups precede it.
    passed: usize,
    /// Where it starts, with its plus sign or parenthesis.
    start: usize,
    /// Whether there is a plus sign.
    plus: bool,
    /// Whether there is an area code in parentheses.
    open: bool,
    /// Whether there is a parenthesis before the plus sign.
    around: bool,
    /// The first four digits, read when needed.
    leading: OnceCell<Short<u8>>,
    /// The lengths of the first groups, read when needed.
    lengths: OnceCell<Short<u8>>,
    /// The hint of the words before, read when needed.
    hint: OnceCell<Option<Hint>>,
}

impl<'a> Candidate<'a> {
    fn new(glyphs: &'a Glyphs<'a>, stretch: Groups<'a>, at: usize) -> Option<Self> {
        let groups = stretch.from(at);
        let mut start = groups.first()?.at().start;
        // A parenthesis around the whole number is kept.
        let closed = || groups.get(1).is_some_and(|group| group.gap == Gap::Close);
        let open = glyphs.before(start, 1) == '(' && closed();
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
            leading: OnceCell::new(),
            lengths: OnceCell::new(),
            hint: OnceCell::new(),
        })
    }

    /// The range of the number, and how many groups it has.
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
                .or_else(|| self.bare())
        };
        let mut count = count.or_else(|| self.hinted())?;
        let end = self.groups.get(count.checked_sub(1)?)?.at().end;
        let extended = around::extension(self.glyphs, end).unwrap_or(end);
        let lost = self.around && !closes(self.groups.upto(count)?);
        let start = self.start + usize::from(lost);
        while (self.groups.get(count)).is_some_and(|group| group.at().start < extended) {
            count += 1;
        }
        Some((start..extended, count))
    }

    /// The hint that the preceding words give.
    fn hint(&self) -> Option<Hint> {
        *self
            .hint
            .get_or_init(|| context::nearest(self.glyphs, self.start))
    }

    /// Whether a word says that it is a telephone number.
    fn is_named(&self) -> bool {
        matches!(self.hint(), Some(Hint::Phone | Hint::Contact))
    }

    /// Whether a word says that it is the number of an object.
    fn is_thing(&self) -> bool {
        matches!(self.hint(), Some(Hint::Thing | Hint::Version))
    }

    /// How many digits the first `count` groups have.
    fn digits(&self, count: usize) -> usize {
        let groups = self.groups.iter().take(count);
        groups.map(crate::digits::Group::len).sum()
    }

    /// The first `count` digits of the number, up to four.
    fn leading(&self, count: usize) -> &[u8] {
        let leading = self.leading.get_or_init(|| {
            let groups = self.groups.iter().take(4);
            let glyphs = groups.flat_map(|group| self.glyphs.chars(group.at()));
            let digits = glyphs.take(4).filter_map(|glyph| glyph.to_digit(10));
            Short::of(digits.filter_map(|digit| u8::try_from(digit).ok()), 0)
        });
        leading.get(..count).unwrap_or(leading)
    }

    /// The lengths of the first `count` groups, at most five; none if there are fewer groups.
    fn lengths(&self, count: usize) -> &[u8] {
        let lengths = self.lengths.get_or_init(|| {
            let groups = self.groups.upto(self.groups.len().min(5));
            groups.map_or(Short::of([], 0), Groups::lengths)
        });
        lengths.get(..count).unwrap_or_default()
    }

    /// Whether the first `count` groups are pairs of digits.
    fn are_pairs(&self, count: usize) -> bool {
        let mut groups = self.groups.iter().take(count);
        groups.all(|group| group.len() == 2)
    }

    /// The gaps between the first `count` groups.
    fn gaps(&self, count: usize) -> Short<Gap> {
        let groups = self.groups.iter().take(count);
        Short::of(groups.skip(1).map(|group| group.gap), Gap::Start)
    }

    /// Whether the number may end with the group before `count`.
    fn may_end(&self, count: usize) -> bool {
        let Some(last) = count.checked_sub(1).and_then(|last| self.groups.get(last)) else {
            return false;
        };
        let next = self.groups.get(count).map(|group| group.gap);
        // After a slash there may be another number.
        let goes_on = next.is_some_and(|gap| gap.is_tight() && gap != Gap::Slash);
        let end = last.at().end;
        !goes_on && (around::ends(self.glyphs, end) || self.touches_word(count, end))
    }

    /// Whether a word directly follows the number, and is neither its unit (`10ms`) nor part of an identifier.
    /// With a plus sign any letters may follow, since nothing else is so long.
    fn touches_word(&self, count: usize, end: usize) -> bool {
        let after = self.glyphs.at(end);
        let signed = self.plus && self.digits(count) >= 10;
        if after == '_' {
            return signed;
        }
        let rest = self
            .glyphs
            .run_within(end, 20, |glyph| glyph.is_ascii_alphabetic());
        let next = self.glyphs.at(rest);
        if rest == end || next.is_ascii_digit() || next == '_' {
            return false;
        }
        // Digits and such letters may be a hexadecimal number.
        let mut word = self.glyphs.chars(end..rest);
        let is_word = rest >= end + 3
            && (self.plus
                || self.gaps(count).iter().any(|gap| *gap != Gap::Dash)
                || word.any(|glyph| !glyph.is_ascii_hexdigit())
                || self.lengths(count) == [3, 3, 4]);
        signed || is_word
    }

    /// Whether a number may start here: it is not part of what precedes it.
    fn may_start(&self) -> bool {
        let gap = self.groups.first().map_or(Gap::Start, |group| group.gap);
        !gap.is_tight() && around::starts(self.glyphs, self.start, self.plus)
    }

    /// Whether no other group of a table or a list is next to it.
    fn is_isolated(&self, count: usize) -> bool {
        self.passed == 0 && self.groups.get(count).is_none()
    }

    /// The most groups whose digits are in `digits` and that end where a number may end.
    fn longest(&self, digits: RangeInclusive<u8>) -> Option<usize> {
        let sums = self.groups.sums(MOST, *digits.end());
        let long = sums.iter().take_while(|sum| *sum < digits.start()).count();
        let mut counts = (long + 1..=sums.len()).rev();
        counts.find(|count| self.may_end(*count))
    }
}

/// Whether these groups close a parenthesis that they do not open.
fn closes(groups: Groups<'_>) -> bool {
    let mut gaps = groups.iter().take(MOST).skip(1).map(|group| group.gap);
    gaps.find(|gap| matches!(gap, Gap::Open | Gap::Close)) == Some(Gap::Close)
}

//! Groups of digits that may be one number, and what is between them.

use std::ops::Range;

use crate::glyphs::Glyphs;
use crate::short::Short;
use crate::steps;

/// What is between two groups of digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gap {
    /// Nothing: the first group of a stretch.
    Start,
    /// One space or two.
    Space,
    /// A dash.
    Dash,
    /// A dash with spaces around it, or such a slash after an area code.
    WideDash,
    /// A dot.
    Dot,
    /// A slash.
    Slash,
    /// An underscore.
    Underscore,
    /// An opening parenthesis.
    Open,
    /// A closing parenthesis.
    Close,
}

impl Gap {
    /// Whether two groups are written as one word.
    pub(crate) fn is_tight(self) -> bool {
        matches!(
            self,
            Self::Dash | Self::Dot | Self::Slash | Self::Underscore
        )
    }
}

/// Consecutive digits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Group {
    /// What is before it.
    pub gap: Gap,
    start: u32,
    end: u32,
}

impl Group {
    /// The number of digits.
    pub(crate) fn len(self) -> usize {
        self.at().len()
    }

    /// The number of digits, at most 255.
    fn short_len(self) -> u8 {
        u8::try_from(self.end - self.start).unwrap_or(u8::MAX)
    }

    /// Where it is, in glyphs.
    pub(crate) fn at(self) -> Range<usize> {
        // A glyph's position is at most that of its byte, which has 32 bits.
        let position = |at: u32| usize::try_from(at).unwrap_or(usize::MAX);
        position(self.start)..position(self.end)
    }
}

/// Groups that may form one number. Each access counts as a step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Groups<'a>(&'a [Group]);

impl<'a> Groups<'a> {
    /// How many there are.
    pub(crate) fn len(self) -> usize {
        self.0.len()
    }

    /// A group by its position.
    pub(crate) fn get(self, place: usize) -> Option<Group> {
        steps::count(1);
        self.0.get(place).copied()
    }

    /// The first group.
    pub(crate) fn first(self) -> Option<Group> {
        self.get(0)
    }

    /// All groups, in order.
    pub(crate) fn iter(self) -> impl Iterator<Item = Group> + use<'a> {
        self.0.iter().map(|group| {
            steps::count(1);
            *group
        })
    }

    /// The groups from a position on.
    pub(crate) fn from(self, place: usize) -> Self {
        Self(self.0.get(place..).unwrap_or_default())
    }

    /// The first `count` groups, if there are that many.
    pub(crate) fn upto(self, count: usize) -> Option<Self> {
        self.0.get(..count).map(Self)
    }

    /// From the first glyph to the last.
    pub(crate) fn span(self) -> Range<usize> {
        let start = self.first().map_or(0, |group| group.at().start);
        start..self.0.last().map_or(start, |group| group.at().end)
    }

    /// The running totals of the digits of the first groups, as long as they are at most `most`.
    pub(crate) fn sums(self, groups: usize, most: u8) -> Short<u8> {
        let mut sum: u8 = 0;
        let sums = self.iter().take(groups).map(|group| {
            sum = sum.saturating_add(group.short_len());
            sum
        });
        Short::of(sums.take_while(|sum| *sum <= most), 0)
    }

    /// The lengths of the groups; 255 for longer ones too.
    pub(crate) fn lengths(self) -> Short<u8> {
        Short::of(self.iter().map(Group::short_len), 0)
    }

    /// The gaps between the groups.
    pub(crate) fn gaps(self) -> Short<Gap> {
        Short::of(self.iter().skip(1).map(|group| group.gap), Gap::Start)
    }

    /// Whether all gaps within are one of `allowed`.
    pub(crate) fn are_joined_by(self, allowed: &[Gap]) -> bool {
        let mut within = self.iter().skip(1);
        within.all(|group| allowed.contains(&group.gap))
    }
}

/// The maximum number of digits of a country code and an area code, after which ` / ` continues the number:
/// `089 / 123456`. After more digits it separates two numbers.
const AREA: usize = 6;

/// Visits all groups of a text in order, as stretches of groups that may form one number.
pub(crate) fn for_each_stretch(glyphs: &Glyphs, mut visit: impl FnMut(Groups<'_>)) {
    let mut stretch: Vec<Group> = Vec::new();
    let mut at = 0;
    let mut previous_end = None;
    // The digits of the stretch.
    let mut digits = 0;
    while at < glyphs.len() {
        if !glyphs.at(at).is_ascii_digit() {
            at += 1;
            continue;
        }
        let end = glyphs.run(at, |glyph| glyph.is_ascii_digit());
        let gap = previous_end.and_then(|previous| gap(glyphs, previous..at, digits <= AREA));
        if gap.is_none() {
            visit(Groups(&stretch));
            stretch.clear();
            digits = 0;
        }
        let (Ok(from), Ok(to)) = (u32::try_from(at), u32::try_from(end)) else {
            break;
        };
        stretch.push(Group {
            gap: gap.unwrap_or(Gap::Start),
            start: from,
            end: to,
        });
        digits += end - at;
        previous_end = Some(end);
        at = end;
    }
    visit(Groups(&stretch));
}

fn gap(glyphs: &Glyphs, range: Range<usize>, area: bool) -> Option<Gap> {
    if range.len() > 3 {
        return None;
    }
    let mut written = ['\0'; 3];
    for (place, glyph) in written.iter_mut().zip(glyphs.chars(range)) {
        *place = glyph;
    }
    Some(match written {
        [' ', '\0' | ' ', '\0'] => Gap::Space,
        ['-', '\0', '\0'] => Gap::Dash,
        [' ', '-', ' ' | '\0'] | ['-', ' ', '\0'] => Gap::WideDash,
        [' ', '/', ' '] if area => Gap::WideDash,
        ['.', '\0', '\0'] => Gap::Dot,
        ['/', '\0', '\0'] => Gap::Slash,
        ['_', '\0', '\0'] => Gap::Underscore,
        ['(', '\0', '\0'] | [' ' | '-', '(', '\0'] => Gap::Open,
        [')', '\0' | ' ' | '-' | '/', '\0'] | [')', ' ', '-'] => Gap::Close,
        _ => return None,
    })
}

/// The value of the first 18 digits of a range.
pub(crate) fn number(glyphs: &Glyphs, range: Range<usize>) -> u64 {
    let digits = glyphs.digits(range);
    digits
        .iter()
        .take(18)
        .fold(0, |number, digit| number * 10 + u64::from(*digit))
}

/// Whether the check digit is valid for a payment card (ISO/IEC 7812, Luhn).
pub(crate) fn luhn(digits: &[u8]) -> bool {
    steps::count(digits.len());
    let sum: u32 = digits
        .iter()
        .rev()
        .zip([false, true].into_iter().cycle())
        .map(|(digit, twice)| {
            let digit = u32::from(*digit);
            match (twice, digit) {
                (false, _) => digit,
                (true, 0..=4) => digit * 2,
                (true, _) => digit * 2 - 9,
            }
        })
        .sum();
    sum.is_multiple_of(10)
}

/// Whether there are thirteen digits with a valid check digit of an article or a book (EAN-13).
pub(crate) fn ean(digits: &[u8]) -> bool {
    steps::count(digits.len());
    let weighed = digits.iter().zip([1, 3].into_iter().cycle());
    let sum: u32 = weighed
        .map(|(digit, weight)| u32::from(*digit) * weight)
        .sum();
    digits.len() == 13 && sum.is_multiple_of(10)
}

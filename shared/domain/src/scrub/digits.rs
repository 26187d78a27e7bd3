//! Groups of digits that may be one number, and what is between them.

use std::ops::Range;

use super::glyphs::Glyphs;

/// What is between two groups of digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gap {
    /// Nothing: a group with which a stretch starts.
    Start,
    /// One space or two.
    Space,
    /// A dash.
    Dash,
    /// A dash with spaces around it, or such a slash behind an area.
    WideDash,
    /// A point.
    Dot,
    /// A slash.
    Slash,
    /// An opening parenthesis.
    Open,
    /// A closing one.
    Close,
}

impl Gap {
    /// Whether two groups are written as one word.
    pub(super) fn is_tight(self) -> bool {
        matches!(self, Self::Dash | Self::Dot | Self::Slash)
    }
}

/// Digits without anything between them.
#[derive(Debug, Clone)]
pub(super) struct Group {
    /// What is before it.
    pub gap: Gap,
    /// Where it stands, in glyphs.
    pub at: Range<usize>,
}

impl Group {
    /// How many digits.
    pub(super) fn len(&self) -> usize {
        self.at.len()
    }
}

/// Most digits of a country and an area, behind which ` / ` goes on with the number: `089 / 123456`.
/// Behind more of them it is between two numbers.
const AREA: usize = 6;

/// All groups of a text, as stretches of groups that one number may be made of.
pub(super) fn stretches(glyphs: &Glyphs) -> Vec<Vec<Group>> {
    let mut all: Vec<Vec<Group>> = Vec::new();
    let mut at = 0;
    let mut behind = None;
    // How many digits the last stretch has.
    let mut digits = 0;
    while at < glyphs.len() {
        if !glyphs.at(at).is_ascii_digit() {
            at += 1;
            continue;
        }
        let end = glyphs.run(at, |glyph| glyph.is_ascii_digit());
        let gap = behind.and_then(|behind| gap(glyphs, behind..at, digits <= AREA));
        let group = |gap| Group { gap, at: at..end };
        if let (Some(gap), Some(stretch)) = (gap, all.last_mut()) {
            stretch.push(group(gap));
        } else {
            digits = 0;
            all.push(vec![group(Gap::Start)]);
        }
        digits += end - at;
        behind = Some(end);
        at = end;
    }
    all
}

fn gap(glyphs: &Glyphs, range: Range<usize>, area: bool) -> Option<Gap> {
    if range.len() > 3 {
        return None;
    }
    let written: String = glyphs.chars(range).collect();
    Some(match written.as_str() {
        " " | "  " => Gap::Space,
        "-" => Gap::Dash,
        " - " | "- " | " -" => Gap::WideDash,
        " / " if area => Gap::WideDash,
        "." => Gap::Dot,
        "/" => Gap::Slash,
        "(" | " (" | "-(" => Gap::Open,
        ")" | ") " | ")-" | ") -" | ")/" => Gap::Close,
        _ => return None,
    })
}

/// The lengths of some groups.
pub(super) fn lengths(groups: &[Group]) -> Vec<usize> {
    groups.iter().map(Group::len).collect()
}

/// From the first glyph of some groups to the last.
pub(super) fn span(groups: &[Group]) -> Range<usize> {
    let start = groups.first().map_or(0, |group| group.at.start);
    start..groups.last().map_or(start, |group| group.at.end)
}

/// Whether all gaps within are one of `allowed`.
pub(super) fn joined_by(groups: &[Group], allowed: &[Gap]) -> bool {
    let within = groups.iter().skip(1);
    within
        .map(|group| group.gap)
        .all(|gap| allowed.contains(&gap))
}

/// The number that some digits of a range are.
pub(super) fn number(glyphs: &Glyphs, range: Range<usize>) -> u64 {
    let digits = glyphs.digits(range);
    digits
        .iter()
        .take(18)
        .fold(0, |number, digit| number * 10 + u64::from(*digit))
}

/// Whether the digits have a valid check digit as payment cards have it (ISO/IEC 7812, Luhn).
pub(super) fn luhn(digits: &[u8]) -> bool {
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

/// Whether thirteen digits have a valid check digit as articles and books have it (EAN-13).
pub(super) fn ean(digits: &[u8]) -> bool {
    let weighed = digits.iter().zip([1, 3].into_iter().cycle());
    let sum: u32 = weighed
        .map(|(digit, weight)| u32::from(*digit) * weight)
        .sum();
    digits.len() == 13 && sum.is_multiple_of(10)
}

//! Payment card numbers, with or without gaps.

use std::ops::Range;

use crate::context::{self, Hint};
use crate::digits::{Gap, Groups, for_each_stretch, luhn};
use crate::glyphs::Glyphs;
use crate::short::Short;

/// Lengths of a number in digits, the most common first: if a date follows the card, the shorter reading is the card.
const LENGTHS: [usize; 7] = [16, 15, 14, 19, 18, 17, 13];

/// Finds whole groups with a valid check digit and with the length and the first digits of a card network. That keeps
/// all timestamps and most other numbers, of which one in ten passes the check alone.
pub(crate) fn find(glyphs: &Glyphs) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for_each_stretch(glyphs, |stretch| {
        let mut at = 0;
        let mut touches = false;
        while at < stretch.len() {
            let card = card(glyphs, stretch, at, touches);
            touches = card.is_some();
            found.extend(card.map(Groups::span));
            at += card.map_or(1, Groups::len);
        }
    });
    found
}

/// The groups of the card that starts with the group `at`. `touches`: it directly follows another card.
fn card<'a>(glyphs: &Glyphs, stretch: Groups<'a>, at: usize, touches: bool) -> Option<Groups<'a>> {
    let windows = windows(stretch, at).into_iter().flatten();
    let mut windows = windows.filter_map(|count| stretch.from(at).upto(count));
    windows.find(|window| {
        is_joined(stretch, at, *window, touches)
            && is_card(glyphs, *window)
            && is_separate(glyphs, window.span())
    })
}

/// How many groups from `at` on may form a card, the most common number of digits first. Unusual groups count only if
/// nothing is next to them: in a table some pass the check by chance.
fn windows(stretch: Groups<'_>, at: usize) -> [Option<usize>; LENGTHS.len()] {
    let mut windows = [None; LENGTHS.len()];
    let mut digits = 0;
    let mut before = Short::of([], 0);
    let mut are_fours = true;
    let (mut are_single, mut are_long) = (at == 0, at == 0);
    for (index, group) in stretch.from(at).iter().enumerate() {
        let length = group.len();
        digits += length;
        if digits > 19 {
            break;
        }
        let known = matches!(
            (&*before, length),
            ([], _) | ([8], 8) | ([6], 13) | ([4, 6], 4 | 5)
        );
        are_single &= length == 1;
        are_long &= length >= 3;
        let odd = (are_single || are_long) && at + index + 1 == stretch.len();
        let rank = LENGTHS.iter().position(|usual| *usual == digits);
        if let Some(place) = rank.and_then(|rank| windows.get_mut(rank))
            && (known || odd || (are_fours && length <= 4))
        {
            *place = Some(index + 1);
        }
        are_fours &= length == 4;
        before.push(length);
        let begun = matches!(&*before, [4 | 6 | 8] | [4, 6]);
        if !(begun || are_fours || are_single || are_long) {
            break;
        }
    }
    windows
}

/// Whether the gaps may be gaps within one number.
fn is_joined(stretch: Groups<'_>, at: usize, window: Groups<'_>, touches: bool) -> bool {
    let lengths = window.lengths();
    let fours = lengths
        .split_last()
        .is_some_and(|(last, others)| *last <= 4 && others.iter().all(|length| *length == 4));
    let known = matches!(&*lengths, [_] | [4, 6, 4 | 5] | [8, 8] | [6, 13]);
    if !(fours || known) {
        return window.are_joined_by(&[Gap::Space]);
    }
    let gap = window.first().map_or(Gap::Start, |group| group.gap);
    let joined = window.are_joined_by(&[Gap::Space, Gap::Dash, Gap::WideDash])
        || window.are_joined_by(&[Gap::Dot]);
    // The last groups of a longer number in groups of four, such as a tracking number.
    let before = at.checked_sub(1).and_then(|before| stretch.get(before));
    let tail = before.is_some_and(|before| before.len() == 4)
        && window.get(1).is_some_and(|second| second.gap == gap);
    let fraction = lengths.len() == 1 && gap == Gap::Dot;
    joined && (touches || !(tail || fraction))
}

/// Whether the check digit is valid and a network has such numbers.
fn is_card(glyphs: &Glyphs, window: Groups<'_>) -> bool {
    let range = window.span();
    let digits = glyphs.digits(range.clone());
    // A short number may also be a telephone number with its country code.
    let named = || context::nearest(glyphs, range.start);
    let phone = || matches!(named(), Some(Hint::Phone | Hint::Contact));
    is_issued(&digits) && luhn(&digits) && !(digits.len() < 16 && phone())
}

/// Other separators of groups. No list of years and no amount has four groups of four.
const SEPARATORS: [char; 8] = ['/', '_', ',', ';', '|', '~', '·', '•'];

/// Finds cards in their usual groups with the same separator between all groups: `4111/1111/1111/1111`.
pub(crate) fn find_separated(glyphs: &Glyphs) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < glyphs.len() {
        let end = glyphs.run(at, |glyph| glyph.is_ascii_digit());
        let card = (end == at + 4).then(|| separated(glyphs, at)).flatten();
        found.extend(card.map(|end| at..end));
        at = card.unwrap_or(end).max(at + 1);
    }
    found
}

/// The end of the card that starts here with four digits.
fn separated(glyphs: &Glyphs, start: usize) -> Option<usize> {
    let separator = Separator::at(glyphs, start + 4)?;
    // The end of a longer list.
    if separator.is_before(glyphs, start) {
        return None;
    }
    let mut lengths = Short::of([4], 0);
    let mut end = start + 4;
    while Separator::at(glyphs, end) == Some(separator) && lengths.len() < 6 {
        let from = end + separator.len();
        end = glyphs.run_within(from, 7, |glyph| glyph.is_ascii_digit());
        lengths.push(end - from);
    }
    // A short last group may belong to another number.
    if let [4, 4, 4, 4, rest @ 1..=3] = &*lengths
        && *rest < 3
    {
        end -= separator.len() + rest;
    }
    let grouped = matches!(
        &*lengths,
        [4, 4, 4, 4] | [4, 4, 4, 4, 1..=3] | [4, 6, 4 | 5]
    );
    let digits = glyphs.digits(start..end);
    let card = grouped && is_issued(&digits) && luhn(&digits) && is_separate(glyphs, start..end);
    card.then_some(end)
}

/// The separator of two groups: a character, with or without a space on each side.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Separator {
    before: bool,
    sign: char,
    after: bool,
}

impl Separator {
    /// The separator that starts here, before a digit.
    fn at(glyphs: &Glyphs, at: usize) -> Option<Self> {
        let before = glyphs.at(at) == ' ';
        let sign = at + usize::from(before);
        let after = glyphs.at(sign + 1) == ' ';
        let separator = Self {
            before,
            sign: glyphs.at(sign),
            after,
        };
        let known = SEPARATORS.contains(&separator.sign);
        (known && glyphs.at(at + separator.len()).is_ascii_digit()).then_some(separator)
    }

    /// Whether the same separator ends here, after four digits.
    fn is_before(self, glyphs: &Glyphs, end: usize) -> bool {
        let start = end.checked_sub(self.len());
        start.is_some_and(|start| {
            let four = glyphs.run_back(start, 4, |glyph| glyph.is_ascii_digit()) + 4 == start;
            four && Self::at(glyphs, start) == Some(self)
        })
    }

    fn len(self) -> usize {
        1 + usize::from(self.before) + usize::from(self.after)
    }
}

/// Whether a network issues cards with such a number (ISO/IEC 7812 and the networks' own ranges).
fn is_issued(digits: &[u8]) -> bool {
    let prefix = |length: usize| {
        let digits = digits.iter().take(length);
        digits.fold(0_u32, |number, digit| number * 10 + u32::from(*digit))
    };
    let debit = matches!(prefix(2), 50 | 56..=69);
    match digits.len() {
        13 => matches!(prefix(1), 4..=6),
        14 => debit || matches!(prefix(2), 30 | 36 | 38 | 39),
        15 => {
            let others = matches!(prefix(4), 1800 | 2014 | 2131 | 2149);
            debit || others || matches!(prefix(2), 34 | 37)
        }
        16 => {
            matches!(prefix(1), 3..=6)
                || matches!(prefix(2), 81 | 82)
                || matches!(prefix(4), 2200..=2205 | 2221..=2720 | 9792)
        }
        19 => debit || matches!(prefix(1), 4),
        _ => debit,
    }
}

/// Whether the digits are not part of something else. A word may be directly next to them (`card4111...`), a single
/// letter of a hash may not.
fn is_separate(glyphs: &Glyphs, range: Range<usize>) -> bool {
    let before = glyphs.before(range.start, 1);
    let after = glyphs.at(range.end);
    let is_letter = |glyph: char| glyph.is_ascii_alphabetic();
    let starts = if is_letter(before) {
        let word = glyphs.run_back(range.start, 20, is_letter);
        word + 3 <= range.start && !glyphs.before(word, 1).is_ascii_alphanumeric()
    } else {
        before != '_' && !(before == '+' && glyphs.digits(range.clone()).len() < 16)
    };
    let word = || glyphs.run_within(range.end, 3, is_letter) == range.end + 3;
    starts && after != '_' && (!after.is_ascii_alphanumeric() || word())
}

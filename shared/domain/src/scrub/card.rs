//! Numbers of payment cards, in one piece or in groups.

use std::ops::Range;

use super::context::{self, Hint};
use super::digits::{Gap, Group, joined_by, lengths, luhn, span, stretches};
use super::glyphs::Glyphs;

/// Lengths of a number in digits, the usual ones first: of a card with its date behind it the
/// shorter reading is the card.
const LENGTHS: [usize; 7] = [16, 15, 14, 19, 18, 17, 13];

/// Finds what has a valid check digit, the length and the first digits of a network, and whole
/// groups. That keeps most numbers of things, of which one in ten has a valid check digit, and all
/// timestamps.
pub(super) fn find(glyphs: &Glyphs) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for stretch in stretches(glyphs) {
        let mut at = 0;
        let mut touches = false;
        while at < stretch.len() {
            let card = card(glyphs, &stretch, at, touches);
            touches = card.is_some();
            found.extend(card.map(span));
            at += card.map_or(1, <[Group]>::len);
        }
    }
    found
}

/// The groups of the card that starts with a group. `touches`: right behind another card.
fn card<'a>(
    glyphs: &Glyphs,
    stretch: &'a [Group],
    at: usize,
    touches: bool,
) -> Option<&'a [Group]> {
    let mut windows = Vec::new();
    let mut digits = 0;
    for end in at + 1..=stretch.len() {
        let window = stretch.get(at..end)?;
        digits += window.last()?.len();
        if digits > 19 {
            break;
        }
        windows.push((digits, window));
    }
    let mut windows: Vec<_> = windows
        .into_iter()
        .filter_map(|(digits, window)| Some((rank(digits)?, window)))
        .collect();
    windows.sort_unstable_by_key(|(rank, _)| *rank);
    let windows = windows.into_iter().map(|(_, window)| window);
    windows
        .filter(|window| is_grouped(stretch, at, window, touches))
        .find(|window| {
            let range = span(window);
            let digits = glyphs.digits(range.clone());
            // A short one may as well be a telephone number with its country.
            let named = || context::nearest(glyphs, range.start);
            let phone = || matches!(named(), Some(Hint::Phone | Hint::Contact));
            !(digits.len() < 16 && phone())
                && luhn(&digits)
                && is_issued(&digits)
                && stands_alone(glyphs, &range, digits.len())
        })
}

fn rank(digits: usize) -> Option<usize> {
    LENGTHS.iter().position(|length| *length == digits)
}

/// Whether the groups are those of a card. Odd ones are, if there is nothing else around them:
/// among the numbers of a table some are always right by chance.
fn is_grouped(stretch: &[Group], at: usize, window: &[Group], touches: bool) -> bool {
    let lengths = lengths(window);
    let fours = lengths
        .split_last()
        .is_some_and(|(last, others)| *last <= 4 && others.iter().all(|length| *length == 4));
    let known = matches!(lengths.as_slice(), [_] | [4, 6, 4 | 5] | [8, 8] | [6, 13]);
    let gap = window.first().map_or(Gap::Start, |group| group.gap);
    if fours || known {
        let joined = joined_by(window, &[Gap::Space, Gap::Dash, Gap::WideDash])
            || joined_by(window, &[Gap::Dot]);
        // The tail of a longer number in fours, as parcels have it.
        let before = at.checked_sub(1).and_then(|before| stretch.get(before));
        let tail = before.is_some_and(|before| before.len() == 4)
            && window.get(1).is_some_and(|second| second.gap == gap);
        let fraction = lengths.len() == 1 && gap == Gap::Dot;
        return joined && (touches || !(tail || fraction));
    }
    let odd =
        lengths.iter().all(|length| *length >= 3) || lengths.iter().all(|length| *length == 1);
    odd && window.len() == stretch.len() && joined_by(window, &[Gap::Space])
}

/// Whether a network has cards of such a number (ISO/IEC 7812 and the networks' own ranges).
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

/// Whether the digits are not a part of something else. A word may touch them (`card4111...`), one
/// letter of a hash may not.
fn stands_alone(glyphs: &Glyphs, range: &Range<usize>, digits: usize) -> bool {
    let before = glyphs.before(range.start, 1);
    let behind = glyphs.at(range.end);
    let is_letter = |glyph: char| glyph.is_ascii_alphabetic();
    let starts = if is_letter(before) {
        let letters = (1..=20).take_while(|back| is_letter(glyphs.before(range.start, *back)));
        let letters = letters.count();
        letters >= 3
            && !glyphs
                .before(range.start, letters + 1)
                .is_ascii_alphanumeric()
    } else {
        before != '_' && !(before == '+' && digits < 16)
    };
    let letters = (range.end..range.end + 20).take_while(|at| is_letter(glyphs.at(*at)));
    starts && behind != '_' && (!behind.is_ascii_alphanumeric() || letters.count() >= 3)
}

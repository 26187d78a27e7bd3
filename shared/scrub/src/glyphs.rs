//! A text as the finders see it: a glyph for each character, and one form for all variants of a digit, a dash or a
//! space.

use std::ops::Range;

use crate::short::Short;
use crate::steps;

/// One character, and where it starts in the text, in bytes.
struct Glyph {
    folded: char,
    start: u32,
}

/// The glyphs of a text. Positions are counted in glyphs.
pub(crate) struct Glyphs<'a> {
    text: &'a str,
    glyphs: Vec<Glyph>,
}

/// Read beyond either end of the text. No glyph equals it.
const NOTHING: char = '\0';

impl<'a> Glyphs<'a> {
    /// Reads a text, at most its first 4 GiB.
    pub(crate) fn read(text: &'a str) -> Self {
        let mut glyphs = Vec::with_capacity(text.chars().count());
        for (at, character) in text.char_indices() {
            let Ok(start) = u32::try_from(at) else {
                break;
            };
            glyphs.extend(fold(character).map(|folded| Glyph { folded, start }));
        }
        steps::count(glyphs.len());
        let mut glyphs = Self { text, glyphs };
        glyphs.read_long_marks();
        glyphs
    }

    /// Replaces the mark of a long vowel in Japanese by a dash if it is between digits: `０９０ー１２３４ー５６７８`.
    fn read_long_marks(&mut self) {
        for at in 0..self.len() {
            if matches!(self.at(at), 'ー' | 'ｰ' | '─' | '━') {
                let skip = |glyph: char| usize::from(glyph == ' ');
                let before = self.before(at, 1 + skip(self.before(at, 1)));
                let after = self.at(at + 1 + skip(self.at(at + 1)));
                if before.is_ascii_digit() && after.is_ascii_digit() {
                    self.overwrite(at..at + 1, '-');
                }
            }
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.glyphs.len()
    }

    /// The glyph at a position.
    pub(crate) fn at(&self, position: usize) -> char {
        steps::count(1);
        let glyph = self.glyphs.get(position);
        glyph.map_or(NOTHING, |glyph| glyph.folded)
    }

    /// The glyph `back` before a position; 1 is the one right before it.
    pub(crate) fn before(&self, position: usize, back: usize) -> char {
        position.checked_sub(back).map_or(NOTHING, |at| self.at(at))
    }

    /// The glyphs of a range.
    pub(crate) fn chars(&self, range: Range<usize>) -> impl DoubleEndedIterator<Item = char> {
        let glyphs = self.glyphs.get(range).unwrap_or_default().iter();
        glyphs.map(|glyph| {
            steps::count(1);
            glyph.folded
        })
    }

    /// The decimal digits of a range, without their separators.
    pub(crate) fn digits(&self, range: Range<usize>) -> Short<u8> {
        let digits = self.chars(range);
        let digits = digits.filter_map(|glyph| u8::try_from(glyph.to_digit(10)?).ok());
        Short::of(digits, 0)
    }

    /// The end of the glyphs from `from` on that `belongs` holds for.
    pub(crate) fn run(&self, from: usize, belongs: impl Fn(char) -> bool) -> usize {
        self.run_within(from, usize::MAX, belongs)
    }

    /// The same, but at most `most` glyphs.
    pub(crate) fn run_within(
        &self,
        from: usize,
        most: usize,
        belongs: impl Fn(char) -> bool,
    ) -> usize {
        let rest = self.glyphs.get(from..).unwrap_or_default().iter();
        let belonging = rest.take(most).take_while(|glyph| belongs(glyph.folded));
        let length = belonging.count();
        steps::count(length + 1);
        from + length
    }

    /// The start of the glyphs right before `end` that `belongs` holds for, at most `most`.
    pub(crate) fn run_back(
        &self,
        end: usize,
        most: usize,
        belongs: impl Fn(char) -> bool,
    ) -> usize {
        let before = self.glyphs.get(..end).unwrap_or_default().iter().rev();
        let belonging = before.take(most).take_while(|glyph| belongs(glyph.folded));
        let length = belonging.count();
        steps::count(length + 1);
        end - length
    }

    /// Whether `word`, which is in lower case, is at a position, in any case.
    pub(crate) fn starts(&self, position: usize, word: &str) -> bool {
        let mut places = word.chars().zip(position..);
        places.all(|(expected, at)| self.at(at).to_ascii_lowercase() == expected)
    }

    /// Whether `word` is at a position, in the same case.
    pub(crate) fn starts_exactly(&self, position: usize, word: &str) -> bool {
        let mut places = word.chars().zip(position..);
        places.all(|(expected, at)| self.at(at) == expected)
    }

    /// Masks a match in the form of a placeholder, so that later finders see the same as in the scrubbed text.
    pub(crate) fn cover(&mut self, range: Range<usize>) {
        let last = range.end.saturating_sub(1);
        self.overwrite(range.clone(), ']');
        if last > range.start {
            self.overwrite(range.start..range.start + 1, '[');
        }
    }

    /// Masks a range that is not personal with letters, so that no number is found in it or next to it.
    pub(crate) fn shield(&mut self, range: Range<usize>) {
        self.overwrite(range, 'x');
    }

    fn overwrite(&mut self, range: Range<usize>, by: char) {
        for glyph in self.glyphs.get_mut(range).unwrap_or_default() {
            steps::count(1);
            glyph.folded = by;
        }
    }

    /// The bytes of a range.
    pub(crate) fn bytes(&self, range: &Range<usize>) -> Option<Range<usize>> {
        let start = |position: usize| usize::try_from(self.glyphs.get(position)?.start).ok();
        let first = start(range.start)?;
        let last = start(range.end.checked_sub(1)?)?;
        let character = self.text.get(last..)?.chars().next()?;
        Some(first..last + character.len_utf8())
    }
}

/// The zeros of scripts in daily use that have decimal digits of their own.
const ZEROS: [u32; 20] = [
    0x0660, 0x06f0, 0x07c0, 0x0966, 0x09e6, 0x0a66, 0x0ae6, 0x0b66, 0x0be6, 0x0c66, 0x0ce6, 0x0d66,
    0x0e50, 0x0ed0, 0x0f20, 0x1040, 0x17e0, 0x1810, 0x1946, 0xff10,
];

/// A character as the finders see it; `None` for an invisible one, such as the direction marks that telephones put
/// around a number.
fn fold(character: char) -> Option<char> {
    if character.is_ascii() {
        return Some(character);
    }
    Some(match character {
        '\u{ad}'
        | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{2069}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' => return None,
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{fe58}' | '\u{fe63}' | '\u{ff0d}' => '-',
        // Only wide forms that occur in numbers and addresses: a wide comma or full stop ends a sentence.
        '\u{ff21}'..='\u{ff3a}'
        | '\u{ff41}'..='\u{ff5a}'
        | '＠'
        | '．'
        | '：'
        | '＋'
        | '（'
        | '）'
        | '／'
        | '＿'
        | '％' => narrow(character),
        '﹫' => '@',
        other if other.is_whitespace() => space(other),
        other => digit(other).unwrap_or(other),
    })
}

fn narrow(wide: char) -> char {
    let narrow = u32::from(wide).checked_sub(0xfee0);
    narrow.and_then(char::from_u32).unwrap_or(wide)
}

/// A line break remains one, so that no number continues on the next line.
fn space(character: char) -> char {
    match character {
        '\u{85}' | '\u{2028}' | '\u{2029}' => '\n',
        _ => ' ',
    }
}

fn digit(character: char) -> Option<char> {
    let code = u32::from(character);
    let value = match code {
        // Mathematical digits, bold, double-struck and others: five sets of ten.
        0x1d7ce..=0x1d7ff => (code - 0x1d7ce) % 10,
        _ => ZEROS
            .iter()
            .filter_map(|zero| code.checked_sub(*zero))
            .find(|value| *value < 10)?,
    };
    char::from_digit(value, 10)
}

/// Whether a character is of a script that is written without spaces, or that attaches endings to foreign words: an
/// address ends where such a script starts.
pub(crate) fn is_unspaced(character: char) -> bool {
    matches!(character,
        '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1100}'..='\u{11ff}'
        | '\u{1780}'..='\u{17ff}' | '\u{3005}'..='\u{3007}' | '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}')
}

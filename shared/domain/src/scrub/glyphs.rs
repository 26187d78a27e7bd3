//! A text as its finders see it: one character a glyph, the many ways to write a digit, a dash or
//! a space made one.

use std::ops::Range;

/// One character, and the bytes that it takes in the text.
struct Glyph {
    folded: char,
    bytes: Range<usize>,
}

/// The glyphs of a text. Positions are counted in glyphs.
pub(super) struct Glyphs(Vec<Glyph>);

/// What no glyph is, read behind either end of the text.
const NOTHING: char = '\0';

impl Glyphs {
    /// Reads a text.
    pub(super) fn read(text: &str) -> Self {
        let glyphs = text.char_indices().filter_map(|(at, character)| {
            Some(Glyph {
                folded: fold(character)?,
                bytes: at..at + character.len_utf8(),
            })
        });
        Self(glyphs.collect())
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The glyph at a position.
    pub(super) fn at(&self, position: usize) -> char {
        #[cfg(test)]
        work::count(1);
        self.0.get(position).map_or(NOTHING, |glyph| glyph.folded)
    }

    /// The glyph `back` before a position; 1 is the one right before it.
    pub(super) fn before(&self, position: usize, back: usize) -> char {
        position.checked_sub(back).map_or(NOTHING, |at| self.at(at))
    }

    /// The glyphs of a range.
    pub(super) fn chars(&self, range: Range<usize>) -> impl DoubleEndedIterator<Item = char> {
        #[cfg(test)]
        work::count(range.len());
        let glyphs = self.0.get(range).unwrap_or_default();
        glyphs.iter().map(|glyph| glyph.folded)
    }

    /// The decimal digits of a range as ASCII, without what separates them.
    pub(super) fn digits(&self, range: Range<usize>) -> Vec<u8> {
        self.chars(range)
            .filter_map(|glyph| u8::try_from(glyph.to_digit(10)?).ok())
            .collect()
    }

    /// The end of the glyphs from `from` on that `belongs` holds for.
    pub(super) fn run(&self, from: usize, belongs: impl Fn(char) -> bool) -> usize {
        let rest = self.0.get(from..).unwrap_or_default();
        let belonging = rest.iter().take_while(|glyph| belongs(glyph.folded));
        let length = belonging.count();
        #[cfg(test)]
        work::count(length + 1);
        from + length
    }

    /// Whether `word` stands at a position, in lower case or not.
    pub(super) fn starts(&self, position: usize, word: &str) -> bool {
        let mut at = position;
        word.chars().all(|expected| {
            let same = self.at(at).to_ascii_lowercase() == expected;
            at += 1;
            same
        })
    }

    /// Hides what was found as the placeholder that will stand in its place, so that what is
    /// looked for later sees what it would see in the scrubbed text.
    pub(super) fn cover(&mut self, range: Range<usize>) {
        let last = range.end.saturating_sub(1);
        self.overwrite(range.clone(), ']');
        if last > range.start {
            self.overwrite(range.start..range.start + 1, '[');
        }
    }

    /// Hides what is known to be nobody's, as a letter, so that no number is found in or beside it.
    pub(super) fn shield(&mut self, range: Range<usize>) {
        self.overwrite(range, 'x');
    }

    fn overwrite(&mut self, range: Range<usize>, by: char) {
        for glyph in self.0.get_mut(range).unwrap_or_default() {
            glyph.folded = by;
        }
    }

    /// The bytes of a range.
    pub(super) fn bytes(&self, range: &Range<usize>) -> Option<Range<usize>> {
        let first = self.0.get(range.start)?;
        let last = self.0.get(range.end.checked_sub(1)?)?;
        Some(first.bytes.start..last.bytes.end)
    }
}

/// The zeros of the scripts that have decimal digits of their own and are in daily use.
const ZEROS: [u32; 20] = [
    0x0660, 0x06f0, 0x07c0, 0x0966, 0x09e6, 0x0a66, 0x0ae6, 0x0b66, 0x0be6, 0x0c66, 0x0ce6, 0x0d66,
    0x0e50, 0x0ed0, 0x0f20, 0x1040, 0x17e0, 0x1810, 0x1946, 0xff10,
];

/// A character as its finders see it; `None` for one that nobody sees, as the marks of direction
/// that telephones put around a number.
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
        // Of the wide forms those that a number or an address is made of; a wide comma or a full
        // stop of East Asia ends a sentence.
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

/// What ends a line goes on to end it: a number does not go on in the next one.
fn space(character: char) -> char {
    match character {
        '\u{85}' | '\u{2028}' | '\u{2029}' => '\n',
        _ => ' ',
    }
}

fn digit(character: char) -> Option<char> {
    let code = u32::from(character);
    let value = match code {
        // Bold, double-struck and other digits of mathematics, five times ten of them.
        0x1d7ce..=0x1d7ff => (code - 0x1d7ce) % 10,
        _ => ZEROS
            .iter()
            .filter_map(|zero| code.checked_sub(*zero))
            .find(|value| *value < 10)?,
    };
    char::from_digit(value, 10)
}

/// Whether a character is of a script that is written without spaces, or glues its endings to a
/// foreign word: an address ends where such a script starts.
pub(super) fn is_unspaced(character: char) -> bool {
    matches!(character,
        '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1100}'..='\u{11ff}'
        | '\u{1780}'..='\u{17ff}' | '\u{3005}'..='\u{3007}' | '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}')
}

/// How many glyphs were read in this thread: what a test of the time can count on any machine.
#[cfg(test)]
pub(super) mod work {
    use std::cell::Cell;

    thread_local! {
        static READ: Cell<usize> = const { Cell::new(0) };
    }

    pub(super) fn count(glyphs: usize) {
        READ.set(READ.get() + glyphs);
    }

    /// How many are read by `run`.
    pub(crate) fn of(run: impl FnOnce()) -> usize {
        let before = READ.get();
        run();
        READ.get() - before
    }
}

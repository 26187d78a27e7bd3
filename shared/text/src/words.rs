//! A text as words: lower-case, without accents, each with its position and what precedes it.

use std::ops::Range;

use crate::quoted::unquoted;

/// What is between a word and the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Break {
    /// Nothing but white space.
    None,
    /// A comma, a dash, a quotation: the sentence continues.
    Clause,
    /// The end of a sentence.
    Sentence,
    /// The end of a question.
    Question,
}

impl Break {
    /// Whether a sentence ends here.
    #[must_use]
    pub fn ends_sentence(self) -> bool {
        self >= Self::Sentence
    }
}

/// One word, one character of a script that is written without spaces, or one emoji.
#[derive(Debug, Clone)]
pub struct Word {
    /// Its position, in bytes of the text.
    pub span: Range<usize>,
    /// Its position in [`Text::folded`].
    folded: Range<usize>,
    /// What precedes it.
    pub before: Break,
    /// Whether it starts with a capital letter.
    pub capital: bool,
}

/// The words of a text, without its quotations.
#[derive(Debug, Clone)]
pub struct Text {
    folded: String,
    /// The words, in order.
    pub words: Vec<Word>,
    /// What follows the last one.
    pub end: Break,
    /// Number of bytes of the whole text that are not quoted.
    pub own_bytes: usize,
    /// Whether anything is quoted.
    pub quotes: bool,
}

impl Text {
    /// Reads the words of at most the first `head` and the last `tail` bytes that are not quoted, rounded to
    /// characters.
    pub fn read(text: &str, head: usize, tail: usize) -> Self {
        let own = unquoted(text);
        let own_bytes: usize = own.iter().map(Range::len).sum();
        let size = own_bytes.min(head + tail);
        let mut reader = Reader {
            text,
            folded: String::with_capacity(size + 8),
            words: Vec::with_capacity(size / 4 + 2),
            pending: Break::None,
        };
        let tail_from = own_bytes.saturating_sub(tail);
        let mut passed = 0;
        for range in own {
            let within = |at: usize| range.start + at.saturating_sub(passed).min(range.len());
            let head_to = boundary(text, within(head));
            let tail_from = boundary(text, within(tail_from));
            if tail_from <= head_to {
                reader.read(range.clone(), Break::Clause);
            } else {
                reader.read(range.start..head_to, Break::Clause);
                reader.read(tail_from..range.end, Break::Sentence);
            }
            passed += range.len();
        }
        Self {
            end: reader.pending,
            folded: reader.folded,
            words: reader.words,
            own_bytes,
            quotes: own_bytes < text.len(),
        }
    }

    /// A word in the form in which it is compared: lower-case and without accents.
    #[must_use]
    pub fn folded(&self, word: &Word) -> &str {
        self.folded.get(word.folded.clone()).unwrap_or_default()
    }

    /// All words in the form in which they are compared.
    pub fn all_folded(&self) -> impl Iterator<Item = &str> {
        self.words.iter().map(|word| self.folded(word))
    }
}

/// The first character boundary at or after `at`.
fn boundary(text: &str, at: usize) -> usize {
    (at..=text.len())
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(text.len())
}

struct Reader<'a> {
    text: &'a str,
    folded: String,
    words: Vec<Word>,
    /// The strongest break since the last word.
    pending: Break,
}

impl Reader<'_> {
    /// Reads the words of a part. The break before the part is at least `gap`.
    fn read(&mut self, part: Range<usize>, gap: Break) {
        self.pass(gap);
        let Some(text) = self.text.get(part.clone()) else {
            return;
        };
        let mut open = None;
        let mut before = ' ';
        let mut characters = text.char_indices().peekable();
        while let Some((at, character)) = characters.next() {
            let at = part.start + at;
            let next = characters.peek().map_or(' ', |(_, next)| *next);
            match kind(character, before, next) {
                Kind::Letter => {
                    open.get_or_insert((at, self.folded.len(), character));
                    fold(character, &mut self.folded);
                }
                Kind::Apostrophe if open.is_some() => self.folded.push('\''),
                Kind::Alone => {
                    self.close(open.take(), at);
                    let start = self.folded.len();
                    self.folded.push(character);
                    self.close(Some((at, start, character)), at + character.len_utf8());
                }
                Kind::Apostrophe | Kind::Mark => {}
                Kind::Gap(gap) => {
                    self.close(open.take(), at);
                    self.pass(gap);
                }
            }
            before = character;
        }
        self.close(open, part.end);
    }

    fn pass(&mut self, gap: Break) {
        self.pending = self.pending.max(gap);
    }

    /// Adds the word that starts at a byte of the text and of the folded text, and ends before `end`.
    fn close(&mut self, open: Option<(usize, usize, char)>, end: usize) {
        let Some((start, folded, first)) = open else {
            return;
        };
        self.words.push(Word {
            span: start..end,
            folded: folded..self.folded.len(),
            before: if self.words.is_empty() {
                Break::Sentence
            } else {
                self.pending
            },
            capital: first.is_uppercase(),
        });
        self.pending = Break::None;
    }
}

/// The role of a character in a word.
enum Kind {
    /// A part of a word.
    Letter,
    /// A word of its own.
    Alone,
    /// An accent, a skin tone, a joiner: ignored.
    Mark,
    /// An apostrophe within a word.
    Apostrophe,
    /// Not part of a word.
    Gap(Break),
}

fn kind(character: char, before: char, next: char) -> Kind {
    match character {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' => Kind::Letter,
        ' ' => Kind::Gap(Break::None),
        '\'' | '\u{2019}' | '\u{2bc}' => {
            if before.is_alphanumeric() && next.is_alphanumeric() {
                Kind::Apostrophe
            } else {
                Kind::Gap(Break::None)
            }
        }
        // A dot within a number, a file name or an abbreviation ends no sentence.
        '.' if next.is_numeric() || next.is_lowercase() => Kind::Gap(Break::None),
        '.' | '!' | '…' | '\n' | '。' | '！' | '¡' => Kind::Gap(Break::Sentence),
        '?' | '？' | '؟' => Kind::Gap(Break::Question),
        ',' | ';' | ':' | '(' | ')' | '–' | '—' | '，' | '、' | '；' | '：' | '،' => {
            Kind::Gap(Break::Clause)
        }
        '-' if before == ' ' && next == ' ' => Kind::Gap(Break::Clause),
        '\u{300}'..='\u{36f}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2060}'
        | '\u{feff}'
        | '\u{1f3fb}'..='\u{1f3ff}' => Kind::Mark,
        '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}' => Kind::Alone,
        other if is_emoji(other) => Kind::Alone,
        other if other.is_alphanumeric() => Kind::Letter,
        _ => Kind::Gap(Break::None),
    }
}

/// Whether a character is an emoji or a symbol that is used like one.
#[must_use]
pub fn is_emoji(character: char) -> bool {
    matches!(character, '\u{2600}'..='\u{27bf}' | '\u{1f300}'..='\u{1faff}')
}

/// Adds a letter in the form in which it is compared: without its accent, because users omit accents, and because a
/// letter with an accent may be one character or two.
fn fold(character: char, folded: &mut String) {
    if character.is_ascii() {
        folded.push(character.to_ascii_lowercase());
        return;
    }
    for lower in character.to_lowercase() {
        match lower {
            'à'..='å' | 'ā' | 'ă' | 'ą' => folded.push('a'),
            'ç' | 'ć' | 'č' => folded.push('c'),
            'è'..='ë' | 'ē' | 'ę' | 'ě' => folded.push('e'),
            'ì'..='ï' | 'ī' => folded.push('i'),
            'ñ' | 'ń' | 'ň' => folded.push('n'),
            'ò'..='ö' | 'ø' | 'ō' => folded.push('o'),
            'ù'..='ü' | 'ū' | 'ů' => folded.push('u'),
            'ý' | 'ÿ' => folded.push('y'),
            'ß' => folded.push_str("ss"),
            'æ' => folded.push_str("ae"),
            'œ' => folded.push_str("oe"),
            // The lower case of a dotted capital I has a separate dot.
            '\u{300}'..='\u{36f}' => {}
            // The wide forms of East Asian keyboards.
            '\u{ff01}'..='\u{ff5e}' => folded.extend(
                u32::from(lower)
                    .checked_sub(0xfee0)
                    .and_then(char::from_u32),
            ),
            other => folded.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let text = Text::read(text, 1000, 1000);
        text.all_folded().map(str::to_owned).collect()
    }

    #[test]
    fn words_compare_without_case_and_accents() {
        assert_eq!(words("C’était FAUX !"), ["c'etait", "faux"]);
        assert_eq!(words("scho\u{308}n, schön"), ["schon", "schon"]);
        assert_eq!(words("ＮＯ"), ["no"]);
        assert_eq!(words("不对👎🏽"), ["不", "对", "👎"]);
    }

    #[test]
    fn dot_within_a_name_ends_no_sentence() {
        let text = Text::read("See main.rs. Thanks.But no? Yes", 100, 100);
        let breaks: Vec<_> = text.words.iter().map(|word| word.before).collect();
        assert_eq!(
            breaks,
            [
                Break::Sentence,
                Break::None,
                Break::None,
                Break::Sentence,
                Break::Sentence,
                Break::None,
                Break::Question
            ]
        );
    }

    #[test]
    fn both_ends_of_a_long_text_are_read() {
        let long = format!("first {} last", "é ".repeat(1000));
        let text = Text::read(&long, 21, 22);
        let words: Vec<_> = text.all_folded().collect();
        assert_eq!(words.first(), Some(&"first"));
        assert_eq!(words.last(), Some(&"last"));
        assert!(words.len() < 20, "{}", words.len());
        assert_eq!(Text::read(&long, 5000, 5000).words.len(), 1002);
    }
}

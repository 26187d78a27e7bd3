//! The words of phrases, each with its number and its classes.

use crate::label::{CLASS, Label, index, number};
use crate::pattern::Step;
use hearback_text::hash::FastMap;
use hearback_text::{Break, Text, is_emoji};

/// Classes that the detector itself uses. Every language has them, possibly empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trait {
    /// It may be between the words of a phrase: "really".
    Filler,
    /// It may precede a cue that starts a sentence: "oh".
    Opener,
    /// It denies what follows: "not".
    Negator,
    /// It makes what follows hypothetical: "if".
    Hypothetical,
    /// It contrasts what follows with what precedes: "but".
    Adversative,
    /// It refers to something mentioned before: "it", "their".
    Reference,
    /// It asks for something of a kind: "where".
    Interrogative,
    /// It says that something lasts: "still".
    Lasting,
    /// It is too frequent to relate a question to an answer: "time", "people".
    Common,
}

impl Trait {
    /// All, by the names of their classes in the files.
    pub(crate) const NAMES: [(&'static str, Self); 9] = [
        ("filler", Self::Filler),
        ("opener", Self::Opener),
        ("negator", Self::Negator),
        ("hypothetical", Self::Hypothetical),
        ("adversative", Self::Adversative),
        ("reference", Self::Reference),
        ("interrogative", Self::Interrogative),
        ("lasting", Self::Lasting),
        ("common", Self::Common),
    ];

    fn bit(self) -> u64 {
        match self {
            Self::Filler => 1,
            Self::Opener => 1 << 1,
            Self::Negator => 1 << 2,
            Self::Hypothetical => 1 << 3,
            Self::Adversative => 1 << 4,
            Self::Reference => 1 << 5,
            Self::Interrogative => 1 << 6,
            Self::Lasting => 1 << 7,
            Self::Common => 1 << 8,
        }
    }
}

/// The maximum number of classes of one language, including those of [`Trait`]: a word's classes are the bits of a
/// number.
pub(crate) const MAX_CLASSES: usize = 64;

/// The minimum number of letters of an ending that puts words into a class.
const LEAST_ENDING: usize = 4;

/// A word of a text, as phrases see it. A contraction is several tokens with the same word.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Token {
    /// Its number in the vocabulary; `None` if no phrase has it.
    pub symbol: Option<u32>,
    /// Its classes, as bits.
    pub classes: u64,
    /// The index of its word in the text.
    pub word: usize,
    /// What precedes it.
    pub before: Break,
}

impl Token {
    /// Whether it has a class.
    pub(crate) fn is(&self, class: Trait) -> bool {
        self.classes & class.bit() != 0
    }
}

/// The symbols of a written word.
#[derive(Debug, Clone)]
enum Symbols {
    One(u32),
    /// A contraction.
    Several(Box<[u32]>),
}

impl Symbols {
    fn as_slice(&self) -> &[u32] {
        match self {
            Self::One(symbol) => std::slice::from_ref(symbol),
            Self::Several(symbols) => symbols,
        }
    }
}

/// The words of phrases.
#[derive(Debug, Default, Clone)]
pub(crate) struct Vocabulary {
    /// The symbols of each written word; several for a contraction.
    written: FastMap<Box<str>, Symbols>,
    /// The classes of each symbol, as bits.
    classes: Vec<u64>,
    /// The number of each class.
    names: FastMap<Box<str>, u32>,
    /// The classes of words that no phrase has, by their endings.
    endings: Vec<(Box<str>, u64)>,
    /// A buffer for the symbols of one step.
    scratch: Vec<u32>,
}

impl Vocabulary {
    /// A vocabulary with the classes of [`Trait`] and no words.
    pub(crate) fn new() -> Self {
        let mut new = Self::default();
        for (class, (name, _)) in Trait::NAMES.iter().enumerate() {
            new.names.insert((*name).into(), number(class));
        }
        new
    }

    /// Adds the words of a phrase, a class or a spelling to the vocabulary, and their symbols to `symbols`.
    pub(crate) fn learn(&mut self, written: &str, symbols: &mut Vec<u32>) {
        // Most words are plain; others are folded as in any text.
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        if written.bytes().all(plain) && !written.is_empty() {
            self.learn_part(written, symbols);
        } else {
            let text = Text::read(written, written.len(), 0);
            for word in text.all_folded() {
                for part in parts(word, &self.written) {
                    self.learn_part(part, symbols);
                }
            }
        }
    }

    fn learn_part(&mut self, part: &str, symbols: &mut Vec<u32>) {
        if let Some(known) = self.written.get(part) {
            symbols.extend(known.as_slice());
            return;
        }
        let symbol = number(self.classes.len());
        self.classes.push(0);
        self.written.insert(part.into(), Symbols::One(symbol));
        symbols.push(symbol);
    }

    /// Adds the labels of a step of a phrase.
    pub(crate) fn labels(&mut self, step: Step<'_>, labels: &mut Vec<Label>) -> Result<(), String> {
        match step {
            Step::Any => labels.push(Label::Any),
            Step::Class(name) => {
                let class = self.class(name).ok_or_else(|| {
                    format!("names the class `{name}`, which is not under [classes]")
                })?;
                labels.push(Label::Edge(CLASS | class));
            }
            Step::Word(written) => {
                let mut symbols = std::mem::take(&mut self.scratch);
                symbols.clear();
                self.learn(written, &mut symbols);
                labels.extend(symbols.iter().map(|symbol| Label::Edge(*symbol)));
                let empty = symbols.is_empty();
                self.scratch = symbols;
                if empty {
                    return Err(format!("has `{written}`, which has no letter"));
                }
            }
        }
        Ok(())
    }

    /// The number of a class.
    pub(crate) fn class(&self, name: &str) -> Option<u32> {
        self.names.get(name).copied()
    }

    /// Defines the words that a word is read as: "isn't" as "is not".
    pub(crate) fn spell(&mut self, word: &str, as_words: &str) -> Result<(), String> {
        let text = Text::read(word, word.len(), 0);
        let mut folded = text.all_folded();
        let (Some(first), None) = (folded.next(), folded.next()) else {
            return Err("must be one word".to_owned());
        };
        // "'s" is the end of a word.
        let ending = if word.starts_with('\'') { "'" } else { "" };
        let mut symbols = Vec::new();
        self.learn(as_words, &mut symbols);
        if symbols.is_empty() {
            return Err("must stand for at least one word".to_owned());
        }
        let written = format!("{ending}{first}").into_boxed_str();
        let symbols = Symbols::Several(symbols.into_boxed_slice());
        self.written.insert(written, symbols);
        Ok(())
    }

    /// The number of a class, which is added if it does not exist.
    pub(crate) fn class_or_new(&mut self, name: &str) -> Result<u32, String> {
        if let Some(class) = self.class(name) {
            return Ok(class);
        }
        let next = self.names.len();
        if next >= MAX_CLASSES {
            return Err(format!("is one class too many: {MAX_CLASSES} is the most"));
        }
        self.names.insert(name.into(), number(next));
        Ok(number(next))
    }

    /// Adds a word to a class, or every word with an ending: `*error`.
    pub(crate) fn member(&mut self, class: u32, word: &str) -> Result<(), String> {
        if let Some(ending) = word.strip_prefix('*') {
            if ending.len() < LEAST_ENDING || !ending.bytes().all(|byte| byte.is_ascii_lowercase())
            {
                return Err(format!(
                    "must have at least {LEAST_ENDING} small letters from a to z after `*`"
                ));
            }
            self.endings.push((ending.into(), 1 << class));
            return Ok(());
        }
        let mut symbols = Vec::with_capacity(1);
        self.learn(word, &mut symbols);
        let [symbol] = symbols.as_slice() else {
            return Err("must be one word, and no contraction".to_owned());
        };
        if let Some(classes) = self.classes.get_mut(index(*symbol)) {
            *classes |= 1 << class;
        }
        Ok(())
    }

    /// Whether a phrase has this word.
    pub(crate) fn knows(&self, word: &str) -> bool {
        self.written.contains_key(word)
    }

    /// Whether a word has a class.
    pub(crate) fn is(&self, word: &str, class: Trait) -> bool {
        let symbols = self.written.get(word).map(Symbols::as_slice);
        let [symbol] = symbols.unwrap_or_default() else {
            return false;
        };
        self.classes_of(*symbol) & class.bit() != 0
    }

    /// The tokens of a text.
    pub(crate) fn tokens(&self, text: &Text) -> Vec<Token> {
        let mut tokens = Vec::with_capacity(text.words.len() + 4);
        for (index, word) in text.words.iter().enumerate() {
            let mut before = word.before;
            let mut push = |symbol: Option<u32>, classes: u64| {
                tokens.push(Token {
                    symbol,
                    classes,
                    word: index,
                    before,
                });
                before = Break::None;
            };
            for part in parts(text.folded(word), &self.written) {
                match self.written.get(part) {
                    Some(symbols) => {
                        for symbol in symbols.as_slice() {
                            push(Some(*symbol), self.classes_of(*symbol));
                        }
                    }
                    None => push(None, self.classes_of_unknown(part)),
                }
            }
        }
        tokens
    }

    /// The classes of a word that no phrase has: by its ending, and of an emoji, which may precede a cue as "oh" does.
    fn classes_of_unknown(&self, word: &str) -> u64 {
        if word.starts_with(is_emoji) {
            return Trait::Opener.bit();
        }
        let ends = |ending: &str| word.len() > ending.len() && word.ends_with(ending);
        let known = self.endings.iter().filter(|(ending, _)| ends(ending));
        known.fold(0, |classes, (_, class)| classes | class)
    }

    fn classes_of(&self, symbol: u32) -> u64 {
        self.classes.get(index(symbol)).copied().unwrap_or(0)
    }
}

/// A word as a whole, if it is known or has no apostrophe, otherwise its parts. The second part keeps its apostrophe if
/// it is known with it, as in "that's", and loses it otherwise, as in "c'est".
fn parts<'a>(
    word: &'a str,
    known: &FastMap<Box<str>, Symbols>,
) -> impl Iterator<Item = &'a str> + use<'a> {
    let apostrophe = word.bytes().position(|byte| byte == b'\'');
    let (first, second) = match apostrophe {
        Some(at) if !known.contains_key(word) => {
            let (first, second) = word.split_at(at);
            let bare = second.trim_start_matches('\'');
            let whole = known.contains_key(second);
            (first, Some(if whole { second } else { bare }))
        }
        Some(_) | None => (word, None),
    };
    std::iter::once(first).chain(second)
}

//! The phrases of one language, compiled: a vocabulary, and a tree of steps that is walked along
//! the words of a text.
//!
//! Every step is taken from one word at most, phrases are at most twelve steps long and skip at
//! most two fillers, so the walk from each word is bounded and the whole is linear in the text.

use std::hash::BuildHasherDefault;

use super::cue::Role;
use super::pattern::{End, Pattern, Start, Step};
use crate::hash::FastMap;
use crate::text::{Break, Text};

/// What the engine itself asks of a word. These classes are there in every language, maybe empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trait {
    /// It may stand between the words of a phrase: "really".
    Filler,
    /// It may precede a cue that starts a sentence: "oh".
    Opener,
    /// It denies what follows: "not".
    Negator,
    /// It makes of what follows a case that is not said to be one: "if".
    Hypothetical,
    /// It sets what follows against what precedes: "but".
    Adversative,
    /// It refers to what was said before: "it", "their".
    Reference,
    /// It asks for something of a kind: "where".
    Interrogative,
}

impl Trait {
    /// All of them, by the names that their classes have in the files.
    pub(super) const NAMES: [(&'static str, Self); 7] = [
        ("filler", Self::Filler),
        ("opener", Self::Opener),
        ("negator", Self::Negator),
        ("hypothetical", Self::Hypothetical),
        ("adversative", Self::Adversative),
        ("reference", Self::Reference),
        ("interrogative", Self::Interrogative),
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
        }
    }
}

/// Most classes of one language, those of [`Trait`] included: a word's are the bits of a number.
pub(super) const MAX_CLASSES: usize = 64;

/// A word as the phrases know it. A contraction is several, all at the place of the one word.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token {
    /// Its number in the vocabulary; `None` if no phrase has it.
    symbol: Option<u32>,
    /// Its classes, as bits.
    classes: u64,
    /// Which word of the text it is.
    pub word: usize,
    /// What precedes it.
    pub before: Break,
}

impl Token {
    /// Whether it is of a class that the engine knows.
    pub(super) fn is(&self, class: Trait) -> bool {
        self.classes & class.bit() != 0
    }

    /// Its number in the vocabulary, if a phrase or a class has it.
    pub(super) fn symbol(&self) -> Option<u32> {
        self.symbol
    }
}

/// Where a phrase is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ending {
    /// What it is for.
    pub role: Role,
    /// Where it has to start.
    pub start: Start,
    /// Where it has to end.
    pub end: End,
}

/// A place in the tree.
#[derive(Debug, Default, Clone)]
pub(super) struct Node {
    /// The classes that a step from here may be of, as bits.
    classes: u64,
    /// The symbols that a step from here may be, as bits of a few symbols each: where a bit is not
    /// set, there is no edge to look for.
    symbols: u64,
    /// Where any word leads.
    pub any: Option<u32>,
    /// The last of the places where one is as well, without a word: see [`Link`].
    joins: Option<u32>,
    /// The last of the phrases that are complete here.
    endings: Option<u32>,
}

/// One of the things that a node has, and the one that it had before. Most nodes have none, so
/// that a list for each would be mostly allocations.
#[derive(Debug, Clone, Copy)]
struct Link<T> {
    value: T,
    before: Option<u32>,
}

fn links<T: Copy>(links: &[Link<T>], last: Option<u32>) -> impl Iterator<Item = T> {
    let link = |at: u32| links.get(index(at));
    std::iter::successors(last.and_then(link), move |link| {
        link.before.and_then(|at| links.get(index(at)))
    })
    .map(|link| link.value)
}

/// A language's phrases for one kind of text. The first node is the root.
#[derive(Debug, Clone)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    /// Where a symbol or a class leads from a node: see [`edge`].
    edges: FastMap<u64, u32>,
    joins: Vec<Link<u32>>,
    endings: Vec<Link<Ending>>,
}

impl Tree {
    /// A tree with nothing but its root, and room for so many nodes.
    fn new(room: usize) -> Self {
        let mut nodes = Vec::with_capacity(room);
        nodes.push(Node::default());
        Self {
            nodes,
            edges: FastMap::with_capacity_and_hasher(room, BuildHasherDefault::default()),
            joins: Vec::with_capacity(room),
            endings: Vec::with_capacity(room / 4),
        }
    }
}

/// Tells an edge for a class from one for a symbol.
const CLASS: u32 = 1 << 31;

fn edge(node: u32, label: u32) -> u64 {
    (u64::from(node) << 32) | u64::from(label)
}

/// The bit of a symbol among those of others.
fn bit(symbol: u32) -> u64 {
    1 << (symbol % u64::BITS)
}

fn index(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// What a written word stands for.
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

/// The words that phrases know.
#[derive(Debug, Default, Clone)]
pub(super) struct Vocabulary {
    /// The symbols of a word as it is written; several for a contraction.
    written: FastMap<Box<str>, Symbols>,
    /// The classes of each symbol, as bits.
    classes: Vec<u64>,
    /// The number of each class.
    names: FastMap<Box<str>, u32>,
    /// Room for the symbols of one step.
    scratch: Vec<u32>,
}

/// One step in the tree.
#[derive(Debug, Clone, Copy)]
enum Label {
    Any,
    /// A symbol, or a class.
    Edge(u32),
}

impl Vocabulary {
    /// A vocabulary with the classes of the engine and no words.
    fn new() -> Self {
        let mut new = Self::default();
        for (class, (name, _)) in Trait::NAMES.iter().enumerate() {
            new.names.insert((*name).into(), number(class));
        }
        new
    }

    /// Adds the symbols of a phrase's, a class's or a spelling's words to `symbols`.
    fn learn(&mut self, written: &str, symbols: &mut Vec<u32>) {
        // Most are as they compare; the others are read as any text is.
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

    /// Adds what a step of a phrase is, as steps of the tree.
    fn labels(&mut self, step: Step<'_>, labels: &mut Vec<Label>) -> Result<(), String> {
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
                let silent = symbols.is_empty();
                self.scratch = symbols;
                if silent {
                    return Err(format!("has `{written}`, which has no letter"));
                }
            }
        }
        Ok(())
    }

    /// The number of a class.
    fn class(&self, name: &str) -> Option<u32> {
        self.names.get(name).copied()
    }

    /// Whether a phrase has this word.
    pub(super) fn knows(&self, word: &str) -> bool {
        self.written.contains_key(word)
    }

    /// The words of a text as phrases know them.
    pub(super) fn tokens(&self, text: &Text) -> Vec<Token> {
        let mut tokens = Vec::with_capacity(text.words.len() + 4);
        for (index, word) in text.words.iter().enumerate() {
            let mut before = word.before;
            let mut push = |symbol: Option<u32>| {
                tokens.push(Token {
                    symbol,
                    classes: symbol.map_or(0, |symbol| self.classes_of(symbol)),
                    word: index,
                    before,
                });
                before = Break::None;
            };
            for part in parts(text.folded(word), &self.written) {
                match self.written.get(part) {
                    Some(symbols) => symbols
                        .as_slice()
                        .iter()
                        .for_each(|symbol| push(Some(*symbol))),
                    None => push(None),
                }
            }
        }
        tokens
    }

    fn classes_of(&self, symbol: u32) -> u64 {
        self.classes.get(index(symbol)).copied().unwrap_or(0)
    }
}

/// A word whole, if it is known so or has no apostrophe, or else its parts. An apostrophe stays
/// with what follows it where that is known, as in "that's", and goes where not, as in "c'est".
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

/// How many ways into a phrase are kept apart: to join them costs when they are walked, not to
/// join them costs when they are read.
const APART: usize = 6;

/// Where every walk starts.
pub(super) const ROOT: u32 = 0;

impl Tree {
    /// Where some steps lead from a node.
    fn way(&mut self, from: u32, labels: &[Label]) -> u32 {
        labels.iter().fold(from, |node, label| match label {
            Label::Any => self.grow_any(node),
            Label::Edge(label) => self.grow(node, *label),
        })
    }

    /// Where one is as well, being at a node.
    pub(super) fn joins(&self, node: &Node) -> impl Iterator<Item = u32> {
        links(&self.joins, node.joins)
    }

    /// The phrases that are complete at a node.
    pub(super) fn endings(&self, node: &Node) -> impl Iterator<Item = Ending> {
        links(&self.endings, node.endings)
    }

    /// A node.
    pub(super) fn node(&self, node: u32) -> Option<&Node> {
        self.nodes.get(index(node))
    }

    /// Where a word leads from a node, by itself and by its classes.
    pub(super) fn next(&self, node: u32, token: Token) -> impl Iterator<Item = u32> {
        let here = self.node(node);
        let symbols = here.map_or(0, |node| node.symbols);
        let symbol = token.symbol.filter(|symbol| symbols & bit(*symbol) != 0);
        let mut classes = here.map_or(0, |node| node.classes) & token.classes;
        let by_class = std::iter::from_fn(move || {
            let class = (classes != 0).then(|| classes.trailing_zeros())?;
            classes &= classes - 1;
            Some(CLASS | class)
        });
        let labels = symbol.into_iter().chain(by_class);
        labels.filter_map(move |label| self.edges.get(&edge(node, label)).copied())
    }

    /// The node behind an edge, made if it is not there.
    fn grow(&mut self, node: u32, label: u32) -> u32 {
        let next = number(self.nodes.len());
        let child = *self.edges.entry(edge(node, label)).or_insert(next);
        if child == next {
            self.nodes.push(Node::default());
        }
        if let Some(node) = self.nodes.get_mut(index(node)) {
            match label & CLASS {
                0 => node.symbols |= bit(label),
                _ => node.classes |= 1 << (label & !CLASS),
            }
        }
        child
    }

    fn grow_any(&mut self, node: u32) -> u32 {
        let next = number(self.nodes.len());
        let Some(from) = self.nodes.get_mut(index(node)) else {
            return node;
        };
        let child = *from.any.get_or_insert(next);
        if child == next {
            self.nodes.push(Node::default());
        }
        child
    }

    /// The places from which a phrase goes on: where there are many, one that all of them lead to,
    /// so that its parts add up and do not multiply.
    fn join(&mut self, reached: &mut Vec<u32>) {
        if reached.len() <= APART {
            return;
        }
        let join = number(self.nodes.len());
        self.nodes.push(Node::default());
        for node in reached.drain(..) {
            if let Some(node) = self.nodes.get_mut(index(node)) {
                let link = Link {
                    value: join,
                    before: node.joins.replace(number(self.joins.len())),
                };
                self.joins.push(link);
            }
        }
        reached.push(join);
    }

    fn end(&mut self, node: u32, ending: Ending) {
        if let Some(node) = self.nodes.get_mut(index(node)) {
            let link = Link {
                value: ending,
                before: node.endings.replace(number(self.endings.len())),
            };
            self.endings.push(link);
        }
    }
}

/// How many bytes of a file make a node of the tree, about.
const BYTES_OF_NODE: usize = 8;

/// The phrases of one language.
#[derive(Debug, Clone)]
pub(super) struct Lexicon {
    /// Its words.
    pub vocabulary: Vocabulary,
    /// What is looked for in messages.
    pub messages: Tree,
    /// What is looked for in answers.
    pub answers: Tree,
}

impl Lexicon {
    /// A lexicon without phrases, with room for those of a file of so many bytes.
    pub(super) fn new(bytes: usize) -> Self {
        let room = bytes / BYTES_OF_NODE;
        Self {
            vocabulary: Vocabulary::new(),
            messages: Tree::new(room),
            answers: Tree::new(room / 8),
        }
    }

    /// Reads a word as others: "isn't" as "is not".
    pub(super) fn spell(&mut self, word: &str, as_words: &str) -> Result<(), String> {
        let text = Text::read(word, word.len(), 0);
        let mut folded = text.all_folded();
        let (Some(first), None) = (folded.next(), folded.next()) else {
            return Err("must be one word".to_owned());
        };
        // "'s" is the end of a word.
        let ending = if word.starts_with('\'') { "'" } else { "" };
        let mut symbols = Vec::new();
        self.vocabulary.learn(as_words, &mut symbols);
        if symbols.is_empty() {
            return Err("must stand for at least one word".to_owned());
        }
        let written = format!("{ending}{first}").into_boxed_str();
        let symbols = Symbols::Several(symbols.into_boxed_slice());
        self.vocabulary.written.insert(written, symbols);
        Ok(())
    }

    /// Adds a class, empty or as it is.
    pub(super) fn class(&mut self, name: &str) -> Result<u32, String> {
        if let Some(class) = self.vocabulary.class(name) {
            return Ok(class);
        }
        let next = self.vocabulary.names.len();
        if next >= MAX_CLASSES {
            return Err(format!("is one class too many: {MAX_CLASSES} is the most"));
        }
        self.vocabulary.names.insert(name.into(), number(next));
        Ok(number(next))
    }

    /// Adds a word to a class.
    pub(super) fn member(&mut self, class: u32, word: &str) -> Result<(), String> {
        let mut symbols = Vec::with_capacity(1);
        self.vocabulary.learn(word, &mut symbols);
        let [symbol] = symbols.as_slice() else {
            return Err("must be one word, and no contraction".to_owned());
        };
        if let Some(classes) = self.vocabulary.classes.get_mut(index(*symbol)) {
            *classes |= 1 << class;
        }
        Ok(())
    }

    /// Adds a phrase.
    pub(super) fn phrase(&mut self, role: Role, written: &str) -> Result<(), String> {
        let pattern = Pattern::read(written)?;
        let tree = match role {
            Role::Asks(_) => &mut self.answers,
            Role::Cue(_)
            | Role::Harmless
            | Role::OwnFault
            | Role::UserFixed
            | Role::Opener
            | Role::Question
            | Role::Request => &mut self.messages,
        };
        let mut labels = Vec::new();
        let mut reached = vec![ROOT];
        let mut next = Vec::new();
        for alternatives in pattern.elements() {
            for way in alternatives {
                labels.clear();
                for step in way {
                    self.vocabulary.labels(*step, &mut labels)?;
                }
                let way = reached.iter().map(|node| tree.way(*node, &labels));
                next.extend(way);
            }
            next.sort_unstable();
            next.dedup();
            tree.join(&mut next);
            reached.clone_from(&next);
            next.clear();
        }
        for node in reached {
            let ending = Ending {
                role,
                start: pattern.start,
                end: pattern.end,
            };
            tree.end(node, ending);
        }
        Ok(())
    }
}

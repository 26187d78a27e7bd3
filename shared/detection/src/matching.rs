//! Finds the phrases of a language in a text: where they may start, which of overlapping phrases counts, and which
//! phrases are denied.

use std::ops::Range;

use crate::cue::{Cue, Role};
use crate::lexicon::Lexicon;
use crate::pattern::{End, Start};
use crate::tree::{Ending, ROOT, Tree};
use crate::vocabulary::{Token, Trait};
use hearback_text::{Break, Text};

/// A phrase in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    /// Its role.
    pub role: Role,
    /// The index of its first token.
    pub from: usize,
    /// The index after its last token.
    pub to: usize,
}

/// How many fillers a phrase may skip.
const FILLERS: u8 = 2;

/// A text with its phrases.
#[derive(Debug, Clone)]
pub(crate) struct Matched {
    /// Its words, as tokens of the vocabulary.
    pub tokens: Vec<Token>,
    /// The phrases, ordered by their start.
    pub found: Vec<Found>,
    /// What each token may be the start of.
    heads: Vec<Start>,
}

impl Matched {
    /// Finds a language's phrases for messages.
    pub(crate) fn message(text: &Text, lexicon: &Lexicon) -> Self {
        let mut matched = Self::of(text, lexicon, &lexicon.messages);
        matched.keep_longest();
        matched
    }

    /// Finds a language's question words.
    pub(crate) fn question(text: &Text, lexicon: &Lexicon) -> Self {
        let mut matched = Self::of(text, lexicon, &lexicon.questions);
        matched.keep_longest();
        matched
    }

    /// Finds a language's phrases for answers.
    pub(crate) fn answer(text: &Text, lexicon: &Lexicon) -> Self {
        Self::of(text, lexicon, &lexicon.answers)
    }

    fn of(text: &Text, lexicon: &Lexicon, tree: &Tree) -> Self {
        let tokens = lexicon.vocabulary.tokens(text);
        let mut walk = Walk {
            heads: vec![Start::Anywhere; tokens.len() + 1],
            tokens: &tokens,
            text_end: text.end,
            tree,
            from: 0,
            found: Vec::new(),
        };
        for at in 0..tokens.len() {
            walk.walk_from(at);
        }
        Self {
            heads: walk.heads,
            found: walk.found,
            tokens,
        }
    }

    /// Drops each cue that is part of a longer one: "no idea what you mean" is not "no idea". A phrase that only shows
    /// the kind of its sentence hides nothing.
    fn keep_longest(&mut self) {
        let mut covered: Option<Found> = None;
        self.found.sort_by_key(|found| {
            let cue = found.role != Role::Harmless;
            (found.from, usize::MAX - found.to, cue)
        });
        self.found.retain(|found| {
            if matches!(found.role, Role::Opener) {
                return false;
            }
            if !found.role.competes() {
                return true;
            }
            match covered {
                Some(longer) if longer.to >= found.to => {
                    let same = (longer.from, longer.to) == (found.from, found.to);
                    same && longer.role != Role::Harmless
                }
                Some(_) | None => {
                    covered = Some(*found);
                    true
                }
            }
        });
    }

    /// Whether the phrase is hypothetical ("if it is wrong") or denied.
    pub(crate) fn is_denied(&self, found: Found) -> bool {
        // "No that's wrong" denies nothing: a negation at the start of a sentence is a phrase of its own.
        let starts = |at: usize| self.head(at) >= Start::Sentence;
        self.is_hypothetical(found)
            || self
                .before(found, NEGATOR_REACH)
                .any(|(at, token)| token.is(Trait::Negator) && !starts(at))
    }

    /// Whether the phrase is hypothetical.
    pub(crate) fn is_hypothetical(&self, found: Found) -> bool {
        self.before(found, HYPOTHETICAL_REACH)
            .any(|(_, token)| token.is(Trait::Hypothetical))
    }

    /// The words before a phrase in its clause, the nearest first, at most `reach`.
    fn before(&self, found: Found, reach: usize) -> impl Iterator<Item = (usize, &Token)> {
        let to = self.tokens.get(..=found.from).unwrap_or_default();
        // "It says so, but" and "I don't know but" reach no further than the "but".
        let joined = |(_, token): &(usize, &Token)| {
            token.before == Break::None && !token.is(Trait::Adversative)
        };
        let near = to.iter().enumerate().rev().take(reach + 1);
        let clause = near.take_while(joined).count();
        let before = to.iter().enumerate().rev().skip(1);
        before.take(clause.min(reach))
    }

    /// What a token may be the start of.
    pub(crate) fn head(&self, token: usize) -> Start {
        self.heads.get(token).copied().unwrap_or(Start::Anywhere)
    }

    /// The phrases for one cue.
    pub(crate) fn of_cue(&self, cue: Cue) -> impl Iterator<Item = Found> {
        self.of_role(Role::Cue(cue))
    }

    /// The phrases of one role.
    pub(crate) fn of_role(&self, role: Role) -> impl Iterator<Item = Found> {
        self.found
            .iter()
            .filter(move |found| found.role == role)
            .copied()
    }

    /// Whether a phrase of this role is there.
    pub(crate) fn has(&self, role: Role) -> bool {
        self.of_role(role).next().is_some()
    }

    /// The clause that a token is in: between commas, and on one side of a "but".
    pub(crate) fn clause(&self, token: usize) -> Range<usize> {
        self.around(token, |token| {
            token.before != Break::None || token.is(Trait::Adversative)
        })
    }

    /// The sentence that a token is in.
    pub(crate) fn sentence(&self, token: usize) -> Range<usize> {
        self.around(token, |token| token.before.ends_sentence())
    }

    /// The tokens around one, from the last at or before it for which `starts` holds to before the next one.
    fn around(&self, token: usize, starts: impl Fn(&Token) -> bool) -> Range<usize> {
        let (before, after) = self.tokens.split_at_checked(token + 1).unwrap_or_default();
        let from = before.iter().rposition(&starts).unwrap_or(0);
        let length = after.iter().position(starts).unwrap_or(after.len());
        from..before.len() + length
    }
}

/// How many words before a phrase a denial reaches: "I don't think that's wrong".
const NEGATOR_REACH: usize = 3;
/// How many words before a phrase an "if" reaches.
const HYPOTHETICAL_REACH: usize = 8;

/// The search for phrases, from word to word.
struct Walk<'a> {
    tokens: &'a [Token],
    heads: Vec<Start>,
    /// What follows the last token.
    text_end: Break,
    tree: &'a Tree,
    /// Where the current phrases start.
    from: usize,
    found: Vec<Found>,
}

impl Walk<'_> {
    /// Finds the phrases that start at a token, and what may start after it.
    fn walk_from(&mut self, at: usize) {
        let Some(token) = self.tokens.get(at) else {
            return;
        };
        let of_itself = match token.before {
            Break::Sentence | Break::Question if at == 0 => Start::Message,
            Break::Sentence | Break::Question => Start::Sentence,
            Break::Clause => Start::Clause,
            Break::None => Start::Anywhere,
        };
        self.raise(at, of_itself);
        // "Laptops, not phones", "Claude, stop": one word and a comma may be a name.
        if at == 1 && token.before == Break::Clause {
            self.raise(at, Start::Sentence);
        }
        let head = self.heads.get(at).copied().unwrap_or(Start::Anywhere);
        if token.is(Trait::Adversative) {
            self.raise(at + 1, Start::Sentence);
        }
        if token.is(Trait::Opener) || token.is(Trait::Filler) {
            self.raise(at + 1, head);
        }
        self.from = at;
        let first = self.found.len();
        self.step(ROOT, at, FILLERS, true);
        let openers: Vec<usize> = self
            .found
            .iter()
            .skip(first)
            .filter(|found| found.role == Role::Opener)
            .map(|found| found.to)
            .collect();
        for to in openers {
            self.raise(to, head);
        }
    }

    fn raise(&mut self, at: usize, to: Start) {
        if let Some(head) = self.heads.get_mut(at)
            && (*head < to)
        {
            *head = to;
        }
    }

    /// Continues from a node that the tokens before `at` led to. `stepped` is whether the last of them was a step and
    /// not a filler.
    fn step(&mut self, node: u32, at: usize, fillers: u8, stepped: bool) {
        let Some(here) = self.tree.node(node) else {
            return;
        };
        let tree = self.tree;
        // After a filler, both were done before it.
        if stepped {
            for ending in tree.endings(here) {
                self.end(ending, at);
            }
            for join in tree.joins(here) {
                self.step(join, at, fillers, true);
            }
        }
        let Some(token) = self.tokens.get(at) else {
            return;
        };
        if at > self.from && token.before.ends_sentence() {
            return;
        }
        for next in tree.next(node, here, token) {
            self.step(next, at + 1, fillers, true);
        }
        // A gap crosses neither a denial nor a comma.
        let apart = at > self.from && token.before != Break::None;
        let open = !apart && !token.is(Trait::Negator) && !token.is(Trait::Adversative);
        if let Some(next) = here.any
            && open
        {
            self.step(next, at + 1, fillers, true);
        }
        if at > self.from && fillers > 0 && token.is(Trait::Filler) {
            self.step(node, at + 1, fillers - 1, false);
        }
    }

    /// Adds a complete phrase if its anchors hold.
    fn end(&mut self, ending: Ending, to: usize) {
        let Ending { role, start, end } = ending;
        let head = self.heads.get(self.from).copied();
        let starts = match start {
            Start::Anywhere => true,
            Start::Clause => {
                let first = self.tokens.get(self.from);
                first.is_some_and(|token| token.before == Break::Clause)
            }
            Start::Sentence | Start::Message => head.is_some_and(|head| head >= start),
        };
        // "No, that is it" is not "no that", and "the tests fail, that" is not "a test that".
        let whole = if role == Role::Aside {
            to
        } else if matches!(role, Role::Cue(cue) if cue.rejects()) {
            to.min(self.from + 2)
        } else {
            self.from
        };
        let after_first = self.tokens.get(self.from + 1..whole).unwrap_or_default();
        let broken = after_first.iter().any(|token| token.before != Break::None);
        let ends = match end {
            End::Anywhere => true,
            End::Clause => self.ends_clause(to),
            End::Question => {
                let next = self.tokens.get(to);
                next.map_or(self.text_end, |token| token.before) == Break::Question
            }
        };
        if !starts || broken || !ends {
            return;
        }
        let known = self
            .found
            .iter_mut()
            .rev()
            .take_while(|found| found.from == self.from)
            .find(|found| found.role == role);
        match known {
            Some(found) => found.to = found.to.max(to),
            None => self.found.push(Found {
                role,
                from: self.from,
                to,
            }),
        }
    }

    /// Whether only fillers are between here and the end of the clause.
    fn ends_clause(&self, at: usize) -> bool {
        let rest = self.tokens.get(at..).unwrap_or_default();
        for token in rest {
            if token.before != Break::None || token.is(Trait::Adversative) {
                return true;
            }
            if !token.is(Trait::Filler) {
                return false;
            }
        }
        true
    }
}

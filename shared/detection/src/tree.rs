//! The phrases of one language as a tree of steps, along which the words of a text are walked.

use std::hash::BuildHasherDefault;

use crate::cue::Role;
use crate::label::{CLASS, Label, index, number};
use crate::pattern::{End, Start};
use crate::vocabulary::Token;
use hearback_text::hash::FastMap;

/// Where a phrase is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ending {
    /// What it is for.
    pub role: Role,
    /// Where it has to start.
    pub start: Start,
    /// Where it has to end.
    pub end: End,
}

/// A place in the tree.
#[derive(Debug, Default, Clone)]
pub(crate) struct Node {
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
pub(crate) struct Tree {
    nodes: Vec<Node>,
    /// Where a symbol or a class leads from a node: see [`edge`].
    edges: FastMap<u64, u32>,
    joins: Vec<Link<u32>>,
    endings: Vec<Link<Ending>>,
}

impl Tree {
    /// A tree with nothing but its root, and room for so many nodes.
    pub(crate) fn new(room: usize) -> Self {
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

fn edge(node: u32, label: u32) -> u64 {
    (u64::from(node) << 32) | u64::from(label)
}

/// The bit of a symbol among those of others.
fn bit(symbol: u32) -> u64 {
    1 << (symbol % u64::BITS)
}

/// How many ways into a phrase are kept apart: to join them costs when they are walked, not to
/// join them costs when they are read.
const APART: usize = 16;

/// Where every walk starts.
pub(crate) const ROOT: u32 = 0;

impl Tree {
    /// Where some steps lead from a node.
    pub(crate) fn way(&mut self, from: u32, labels: &[Label]) -> u32 {
        labels.iter().fold(from, |node, label| match label {
            Label::Any => self.grow_any(node),
            Label::Edge(label) => self.grow(node, *label),
        })
    }

    /// Where one is as well, being at a node.
    pub(crate) fn joins(&self, node: &Node) -> impl Iterator<Item = u32> {
        links(&self.joins, node.joins)
    }

    /// The phrases that are complete at a node.
    pub(crate) fn endings(&self, node: &Node) -> impl Iterator<Item = Ending> {
        links(&self.endings, node.endings)
    }

    /// A node.
    pub(crate) fn node(&self, node: u32) -> Option<&Node> {
        self.nodes.get(index(node))
    }

    /// Where a word leads from a node, by itself and by its classes.
    pub(crate) fn next(&self, node: u32, here: &Node, token: &Token) -> impl Iterator<Item = u32> {
        let may_be = |symbol: &u32| here.symbols & bit(*symbol) != 0;
        let symbol = token.symbol.filter(may_be);
        let mut classes = here.classes & token.classes;
        let by_class = std::iter::from_fn(move || {
            let class = (classes != 0).then(|| classes.trailing_zeros())?;
            classes &= classes - 1;
            Some(CLASS | class)
        });
        let labels = symbol.into_iter().chain(by_class);
        labels.filter_map(move |label| self.edges.get(&edge(node, label)).copied())
    }

    /// The node after an edge, made if it is not there.
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
    pub(crate) fn join(&mut self, reached: &mut Vec<u32>) {
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

    pub(crate) fn end(&mut self, node: u32, ending: Ending) {
        if let Some(node) = self.nodes.get_mut(index(node)) {
            let link = Link {
                value: ending,
                before: node.endings.replace(number(self.endings.len())),
            };
            self.endings.push(link);
        }
    }
}

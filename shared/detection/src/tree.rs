//! The phrases of one language as a tree of steps, which match the words of a text.

use std::hash::BuildHasherDefault;

use crate::cue::Role;
use crate::label::{CLASS, Label, index, number};
use crate::pattern::{End, Start};
use crate::vocabulary::Token;
use hearback_text::hash::FastMap;

/// The end of a phrase in the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ending {
    /// Its role.
    pub role: Role,
    /// Where it has to start.
    pub start: Start,
    /// Where it has to end.
    pub end: End,
}

/// A node of the tree.
#[derive(Debug, Default, Clone)]
pub(crate) struct Node {
    /// The classes of the edges from this node, as bits.
    classes: u64,
    /// The symbols of the edges from this node, several to a bit. If the bit of a symbol is not set, there is no edge
    /// for it.
    symbols: u64,
    /// The node that any word leads to.
    pub any: Option<u32>,
    /// The last of the nodes that are reached from here without a word: see [`Link`].
    joins: Option<u32>,
    /// The last of the phrases that are complete here.
    endings: Option<u32>,
}

/// An entry of a linked list of a node. Most nodes have none, so that a vector for each would waste memory.
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
    /// The node that an [`edge`] leads to.
    edges: FastMap<u64, u32>,
    joins: Vec<Link<u32>>,
    endings: Vec<Link<Ending>>,
}

impl Tree {
    /// A tree with only its root, and capacity for `room` nodes.
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

/// The bit of a symbol, which other symbols share.
fn bit(symbol: u32) -> u64 {
    1 << (symbol % u64::BITS)
}

/// Up to this many branches of a phrase are not joined: a join costs time when texts are matched, separate branches
/// cost time when phrases are read.
const APART: usize = 16;

/// The root, where every walk starts.
pub(crate) const ROOT: u32 = 0;

impl Tree {
    /// The node that these labels lead to, created if necessary.
    pub(crate) fn way(&mut self, from: u32, labels: &[Label]) -> u32 {
        labels.iter().fold(from, |node, label| match label {
            Label::Any => self.grow_any(node),
            Label::Edge(label) => self.grow(node, *label),
        })
    }

    /// The nodes that are reached from a node without a word.
    pub(crate) fn joins(&self, node: &Node) -> impl Iterator<Item = u32> {
        links(&self.joins, node.joins)
    }

    /// The phrases that are complete at a node.
    pub(crate) fn endings(&self, node: &Node) -> impl Iterator<Item = Ending> {
        links(&self.endings, node.endings)
    }

    /// The node with this number.
    pub(crate) fn node(&self, node: u32) -> Option<&Node> {
        self.nodes.get(index(node))
    }

    /// The nodes that a word leads to, by its symbol and by its classes.
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

    /// The node after an edge, created if necessary.
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

    /// If a phrase continues from many nodes, replaces them with one that all of them lead to, so that the sizes of its
    /// elements add up instead of multiplying.
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

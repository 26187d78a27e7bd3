//! One step of a phrase, as the tree of phrases stores it.

/// The bit of an edge for a class; an edge for a symbol does not have it.
pub(crate) const CLASS: u32 = 1 << 31;

pub(crate) fn index(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

pub(crate) fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// One step in the tree.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Label {
    Any,
    /// A symbol, or a class.
    Edge(u32),
}

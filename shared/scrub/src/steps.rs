//! The work of the finders, counted in steps: a glyph that is read or written, a group of digits that is
//! visited, a word that is looked up, a check digit that is computed over one character. A test can bound
//! steps on any machine, however busy.
//!
//! Only tests count. Elsewhere [`count`] is empty.

#[cfg(test)]
use std::cell::Cell;

#[cfg(test)]
thread_local! {
    static TAKEN: Cell<usize> = const { Cell::new(0) };
}

/// Counts the steps of this thread.
#[cfg(test)]
pub(crate) fn count(steps: usize) {
    TAKEN.set(TAKEN.get() + steps);
}

/// Counts nothing.
#[cfg(not(test))]
#[inline]
pub(crate) fn count(_: usize) {}

/// How many steps `run` takes.
#[cfg(test)]
pub(crate) fn of(run: impl FnOnce()) -> usize {
    let before = TAKEN.get();
    run();
    TAKEN.get() - before
}

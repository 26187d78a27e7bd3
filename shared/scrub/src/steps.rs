//! The work of the finders, counted in steps: reading or writing a glyph, visiting a group of digits, looking up a
//! word, adding a character to a check digit. Unlike time, steps are the same on every machine, so that a test can
//! bound them.
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

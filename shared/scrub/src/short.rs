//! A list of at most twenty items without an allocation: the digits or the groups of one number.

use std::ops::Deref;

use crate::steps;

/// More digits or groups than any number has that the finders look for.
const MOST: usize = 20;

/// The first twenty items of an iterator.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Short<T> {
    items: [T; MOST],
    len: usize,
}

impl<T: Copy> Short<T> {
    /// The first items; unused places have `fill`.
    pub(crate) fn of(items: impl IntoIterator<Item = T>, fill: T) -> Self {
        let mut short = Self {
            items: [fill; MOST],
            len: 0,
        };
        for item in items.into_iter().take(MOST) {
            short.push(item);
        }
        short
    }

    /// Adds an item, if there is room.
    pub(crate) fn push(&mut self, item: T) {
        if let Some(place) = self.items.get_mut(self.len) {
            *place = item;
            self.len += 1;
        }
        steps::count(1);
    }
}

impl<T> Deref for Short<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.items.get(..self.len).unwrap_or_default()
    }
}

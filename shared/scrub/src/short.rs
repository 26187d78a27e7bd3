//! A list of at most twenty items that needs no memory of its own: the digits or the groups of one number.

use std::ops::Deref;

use crate::steps;

/// No number that is looked for has more digits, or more groups.
const MOST: usize = 20;

/// The first items of what it was made of. What is longer than any number keeps its first twenty, which no
/// number has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Short<T> {
    items: [T; MOST],
    len: usize,
}

impl<T: Copy> Short<T> {
    /// A list with `fill` where nothing is yet.
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

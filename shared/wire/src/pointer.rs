//! The position of a value in a document, as a JSON Pointer (RFC 6901).

use std::fmt;

/// The position of a value. It is formatted only for an error.
#[derive(Debug, Clone, Copy)]
pub struct Pointer<'a> {
    parent: Option<&'a Pointer<'a>>,
    step: Step<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Step<'a> {
    Member(&'a str),
    Entry(usize),
}

impl Pointer<'_> {
    /// The whole document.
    pub const ROOT: Self = Pointer {
        parent: None,
        step: Step::Entry(0),
    };
}

impl<'a> Pointer<'a> {
    /// A member of the object at this position.
    #[must_use]
    pub fn member(&'a self, name: &'a str) -> Pointer<'a> {
        Pointer {
            parent: Some(self),
            step: Step::Member(name),
        }
    }

    /// An entry of the array at this position.
    #[must_use]
    pub fn entry(&'a self, index: usize) -> Pointer<'a> {
        Pointer {
            parent: Some(self),
            step: Step::Entry(index),
        }
    }
}

impl fmt::Display for Pointer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(parent) = self.parent else {
            return Ok(());
        };
        parent.fmt(f)?;
        match self.step {
            Step::Member(name) => write!(f, "/{}", name.replace('~', "~0").replace('/', "~1")),
            Step::Entry(index) => write!(f, "/{index}"),
        }
    }
}

impl From<Pointer<'_>> for String {
    fn from(pointer: Pointer<'_>) -> Self {
        pointer.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped() {
        let events = Pointer::ROOT.member("events");
        let event = events.entry(3);
        let member = event.member("a/b~c");
        assert_eq!(member.to_string(), "/events/3/a~1b~0c");
        assert_eq!(Pointer::ROOT.to_string(), "");
    }
}

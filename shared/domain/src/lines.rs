//! Lines of a file that comes in pieces of any size.
//!
//! A line ends at a line feed, or at the end of the file; a carriage return before it and a byte-order
//! mark at the start of the file do not belong to a line. A file may be read from anywhere: what comes
//! before the first line end then belongs to who reads what is before.

/// A line with its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    /// Where in the file it begins, in bytes.
    pub offset: u64,
    /// Where the one behind it begins.
    pub end: u64,
    /// What is in it, or `None` if it is longer than the limit.
    pub content: Option<&'a [u8]>,
}

const BYTE_ORDER_MARK: &[u8] = &[0xEF, 0xBB, 0xBF];

/// Splits bytes into lines, in memory for one line of the longest that is allowed.
#[derive(Debug)]
pub struct Lines {
    longest: usize,
    /// What was pushed; before `at` it is worked off, and up to `searched` it has no line end.
    bytes: Vec<u8>,
    at: usize,
    searched: usize,
    /// Where in the file `at` is.
    offset: u64,
    /// Where the line began whose end is looked for without keeping it.
    passing: Option<Passing>,
    ended: bool,
}

/// A line that is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Passing {
    /// It is somebody else's.
    Theirs,
    /// It is too long, and began there.
    TooLong(u64),
}

impl Lines {
    /// Lines of at most `longest` bytes, from the start of a file.
    #[must_use]
    pub fn new(longest: usize) -> Self {
        Self {
            longest,
            bytes: Vec::new(),
            at: 0,
            searched: 0,
            offset: 0,
            passing: None,
            ended: false,
        }
    }

    /// The lines that begin behind `offset`, in bytes that begin there: the first of them begins behind
    /// the first line end.
    #[must_use]
    pub fn behind(offset: u64, longest: usize) -> Self {
        Self {
            offset,
            passing: Some(Passing::Theirs),
            ..Self::new(longest)
        }
    }

    /// Adds the bytes that come next.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.at);
        self.searched -= self.at;
        self.at = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// Says that nothing comes any more: what is left is the last line, unless it is nothing.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// Whether everything up to a place belongs to a line that began before the first of these.
    #[must_use]
    pub fn passes(&self, place: u64) -> bool {
        self.passing == Some(Passing::Theirs) && self.offset >= place
    }

    /// The next line that is whole.
    pub fn next_line(&mut self) -> Option<Line<'_>> {
        loop {
            let unsearched = self.bytes.get(self.searched..).unwrap_or_default();
            let found = unsearched.iter().position(|byte| *byte == b'\n');
            let (end, next) = if let Some(found) = found {
                (self.searched + found, self.searched + found + 1)
            } else {
                self.searched = self.bytes.len();
                let left = self.searched - self.at;
                if !self.ended || (left == 0 && self.passing.is_none()) {
                    self.let_pass(left);
                    return None;
                }
                (self.searched, self.searched)
            };
            let start = self.at;
            let offset = self.offset;
            self.at = next;
            self.searched = next;
            self.offset += to_u64(next - start);
            match self.passing.take() {
                Some(Passing::Theirs) => {}
                Some(Passing::TooLong(offset)) => {
                    return Some(Line {
                        offset,
                        end: self.offset,
                        content: None,
                    });
                }
                None => {
                    let line = self.bytes.get(start..end).unwrap_or_default();
                    let line = line.strip_suffix(b"\r").unwrap_or(line);
                    let marked = line.strip_prefix(BYTE_ORDER_MARK).filter(|_| offset == 0);
                    let line = marked.unwrap_or(line);
                    return Some(Line {
                        offset,
                        end: self.offset,
                        content: (line.len() <= self.longest).then_some(line),
                    });
                }
            }
        }
    }

    /// Stops to keep a line that is not wanted, or too long already.
    fn let_pass(&mut self, left: usize) {
        // A carriage return may still turn out not to count, nor a byte-order mark.
        if self.passing.is_none() && left > self.longest + BYTE_ORDER_MARK.len() + 1 {
            self.passing = Some(Passing::TooLong(self.offset));
        }
        if self.passing.is_some() {
            self.offset += to_u64(left);
            self.at = self.searched;
        }
    }
}

fn to_u64(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LONGEST: usize = 12;

    /// The lines of a file that comes in pieces of these sizes, each with its place.
    fn read(mut lines: Lines, mut file: &[u8], sizes: &[usize]) -> Vec<(u64, Option<Vec<u8>>)> {
        let mut read = Vec::new();
        let mut sizes = sizes.iter().copied().cycle();
        let mut end = None;
        loop {
            let (piece, rest) = file.split_at(sizes.next().unwrap_or(1).min(file.len()));
            file = rest;
            lines.push(piece);
            if file.is_empty() {
                lines.end();
            }
            while let Some(line) = lines.next_line() {
                assert!(end.replace(line.end).is_none_or(|end| end == line.offset));
                read.push((line.offset, line.content.map(<[u8]>::to_vec)));
            }
            if file.is_empty() {
                return read;
            }
        }
    }

    fn whole(file: &[u8]) -> Vec<(u64, Option<Vec<u8>>)> {
        read(Lines::new(LONGEST), file, &[file.len()])
    }

    #[test]
    fn a_carriage_return_and_a_byte_order_mark_are_no_part_of_a_line() {
        let lines = whole(b"\xEF\xBB\xBF{}\r\n\r\n[1]\rx\nlast");
        let expected: [(u64, Option<Vec<u8>>); 4] = [
            (0, Some(b"{}".to_vec())),
            (7, Some(Vec::new())),
            (9, Some(b"[1]\rx".to_vec())),
            (15, Some(b"last".to_vec())),
        ];
        assert_eq!(lines, expected);
        assert_eq!(whole(b""), []);
        assert_eq!(whole(b"a\n"), [(0, Some(b"a".to_vec()))]);
    }

    #[test]
    fn a_line_that_is_too_long_is_told_and_not_kept() {
        let long = b"0123456789012";
        let file = [b"a\n".as_slice(), long, b"\nb\n", long].concat();
        for size in 1..file.len() {
            let lines = read(Lines::new(LONGEST), &file, &[size]);
            let places: Vec<_> = lines
                .iter()
                .map(|line| (line.0, line.1.is_some()))
                .collect();
            assert_eq!(places, [(0, true), (2, false), (16, true), (18, false)]);
        }
        let mut lines = Lines::new(LONGEST);
        for _ in 0..1_000 {
            lines.push(&[b'x'; 100]);
            assert!(lines.next_line().is_none());
            assert!(lines.bytes.len() <= 200);
        }
    }

    proptest! {
        #[test]
        fn it_does_not_matter_how_the_bytes_come(
            file in prop::collection::vec(prop::sample::select(b"ab\n\r\xEF".as_slice()), 0..60),
            sizes in prop::collection::vec(1_usize..7, 1..5),
        ) {
            prop_assert_eq!(read(Lines::new(LONGEST), &file, &sizes), whole(&file));
        }

        /// Whoever reads a part of a file reads the lines that begin in it, and all parts together
        /// read each line once.
        #[test]
        fn parts_of_a_file_have_each_line_once(
            file in prop::collection::vec(prop::sample::select(b"ab\n\r".as_slice()), 1..60),
            cut in 1_usize..60,
        ) {
            let cut = cut.min(file.len());
            let behind = u64::try_from(cut).unwrap();
            let head = whole(&file).into_iter().filter(|line| line.0 < behind);
            let lines = Lines::behind(behind - 1, LONGEST);
            let tail = read(lines, &file[cut - 1..], &[3]);
            prop_assert_eq!(head.chain(tail).collect::<Vec<_>>(), whole(&file));
        }
    }
}

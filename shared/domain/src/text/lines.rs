//! Splits a file into lines, from chunks of any size.
//!
//! A line ends at a line feed or at the end of the file. A carriage return before it and a byte-order mark at the start
//! of the file are stripped. A file may be read from any offset: the line that is cut by the offset belongs to the
//! reader of the previous part.

/// A line with its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    /// The offset of its first byte in the file.
    pub offset: u64,
    /// The offset of the next line.
    pub end: u64,
    /// The content, or `None` if it is longer than the limit.
    pub content: Option<&'a [u8]>,
}

const BYTE_ORDER_MARK: &[u8] = &[0xEF, 0xBB, 0xBF];

/// Splits bytes into lines. The memory use is limited by the maximum length of a line.
#[derive(Debug)]
pub struct Lines {
    max_length: usize,
    /// The buffer. The bytes before `at` are consumed; those from there to `searched` contain no line feed.
    bytes: Vec<u8>,
    at: usize,
    searched: usize,
    /// The offset of `at` in the file.
    offset: u64,
    /// Set while the rest of a line is skipped.
    skipped: Option<Skipped>,
    ended: bool,
}

/// Why the rest of a line is skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Skipped {
    /// The line began before the first offset.
    Earlier,
    /// The line, which began at this offset, is too long.
    TooLong(u64),
}

impl Lines {
    /// Lines of at most `max_length` bytes, from the start of a file.
    #[must_use]
    pub fn new(max_length: usize) -> Self {
        Self {
            max_length,
            bytes: Vec::new(),
            at: 0,
            searched: 0,
            offset: 0,
            skipped: None,
            ended: false,
        }
    }

    /// The lines that begin after `offset`. The first pushed byte is the one at `offset`, and everything up to the
    /// first line feed is skipped.
    #[must_use]
    pub fn after(offset: u64, max_length: usize) -> Self {
        Self {
            offset,
            skipped: Some(Skipped::Earlier),
            ..Self::new(max_length)
        }
    }

    /// Adds the next bytes of the file.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.at);
        self.searched -= self.at;
        self.at = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// Marks the end of the file. The remaining bytes, if any, are the last line.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// Whether all bytes up to `end` belong to a line that began before the first offset.
    #[must_use]
    pub fn skips_until(&self, end: u64) -> bool {
        self.skipped == Some(Skipped::Earlier) && self.offset >= end
    }

    /// The next complete line.
    pub fn next_line(&mut self) -> Option<Line<'_>> {
        loop {
            let unsearched = self.bytes.get(self.searched..).unwrap_or_default();
            let found = unsearched.iter().position(|byte| *byte == b'\n');
            let (end, next) = if let Some(found) = found {
                (self.searched + found, self.searched + found + 1)
            } else {
                self.searched = self.bytes.len();
                let remaining = self.searched - self.at;
                if !self.ended || (remaining == 0 && self.skipped.is_none()) {
                    self.discard(remaining);
                    return None;
                }
                (self.searched, self.searched)
            };
            let start = self.at;
            let offset = self.offset;
            self.at = next;
            self.searched = next;
            self.offset += to_u64(next - start);
            match self.skipped.take() {
                Some(Skipped::Earlier) => {}
                Some(Skipped::TooLong(offset)) => {
                    return Some(Line {
                        offset,
                        end: self.offset,
                        content: None,
                    });
                }
                None => {
                    let line = self.bytes.get(start..end).unwrap_or_default();
                    let line = line.strip_suffix(b"\r").unwrap_or(line);
                    let stripped = line.strip_prefix(BYTE_ORDER_MARK).filter(|_| offset == 0);
                    let line = stripped.unwrap_or(line);
                    return Some(Line {
                        offset,
                        end: self.offset,
                        content: (line.len() <= self.max_length).then_some(line),
                    });
                }
            }
        }
    }

    /// Discards the buffered part of a line that is skipped or too long.
    fn discard(&mut self, remaining: usize) {
        // A carriage return and a byte-order mark do not count towards the length.
        if self.skipped.is_none() && remaining > self.max_length + BYTE_ORDER_MARK.len() + 1 {
            self.skipped = Some(Skipped::TooLong(self.offset));
        }
        if self.skipped.is_some() {
            self.offset += to_u64(remaining);
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

    const MAX_LENGTH: usize = 12;

    /// Reads a file in chunks of these sizes, and returns its lines with their offsets.
    fn read(mut lines: Lines, mut file: &[u8], sizes: &[usize]) -> Vec<(u64, Option<Vec<u8>>)> {
        let mut read = Vec::new();
        let mut sizes = sizes.iter().copied().cycle();
        let mut end = None;
        loop {
            let (chunk, rest) = file.split_at(sizes.next().unwrap_or(1).min(file.len()));
            file = rest;
            lines.push(chunk);
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

    fn lines_of(file: &[u8]) -> Vec<(u64, Option<Vec<u8>>)> {
        read(Lines::new(MAX_LENGTH), file, &[file.len()])
    }

    #[test]
    fn carriage_returns_and_byte_order_marks_are_stripped() {
        let lines = lines_of(b"\xEF\xBB\xBF{}\r\n\r\n[1]\rx\nlast");
        let expected: [(u64, Option<Vec<u8>>); 4] = [
            (0, Some(b"{}".to_vec())),
            (7, Some(Vec::new())),
            (9, Some(b"[1]\rx".to_vec())),
            (15, Some(b"last".to_vec())),
        ];
        assert_eq!(lines, expected);
        assert_eq!(lines_of(b""), []);
        assert_eq!(lines_of(b"a\n"), [(0, Some(b"a".to_vec()))]);
    }

    #[test]
    fn a_line_that_is_too_long_has_no_content_and_is_not_buffered() {
        let long = b"0123456789012";
        let file = [b"a\n".as_slice(), long, b"\nb\n", long].concat();
        for size in 1..file.len() {
            let lines = read(Lines::new(MAX_LENGTH), &file, &[size]);
            let offsets: Vec<_> = lines
                .iter()
                .map(|line| (line.0, line.1.is_some()))
                .collect();
            assert_eq!(offsets, [(0, true), (2, false), (16, true), (18, false)]);
        }
        let mut lines = Lines::new(MAX_LENGTH);
        for _ in 0..1_000 {
            lines.push(&[b'x'; 100]);
            assert!(lines.next_line().is_none());
            assert!(lines.bytes.len() <= 200);
        }
    }

    proptest! {
        #[test]
        fn the_chunk_sizes_do_not_change_the_lines(
            file in prop::collection::vec(prop::sample::select(b"ab\n\r\xEF".as_slice()), 0..60),
            sizes in prop::collection::vec(1_usize..7, 1..5),
        ) {
            prop_assert_eq!(read(Lines::new(MAX_LENGTH), &file, &sizes), lines_of(&file));
        }

        /// The reader of a part reads the lines that begin in it.
        #[test]
        fn the_parts_of_a_file_contain_each_line_once(
            file in prop::collection::vec(prop::sample::select(b"ab\n\r".as_slice()), 1..60),
            cut in 1_usize..60,
        ) {
            let cut = cut.min(file.len());
            let offset = u64::try_from(cut).unwrap();
            let head = lines_of(&file).into_iter().filter(|line| line.0 < offset);
            let lines = Lines::after(offset - 1, MAX_LENGTH);
            let tail = read(lines, &file[cut - 1..], &[3]);
            prop_assert_eq!(head.chain(tail).collect::<Vec<_>>(), lines_of(&file));
        }
    }
}

//! A file gives the same lines however it comes, in parts as well as whole, in bounded memory.
//!
//! An input is the longest line that is allowed, where the file is cut in two, how large its pieces
//! are, and the file.

#![no_main]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use hearback_domain::text::lines::Lines;
use libfuzzer_sys::fuzz_target;

/// Counts what is held.
struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size(), Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

type Read = Vec<(u64, Option<Vec<u8>>)>;

fn to_u64(length: usize) -> u64 {
    u64::try_from(length).unwrap()
}

/// The lines as the first sentences of the module say it, all bytes at once.
fn by_definition(file: &[u8], longest: usize) -> Read {
    let mut read = Vec::new();
    let mut at = 0;
    for piece in file.split_inclusive(|byte| *byte == b'\n') {
        let line = match piece.strip_suffix(b"\n") {
            Some(ended) => ended.strip_suffix(b"\r").unwrap_or(ended),
            None => piece.strip_suffix(b"\r").unwrap_or(piece),
        };
        let marked = line.strip_prefix(b"\xEF\xBB\xBF").filter(|_| at == 0);
        let line = marked.unwrap_or(line);
        read.push((to_u64(at), (line.len() <= longest).then(|| line.to_vec())));
        at += piece.len();
    }
    read
}

fn drain(lines: &mut Lines, read: &mut Read) {
    while let Some(line) = lines.next_line() {
        read.push((line.offset, line.content.map(<[u8]>::to_vec)));
    }
}

fn read(mut lines: Lines, file: &[u8], piece: usize) -> Read {
    let mut read = Vec::new();
    for piece in file.chunks(piece) {
        lines.push(piece);
        drain(&mut lines, &mut read);
    }
    lines.end();
    drain(&mut lines, &mut read);
    read
}

/// Reads the file repeatedly without keeping anything. The memory in use must not exceed twice the size of the longest
/// line with its line ends and one piece, because a buffer may have spare capacity.
fn stays_small(file: &[u8], longest: usize, piece: usize) {
    let before = HELD.load(Ordering::Relaxed);
    let mut lines = Lines::new(longest);
    let most = 2 * (longest + 4 + piece) + 64;
    for bytes in std::iter::repeat_n(file, 8).flat_map(|file| file.chunks(piece)) {
        lines.push(bytes);
        while lines.next_line().is_some() {}
        let held = HELD.load(Ordering::Relaxed).saturating_sub(before);
        assert!(held <= most, "{held} bytes are held instead of {most}");
    }
}

fuzz_target!(|input: &[u8]| {
    let [longest, cut, piece, file @ ..] = input else {
        return;
    };
    let longest = usize::from(*longest);
    let piece = usize::from(*piece) + 1;
    let whole = by_definition(file, longest);
    assert_eq!(read(Lines::new(longest), file, file.len().max(1)), whole);
    assert_eq!(read(Lines::new(longest), file, piece), whole);
    if !file.is_empty() {
        let cut = usize::from(*cut) % file.len() + 1;
        // Who reads the second part begins a byte before it, to see whether a line begins there.
        let tail = Lines::after(to_u64(cut - 1), longest);
        let head = whole.iter().filter(|line| line.0 < to_u64(cut)).cloned();
        let parts: Read = head.chain(read(tail, &file[cut - 1..], piece)).collect();
        assert_eq!(parts, whole);
    }
    stays_small(file, longest, piece);
});

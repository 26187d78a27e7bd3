//! A cursor is rejected, or opens to the position that was sealed in it.
//!
//! An input is opened as a cursor. It is also an index, a byte and text: the text is sealed as part of a position, and
//! then the byte at the index of that cursor is replaced. The cursors of the corpus are sealed with the key below, so
//! that positions are read as well.

#![no_main]

use hearback_domain::text::cursor::{Cursors, InvalidCursor};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

const KEY: &str = "key of the fuzz target";
const QUERY: [u8; 32] = [1; 32];

/// A cursor that can be opened was sealed with this key, for this query, in exactly these characters.
fn open(cursors: &Cursors, text: &str) {
    if let Ok(place) = cursors.open::<Value>(&QUERY, text) {
        assert_eq!(cursors.seal(&QUERY, &place), text);
    }
    let others = Cursors::new("another key");
    assert_eq!(others.open::<Value>(&QUERY, text), Err(InvalidCursor));
    assert_eq!(cursors.open::<Value>(&[2; 32], text), Err(InvalidCursor));
}

fn seal(cursors: &Cursors, at: u8, to: u8, text: &str) {
    let place = (text.to_owned(), u64::from(at), Some(text.len()));
    let cursor = cursors.seal(&QUERY, &place);
    assert_eq!(cursors.open(&QUERY, &cursor), Ok(place));

    let mut damaged = cursor.clone().into_bytes();
    let at = usize::from(at) % damaged.len();
    damaged[at] = to & 0x7F;
    let damaged = String::from_utf8(damaged).unwrap();
    let cut = &cursor[..at];
    for changed in [damaged.as_str(), cut, &format!("{cursor}{text}")] {
        if changed != cursor {
            let opened = cursors.open::<Value>(&QUERY, changed);
            assert_eq!(opened, Err(InvalidCursor), "{changed}");
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let cursors = Cursors::new(KEY);
    if let Ok(text) = std::str::from_utf8(input) {
        open(&cursors, text);
    }
    if let [at, to, text @ ..] = input {
        seal(&cursors, *at, *to, &String::from_utf8_lossy(text));
    }
});

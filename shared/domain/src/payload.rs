//! How many bytes something takes as Lambda carries it.
//!
//! API Gateway and a function exchange a body as a text within JSON, in which each quote, backslash
//! and line break takes a byte more. Lambda limits that, and not the body itself.

use std::io::{self, Write};

use serde::Serialize;

/// Largest body of a request, carried: Lambda takes 6 MiB, of which the head of the request, its path and
/// the claims of its token need less than 64 KiB.
pub const MAX_REQUEST: usize = 6 * 1024 * 1024 - 64 * 1024;
/// Largest body of any kind, in bytes: where API Gateway does not take it for text it is carried as
/// Base64, four bytes for three.
pub const MAX_BODY: usize = 4 * 1024 * 1024;
/// Largest page of an answer, carried: Lambda hands on 6 MiB, status and headers included.
pub const MAX_PAGE: usize = 6_000_000;

/// Largest body of an answer, carried: status and headers beside it need less than 16 KiB.
pub const MAX_RESPONSE: usize = 6 * 1024 * 1024 - 16 * 1024;

/// Bytes of JSON as Lambda carries it in a request or an answer.
#[must_use]
pub fn carried(part: &impl Serialize) -> usize {
    let mut bytes = Bytes(0);
    // Counting cannot fail, and what cannot be written takes nothing.
    serde_json::to_writer(&mut bytes, part).map_or(0, |()| bytes.0)
}

/// Bytes of a text as Lambda carries it.
#[must_use]
pub fn carried_text(text: &[u8]) -> usize {
    text.iter().map(|byte| carried_byte(*byte)).sum()
}

fn carried_byte(byte: u8) -> usize {
    match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
        0x00..0x20 => 6,
        _ => 1,
    }
}

/// Counts what is written.
struct Bytes(usize);

impl Write for Bytes {
    fn write(&mut self, written: &[u8]) -> io::Result<usize> {
        self.0 += carried_text(written);
        Ok(written.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    proptest! {
        #[test]
        fn it_is_the_size_of_a_text_within_json(text in "\\PC{0,20}|[\\x00-\\x7f]{0,20}") {
            let within = |text: &str| serde_json::to_string(text).unwrap().len() - 2;
            prop_assert_eq!(carried_text(text.as_bytes()), within(&text));
            let body = json!({"text": text});
            prop_assert_eq!(carried(&body), within(&body.to_string()));
        }
    }
}

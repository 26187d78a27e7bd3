//! Sizes of requests and responses in a Lambda invocation.
//!
//! API Gateway sends a body to a function, and receives one, as a string within JSON, in which quotes, backslashes and
//! control characters are escaped. Lambda's limit is on that JSON, not on the body itself.

use std::io::{self, Write};

use serde::Serialize;

/// Maximum size of an escaped request body. Lambda's limit is 6 MiB; headers, path and claims take less than 64 KiB.
pub const MAX_REQUEST: usize = 6 * 1024 * 1024 - 64 * 1024;
/// Maximum size of a request body in bytes. API Gateway encodes binary bodies in Base64, four bytes for three.
pub const MAX_BODY: usize = 4 * 1024 * 1024;
/// Maximum size of an escaped page of a response. Lambda's limit is 6 MiB, including status and headers.
pub const MAX_PAGE: usize = 6_000_000;

/// Maximum size of an escaped response body. Status and headers take less than 16 KiB.
pub const MAX_RESPONSE: usize = 6 * 1024 * 1024 - 16 * 1024;

/// The size of a value as JSON, escaped within the JSON of a Lambda invocation.
#[must_use]
pub fn escaped_json_size(part: &impl Serialize) -> usize {
    let mut bytes = Bytes(0);
    // A value that cannot be serialized is never sent, so its size does not matter.
    serde_json::to_writer(&mut bytes, part).map_or(0, |()| bytes.0)
}

/// The size of a text, escaped within the JSON of a Lambda invocation.
#[must_use]
pub fn escaped_size(text: &[u8]) -> usize {
    text.iter().map(|byte| escaped_byte_size(*byte)).sum()
}

fn escaped_byte_size(byte: u8) -> usize {
    match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
        0x00..0x20 => 6,
        _ => 1,
    }
}

/// Counts the bytes that are written.
struct Bytes(usize);

impl Write for Bytes {
    fn write(&mut self, written: &[u8]) -> io::Result<usize> {
        self.0 += escaped_size(written);
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
        fn the_size_is_that_of_a_string_in_json(text in "\\PC{0,20}|[\\x00-\\x7f]{0,20}") {
            let in_json = |text: &str| serde_json::to_string(text).unwrap().len() - 2;
            prop_assert_eq!(escaped_size(text.as_bytes()), in_json(&text));
            let body = json!({"text": text});
            prop_assert_eq!(escaped_json_size(&body), in_json(&body.to_string()));
        }
    }
}

//! The MD5 digests by which clients verify messages.

use md5::{Digest, Md5};

use crate::message_attributes::{MessageAttributes, Value};

/// `MD5OfMessageBody`, `MD5OfBody`: lowercase hex.
pub(crate) fn of_body(body: &str) -> String {
    hex::encode(Md5::digest(body.as_bytes()))
}

/// `MD5OfMessageAttributes`: lowercase hex, `None` without attributes.
///
/// For each attribute in the order of names: length and bytes of name and of data type, one byte
/// for the transport type, length and bytes of the value; lengths are four bytes, big-endian.
/// From the SQS developer guide, "Calculating the MD5 message digest for message attributes".
pub(crate) fn of_attributes(attributes: &MessageAttributes) -> Option<String> {
    if attributes.is_empty() {
        return None;
    }
    let mut digest = Md5::new();
    for (name, attribute) in attributes.iter() {
        add(&mut digest, name.as_bytes());
        add(&mut digest, attribute.data_type.as_bytes());
        match &attribute.value {
            Value::Text(text) => {
                digest.update([1]);
                add(&mut digest, text.as_bytes());
            }
            Value::Binary(bytes) => {
                digest.update([2]);
                add(&mut digest, bytes);
            }
        }
    }
    Some(hex::encode(digest.finalize()))
}

fn add(digest: &mut Md5, bytes: &[u8]) {
    // A message is at most 1 MiB, so that no length is truncated here.
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    digest.update(length.to_be_bytes());
    digest.update(bytes);
}

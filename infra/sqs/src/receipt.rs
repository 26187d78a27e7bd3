//! Receipt handles: each identifies one receive of one message.

use base64::{Engine, engine::general_purpose::URL_SAFE};
use md5::{Digest, Md5};

use crate::fault::Fault;

/// One receive of one message, as handed to the caller in an opaque form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Receipt {
    /// The queue it was received from; numbers of deleted queues are never used again.
    pub(crate) queue: i64,
    /// The message; numbers of deleted messages are never used again.
    pub(crate) message: i64,
    /// The message's receive count after this receive.
    pub(crate) receive: i64,
}

impl Receipt {
    /// Three numbers and a checksum that detects malformed handles. Not a secret.
    pub(crate) fn encode(self) -> String {
        let numbers = [self.queue, self.message, self.receive]
            .map(i64::to_be_bytes)
            .concat();
        let sum = checksum(&numbers);
        URL_SAFE.encode([numbers, sum].concat())
    }

    /// Reads a handle; [`Fault::ReceiptHandleIsInvalid`] for anything [`Self::encode`] never made.
    pub(crate) fn decode(handle: &str) -> Result<Self, Fault> {
        Self::read(handle).ok_or(Fault::ReceiptHandleIsInvalid)
    }

    fn read(handle: &str) -> Option<Self> {
        let bytes = URL_SAFE.decode(handle).ok()?;
        let (queue, rest) = bytes.split_first_chunk::<8>()?;
        let (message, rest) = rest.split_first_chunk::<8>()?;
        let (receive, sum) = rest.split_first_chunk::<8>()?;
        let genuine = checksum(&[*queue, *message, *receive].concat()) == sum;
        genuine.then_some(Self {
            queue: i64::from_be_bytes(*queue),
            message: i64::from_be_bytes(*message),
            receive: i64::from_be_bytes(*receive),
        })
    }
}

fn checksum(numbers: &[u8]) -> Vec<u8> {
    Md5::new()
        .chain_update(b"receipt")
        .chain_update(numbers)
        .finalize()
        .to_vec()
}

#[cfg(test)]
mod tests {
    use super::Receipt;

    #[test]
    fn a_handle_is_parsed_and_a_changed_one_is_rejected() {
        let receipt = Receipt {
            queue: 7,
            message: i64::MAX,
            receive: 3,
        };
        let handle = receipt.encode();
        assert_eq!(Receipt::decode(&handle).ok(), Some(receipt));
        let changed = handle.replacen('A', "B", 1);
        assert!(Receipt::decode(&changed).is_err());
        assert!(Receipt::decode("").is_err());
        assert!(Receipt::decode("garbage").is_err());
    }
}

//! A fast hash for short internal keys: words of a vocabulary, steps of an index.
//!
//! FNV-1a has the same results on every machine and in every version, so that stored hashes stay valid. It does not
//! resist keys that are chosen to collide, so use it for keys of callers only if their number is limited.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A map that uses the fast hash.
pub type FastMap<K, V> = HashMap<K, V, BuildHasherDefault<Fnv>>;
/// A set that uses the fast hash.
pub type FastSet<T> = HashSet<T, BuildHasherDefault<Fnv>>;

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

/// The state of a hash. That of a text continues that of its start.
#[derive(Debug, Clone, Copy)]
pub struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(OFFSET)
    }
}

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(PRIME);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(PRIME);
        self.0 ^= self.0 >> 32;
    }

    fn finish(&self) -> u64 {
        mixed(self.0)
    }
}

/// The hash of a text.
#[must_use]
pub fn fnv(text: &str) -> u64 {
    fnv_joined(&[text])
}

/// The hash of texts that are joined.
#[must_use]
pub fn fnv_joined(parts: &[&str]) -> u64 {
    let mut hash = Fnv::default();
    for part in parts {
        hash.write(part.as_bytes());
    }
    hash.finish()
}

/// Spreads a hash over all bits (the finalizer of `SplitMix64`).
#[must_use]
pub fn mixed(mut hash: u64) -> u64 {
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

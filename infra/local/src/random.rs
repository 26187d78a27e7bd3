//! Random identifiers.

/// Hexadecimal digits of `times` random UUIDs: 32 digits each, with 122 random bits.
pub(crate) fn random_hex(times: usize) -> String {
    (0..times)
        .map(|_| uuid::Uuid::new_v4().simple().to_string())
        .collect()
}

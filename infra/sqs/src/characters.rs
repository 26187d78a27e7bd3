//! The characters that SQS accepts in a text.

/// The characters of XML 1.0, section 2.2, which are those that SQS accepts.
pub(crate) fn is_allowed(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{FFFD}' | '\u{10000}'..)
}

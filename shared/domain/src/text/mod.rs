//! Text and bytes: lines of a file, texts quoted in prompts, digests, sizes, cursors and limits of lists.
//!
//! | to change | look in |
//! |---|---|
//! | how users' texts are quoted in prompts | [`prompt`] |
//! | how a language is named | [`language`] |
//! | which characters SQS and SNS accept | [`sqs_text`] |
//! | how the lines of a file are read | [`lines`] |
//! | the limit of a page in entries and in bytes, and cursors | [`page`], [`payload`], [`cursor`] |
//! | digests, and the comparison of two bodies of a turn | [`digest`], [`member_digests`] |

pub mod cursor;
pub mod digest;
pub mod language;
pub mod lines;
pub mod member_digests;
pub mod page;
pub mod payload;
pub mod prompt;
pub mod sqs_text;

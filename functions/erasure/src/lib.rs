//! The erasure of a person: what is stored of what somebody said is deleted for good.
//!
//! In the bucket that is lines of exports, and of files that were imported (`files.rs`).

mod files;

pub use files::{Erased, erase_files};

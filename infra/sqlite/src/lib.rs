//! A newer SQLite for the version of rusqlite that the DynamoDB engine needs.
//!
//! That version of rusqlite accepts only a binding whose SQLite has a published defect. This package has the name of the
//! binding and replaces it (`[patch]` in the workspace), and exports the newer binding. Remove it when the engine accepts
//! a newer rusqlite.

pub use newer::*;

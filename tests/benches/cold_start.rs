//! Cold start.
fn main() {}

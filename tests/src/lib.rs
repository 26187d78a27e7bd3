//! hearback-tests

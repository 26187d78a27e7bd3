//! Who acts, for whom and in which project.
//!
//! | to change | look in |
//! |---|---|
//! | what an identifier may contain | [`identifier`] |
//! | which lists of names a token's claim may contain | [`claims`] |
//! | who may act for whom | [`caller`] |
//! | what is stored of an anonymous user | [`privacy`] |
//! | what a team compares answers by | [`labels`] |

pub mod caller;
pub mod claims;
pub mod identifier;
pub mod labels;
pub mod privacy;

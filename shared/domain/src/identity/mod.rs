//! Who acts, for whom and in which project.
//!
//! | to change | look in |
//! |---|---|
//! | what an identifier may contain | [`identifier`] |
//! | how a token's claims are read | [`claims`] |
//! | who may act for whom | [`caller`]; what needs an event is next to it: `may_submit`, `may_be_read_by` |
//! | the pseudonym of an anonymous user | [`privacy`] |
//! | what a team compares answers by | [`labels`] |

pub mod caller;
pub mod claims;
pub mod identifier;
pub mod labels;
pub mod privacy;

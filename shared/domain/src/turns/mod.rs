//! Turns, and which past turn a message is about.
//!
//! | to change | look in |
//! |---|---|
//! | what a turn may contain, and its log | [`turn`] |
//! | the question and the answer in a log | [`exchange`] |
//! | how a message is turned into numbers, and compared | [`embedding`], [`embedded`] |
//! | how stored vectors are compared | [`quantized`], [`rarity`] |
//! | which past turn a message is about | [`target`] |

pub mod embedded;
pub mod embedding;
pub mod exchange;
pub mod quantized;
pub mod rarity;
pub mod target;
pub mod turn;

//! Exports and erasures, which read or remove data as a whole.
//!
//! | to change | look in |
//! |---|---|
//! | what an evaluation reads, over all users | [`evaluation`] |
//! | the rows of the training export | [`training`] |
//! | what an erasure removes, and how long it applies | [`erasure`] |

pub mod erasure;
pub mod evaluation;
pub mod training;

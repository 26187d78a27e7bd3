//! The function `operations`: what waits in the queues of a deployment, why dead letters failed, and moving them back.
//! See docs/reference/operations.md.
//!
//! Queues belong to the deployment and not to a tenant, so its routes need a scope of their own, `feedback:operate`, and
//! show no content of a message. It reads and writes no table.
//!
//! | start with | for |
//! |---|---|
//! | `api.rs` | a route |
//! | `queues.rs` | the queues by their names, and the calls of SQS |
//! | `dead_letters.rs` | the dead-letter queues, and where a dead letter goes back to; also for `hearback redrive` |

mod api;
mod dead_letters;
mod queues;

pub use api::{MOST, routes};
pub use dead_letters::{DeadLetterQueue, NotMoved};
pub use queues::{QUEUES_URL, Queues, Unavailable, WorkQueue, work_queues};

//! The live feed over WebSockets.
//!
//! | start with | for |
//! |---|---|
//! | `ticket.rs` | the ticket that a client needs to connect |
//! | [`LiveFeed`] | what happens when a client connects, sends a frame or leaves |
//! | [`Fanout`] | what happens when something is published |
//! | [`Delivery`] | what a connection then receives of the feed |
//! | [`sockets`] | posts frames, through the API of API Gateway |
//!
//! Frames, positions and limits are in `shared/domain/src/views/live.rs`, rows in `shared/storage/src/connections.rs`.

mod delivery;
mod fanout;
mod live_feed;
pub mod sockets;
mod tasks;
mod ticket;
mod websocket;

use hearback_lambda::routes::Routes;

pub use delivery::Delivery;
pub use fanout::{FANOUT_DEAD_LETTERS_URL, Fanout};
pub use live_feed::LiveFeed;
pub use tasks::{FANOUT_URL, Tasks};
pub use ticket::{PATH, STREAM_URL};
pub use websocket::handle_events;

/// Every route of this function.
pub fn routes() -> Routes<LiveFeed> {
    ticket::routes()
}

//! Sends published messages to targets outside of the stack, each an *outlet* with a queue, a function and dead letters
//! of its own. See docs/reference/published-messages.md, "Outlets".
//!
//! - `published.rs`: a message of the queue, and its subject
//! - `relay.rs`: what all outlets have in common: a batch, of which each message is delivered or comes again
//! - `backoff.rs`: when a message that was not delivered is tried again
//! - `nats.rs`, `nats/`: NATS JetStream
//! - `webhooks.rs`, `webhooks/`: calls of the URLs that tenants register, and the routes to register them
//!
//! Of the table, an outlet reads only who receives a message, which contains everything else. Start with
//! [`Relay::handle`].

mod backoff;
mod nats;
mod published;
mod relay;
mod webhooks;

pub use backoff::{Backoff, LONGEST_PAUSE};
pub use nats::{
    BadCredentials, BadServerUrls, BadSubjectPrefix, Credentials, NATS_CREDENTIALS,
    NATS_DEAD_LETTERS_URL, NATS_PREFIX, NATS_QUEUE_URL, NATS_URL, Nats, NatsSettings, STREAM,
    ServerUrls, SetUp, SubjectPrefix,
};
pub use published::Published;
pub use relay::{NotDelivered, Outlet, Relay};
pub use webhooks::{
    BadNetworks, Networks, RegisterError, Sender, Tested, WEBHOOK_NETWORKS,
    WEBHOOKS_DEAD_LETTERS_URL, WEBHOOKS_QUEUE_URL, WebhookDocument, WebhookRegistry, Webhooks,
    webhook_routes,
};

//! The operations: from the wire to one unit of work and back.

mod batch;
mod messages;
mod queues;
mod receive;

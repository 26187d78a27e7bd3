//! The operations: each turns a request into one unit of work, and its outcome into a response.

mod batch;
mod messages;
mod queues;
mod receive;

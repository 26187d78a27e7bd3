//! The shapes of the protocol: AWS JSON 1.0 as the service model of SQS defines it.

pub(crate) mod request;
pub(crate) mod response;

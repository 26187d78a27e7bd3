//! The whole bundle on one machine: the functions, and what AWS does for them there.
//!
//! | in AWS | here |
//! |---|---|
//! | DynamoDB, S3, SQS | [`engines`]: embedded, durable, behind the same SDK clients |
//! | HTTP API with its JWT authorizer | [`gateway`], [`token`] |
//! | EventBridge Pipes | [`relay`], which reads the [`stream`] |
//! | SQS event source mapping | [`event_source`] |
//! | CloudFormation | [`provision`] |
//!
//! The functions are the same code as in Lambda, and reach the engines as they reach AWS.

pub mod bundle;
pub mod cli;
mod connections;
pub mod data_dir;
pub mod delivery;
mod demo;
pub mod engines;
pub mod event_source;
pub mod export;
pub mod gateway;
pub mod health;
pub mod import;
pub mod load;
pub mod names;
mod open_files;
pub mod provision;
pub mod queue_tools;
pub mod relay;
pub mod replay;
pub mod stream;
pub mod token;

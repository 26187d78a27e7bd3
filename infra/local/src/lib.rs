//! The local bundle: all functions on one machine, and replacements of the AWS services that they use.
//!
//! | in AWS | here |
//! |---|---|
//! | DynamoDB, S3, SQS | [`engines`]: embedded, durable, called through the same SDK clients |
//! | HTTP API with its JWT authorizer | [`gateway`], [`token`] |
//! | EventBridge Pipes | [`relay`], which reads the [`stream`] |
//! | SQS event source mapping | [`event_source`] |
//! | CloudFormation | [`provision`] |
//!
//! The functions are the same code as in Lambda, and call the engines as they call AWS.

pub mod api;
mod atomic;
mod body;
pub mod bundle;
pub mod check;
pub mod cli;
pub mod clients;
pub mod compare;
mod connections;
pub mod data_dir;
pub mod delivery;
pub mod demo;
mod demo_page;
pub mod description;
pub mod engines;
pub mod event_source;
pub mod export;
pub mod feed;
pub mod files;
pub mod gateway;
pub mod health;
pub mod hosts;
pub mod import;
pub mod live;
pub mod load;
mod log_limit;
pub mod manifest;
pub mod names;
mod object_metadata;
mod open_files;
pub mod position;
mod probe;
pub mod provision;
pub mod queue_tools;
mod random;
pub mod redrive;
mod rejections;
pub mod relay;
pub mod replay;
pub mod requeue;
pub mod secrets;
pub mod slots;
pub mod stream;
pub mod token;
pub mod writes;

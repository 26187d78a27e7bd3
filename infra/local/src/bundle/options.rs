//! How to run the bundle.

use std::path::PathBuf;
use std::time::Duration;

use chrono::TimeDelta;
use hearback_domain::events::retention::Retention;
use hearback_lambda::clock::Clock;
use hearback_relay::{NatsSettings, Networks};

use crate::engines::Maintenance;
use crate::gateway::Limits;
use crate::hosts::Hosts;
use crate::manifest::FolderPart;
use crate::names::Names;

/// How to run the bundle.
#[derive(Debug, Clone)]
pub struct Options {
    /// The port of the gateway; the engines use the three ports after it. 0 chooses free ports.
    pub port: u16,
    /// The data folder; `None` keeps everything in memory.
    pub data: Option<PathBuf>,
    /// An AWS-compatible endpoint to use instead of the embedded engines, or `aws`.
    pub endpoint_url: Option<String>,
    /// The names of the resources.
    pub names: Names,
    /// The visibility timeout of the queues: a message that was received but not processed is delivered again after it.
    pub visibility: Duration,
    /// How long an erasure waits before its first pass and between passes.
    pub settle: TimeDelta,
    /// Projects whose reactions are mirrored into turn logs: a comma-separated list of `tenant/project`.
    pub mirror: String,
    /// How long turns are kept.
    pub retention: Retention,
    /// A folder of phrase files to add to the built-in ones.
    pub phrases: Option<PathBuf>,
    /// The NATS server to which everything is published, too.
    pub nats: Option<NatsSettings>,
    /// Whether tenants may register webhooks, and the networks with private addresses to which they may be sent.
    pub webhooks: Option<Networks>,
    /// Load limits of the gateway.
    pub limits: Limits,
    /// The hosts that the gateway serves.
    pub hosts: Hosts,
    /// Parts of the folder that may be missing or replaced. Their content is lost.
    pub accept: Vec<FolderPart>,
    /// The clock of the functions and the engines.
    pub clock: Clock,
    /// How often the table's engine deletes expired items and relayed stream records, and shrinks its file.
    pub maintenance_interval: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            port: 3000,
            data: Some(PathBuf::from(".hearback")),
            endpoint_url: None,
            names: Names::default(),
            visibility: Duration::from_secs(10),
            // Longer than a request or a batch takes. Unlike in Lambda, no process is frozen in between.
            settle: TimeDelta::seconds(10),
            mirror: String::new(),
            retention: Retention::default(),
            phrases: None,
            nats: None,
            webhooks: None,
            limits: Limits::default(),
            hosts: Hosts::default(),
            accept: Vec::new(),
            clock: Clock::system(),
            maintenance_interval: Maintenance::default().interval,
        }
    }
}

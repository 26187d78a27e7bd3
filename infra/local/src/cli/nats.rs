//! The options of NATS, and `hearback nats`.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::{Args, Subcommand};
use hearback_relay::{Nats, NatsSettings, STREAM, ServerUrls, SetUp, SubjectPrefix};

/// Where NATS is.
#[derive(Args)]
pub(super) struct NatsArgs {
    /// Also publish to JetStream of this NATS server, for example `nats://127.0.0.1:4222`; several with commas
    /// between them
    #[arg(long, value_name = "URL")]
    nats: Option<ServerUrls>,
    #[command(flatten)]
    options: NatsOptions,
}

/// How to connect, and under which subjects.
#[derive(Args)]
pub(super) struct NatsOptions {
    /// Prefix of all subjects in NATS
    #[arg(long, value_name = "PREFIX")]
    nats_prefix: Option<SubjectPrefix>,
    /// A credentials file of NATS, or a file with a JSON object that has one of `creds`, `nkey`, `token`, or `user`
    /// and `password`
    #[arg(long, value_name = "FILE")]
    nats_credentials: Option<PathBuf>,
}

#[derive(Args)]
pub(super) struct NatsCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Create the stream that the messages need, unless every subject has one
    Setup(Setup),
}

#[derive(Args)]
struct Setup {
    /// The server
    #[arg(long, default_value = "nats://127.0.0.1:4222", value_name = "URL")]
    nats: ServerUrls,
    #[command(flatten)]
    options: NatsOptions,
    /// Name of the stream
    #[arg(long, default_value = STREAM, value_name = "NAME")]
    stream: String,
}

impl NatsArgs {
    /// The settings, if there is a server.
    pub(super) fn settings(self) -> Result<Option<NatsSettings>> {
        let settings = self.nats.map(|servers| self.options.settings(servers));
        settings.transpose()
    }
}

impl NatsOptions {
    pub(super) fn settings(self, servers: ServerUrls) -> Result<NatsSettings> {
        let credentials = self.nats_credentials.map(|file| {
            let text = std::fs::read_to_string(&file);
            let text = text.with_context(|| format!("cannot read {}", file.display()))?;
            let read = text.parse();
            read.with_context(|| format!("{} cannot be used", file.display()))
        });
        Ok(NatsSettings {
            servers,
            prefix: self.nats_prefix,
            credentials: credentials.transpose()?,
        })
    }
}

impl NatsCommand {
    pub(super) async fn run(self) -> Result<()> {
        let Action::Setup(setup) = self.action;
        let nats = Nats::new(setup.options.settings(setup.nats)?);
        let set_up = nats.set_up(&setup.stream).await?;
        let problem = problem(&set_up);
        ensure!(problem.is_none(), "{}", problem.unwrap_or_default());
        let mut out = std::io::stdout();
        if set_up == SetUp::Created {
            writeln!(out, "Created the stream {}.", setup.stream)?;
        } else {
            writeln!(out, "Every subject has a stream already.")?;
        }
        Ok(())
    }
}

/// Warns of a server that would not accept the messages. They wait in the queue meanwhile.
pub(super) async fn warn(settings: &NatsSettings) -> Result<()> {
    let problem = match Nats::new(settings.clone()).check().await {
        Ok(set_up) => problem(&set_up),
        Err(error) => Some(error.to_string()),
    };
    if let Some(problem) = problem {
        writeln!(std::io::stderr(), "warning: {problem}")?;
    }
    Ok(())
}

fn problem(set_up: &SetUp) -> Option<String> {
    match set_up {
        SetUp::Ready | SetUp::Created => None,
        SetUp::Missing(subjects) => Some(format!(
            "no stream of NATS has {}: create one with `hearback nats setup`",
            subjects.join(", ")
        )),
        SetUp::ShortWindow(streams) => {
            let streams = streams.iter();
            let streams = streams.map(|(name, window)| format!("{name} ({}s)", window.as_secs()));
            Some(format!(
                "a message may wait for 14 days and then be in a stream twice, because of the duplicate window of: {}",
                streams.collect::<Vec<_>>().join(", ")
            ))
        }
    }
}

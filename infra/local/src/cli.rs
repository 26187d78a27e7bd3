//! The command line.

mod api;
mod check;
mod compare;
mod demo;
mod export;
mod feed;
mod import;
mod nats;
mod relay;
mod repair;
mod replay;
mod serve;
mod tail;
mod token;
mod webhooks;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::{Args, Parser, Subcommand};
use hearback_domain::identity::identifier::InvalidIdentifier;
use hearback_lambda::telemetry::filter_with_overrides;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::clients::Clients;
use crate::engines::Access;
use crate::log_limit::{LimitedFormat, Limiter};
use crate::names::DEFAULT_STACK;

/// Collects feedback on AI answers and turns it into learning signals.
#[derive(Parser)]
#[command(name = "hearback", version, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: serve::Serve,
}

#[derive(Subcommand)]
enum Command {
    /// Run the whole bundle on this machine (the default)
    Serve(serve::Serve),
    /// Print a token for the local gateway; the last line is the token alone
    Token(token::Token),
    /// Print messages as they are published under the subjects, and delete them
    Tail(tail::Tail),
    /// Print feedback events as they are processed; nothing is consumed
    Feed(feed::Feed),
    /// Tell whether feedback on the answers with one value, such as a prompt version, is better than on those with
    /// another; exits with 1 if it is worse
    Compare(compare::Compare),
    /// Fill a project with a month of made-up conversations and feedback, to see what Hearback answers; safe to repeat
    Demo(demo::Demo),
    /// Move dead letters back to their source queues
    Redrive(repair::Redrive),
    /// Send stored feedback that was never processed to the signal generator again; safe to repeat
    Requeue(repair::Requeue),
    /// Register the turns of a file of conversations with a running bundle; safe to repeat
    Replay(replay::Replay),
    /// Import a file of feedback events (JSON Lines, plain, gzip or zstd) with a running bundle, and print
    /// its report; safe to repeat
    Import(import::Import),
    /// Check the integrity of each part of a data folder; the bundle may be running
    Check(check::Check),
    /// Print the message signals of all users, or training data, as JSON Lines
    Export(export::Export),
    /// Prepare a NATS server
    Nats(nats::NatsCommand),
    /// Add, list, remove and test webhooks
    Webhooks(webhooks::WebhooksCommand),
    /// Publish what waits for NATS from this process, beside a server that no Lambda function can reach
    Relay(relay::RelayCommand),
}

#[derive(Args)]
struct BundleArgs {
    /// Data folder of the running bundle
    #[arg(long, default_value = ".hearback", value_name = "DIR")]
    data: PathBuf,
    /// An AWS-compatible endpoint, or `aws` for AWS itself; region and credentials come from the
    /// environment
    #[arg(long, value_name = "URL")]
    endpoint_url: Option<String>,
    /// Stack whose queues to use
    #[arg(long, default_value = DEFAULT_STACK, value_name = "NAME")]
    stack: String,
}

/// Rejects names that the API would reject in a token.
fn identifier<T>(text: &str) -> Result<String, String>
where
    T: TryFrom<String, Error = InvalidIdentifier>,
    String: From<T>,
{
    parsed::<T>(text).map(Into::into)
}

fn parsed<T: TryFrom<String, Error = InvalidIdentifier>>(text: &str) -> Result<T, String> {
    T::try_from(text.to_owned()).map_err(|error| error.to_string())
}

/// Runs the command line of this process.
#[must_use]
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    let limiter = start_logging();
    let command = cli.command.unwrap_or(Command::Serve(cli.serve));
    let failure = if matches!(command, Command::Compare(_)) {
        ExitCode::from(compare::Compare::FAILURE)
    } else {
        ExitCode::FAILURE
    };
    let result = tokio::runtime::Runtime::new()
        .context("the runtime cannot start")
        .and_then(|runtime| runtime.block_on(run_command(command, limiter)));
    match result {
        Ok(code) => code,
        // The reader of the output, such as `head`, has closed the pipe.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error:#}");
            failure
        }
    }
}

async fn run_command(command: Command, limiter: Arc<Limiter>) -> Result<ExitCode> {
    match command {
        Command::Compare(compare) => return compare.run().await,
        Command::Serve(serve) => serve.run(limiter).await,
        Command::Token(token) => token.run(),
        Command::Tail(tail) => tail.run().await,
        Command::Feed(feed) => feed.run().await,
        Command::Demo(demo) => demo.run().await,
        Command::Redrive(redrive) => redrive.run().await,
        Command::Requeue(requeue) => requeue.run().await,
        Command::Replay(replay) => replay.run().await,
        Command::Import(import) => import.run().await,
        Command::Export(export) => export.run().await,
        Command::Check(check) => check.run(),
        Command::Nats(nats) => nats.run().await,
        Command::Webhooks(webhooks) => webhooks.run().await,
        Command::Relay(relay) => relay.run().await,
    }?;
    Ok(ExitCode::SUCCESS)
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<std::io::Error>()
        .is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

/// Logs go to standard error, so that the output of a command can be piped.
fn start_logging() -> Arc<Limiter> {
    let limiter = Arc::new(Limiter::default());
    let format = LimitedFormat::new(tracing_subscriber::fmt::format(), limiter.clone());
    let lines = tracing_subscriber::fmt::layer()
        .event_format(format)
        .with_writer(std::io::stderr);
    // Engines warn of failed conditions, which are how the functions settle races, and of the bucket's missing
    // versions. Their other errors are logged. The client of NATS would log a password in its URL. `RUST_LOG` overrides
    // these levels for the targets that it names.
    let _ = tracing_subscriber::registry()
        .with(lines)
        .with(filter_with_overrides(
            "warn,dynoxide=error,s3s=off,async_nats=warn",
        ))
        .try_init();
    limiter
}

/// A token that is cancelled by Ctrl-C or SIGTERM.
fn shutdown() -> Result<CancellationToken> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let shutdown = CancellationToken::new();
    let token = shutdown.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        token.cancel();
    });
    Ok(shutdown)
}

const NOT_RUNNING: &str = "no bundle answers; is it running?";

fn not_started(data: &Path) -> String {
    format!(
        "no bundle was started on {}; choose its folder with --data",
        data.display()
    )
}

impl BundleArgs {
    fn clients(&self) -> Result<Clients> {
        if let Some(url) = &self.endpoint_url {
            return Ok(Clients::of_endpoint(url));
        }
        let access = Access::of_folder(&self.data)?.with_context(|| not_started(&self.data))?;
        Ok(Clients::of_engines(&access))
    }
}

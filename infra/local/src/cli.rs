//! The command line.

mod check;
mod export;
mod feed;
mod import;
mod nats;
mod relay;
mod repair;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::{Args, Parser, Subcommand};
use hearback_domain::events::retention::Retention;
use hearback_domain::identity::caller::Scope;
use hearback_domain::identity::identifier::{InvalidIdentifier, ProjectId, TenantId, UserId};
use hearback_domain::learning::publication::Subject;
use hearback_lambda::telemetry::filter_with_overrides;
use rustix::fs::Mode;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::atomic::read_json;
use crate::bundle::{Bundle, Options};
use crate::clients::Clients;
use crate::demo;
use crate::engines::Access;
use crate::files::{GATEWAY_FILE, TOKEN_KEY_FILE};
use crate::hosts::{Host, Hosts};
use crate::log_limit::{self, LimitedFormat, Limiter};
use crate::manifest::FolderPart;
use crate::names::{DEFAULT_STACK, Names};
use crate::open_files;
use crate::queue_tools;
use crate::replay::{self, ReplayTarget};
use crate::secrets::secret;
use crate::token::{Claims, Tokens};

/// Collects feedback on AI answers and turns it into learning signals.
#[derive(Parser)]
#[command(name = "hearback", version, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: Serve,
}

#[derive(Subcommand)]
enum Command {
    /// Run the whole bundle on this machine (the default)
    Serve(Serve),
    /// Print a token for the local gateway; the last line is the token alone
    Token(Token),
    /// Print messages as they are published under the subjects, and delete them
    Tail(Tail),
    /// Print feedback events as they are processed; nothing is consumed
    Feed(feed::Feed),
    /// Move dead letters back to their source queues
    Redrive(repair::Redrive),
    /// Send stored feedback that was never processed to the signal generator again; safe to repeat
    Requeue(repair::Requeue),
    /// Register the turns of a file of conversations with a running bundle; safe to repeat
    Replay(Replay),
    /// Import a file of feedback events (JSON Lines, plain, gzip or zstd) with a running bundle, and print
    /// its report; safe to repeat
    Import(import::Import),
    /// Check the integrity of each part of a data folder; the bundle may be running
    Check(check::Check),
    /// Print the message signals of all users, or training data, as JSON Lines
    Export(export::Export),
    /// Prepare a NATS server
    Nats(nats::NatsCommand),
    /// Publish what waits for NATS from this process, beside a server that no Lambda function can reach
    Relay(relay::RelayCommand),
}

#[derive(Args)]
struct Serve {
    /// Port of the gateway; the engines use the three ports that follow
    #[arg(long, default_value_t = 3000)]
    port: u16,
    /// Data folder
    #[arg(long, default_value = ".hearback", value_name = "DIR")]
    data: PathBuf,
    /// Keep all data in memory instead
    #[arg(long, conflicts_with = "data")]
    memory: bool,
    /// Use an AWS-compatible endpoint instead of the embedded engines, or `aws` for AWS itself. Missing
    /// resources are created there; region and credentials come from the environment
    #[arg(long, value_name = "URL")]
    endpoint_url: Option<String>,
    /// Stack whose resources to use
    #[arg(long, default_value = DEFAULT_STACK, value_name = "NAME")]
    stack: String,
    /// Projects whose reactions are mirrored into turn logs unless a request says otherwise, as a
    /// comma-separated list of tenant/project
    #[arg(long, default_value = "", value_name = "LIST")]
    mirror: String,
    /// Days for which turns are kept, with their reactions and signals; 0 keeps them forever
    #[arg(long, default_value_t = Retention::DEFAULT_DAYS, value_name = "DAYS",
        value_parser = clap::value_parser!(u16).range(..=Retention::MAX_DAYS))]
    turn_retention_days: u16,
    /// Folder of phrase files (<language>.toml) to add to the built-in ones
    #[arg(long, value_name = "DIR")]
    phrases: Option<PathBuf>,
    /// An additional host name or address under which the gateway is reached, without a port, for example
    /// that of a reverse proxy. May be given more than once. Requests for hosts other than these and the
    /// loopback names are rejected
    #[arg(long, value_name = "HOST")]
    allowed_host: Vec<Host>,
    /// Start although this part of the data folder (dynamodb.sqlite, sqs.sqlite, s3, pseudonym.key, token.key,
    /// credentials.json, manifest.json) is missing or belongs to another folder. Its content is lost for good;
    /// pass the option for one start only. May be given more than once
    #[arg(long, value_name = "PART")]
    accept: Vec<FolderPart>,
    #[command(flatten)]
    nats: nats::NatsArgs,
}

#[derive(Args)]
struct Replay {
    /// Conversations with their turns, as JSON Lines
    file: PathBuf,
    /// The project
    #[arg(long, value_parser = identifier::<ProjectId>)]
    project: String,
    /// The tenant
    #[arg(long, default_value = "acme", value_parser = identifier::<TenantId>)]
    tenant: String,
    /// User that owns the turns
    #[arg(long, default_value = "replay", value_parser = identifier::<UserId>)]
    sub: String,
    /// Data folder of the running bundle
    #[arg(long, default_value = ".hearback", value_name = "DIR")]
    data: PathBuf,
}

#[derive(Args)]
struct Token {
    /// User
    #[arg(long, value_parser = identifier::<UserId>)]
    sub: String,
    /// The tenant
    #[arg(long, value_parser = identifier::<TenantId>)]
    tenant: String,
    /// Comma-separated projects, the most recent first
    #[arg(long, value_delimiter = ',', value_parser = identifier::<ProjectId>)]
    projects: Vec<String>,
    /// Space-separated scopes
    #[arg(long, default_value = "")]
    scope: String,
    /// Data folder of the bundle that the token is for
    #[arg(long, default_value = ".hearback", value_name = "DIR")]
    data: PathBuf,
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

#[derive(Args)]
struct Tail {
    /// Only this subject
    #[arg(long, value_parser = subject)]
    subject: Option<Subject>,
    /// Stop when the queues are empty
    #[arg(long)]
    drain: bool,
    #[command(flatten)]
    bundle: BundleArgs,
}

/// Rejects names that the API would reject in a token.
fn identifier<T>(text: &str) -> Result<String, String>
where
    T: TryFrom<String, Error = InvalidIdentifier>,
    String: From<T>,
{
    let name = T::try_from(text.to_owned()).map_err(|error| error.to_string())?;
    Ok(name.into())
}

fn subject(name: &str) -> Result<Subject, String> {
    let found = Subject::NAMES.iter().find(|(known, _)| *known == name);
    found.map(|(_, subject)| *subject).ok_or_else(|| {
        let names: Vec<_> = Subject::NAMES.iter().map(|(name, _)| *name).collect();
        format!("the subjects are {}", names.join(", "))
    })
}

/// Runs the command line of this process.
#[must_use]
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    let limiter = start_logging();
    let result = tokio::runtime::Runtime::new()
        .context("the runtime cannot start")
        .and_then(|runtime| {
            runtime.block_on(async {
                match cli.command.unwrap_or(Command::Serve(cli.serve)) {
                    Command::Serve(serve) => serve.run(limiter).await,
                    Command::Token(token) => token.run(),
                    Command::Tail(tail) => tail.run().await,
                    Command::Feed(feed) => feed.run().await,
                    Command::Redrive(redrive) => redrive.run().await,
                    Command::Requeue(requeue) => requeue.run().await,
                    Command::Replay(replay) => replay.run().await,
                    Command::Import(import) => import.run().await,
                    Command::Export(export) => export.run().await,
                    Command::Check(check) => check.run(),
                    Command::Nats(nats) => nats.run().await,
                    Command::Relay(relay) => relay.run().await,
                }
            })
        });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // The reader of the output, such as `head`, has closed the pipe.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
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

impl Serve {
    async fn run(self, limiter: Arc<Limiter>) -> Result<()> {
        open_files::raise_limit();
        // Files that libraries create from now on are private to the user.
        rustix::process::umask(Mode::RWXG | Mode::RWXO);
        let shutdown = shutdown()?;
        let nats = self.nats.settings()?;
        let bundle = Bundle::start(Options {
            nats: nats.clone(),
            port: self.port,
            data: (!self.memory).then_some(self.data),
            endpoint_url: self.endpoint_url,
            names: Names::new(self.stack),
            mirror: self.mirror,
            retention: Retention::days(self.turn_retention_days),
            phrases: self.phrases,
            hosts: Hosts::with(self.allowed_host),
            accept: self.accept,
            ..Options::default()
        })
        .await?;
        print_welcome(&bundle)?;
        if let Some(nats) = nats {
            tokio::spawn(async move { nats::warn(&nats).await });
        }
        let minute = || tokio::time::sleep(log_limit::INTERVAL);
        while shutdown.run_until_cancelled(minute()).await.is_some() {
            log_limit::report(&limiter);
        }
        bundle.stop().await;
        Ok(())
    }
}

/// Prints addresses, a token and example calls.
fn print_welcome(bundle: &Bundle) -> Result<()> {
    let token = bundle.tokens.sign(Claims {
        sub: "user-123".to_owned(),
        tenant: "acme".to_owned(),
        projects: vec!["order-service".to_owned(), demo::PROJECT.to_owned()],
        scope: String::new(),
    })?;
    let address = bundle.address;
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "Hearback is listening on http://{address} (API at http://{address}/docs)\n\n\
         Try it in a browser: http://{address}/demo#token={token}\n"
    )?;
    writeln!(
        out,
        "A token for user-123 of the tenant acme:\n\n  export TOKEN={token}\n"
    )?;
    writeln!(
        out,
        r#"Submit feedback, and read what was learned from it:

  curl -s http://{address}/v1/feedback/submit -H "Authorization: Bearer $TOKEN" -d '{{
    "feedbackId": "f47ac10b-58cc-4372-a567-0e02b2c3d479",
    "userId": "user-123", "sessionId": "session-abc", "artifactId": "artifact-456",
    "feedbackChannel": "explicit", "feedbackType": "artifact-acceptance",
    "data": {{"accepted": true, "rating": 4, "comment": "Very helpful checklist",
             "modifiedElements": ["checkbox-1", "text-field-2"], "timeSpent": 45}},
    "context": {{"taskType": "code-review", "projectId": "order-service",
                "artifactType": "checklist"}}}}'

  curl -s http://{address}/v1/feedback/f47ac10b-58cc-4372-a567-0e02b2c3d479 -H "Authorization: Bearer $TOKEN"
"#
    )?;
    if let Some(Access { endpoints, keys }) = &bundle.access {
        writeln!(
            out,
            "AWS tools reach the table, queues and bucket with these settings (version 2 of the AWS CLI; version 1\n\
             ignores AWS_ENDPOINT_URL_SQS and would call AWS: pass it --endpoint-url):\n\n  \
             export AWS_ENDPOINT_URL_DYNAMODB={} AWS_ENDPOINT_URL_SQS={} AWS_ENDPOINT_URL_S3={}\n  \
             export AWS_REGION=us-east-1 AWS_DEFAULT_REGION=us-east-1\n  \
             export AWS_ACCESS_KEY_ID={} AWS_SECRET_ACCESS_KEY={}\n",
            endpoints.dynamodb,
            endpoints.sqs,
            endpoints.s3,
            keys.access_key_id,
            keys.secret_access_key
        )?;
    }
    writeln!(out, "Press Ctrl-C to stop.")?;
    out.flush()?;
    Ok(())
}

impl Token {
    fn run(self) -> Result<()> {
        if !self.data.join(TOKEN_KEY_FILE).exists() {
            let shown = self.data.display();
            // Not an error: a bundle that is started on this folder later uses the key that is generated now.
            writeln!(
                std::io::stderr(),
                "note: no bundle was started on {shown} yet; the token is valid for one that is started there"
            )?;
        }
        let tokens = Tokens::new(&secret(&self.data, TOKEN_KEY_FILE)?);
        let token = tokens.sign(Claims {
            sub: self.sub,
            tenant: self.tenant,
            projects: self.projects,
            scope: self.scope,
        })?;
        writeln!(std::io::stdout(), "{token}")?;
        Ok(())
    }
}

impl Replay {
    async fn run(self) -> Result<()> {
        let file = self.data.join(GATEWAY_FILE);
        let address: String = read_json(&file)?.with_context(|| not_started(&self.data))?;
        let tokens = Tokens::new(&secret(&self.data, TOKEN_KEY_FILE)?);
        let target = ReplayTarget {
            address,
            token: tokens.sign(Claims {
                sub: self.sub,
                tenant: self.tenant.clone(),
                projects: vec![self.project.clone()],
                scope: Scope::OnBehalf.as_str().to_owned(),
            })?,
            tenant: self.tenant,
            project: self.project,
        };
        let summary = replay::replay(&self.file, &target).await?;
        for rejected in summary.rejected.iter().take(MAX_REJECTED_SHOWN) {
            writeln!(std::io::stderr(), "rejected: {rejected}")?;
        }
        writeln!(std::io::stdout(), "{summary}")?;
        anyhow::ensure!(summary.rejected.is_empty(), "some turns were rejected");
        Ok(())
    }
}

const NOT_RUNNING: &str = "no bundle answers; is it running?";
const MAX_REJECTED_SHOWN: usize = 20;

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

impl Tail {
    async fn run(self) -> Result<()> {
        let names = Names::new(&self.bundle.stack);
        let subjects: Vec<Subject> = match self.subject {
            Some(subject) => vec![subject],
            None => Subject::NAMES.iter().map(|(_, subject)| *subject).collect(),
        };
        let sqs = self.bundle.clients()?.sqs;
        queue_tools::tail(&sqs, &names, &subjects, self.drain, &shutdown()?).await
    }
}

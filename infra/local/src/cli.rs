//! The command line.

mod export;
mod import;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, Parser, Subcommand};
use hearback_domain::caller::Scope;
use hearback_domain::identifier::UserId;
use hearback_domain::publication::Subject;
use hearback_domain::retention::Retention;
use hearback_lambda::telemetry::filter_over;
use hearback_storage::Store;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::bundle::{Bundle, Clients, ENDPOINTS_FILE, GATEWAY_FILE, Options};
use crate::data_dir::{read_json, secret};
use crate::demo;
use crate::names::{DEFAULT_STACK, Names};
use crate::open_files;
use crate::queue_tools;
use crate::replay;
use crate::token::{Claims, KEY_FILE, Tokens};

/// Hears what users make of an AI's answers and turns it into learning.
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
    /// Print what is published under the subjects, and follow
    Tail(Tail),
    /// Move the dead letters of the signal generator back to its queue
    Redrive(Redrive),
    /// Register the turns of a file of conversations with a running bundle; safe to repeat
    Replay(Replay),
    /// Import a file of feedback events (JSON Lines, plain, gzip or zstd) with a running bundle, and print
    /// its report; safe to repeat
    Import(import::Import),
    /// Print what was said of messages over all users, or what a model can learn, as JSON Lines
    Export(export::Export),
}

#[derive(Args)]
struct Serve {
    /// Port of the gateway; the engines take the three that follow
    #[arg(long, default_value_t = 3000)]
    port: u16,
    /// Folder that keeps everything
    #[arg(long, default_value = ".hearback", value_name = "DIR")]
    data: PathBuf,
    /// Keep everything in memory instead
    #[arg(long, conflicts_with = "data")]
    memory: bool,
    /// Use another AWS-compatible endpoint instead of the embedded engines, or `aws` for AWS's
    /// own; creates what is missing there; region and credentials come from the environment
    #[arg(long, value_name = "URL")]
    endpoint_url: Option<String>,
    /// Stack whose resources are used
    #[arg(long, default_value = DEFAULT_STACK, value_name = "NAME")]
    stack: String,
    /// Projects whose reactions are mirrored into turn logs unless a request says otherwise, as
    /// tenant/project with commas between
    #[arg(long, default_value = "", value_name = "LIST")]
    mirror: String,
    /// Days for which turns are kept, with their reactions and signals; 0 is without end
    #[arg(long, default_value_t = Retention::DEFAULT_DAYS, value_name = "DAYS",
        value_parser = clap::value_parser!(u16).range(..=i64::from(Retention::MAX_DAYS)))]
    turn_retention_days: u16,
    /// Folder of phrase files (<language>.toml) that add to those by which feedback is detected
    #[arg(long, value_name = "DIR")]
    phrases: Option<PathBuf>,
}

#[derive(Args)]
struct Replay {
    /// Conversations as JSON Lines, each with its turns
    file: PathBuf,
    /// The project
    #[arg(long)]
    project: String,
    /// The tenant
    #[arg(long, default_value = "acme")]
    tenant: String,
    /// The user whose turns they are
    #[arg(long, default_value = "replay")]
    sub: String,
    /// Folder of the running bundle
    #[arg(long, default_value = ".hearback", value_name = "DIR")]
    data: PathBuf,
}

#[derive(Args)]
struct Token {
    /// The user
    #[arg(long, value_parser = identifier)]
    sub: String,
    /// The tenant
    #[arg(long, value_parser = identifier)]
    tenant: String,
    /// Projects, the most recent first, with commas between
    #[arg(long, value_delimiter = ',')]
    projects: Vec<String>,
    /// Scopes, with spaces between
    #[arg(long, default_value = "")]
    scope: String,
    /// Folder of the bundle that the token is for
    #[arg(long, default_value = ".hearback", value_name = "DIR")]
    data: PathBuf,
}

#[derive(Args)]
struct Target {
    /// Folder of the running bundle
    #[arg(long, default_value = ".hearback", value_name = "DIR")]
    data: PathBuf,
    /// Another AWS-compatible endpoint, or `aws` for AWS's own; region and credentials come from
    /// the environment
    #[arg(long, value_name = "URL")]
    endpoint_url: Option<String>,
    /// Stack whose queues are meant
    #[arg(long, default_value = DEFAULT_STACK, value_name = "NAME")]
    stack: String,
}

#[derive(Args)]
struct Redrive {
    /// Those of the stream: read each record again, and deliver it
    #[arg(long)]
    stream: bool,
    /// The table, where it is not called as the stack: `TableName` of a deployed one
    #[arg(long, value_name = "NAME", requires = "stream")]
    table: Option<String>,
    #[command(flatten)]
    target: Target,
}

#[derive(Args)]
struct Tail {
    /// Only this subject
    #[arg(long, value_parser = subject)]
    subject: Option<Subject>,
    /// End when the queues are empty
    #[arg(long)]
    drain: bool,
    #[command(flatten)]
    target: Target,
}

/// A token of nobody, or of no tenant, would be refused.
fn identifier(text: &str) -> Result<String, String> {
    let user = UserId::try_from(text).map_err(|error| error.to_string())?;
    Ok(user.into())
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
    start_logging();
    let result = tokio::runtime::Runtime::new()
        .context("the runtime cannot start")
        .and_then(|runtime| {
            runtime.block_on(async {
                match cli.command.unwrap_or(Command::Serve(cli.serve)) {
                    Command::Serve(serve) => serve.run().await,
                    Command::Token(token) => token.run(),
                    Command::Tail(tail) => tail.run().await,
                    Command::Redrive(redrive) => redrive.run().await,
                    Command::Replay(replay) => replay.run().await,
                    Command::Import(import) => import.run().await,
                    Command::Export(export) => export.run().await,
                }
            })
        });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read our output has seen enough.
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

/// Logs go to standard error, so that what a command prints can be piped on.
fn start_logging() {
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    // A condition that does not hold is no warning here: it is how the functions settle races. Nor is that
    // the bucket keeps no versions.
    // What `RUST_LOG` does not name stays so: of the engines, what is no news is an error.
    let _ = tracing_subscriber::registry()
        .with(lines)
        .with(filter_over("warn,dynoxide=error,s3s=off"))
        .try_init();
}

/// Ends with Ctrl-C or SIGTERM.
fn ended() -> Result<CancellationToken> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let ended = CancellationToken::new();
    let token = ended.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        token.cancel();
    });
    Ok(ended)
}

impl Serve {
    async fn run(self) -> Result<()> {
        open_files::allow();
        let ended = ended()?;
        let bundle = Bundle::start(Options {
            port: self.port,
            data: (!self.memory).then_some(self.data),
            endpoint_url: self.endpoint_url,
            names: Names::new(self.stack),
            mirror: self.mirror,
            retention: Retention::days(self.turn_retention_days),
            phrases: self.phrases,
            ..Options::default()
        })
        .await?;
        greet(&bundle)?;
        ended.cancelled().await;
        bundle.stop().await;
        Ok(())
    }
}

/// Says where the bundle is and how to talk to it.
fn greet(bundle: &Bundle) -> Result<()> {
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
        r#"Tell it something, and see what it made of that:

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
    if let Some(endpoints) = &bundle.endpoints {
        writeln!(
            out,
            "AWS tools find its table, queues and bucket here (version 2 of the AWS CLI; version 1 takes\n\
             no AWS_ENDPOINT_URL_SQS, and would talk to AWS: give it --endpoint-url):\n\n  \
             export AWS_ENDPOINT_URL_DYNAMODB={} AWS_ENDPOINT_URL_SQS={} AWS_ENDPOINT_URL_S3={}\n  \
             export AWS_REGION=us-east-1 AWS_DEFAULT_REGION=us-east-1 AWS_ACCESS_KEY_ID=local AWS_SECRET_ACCESS_KEY=local\n",
            endpoints.dynamodb, endpoints.sqs, endpoints.s3
        )?;
    }
    writeln!(out, "Ctrl-C ends it.")?;
    out.flush()?;
    Ok(())
}

impl Token {
    fn run(self) -> Result<()> {
        if !self.data.join(KEY_FILE).exists() {
            let shown = self.data.display();
            // Not an error: the key that is drawn now is the one that a bundle will find there.
            writeln!(
                std::io::stderr(),
                "note: no bundle was started on {shown} yet; only one that is will take this token"
            )?;
        }
        let tokens = Tokens::new(&secret(&self.data, KEY_FILE)?);
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
        let tokens = Tokens::new(&secret(&self.data, KEY_FILE)?);
        let target = replay::Target {
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
        for refused in summary.refused.iter().take(REFUSED_SHOWN) {
            writeln!(std::io::stderr(), "refused: {refused}")?;
        }
        writeln!(std::io::stdout(), "{summary}")?;
        anyhow::ensure!(summary.refused.is_empty(), "not every turn was taken");
        Ok(())
    }
}

/// Why nothing of a bundle can be reached.
const NOT_RUNNING: &str = "no bundle answers; is it running?";
/// Refused turns that are told one by one.
const REFUSED_SHOWN: usize = 20;

fn not_started(data: &Path) -> String {
    format!(
        "no bundle was started on {}; say which with --data",
        data.display()
    )
}

impl Target {
    fn clients(&self) -> Result<Clients> {
        if let Some(url) = &self.endpoint_url {
            return Ok(Clients::of_endpoint(url));
        }
        let file = self.data.join(ENDPOINTS_FILE);
        let endpoints = read_json(&file)?.with_context(|| not_started(&self.data))?;
        Ok(Clients::of_engines(&endpoints))
    }
}

impl Redrive {
    async fn run(self) -> Result<()> {
        let (clients, names) = (self.target.clients()?, Names::new(&self.target.stack));
        if self.stream {
            let table = self.table.unwrap_or_else(|| names.table());
            let store = Store::new(clients.dynamodb.clone(), table);
            let done = queue_tools::redrive_stream(&clients, &names, &store).await?;
            let (moved, left) = (done.moved, done.left);
            writeln!(
                std::io::stdout(),
                "dead letters of the stream done: {moved}; left: {left}"
            )?;
            anyhow::ensure!(left == 0, "not every record could be delivered");
            return Ok(());
        }
        let moved = queue_tools::redrive(&clients.sqs, &names).await?;
        let letters = if moved == 1 { "letter" } else { "letters" };
        writeln!(std::io::stdout(), "{moved} dead {letters} moved back")?;
        Ok(())
    }
}

impl Tail {
    async fn run(self) -> Result<()> {
        let names = Names::new(&self.target.stack);
        let subjects: Vec<Subject> = match self.subject {
            Some(subject) => vec![subject],
            None => Subject::NAMES.iter().map(|(_, subject)| *subject).collect(),
        };
        let sqs = self.target.clients()?.sqs;
        queue_tools::tail(&sqs, &names, &subjects, self.drain, &ended()?).await
    }
}

//! Registers the turns of a file of conversations with a running bundle, through its HTTP API.
//!
//! Each line is `{"conversation_id": …, "turns": [{"turn_id": …, "user": …, "assistant": …}]}`; a
//! side is a text or an object with one, and whatever else a registration takes may stand beside. A turn
//! without `assistant` is opened.
//! A turn that is known is left as it is, so a replay that was stopped is simply run again.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::{Context, Result, bail};
use futures::stream::{self, StreamExt, TryStreamExt};
use indicatif::{ProgressBar, ProgressStyle};
use reqwest::{Client, StatusCode, Url};
use serde_json::{Map, Value, json};

/// Registrations that are under way at once.
const AT_ONCE: usize = 8;

/// Where to replay to.
#[derive(Debug)]
pub struct Target {
    /// The gateway, as `host:port`.
    pub address: String,
    /// A token for it.
    pub token: String,
    /// Its tenant.
    pub tenant: String,
    /// The project.
    pub project: String,
}

/// What a replay did.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Turns that are registered now.
    pub registered: usize,
    /// Turns that were so before.
    pub known: usize,
    /// Turns that were refused, each with its reason.
    pub refused: Vec<String>,
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            registered,
            known,
            refused,
        } = self;
        if *registered == 0 && refused.is_empty() {
            write!(f, "nothing changed: all {known} turns were known")
        } else {
            let refused = refused.len();
            write!(
                f,
                "{registered} turns registered, {known} known before, {refused} refused"
            )
        }
    }
}

/// One turn to register.
struct Turn {
    conversation: String,
    turn: String,
    body: Value,
}

enum Answer {
    Registered,
    Known,
    Refused(String),
}

/// Replays a file.
pub async fn replay(file: &Path, target: &Target) -> Result<Summary> {
    let turns = read(file)?;
    let bar = ProgressBar::new(turns.len().try_into()?).with_style(ProgressStyle::with_template(
        "{bar:40} {pos}/{len} turns, {per_sec}, {eta} to go",
    )?);
    let client = Client::new();
    let answers = stream::iter(turns)
        .map(|turn| register(&client, target, turn))
        .buffered(AT_ONCE)
        .inspect(|_| bar.inc(1));
    let summary = answers
        .try_fold(Summary::default(), async |mut summary, answer| {
            match answer {
                Answer::Registered => summary.registered += 1,
                Answer::Known => summary.known += 1,
                Answer::Refused(reason) => summary.refused.push(reason),
            }
            Ok(summary)
        })
        .await;
    bar.finish_and_clear();
    summary
}

fn read(file: &Path) -> Result<Vec<Turn>> {
    let shown = file.display();
    let lines = BufReader::new(File::open(file).with_context(|| format!("cannot read {shown}"))?);
    let mut turns = Vec::new();
    for (at, line) in lines.lines().enumerate() {
        let line = line.with_context(|| format!("cannot read {shown}"))?;
        if line.trim().is_empty() {
            continue;
        }
        let conversation = serde_json::from_str(&line).ok();
        let conversation = conversation.as_ref().and_then(turns_of);
        match conversation {
            Some(conversation) => turns.extend(conversation),
            None => bail!("{shown}, line {}: not a conversation with turns", at + 1),
        }
    }
    Ok(turns)
}

fn turns_of(line: &Map<String, Value>) -> Option<Vec<Turn>> {
    let conversation = line.get("conversation_id")?.as_str()?;
    let turns = line.get("turns")?.as_array()?.iter();
    turns
        .map(|turn| one(conversation, turn.as_object()?))
        .collect()
}

fn one(conversation: &str, turn: &Map<String, Value>) -> Option<Turn> {
    let mut body = turn.clone();
    let id = body.remove("turn_id")?.as_str()?.to_owned();
    body.get("user")?;
    for side in ["user", "assistant"] {
        if let Some(said) = body.get_mut(side).filter(|said| said.is_string()) {
            *said = json!({"text": said.take()});
        }
    }
    Some(Turn {
        conversation: conversation.to_owned(),
        turn: id,
        body: Value::Object(body),
    })
}

async fn register(client: &Client, target: &Target, turn: Turn) -> Result<Answer> {
    let mut url = Url::parse(&format!("http://{}", target.address))?;
    url.path_segments_mut()
        .map_err(|()| anyhow::anyhow!("{} is no address", target.address))?
        .extend([
            "conversations",
            &target.tenant,
            &target.project,
            &turn.conversation,
            "turns",
            &turn.turn,
        ]);
    let request = client.put(url).bearer_auth(&target.token).json(&turn.body);
    let response = request
        .send()
        .await
        .with_context(|| format!("no bundle answers at {}; is it running?", target.address))?;
    Ok(match response.status() {
        StatusCode::CREATED => Answer::Registered,
        StatusCode::OK => Answer::Known,
        status if status.is_client_error() => {
            let problem: Value = response.json().await.unwrap_or_default();
            let error = problem.get("error").and_then(Value::as_str);
            let error = error.unwrap_or("refused");
            Answer::Refused(format!(
                "{}/{}: {status} {error}",
                turn.conversation, turn.turn
            ))
        }
        status => bail!("{}/{}: {status}; try again", turn.conversation, turn.turn),
    })
}

//! `hearback replay`: registers the turns of a file of conversations through the API.
//!
//! Each line is `{"conversation_id": …, "turns": [{"turn_id": …, "user": …, "assistant": …}]}`. `user` and `assistant`
//! are a string or an object with `text`; a turn can have all other members of a registration. A turn without
//! `assistant` is opened.
//!
//! A turn that is already registered is not changed, so an interrupted replay can be repeated.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::{Context, Result, bail};
use futures::stream::{self, StreamExt, TryStreamExt};
use indicatif::{ProgressBar, ProgressStyle};
use reqwest::{Method, StatusCode};
use serde_json::{Map, Value, json};

use crate::api::{self, Api};

/// Registrations in progress at a time.
const CONCURRENCY: usize = 8;

/// The project that a replay writes to.
pub struct ReplayTarget {
    /// The API, with a token that has the project.
    pub api: Api,
    /// The tenant of the token.
    pub tenant: String,
    /// The project.
    pub project: String,
}

/// The result of a replay.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ReplaySummary {
    /// Turns that were registered.
    pub registered: usize,
    /// Turns that had been registered before.
    pub known: usize,
    /// Rejected turns, each with the reason.
    pub rejected: Vec<String>,
}

impl std::fmt::Display for ReplaySummary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            registered,
            known,
            rejected,
        } = self;
        if *registered == 0 && rejected.is_empty() {
            write!(f, "nothing changed: all {known} turns were known")
        } else {
            let rejected = rejected.len();
            write!(
                f,
                "{registered} turns registered, {known} known before, {rejected} rejected"
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

enum Registration {
    New,
    Known,
    Rejected(String),
}

/// Replays a file.
pub async fn replay(file: &Path, target: &ReplayTarget) -> Result<ReplaySummary> {
    let turns = read(file)?;
    let bar = ProgressBar::new(turns.len().try_into()?).with_style(ProgressStyle::with_template(
        "{bar:40} {pos}/{len} turns, {per_sec}, {eta} to go",
    )?);
    let registrations = stream::iter(turns)
        .map(|turn| register(target, turn))
        .buffered(CONCURRENCY)
        .inspect(|_| bar.inc(1));
    let summary = registrations
        .try_fold(
            ReplaySummary::default(),
            async |mut summary, registration| {
                match registration {
                    Registration::New => summary.registered += 1,
                    Registration::Known => summary.known += 1,
                    Registration::Rejected(reason) => summary.rejected.push(reason),
                }
                Ok(summary)
            },
        )
        .await;
    bar.finish_and_clear();
    summary
}

fn read(file: &Path) -> Result<Vec<Turn>> {
    let shown = file.display();
    let lines = BufReader::new(File::open(file).with_context(|| format!("cannot read {shown}"))?);
    let mut turns = Vec::new();
    for (index, line) in lines.lines().enumerate() {
        let line = line.with_context(|| format!("cannot read {shown}"))?;
        if line.trim().is_empty() {
            continue;
        }
        let conversation = serde_json::from_str(&line).ok();
        let conversation = conversation.as_ref().and_then(turns_of);
        match conversation {
            Some(conversation) => turns.extend(conversation),
            None => bail!("{shown}, line {}: not a conversation with turns", index + 1),
        }
    }
    Ok(turns)
}

fn turns_of(line: &Map<String, Value>) -> Option<Vec<Turn>> {
    let conversation = line.get("conversation_id")?.as_str()?;
    let turns = line.get("turns")?.as_array()?.iter();
    turns
        .map(|turn| turn_of(conversation, turn.as_object()?))
        .collect()
}

fn turn_of(conversation: &str, turn: &Map<String, Value>) -> Option<Turn> {
    let mut body = turn.clone();
    let id = body.remove("turn_id")?.as_str()?.to_owned();
    body.get("user")?;
    for side in ["user", "assistant"] {
        if let Some(text) = body.get_mut(side).filter(|text| text.is_string()) {
            *text = json!({"text": text.take()});
        }
    }
    Some(Turn {
        conversation: conversation.to_owned(),
        turn: id,
        body: Value::Object(body),
    })
}

async fn register(target: &ReplayTarget, turn: Turn) -> Result<Registration> {
    let path = [
        "conversations",
        &target.tenant,
        &target.project,
        &turn.conversation,
        "turns",
        &turn.turn,
    ];
    let request = target.api.request(Method::PUT, &path, &[])?;
    let (status, problem) = api::exchange(request.json(&turn.body)).await?;
    Ok(match status {
        StatusCode::CREATED => Registration::New,
        StatusCode::OK => Registration::Known,
        status if status.is_client_error() => {
            let error = problem.get("error").and_then(Value::as_str);
            let error = error.unwrap_or("rejected");
            Registration::Rejected(format!(
                "{}/{}: {status} {error}",
                turn.conversation, turn.turn
            ))
        }
        status => bail!("{}/{}: {status}; try again", turn.conversation, turn.turn),
    })
}

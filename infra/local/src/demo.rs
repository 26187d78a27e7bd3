//! `hearback demo`: fills a project with a month of conversations and feedback, through the API.
//!
//! All ids follow from the month's last day and the project, so an interrupted fill can be repeated.

pub mod month;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::stream::{self, StreamExt, TryStreamExt};
use hearback_domain::feedback::reaction::MIN_CONFIDENCE;
use indicatif::{ProgressBar, ProgressStyle};
use reqwest::Method;
use serde_json::{Value, json};

use crate::api::{self, Api};

use month::{Conversation, DAYS, Month};

/// Conversations in progress at a time.
const CONCURRENCY: usize = 8;
/// Events of a batch.
const BATCH: usize = 500;
/// Time between two queries of the progress.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How long the insights may take to count the events.
const COUNTING: Duration = Duration::from_mins(5);

/// The project to fill.
pub struct DemoTarget {
    /// The API, with a token that has the project and the scopes `feedback:on-behalf` and `feedback:report`.
    pub api: Api,
    /// The tenant of the token.
    pub tenant: String,
    /// The project.
    pub project: String,
}

/// What was sent.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct DemoSummary {
    /// Conversations.
    pub conversations: usize,
    /// Their turns.
    pub turns: usize,
    /// Reactions, ratings and corrections.
    pub given: usize,
    /// What the bundle inferred from users' next messages.
    pub inferred: usize,
}

impl std::ops::Add for DemoSummary {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            conversations: self.conversations + other.conversations,
            turns: self.turns + other.turns,
            given: self.given + other.given,
            inferred: self.inferred + other.inferred,
        }
    }
}

/// Registers a month and the feedback on it, and waits until the insights have counted all of it.
pub async fn fill(mut month: Month, target: &DemoTarget) -> Result<DemoSummary> {
    let bar = ProgressBar::new(month.conversations.len().try_into()?).with_style(
        ProgressStyle::with_template("{bar:40} {pos}/{len} conversations, {eta} to go")?,
    );
    let (mut events, mut withdrawn) = (Vec::new(), Vec::new());
    for conversation in &mut month.conversations {
        events.append(&mut conversation.events);
        withdrawn.append(&mut conversation.withdrawn);
    }
    let mut summary = stream::iter(month.conversations)
        .map(|conversation| target.converse(conversation))
        .buffered(CONCURRENCY)
        .inspect(|_| bar.inc(1))
        .try_fold(DemoSummary::default(), async |sum, one| Ok(sum + one))
        .await?;
    summary.given += events.len();
    // After the turns that they are about.
    for events in events.chunks(BATCH) {
        target.submit(events).await?;
    }
    for id in withdrawn {
        let path = ["v1", "feedback", &id.to_string()];
        target.send(Method::DELETE, &path, None).await?;
    }
    bar.set_style(ProgressStyle::with_template(
        "{bar:40} {pos}/{len} events counted, {elapsed}",
    )?);
    bar.set_length((summary.given + summary.inferred).try_into()?);
    let end = month.first + chrono::Days::new(DAYS);
    let [from, to] = [month.first, end].map(|day| format!("{day}T00:00:00Z"));
    let period = [("from", from.as_str()), ("to", &to)];
    let counted = tokio::time::timeout(COUNTING, async {
        loop {
            let counted = target.counted(&period).await?;
            bar.set_position(counted);
            if bar.length() <= Some(counted) {
                return anyhow::Ok(());
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    });
    let counted = counted.await;
    bar.finish_and_clear();
    counted.context("everything is sent, but not all of it is counted yet")??;
    Ok(summary)
}

impl DemoTarget {
    /// Registers the turns of a conversation, each with its reaction.
    async fn converse(&self, conversation: Conversation) -> Result<DemoSummary> {
        let mut summary = DemoSummary {
            conversations: 1,
            ..DemoSummary::default()
        };
        for turn in conversation.turns {
            let path = [
                "conversations",
                &self.tenant,
                &self.project,
                &conversation.id,
                "turns",
                &turn.id,
            ];
            let registered = self.send(Method::PUT, &path, Some(&turn.body)).await?;
            summary.turns += 1;
            summary.inferred += usize::from(is_inferred(&registered));
            if let Some(reaction) = turn.reaction {
                let path = path.into_iter().chain(["feedback"]).collect::<Vec<_>>();
                self.send(Method::POST, &path, Some(&reaction)).await?;
                summary.given += 1;
            }
        }
        Ok(summary)
    }

    async fn submit(&self, events: &[Value]) -> Result<()> {
        let body = json!({ "events": events });
        let path = ["v1", "feedback", "batch"];
        let receipt = self.send(Method::POST, &path, Some(&body)).await?;
        let count = |name: &str| receipt.get(name).and_then(Value::as_u64);
        let lost = [count("rejected"), count("failed")];
        ensure!(
            lost == [Some(0), Some(0)],
            "events were not accepted: {receipt}"
        );
        Ok(())
    }

    /// Events that are counted, also those that were withdrawn.
    async fn counted(&self, period: &[(&str, &str)]) -> Result<u64> {
        let path = ["v1", "projects", &self.project, "insights"];
        let insights = api::ask(self.api.request(Method::GET, &path, period)?).await?;
        let total = |name: &str| {
            let total = insights.get("total").and_then(|total| total.get(name));
            total.and_then(Value::as_u64)
        };
        let counted = total("events").zip(total("retracted"));
        let (events, retracted) = counted.context("the API was not understood")?;
        Ok(events + retracted)
    }

    async fn send(&self, method: Method, path: &[&str], body: Option<&Value>) -> Result<Value> {
        let request = self.api.request(method, path, &[])?;
        let request = match body {
            Some(body) => request.json(body),
            None => request,
        };
        api::ask(request).await
    }
}

/// Whether the response to a registration says that a machine reaction to the turn before follows.
fn is_inferred(registered: &Value) -> bool {
    let detection = registered.get("detection");
    let member = |name: &str| detection.and_then(|detection| detection.get(name));
    let confidence = member("confidence").and_then(Value::as_f64);
    let verdict = member("feedback_type").and_then(Value::as_str);
    confidence.is_some_and(|confidence| confidence >= MIN_CONFIDENCE)
        && verdict.is_some_and(|verdict| verdict != "neutral")
}

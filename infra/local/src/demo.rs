//! `hearback demo`: fills a project with a month of conversations and feedback, through the API.
//!
//! All ids follow from the month's last day and the project, so an interrupted fill can be repeated.

pub mod month;

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use futures::stream::{self, StreamExt, TryStreamExt};
use hearback_domain::feedback::reaction::MIN_CONFIDENCE;
use indicatif::{ProgressBar, ProgressStyle};
use reqwest::{Client, Method, StatusCode, Url};
use serde_json::{Value, json};

use month::{Conversation, DAYS, Month};

/// Conversations in progress at a time.
const CONCURRENCY: usize = 8;
/// Events of a batch.
const BATCH: usize = 500;
/// How long a request may take.
const TIMEOUT: Duration = Duration::from_mins(1);
/// Time between two queries of the progress.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How long the insights may take to count the events.
const COUNTING: Duration = Duration::from_mins(5);

/// The project to fill.
#[derive(Debug)]
pub struct DemoTarget {
    /// URL of the API.
    pub url: Url,
    /// A token with the project and the scopes `feedback:on-behalf` and `feedback:report`.
    pub token: String,
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
pub async fn fill(month: Month, target: &DemoTarget) -> Result<DemoSummary> {
    let api = Api {
        client: Client::builder().timeout(TIMEOUT).build()?,
        target,
    };
    let bar = ProgressBar::new(month.conversations.len().try_into()?).with_style(
        ProgressStyle::with_template("{bar:40} {pos}/{len} conversations, {eta} to go")?,
    );
    let (first, mut events, mut withdrawn) = (month.first, Vec::new(), Vec::new());
    let conversations = month.conversations.into_iter().map(|mut conversation| {
        events.append(&mut conversation.events);
        withdrawn.append(&mut conversation.withdrawn);
        conversation
    });
    let conversations: Vec<_> = conversations.collect();
    let mut summary = stream::iter(conversations)
        .map(|conversation| api.converse(conversation))
        .buffered(CONCURRENCY)
        .inspect(|_| bar.inc(1))
        .try_fold(DemoSummary::default(), async |sum, one| Ok(sum + one))
        .await?;
    summary.given += events.len();
    // After the turns that they are about.
    for events in events.chunks(BATCH) {
        api.submit(events).await?;
    }
    for id in withdrawn {
        let path = ["v1", "feedback", &id.to_string()];
        api.send(Method::DELETE, &path, None).await?;
    }
    bar.set_style(ProgressStyle::with_template(
        "{bar:40} {pos}/{len} events counted, {elapsed}",
    )?);
    bar.set_length((summary.given + summary.inferred).try_into()?);
    let period = [
        ("from", first.to_string() + "T00:00:00Z"),
        (
            "to",
            (first + chrono::Days::new(DAYS)).to_string() + "T00:00:00Z",
        ),
    ];
    let counted = tokio::time::timeout(COUNTING, async {
        loop {
            let counted = api.counted(&period).await?;
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

struct Api<'a> {
    client: Client,
    target: &'a DemoTarget,
}

impl Api<'_> {
    /// Registers the turns of a conversation, each with its reaction.
    async fn converse(&self, conversation: Conversation) -> Result<DemoSummary> {
        let mut summary = DemoSummary {
            conversations: 1,
            ..DemoSummary::default()
        };
        let DemoTarget {
            tenant, project, ..
        } = self.target;
        for turn in conversation.turns {
            let path = [
                "conversations",
                tenant,
                project,
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
    async fn counted(&self, period: &[(&str, String)]) -> Result<u64> {
        let path = ["v1", "projects", &self.target.project, "insights"];
        let url = self.url(&path)?;
        let url = Url::parse_with_params(url.as_str(), period)?;
        let insights = self.receive(self.client.get(url)).await?;
        let total = |name: &str| {
            let total = insights.get("total").and_then(|total| total.get(name));
            total.and_then(Value::as_u64)
        };
        let counted = total("events").zip(total("retracted"));
        let (events, retracted) = counted.context("the API was not understood")?;
        Ok(events + retracted)
    }

    fn url(&self, path: &[&str]) -> Result<Url> {
        let mut url = self.target.url.clone();
        url.path_segments_mut()
            .ok()
            .context("the URL cannot have a path")?
            .pop_if_empty()
            .extend(path);
        Ok(url)
    }

    async fn send(&self, method: Method, path: &[&str], body: Option<&Value>) -> Result<Value> {
        let mut request = self.client.request(method, self.url(path)?);
        if let Some(body) = body {
            request = request.json(body);
        }
        self.receive(request).await
    }

    async fn receive(&self, request: reqwest::RequestBuilder) -> Result<Value> {
        let response = request.bearer_auth(&self.target.token).send().await;
        let response = response.context("the API cannot be reached")?;
        let status = response.status();
        if status == StatusCode::NO_CONTENT {
            return Ok(Value::Null);
        }
        let body = response.text().await?;
        if !status.is_success() {
            bail!("the API responded with {status}: {body}");
        }
        serde_json::from_str(&body).context("the API responded with no JSON")
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

//! `hearback compare`: asks the API whether feedback on the answers with one value is better than on those with another.

use anyhow::{Context, Result};
use clap::Args;
use reqwest::Method;
use serde::Deserialize;

use crate::api::{self, Api};

/// What to compare.
#[derive(Debug, Args)]
pub struct Question {
    /// What to compare by: `label.` and a key, such as `label.prompt_version`, or `agentId`, `strategy`, `artifactType`
    /// or `taskType`
    #[arg(long, value_name = "DIMENSION")]
    pub by: String,
    /// The value to compare with
    #[arg(long, value_name = "VALUE")]
    pub a: String,
    /// The value that may be better or worse
    #[arg(long, value_name = "VALUE")]
    pub b: String,
    /// Feedback that was given from this time on, for example 2026-11-20T08:00:00Z [default: 30 days ago]
    #[arg(long, value_name = "TIME")]
    pub from: Option<String>,
    /// Feedback that was given before this time [default: now]
    #[arg(long, value_name = "TIME")]
    pub to: Option<String>,
    /// The difference that matters, in percentage points
    #[arg(long, default_value_t = 5, value_name = "NUMBER", value_parser = clap::value_parser!(u8).range(1..=50))]
    pub points: u8,
}

/// The answer of the API.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    by: String,
    a: Side,
    b: Side,
    verdict: String,
    difference: Option<f64>,
    difference_low: Option<f64>,
    difference_high: Option<f64>,
    more_users: Option<u64>,
    incomplete: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Side {
    value: String,
    events: u64,
    by_user: ByUser,
    /// Absent in responses of older versions.
    turns: Option<Turns>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ByUser {
    users: u64,
    satisfaction_rate: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Turns {
    registered: u64,
    explicit_share: Option<f64>,
}

/// Asks the API with a token that has `feedback:report` and the project.
pub async fn ask(api: &Api, project: &str, question: &Question) -> Result<Answer> {
    let points = question.points.to_string();
    let mut query = vec![
        ("by", question.by.as_str()),
        ("a", &question.a),
        ("b", &question.b),
        ("points", &points),
    ];
    let period = [("from", &question.from), ("to", &question.to)];
    let given = period
        .into_iter()
        .filter_map(|(name, time)| Some((name, time.as_deref()?)));
    query.extend(given);
    let path = ["v1", "projects", project, "insights", "compare"];
    let answer = api::ask(api.request(Method::GET, &path, &query)?).await?;
    serde_json::from_value(answer).context("the API was not understood")
}

impl Answer {
    /// Whether B is worse.
    #[must_use]
    pub fn is_worse(&self) -> bool {
        self.verdict == "worse"
    }
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (name, side) in [("A", &self.a), ("B", &self.b)] {
            let Side {
                value,
                events,
                by_user,
                turns,
            } = side;
            let users = by_user.users;
            match by_user.satisfaction_rate {
                Some(rate) => write!(f, "{name}  {value}: {:.1} % satisfied", 100.0 * rate)?,
                None => write!(f, "{name}  {value}: no verdict")?,
            }
            write!(f, " (users: {users}, events: {events}")?;
            // Most users say nothing, and they may not think like the others.
            let share = turns.as_ref().and_then(|turns| {
                let share = turns.explicit_share?;
                Some((100.0 * share, turns.registered))
            });
            if let Some((share, turns)) = share {
                write!(f, "; explicit feedback on {share:.1} % of {turns} turns")?;
            }
            writeln!(f, ")")?;
        }
        if let (Some(difference), Some(low), Some(high)) =
            (self.difference, self.difference_low, self.difference_high)
        {
            let points = |share: f64| 100.0 * share;
            writeln!(
                f,
                "difference {:+.1} points, 95 % interval {:+.1} to {:+.1}",
                points(difference),
                points(low),
                points(high)
            )?;
        }
        if self.incomplete {
            writeln!(f, "feedback may be missing: a day has more than 100 values")?;
        }
        let verdict = self.verdict.replace('_', " ");
        write!(f, "{}: {verdict}", self.by)?;
        match self.more_users {
            Some(more) => write!(f, "; about {more} more users of each are needed"),
            None => Ok(()),
        }
    }
}

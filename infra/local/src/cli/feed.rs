//! `hearback feed`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::Result;
use chrono::{DateTime, Utc};
use clap::{ArgGroup, Args};
use hearback_domain::identity::caller::Scope;
use hearback_domain::identity::identifier::{ProjectId, TenantId, UserId};
use hearback_domain::views::feed::FeedPosition;
use serde_json::{Map, Value, json};

use super::{identifier, shutdown};
use crate::feed;
use crate::token::Claims;

#[derive(Args)]
#[command(group = ArgGroup::new("whose").required(true).args(["sub", "projects"]))]
pub(super) struct Feed {
    /// Feedback of this user
    #[arg(long, value_name = "USER", value_parser = identifier::<UserId>)]
    sub: Option<String>,
    /// Feedback in these comma-separated projects and without a project, of all users, without message signals
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = identifier::<ProjectId>)]
    projects: Vec<String>,
    /// The tenant
    #[arg(long, default_value = "acme", value_parser = identifier::<TenantId>)]
    tenant: String,
    /// Events from this time on first, for example 2026-11-20T08:00:00Z [default: 15 seconds ago]
    #[arg(long, value_name = "TIME", conflicts_with = "after", value_parser = time)]
    since: Option<DateTime<Utc>>,
    /// Events after the one with this `eventId` first
    #[arg(long, value_name = "ID")]
    after: Option<String>,
    /// Stop after this number of events
    #[arg(long, value_name = "NUMBER")]
    count: Option<NonZeroUsize>,
    /// Only `feedback.processed`, `feedback.retracted` or `learning.signal.generated`; comma-separated
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    event_types: Vec<String>,
    /// Only feedback on these channels; comma-separated
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    channels: Vec<String>,
    /// Only feedback of these types, and every retraction; comma-separated
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    types: Vec<String>,
    /// Only feedback with this label. May be given more than once
    #[arg(long, value_name = "KEY=VALUE", value_parser = label)]
    label: Vec<(String, String)>,
    /// Data folder of the running bundle
    #[arg(long, default_value = ".hearback", value_name = "DIR")]
    data: PathBuf,
}

fn time(text: &str) -> Result<DateTime<Utc>, String> {
    let time = DateTime::parse_from_rfc3339(text);
    time.map(|time| time.to_utc()).map_err(|_| {
        "must be a date and time with an offset, such as 2026-11-20T08:00:00Z".to_owned()
    })
}

fn label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("must be KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

impl Feed {
    pub(super) async fn run(self) -> Result<()> {
        let scope = match self.sub {
            Some(_) => "",
            None => Scope::Report.as_str(),
        };
        let labels = self.label.into_iter();
        let labels: Map<_, _> = labels
            .map(|(key, value)| (key, Value::from(value)))
            .collect();
        let since = self
            .since
            .map(|since| FeedPosition::before(since).event_id());
        let feed = feed::Feed {
            data: self.data,
            claims: Claims {
                sub: self.sub.unwrap_or_else(|| "hearback-feed".to_owned()),
                tenant: self.tenant,
                projects: self.projects,
                scope: scope.to_owned(),
            },
            filter: json!({
                "eventTypes": self.event_types,
                "channels": self.channels,
                "types": self.types,
                "labels": labels,
            }),
            after: self.after.or(since),
            count: self.count,
        };
        let printed = feed::print(feed, std::io::stdout());
        let printed = shutdown()?.run_until_cancelled_owned(printed).await;
        printed.unwrap_or(Ok(()))
    }
}

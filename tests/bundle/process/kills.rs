//! What survives when the process is killed.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

use chrono::Utc;
use hearback_domain::views::feed::FeedPosition;
use hearback_local::feed::{self, Feed};
use hearback_local::names::Names;
use hearback_local::token::Claims;
use hearback_tests::app::eventually;
use hearback_tests::events::{acceptance, id};
use hearback_tests::process::Process;
use hearback_tests::queue::is_empty;
use hearback_tests::served::access;
use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::{claims, get, outcome, signed, submit, text, token};

/// The users that give feedback while the process is killed.
const USERS: [&str; 3] = ["ada", "eve", "kim"];
/// Tasks that submit for each user.
const WRITERS: usize = 3;

/// Ids that were sent, and whether they were acknowledged.
type Sent = BTreeMap<String, bool>;

/// Submits events of one user until there is no response; reports each that is stored.
async fn write(
    address: String,
    token: String,
    user: &'static str,
    stored: mpsc::UnboundedSender<()>,
) -> (&'static str, Sent) {
    let client = reqwest::Client::new();
    let mut sent = Sent::new();
    loop {
        let event = acceptance(user);
        let response = submit(&client, &address, &token, &event).await;
        sent.insert(id(&event), response == Some(StatusCode::ACCEPTED));
        match response {
            Some(StatusCode::ACCEPTED) => {
                let _ = stored.send(());
            }
            Some(other) => panic!("{other}"),
            None => return (user, sent),
        }
    }
}

/// Lets all users submit, kills the process after this many responses, and records what was sent.
async fn kill_after(responses: usize, data: &Path, sent: &mut BTreeMap<&'static str, Sent>) {
    let process = Process::serve(data, 0).await;
    let (stored, mut stored_receiver) = mpsc::unbounded_channel();
    let mut writers = JoinSet::new();
    for user in USERS.repeat(WRITERS) {
        let (address, token) = (process.address.clone(), token(data, user));
        writers.spawn(write(address, token, user, stored.clone()));
    }
    for _ in 0..responses {
        stored_receiver.recv().await.unwrap();
    }
    process.kill().await;
    for (user, ids) in writers.join_all().await {
        sent.entry(user).or_default().extend(ids);
    }
}

/// Waits until the queue of the signal generator has no message, visible or in flight.
async fn idle(data: &Path) {
    let client = aws_sdk_sqs::Client::new(&access(data).sqs().config());
    let queue = client
        .get_queue_url()
        .queue_name(Names::default().signals());
    let queue = queue.send().await.unwrap().queue_url.unwrap();
    eventually(|| async { is_empty(&client, &queue).await.then_some(()) }).await;
}

/// The versions of a user's preferences, the newest first.
async fn history(process: &Process, token: &str, user: &str) -> Vec<Value> {
    let mut versions = Vec::new();
    let mut before = String::new();
    loop {
        let path = format!("/v1/preferences/{user}/history?limit=500{before}");
        let (_, page) = get(process, token, &path).await;
        versions.extend(page["versions"].as_array().unwrap().iter().cloned());
        match page["next"].as_u64() {
            Some(next) => before = format!("&before={next}"),
            None => return versions,
        }
    }
}

/// The stored ids; each must have exactly one reward.
async fn settled(process: &Process, token: &str, sent: &Sent) -> BTreeSet<String> {
    let mut stored = BTreeSet::new();
    for (feedback_id, acknowledged) in sent {
        let path = format!("/v1/feedback/{feedback_id}");
        let (status, _) = get(process, token, &path).await;
        if !acknowledged && status == StatusCode::NOT_FOUND {
            continue;
        }
        assert_eq!(
            status,
            StatusCode::OK,
            "an acknowledged event must be stored"
        );
        let outcome = outcome(process, token, feedback_id).await;
        assert_eq!(outcome["status"], "processed");
        let signals = outcome["signals"].as_array().unwrap();
        let rewards = signals
            .iter()
            .filter(|signal| signal["signalType"] == "reward");
        assert_eq!(rewards.count(), 1, "{outcome}");
        stored.insert(feedback_id.clone());
    }
    stored
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_events_survive_kill_9_at_any_moment() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();
    let mut sent = BTreeMap::new();
    // 0: killed while it processes what the previous run left.
    for responses in [30, 70, 1, 0, 110, 45] {
        kill_after(responses, data, &mut sent).await;
    }

    let process = Process::serve(data, 0).await;
    let mut stored = BTreeMap::new();
    for (user, ids) in &sent {
        let settled = settled(&process, &token(data, user), ids).await;
        stored.insert(*user, settled);
    }
    idle(data).await;
    for (user, stored) in stored {
        let token = token(data, user);
        let (_, preferences) = get(&process, &token, &format!("/v1/preferences/{user}")).await;
        let learned = &preferences["artifactPreferences"]["unknown"];
        assert_eq!(learned["sampleCount"], stored.len(), "{user}");

        let versions = history(&process, &token, user).await;
        let numbers: Vec<_> = versions
            .iter()
            .map(|version| version["preferenceVersion"].as_u64().unwrap())
            .collect();
        let newest = preferences["preferenceVersion"].as_u64().unwrap();
        let gapless: Vec<_> = (1..=newest).rev().collect();
        assert_eq!(numbers, gapless, "{user}");
        let mut learned_from: Vec<_> = versions
            .iter()
            .flat_map(|version| version["cause"]["feedbackIds"].as_array().unwrap())
            .map(|feedback_id| feedback_id.as_str().unwrap().to_owned())
            .collect();
        learned_from.sort_unstable();
        assert_eq!(
            learned_from,
            Vec::from_iter(stored),
            "preferences learned from each event exactly once"
        );
    }
}

/// The `eventId`s that a listener has printed so far.
#[derive(Clone, Default)]
struct Printed(Arc<Mutex<Vec<u8>>>);

impl Write for Printed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Printed {
    /// The ids, sorted. A line is written in parts, so the last one may be incomplete.
    fn ids(&self) -> Vec<String> {
        let printed = self.0.lock().unwrap().clone();
        let complete = text(&printed).rsplit_once('\n');
        let lines = complete.map_or("", |(complete, _)| complete).lines();
        let mut ids: Vec<_> = lines.map(|line| event_id(&line.parse().unwrap())).collect();
        ids.sort_unstable();
        ids
    }
}

fn event_id(event: &Value) -> String {
    event["eventId"].as_str().unwrap().to_owned()
}

/// The sorted ids of everything that the feed lists for a caller.
async fn listed(process: &Process, token: &str) -> Vec<String> {
    let mut ids = Vec::new();
    let mut cursor = String::new();
    loop {
        let path = format!("/v1/feedback/events?limit=500{cursor}");
        let (_, page) = get(process, token, &path).await;
        ids.extend(page["events"].as_array().unwrap().iter().map(event_id));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    ids.sort_unstable();
    ids
}

#[tokio::test(flavor = "multi_thread")]
async fn listeners_receive_every_event_once_across_kills() {
    /// Listeners of each user, and as many of the tenant.
    const LISTENERS: usize = 13;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();
    let first = Process::serve(data, 0).await;
    let mut callers: Vec<_> = USERS.map(|user| claims(user, "")).to_vec();
    callers.push(Claims {
        projects: vec!["order-service".to_owned()],
        ..claims("analyst", "feedback:report")
    });
    let callers = std::iter::repeat_n(callers, LISTENERS).flatten();
    let start = FeedPosition::before(Utc::now()).event_id();
    let mut listeners = JoinSet::new();
    let listening: Vec<_> = callers
        .map(|claims| {
            let printed = Printed::default();
            let feed = Feed {
                data: data.to_owned(),
                claims: claims.clone(),
                filter: json!({}),
                after: Some(start.clone()),
                count: None,
            };
            listeners.spawn(feed::print(feed, printed.clone()));
            (claims, printed)
        })
        .collect();
    // All are connected.
    let client = reqwest::Client::new();
    for user in USERS {
        let token = token(data, user);
        submit(&client, &first.address, &token, &acceptance(user)).await;
    }
    for (_, printed) in &listening {
        eventually(|| async { (!printed.ids().is_empty()).then_some(()) }).await;
    }
    first.kill().await;
    for responses in [40, 80, 40] {
        kill_after(responses, data, &mut BTreeMap::new()).await;
    }
    let process = Process::serve(data, 0).await;
    idle(data).await;
    for (claims, printed) in &listening {
        let expected = listed(&process, &signed(data, claims.clone())).await;
        // About 50 events of each user, of about three messages each, but users are not served equally fast.
        assert!(expected.len() > 50, "{}", expected.len());
        let all = eventually(|| async {
            let ids = printed.ids();
            (ids.len() >= expected.len()).then_some(ids)
        });
        assert_eq!(all.await, expected, "{claims:?}");
    }
    assert!(
        listeners.try_join_next().is_none(),
        "no listener has failed"
    );
}

//! The report of a period at full size: 10,000 conversations with 30,000 reactions on 40 days, read completely while
//! reactions keep arriving, next to as many outside the period.
//!
//! `cargo bench -p hearback-tests --bench period_report`
//!
//! It fails if a conversation is missing or listed twice, if a count differs from a brute-force count, or if feedback
//! outside the period changes the cost of a conversation. `CONVERSATIONS` and `OUTSIDE` set the numbers of
//! conversations.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use hearback_tests::options::number;
use hearback_tests::period::{Extent, Project, Report};
use serde_json::{Value, json};

#[tokio::main]
async fn main() {
    let conversations: u32 = number("CONVERSATIONS", 10_000);
    let outside: u32 = number("OUTSIDE", 10_000);
    let mut project = Project::start().await;
    let extent = |conversations: u32, start: &str, days| Extent {
        conversations,
        reactions: conversations * 3,
        start: start.parse().unwrap(),
        days,
    };
    project
        .add("in", extent(conversations, "2025-09-01T00:00:00Z", 40))
        .await;
    let window = json!({
        "start": "2025-09-01T00:00:00Z", "end": "2025-10-10T23:59:59Z", "limit": 500
    });
    println!(
        "{conversations} conversations, {} reactions\n",
        conversations * 3
    );
    let alone = read(&project, "alone", &window).await;
    assert_eq!(counts(&alone), project.expected, "a brute-force count");
    let expected: BTreeSet<_> = project.expected.keys().cloned().collect();

    project
        .add("outside", extent(outside, "2025-07-01T00:00:00Z", 40))
        .await;
    let among = read(&project, "with as many days of others", &window).await;
    assert_eq!(alone.cost, among.cost, "what lies outside costs nothing");

    let mut open = window.clone();
    open["end"] = json!("2999-01-01T00:00:00Z");
    let arriving: Vec<_> = (0..200)
        .map(|n| format!("in-{}", n * 37 % conversations))
        .collect();
    for conversation in &arriving {
        project.register(conversation, "new").await;
    }
    let shared = &project;
    let arriving = &arriving;
    let report = shared
        .report(&open, async |page| {
            for conversation in arriving.iter().skip(page % 10).step_by(10) {
                let text = page.to_string();
                let body = json!({"reaction": "neutral", "text": text});
                shared.react(conversation, "new", &body).await;
            }
        })
        .await;
    let listed: BTreeSet<_> = names(&report).collect();
    assert_eq!(listed.len(), report.items.len(), "no duplicates");
    assert_eq!(listed, expected, "none missing");
    println!(
        "\nwhile reactions arrived: each of {} once, on {} pages",
        listed.len(),
        report.pages
    );
}

async fn read(project: &Project, name: &str, request: &Value) -> Report {
    let started = Instant::now();
    let report = project.report(request, async |_| {}).await;
    let listed = u32::try_from(report.items.len()).unwrap();
    println!(
        "{name}: {listed} conversations on {} pages in {:.1} s, {:.2} read units each",
        report.pages,
        started.elapsed().as_secs_f64(),
        report.cost.reads / f64::from(listed),
    );
    report
}

fn names(report: &Report) -> impl Iterator<Item = String> {
    let items = report.items.iter();
    items.map(|item| item["conversation_id"].as_str().unwrap().to_owned())
}

fn counts(report: &Report) -> BTreeMap<String, [u32; 3]> {
    let of = |item: &Value| {
        ["ok", "not_ok", "neutral"]
            .map(|name| u32::try_from(item["feedback_counts"][name].as_u64().unwrap()).unwrap())
    };
    names(report).zip(report.items.iter().map(of)).collect()
}

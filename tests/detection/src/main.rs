//! Measures the detector on labelled messages: its precision, the calibration of its confidence, and its speed.
//!
//! `cargo run -p hearback-detection-bench --release -- FILE… [--errors N]` reads JSON Lines of `{id, source,
//! prev_query, prev_response, message, label, correction_type}`, where unknown
//! members are null or left out.

#![expect(clippy::print_stdout, reason = "this program prints a report")]

use std::collections::BTreeMap;
use std::env;
use std::fs;

use anyhow::{Context, ensure};
use hearback_detection::{Detection, Detector, Exchange, FeedbackStatus};
use serde::Deserialize;

mod quality;
mod speed;

/// A message with the label that a person gave it.
#[derive(Debug, Deserialize)]
struct Labelled {
    id: String,
    source: String,
    #[serde(default)]
    prev_query: Option<String>,
    #[serde(default)]
    prev_response: Option<String>,
    message: String,
    label: FeedbackStatus,
}

impl Labelled {
    fn exchange(&self) -> Exchange<'_> {
        Exchange {
            prev_query: self.prev_query.as_deref(),
            prev_response: self.prev_response.as_deref(),
            message: &self.message,
            language: None,
            embedding_similarity: None,
            repeats_query: None,
        }
    }
}

/// A message with the detector's result.
#[derive(Debug)]
struct Scored<'a> {
    labelled: &'a Labelled,
    detection: Detection,
}

fn main() -> anyhow::Result<()> {
    let (files, errors) = arguments()?;
    ensure!(!files.is_empty(), "name at least one file of JSON Lines");
    let mut labelled: Vec<Labelled> = Vec::new();
    for file in &files {
        let text = fs::read_to_string(file).with_context(|| format!("cannot read {file}"))?;
        for (number, line) in text
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.is_empty())
        {
            let read = serde_json::from_str(line);
            labelled.push(read.with_context(|| format!("{file}:{}", number + 1))?);
        }
    }
    ensure!(!labelled.is_empty(), "the files have no messages");
    let detector = Detector::embedded();
    let scored: Vec<_> = labelled
        .iter()
        .map(|labelled| Scored {
            labelled,
            detection: detector.detect(&labelled.exchange()),
        })
        .collect();

    let mut sources: BTreeMap<&str, Vec<&Scored<'_>>> = BTreeMap::new();
    for each in &scored {
        sources.entry(&each.labelled.source).or_default().push(each);
    }
    for (source, scored) in &sources {
        quality::print(source, scored);
    }
    let all: Vec<_> = scored.iter().collect();
    quality::print("all", &all);
    quality::print_reactions(&all);
    quality::print_calibration(&all);
    quality::print_worst(&all, errors);
    speed::print(&labelled)
}

/// The default number of errors to print.
const ERRORS: usize = 20;

/// The files, and the number of errors to print.
fn arguments() -> anyhow::Result<(Vec<String>, usize)> {
    let (mut files, mut errors) = (Vec::new(), ERRORS);
    let mut arguments = env::args().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == "--errors" {
            let number = arguments.next().context("--errors needs a number")?;
            errors = number.parse().context("--errors needs a number")?;
        } else {
            files.push(argument);
        }
    }
    Ok((files, errors))
}

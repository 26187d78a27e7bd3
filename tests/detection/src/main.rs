//! Measures the detector on labelled messages: its precision, the calibration of its confidence, and its speed.
//!
//! `cargo run -p hearback-detection-bench --release -- [FILE…] [--part PART] [--errors N | --tables | --features FOLDER]` reads JSON Lines of `{id,
//! source, prev_query, prev_response, message, label}`, where unknown members are null or left out. Without a file it
//! reads a part of the corpus, by writer: `train`, `development` or `test`, which is the default.

#![expect(clippy::print_stdout, reason = "this program prints a report")]

use std::collections::BTreeMap;
use std::env;

use anyhow::{Context, ensure};
use hearback_detection::{Detection, Detector, Exchange, FeedbackStatus};
use serde::Deserialize;

use crate::corpus::Part;

mod conversations;
mod corpus;
mod features;
mod literal;
mod quality;
mod search;
mod speed;
mod tables;

/// A message with the label that a person gave it.
#[derive(Debug, Deserialize)]
struct Labelled {
    id: String,
    #[serde(alias = "writer")]
    source: String,
    #[serde(default)]
    prev_query: Option<String>,
    #[serde(default)]
    prev_response: Option<String>,
    message: String,
    label: FeedbackStatus,
    #[serde(default)]
    language: Option<String>,
    #[serde(default)]
    kind: Option<String>,
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
            earlier: &[],
        }
    }
}

/// A message with the detector's result.
#[derive(Debug)]
struct Scored<'a> {
    labelled: &'a Labelled,
    detection: Detection,
}

impl<'a> Scored<'a> {
    fn of(labelled: &'a Labelled, detector: &Detector) -> Self {
        Self {
            labelled,
            detection: detector.detect(&labelled.exchange()),
        }
    }
}

fn main() -> anyhow::Result<()> {
    let Arguments {
        files,
        part,
        errors,
        features,
        tables,
    } = Arguments::given()?;
    let mut labelled: Vec<Labelled> = Vec::new();
    for file in &files {
        labelled.extend(corpus::read(file.as_ref())?);
    }
    if files.is_empty() {
        labelled = part.rows()?;
    }
    ensure!(!labelled.is_empty(), "the files have no messages");
    if let Some(folder) = features {
        return features::write(&labelled, folder.as_ref());
    }
    let detector = Detector::embedded();
    if tables {
        print!("{}", tables::markdown(&labelled, &detector));
        print!("\n{}", conversations::markdown(&detector)?);
        print!("\n{}", search::markdown(&search::rows()?));
        return Ok(());
    }
    let scored: Vec<_> = labelled
        .iter()
        .map(|labelled| Scored::of(labelled, &detector))
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

/// What to measure, and how much to print.
struct Arguments {
    files: Vec<String>,
    /// The part of the corpus that is read if there are no files.
    part: Part,
    /// The number of errors to print.
    errors: usize,
    /// The folder to write features to, instead of measuring.
    features: Option<String>,
    /// Whether to print the tables of docs/detection.md instead.
    tables: bool,
}

impl Arguments {
    fn given() -> anyhow::Result<Self> {
        let mut read = Self {
            files: Vec::new(),
            part: Part::Test,
            errors: ERRORS,
            features: None,
            tables: false,
        };
        let mut arguments = env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().unwrap_or_default();
            match argument.as_str() {
                "--errors" => read.errors = value().parse().context("--errors needs a number")?,
                "--tables" => read.tables = true,
                "--features" => read.features = Some(value()),
                "--part" => {
                    let part = Part::named(&value());
                    read.part = part.context("--part is train, development or test")?;
                }
                _ => read.files.push(argument),
            }
        }
        Ok(read)
    }
}

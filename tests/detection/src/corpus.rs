//! The corpus of next messages: where its parts are, and what its rows must be.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::de::DeserializeOwned;

use crate::Labelled;

/// A part of the corpus. No writer is in two of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    /// The model is trained on it.
    Train,
    /// Decisions are made on it: which features, which thresholds.
    Development,
    /// Nobody looks at its rows to decide anything.
    Test,
}

impl Part {
    /// All parts, by the names of their folders.
    pub(crate) const NAMES: [(&'static str, Self); 3] = [
        ("train", Self::Train),
        ("development", Self::Development),
        ("test", Self::Test),
    ];

    /// The part of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let part = Self::NAMES.into_iter().find(|(of, _)| *of == name)?;
        Some(part.1)
    }

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        let named = Self::NAMES.into_iter().find(|(_, part)| *part == self);
        named.map_or("", |(name, _)| name)
    }

    /// The files of the part, one for each writer.
    pub(crate) fn files(self) -> anyhow::Result<Vec<PathBuf>> {
        files(&corpus().join(self.name()))
    }

    /// The files of its conversations, one for each writer. There are none to train on.
    pub(crate) fn conversations(self) -> anyhow::Result<Vec<PathBuf>> {
        files(&corpus().join("conversations").join(self.name()))
    }

    /// The rows of the part.
    pub(crate) fn rows(self) -> anyhow::Result<Vec<Labelled>> {
        read_all(&self.files()?)
    }
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

fn files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("{}", folder.display()))?;
    let files: Result<Vec<_>, _> = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect();
    let mut files = files?;
    files.sort();
    Ok(files)
}

/// Reads files of JSON Lines.
pub(crate) fn read_all<T: DeserializeOwned>(files: &[PathBuf]) -> anyhow::Result<Vec<T>> {
    let mut rows = Vec::new();
    for file in files {
        rows.extend(read(file)?);
    }
    Ok(rows)
}

/// Reads a file of JSON Lines.
pub(crate) fn read<T: DeserializeOwned>(file: &Path) -> anyhow::Result<Vec<T>> {
    let name = file.display();
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {name}"))?;
    let lines = text.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.is_empty());
    let rows = lines.map(|(number, line)| {
        serde_json::from_str(line).with_context(|| format!("{name}:{}", number + 1))
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use hearback_detection::Detector;
    use serde_json::Value;

    use super::*;

    const MEMBERS: [&str; 10] = [
        "correction_type",
        "domain",
        "id",
        "kind",
        "label",
        "language",
        "message",
        "prev_query",
        "prev_response",
        "writer",
    ];
    const LANGUAGES: [&str; 7] = ["de", "en", "es", "fr", "ja", "pt", "zh"];
    const DOMAINS: [&str; 9] = [
        "agents",
        "coding",
        "data",
        "education",
        "everyday",
        "image",
        "research",
        "support",
        "writing",
    ];
    const SITUATIONS: [&str; 6] = [
        "answer_repeated",
        "answer_used",
        "asked_before",
        "ordinary",
        "refused",
        "regenerated",
    ];

    fn rows(part: Part) -> Vec<Value> {
        read_all(&part.files().unwrap()).unwrap()
    }

    fn conversations(part: Part) -> Vec<Value> {
        read_all(&part.conversations().unwrap()).unwrap()
    }

    #[test]
    fn rows_have_the_form_of_the_guideline() {
        let mut ids = BTreeSet::new();
        let mut messages = BTreeSet::new();
        for row in Part::NAMES.into_iter().flat_map(|(_, part)| rows(part)) {
            let members: Vec<&str> = row
                .as_object()
                .unwrap()
                .keys()
                .map(String::as_str)
                .collect();
            assert_eq!(members, MEMBERS, "{row}");
            check(&row);
            let text = |member: &str| row[member].as_str().unwrap_or_default().trim();
            for member in ["prev_query", "prev_response"] {
                assert!(!text(member).is_empty(), "{row}");
            }
            assert!(ids.insert(text("id").to_owned()), "{row}");
            let message = (text("writer").to_owned(), text("message").to_lowercase());
            assert!(
                messages.insert(message),
                "a writer repeats a message: {row}"
            );
        }
    }

    /// What exchanges and conversations have in common.
    fn check(row: &Value) {
        let text = |member: &str| row[member].as_str().unwrap_or_default().trim();
        assert!(!text("message").is_empty(), "{row}");
        assert!(LANGUAGES.contains(&text("language")), "{row}");
        assert!(DOMAINS.contains(&text("domain")), "{row}");
        let mut kinds = Detector::kinds().map(|(class, kind)| (class.as_str(), kind));
        assert!(
            kinds.any(|kind| kind == (text("label"), text("kind"))),
            "{row}"
        );
        let correction = ["explicit", "rephrased", "abandonment"];
        let corrects = correction.contains(&text("correction_type"));
        assert_eq!(corrects, text("label") == "rejected", "{row}");
        let id = format!("{}-", text("writer"));
        assert!(text("id").starts_with(&id), "{row}");
    }

    #[test]
    fn conversations_have_the_form_of_their_guideline() {
        let mut ids = BTreeSet::new();
        let parts = [Part::Development, Part::Test];
        for row in parts.into_iter().flat_map(conversations) {
            check(&row);
            let situation = row["situation"].as_str().unwrap_or_default();
            assert!(SITUATIONS.contains(&situation), "{row}");
            let turns = row["turns"].as_array().unwrap();
            assert!((2..=5).contains(&turns.len()), "{row}");
            for text in turns
                .iter()
                .flat_map(|turn| [&turn["user"], &turn["assistant"]])
            {
                assert!(
                    !text.as_str().unwrap_or_default().trim().is_empty(),
                    "{row}"
                );
            }
            assert!(ids.insert(row["id"].to_string()), "{row}");
        }
    }

    #[test]
    fn no_writer_is_in_two_parts() {
        let mut parts: BTreeMap<String, Part> = BTreeMap::new();
        for (_, part) in Part::NAMES {
            let conversations = if part == Part::Train {
                Vec::new()
            } else {
                conversations(part)
            };
            for row in rows(part).into_iter().chain(conversations) {
                let writer = row["writer"].as_str().unwrap().to_owned();
                assert_eq!(
                    *parts.entry(writer.clone()).or_insert(part),
                    part,
                    "{writer}"
                );
            }
        }
    }

    /// `train.py` computes the probabilities of these rows with the weights that it writes.
    #[test]
    fn the_model_gives_the_probabilities_of_the_training() {
        let detector = Detector::embedded();
        let expected = include_str!("../probabilities.csv");
        let expected: BTreeMap<&str, Vec<f64>> = expected
            .lines()
            .map(|line| {
                let mut members = line.split(',');
                let id = members.next().unwrap();
                (id, members.map(|number| number.parse().unwrap()).collect())
            })
            .collect();
        let mut compared = 0;
        for row in [Part::Train, Part::Development]
            .into_iter()
            .flat_map(|part| part.rows().unwrap())
        {
            let Some(expected) = expected.get(&*row.id) else {
                continue;
            };
            let got = detector.probabilities(&row.exchange());
            for (got, expected) in got.iter().zip(expected) {
                assert!(
                    (got - expected).abs() < 0.002,
                    "{}: {got} {expected}",
                    row.id
                );
            }
            compared += 1;
        }
        assert_eq!(compared, 1000);
    }

    /// Most have no phrase that gives the type.
    #[test]
    fn detected_rejections_have_the_correction_type_of_their_label() {
        let detector = Detector::embedded();
        let labels = rows(Part::Test);
        let exchanges = Part::Test.rows().unwrap();
        let types = exchanges.iter().zip(&labels).filter_map(|(row, label)| {
            let detected = detector.detect(&row.exchange()).correction_type?;
            Some((detected.as_str(), label["correction_type"].as_str()?))
        });
        let types: Vec<_> = types.collect();
        let right = types.iter().filter(|(detected, label)| detected == label);
        let right = right.count();
        assert!(right * 10 >= types.len() * 9, "{right} of {}", types.len());
        let detected: BTreeSet<&str> = types.iter().map(|(detected, _)| *detected).collect();
        assert_eq!(detected.len(), 3, "{detected:?}");
    }
}

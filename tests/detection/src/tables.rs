//! The tables of docs/detection.md: how often detectors are right on the test part of the corpus.

use std::collections::BTreeMap;
use std::fmt::Write;

use hearback_detection::{Detector, FeedbackStatus};
use hearback_domain::feedback::reaction::MIN_CONFIDENCE;

use crate::literal;
use crate::quality::{CLASSES, number, share};
use crate::{Labelled, Scored};

/// A label, and what a detector said with which confidence.
pub(crate) type Said = (FeedbackStatus, FeedbackStatus, f64);
/// The columns of a table of detectors after the first.
pub(crate) const HEAD: &str = "macro-F1 | rejections: precision | recall | false rejections | reactions written | of these right |\n|---|---|---|---|---|---|---|\n";
/// The lower bounds of the confidences of the reliability table.
const CONFIDENCES: [f64; 6] = [0.5, 0.55, 0.65, 0.70, 0.80, 0.90];

/// All tables, in Markdown.
pub(crate) fn markdown(rows: &[Labelled], detector: &Detector) -> String {
    let scored: Vec<Scored<'_>> = rows.iter().map(|row| Scored::of(row, detector)).collect();
    let both: Vec<Said> = scored.iter().map(said).collect();
    let mut tables = String::new();
    let detectors = [
        (
            "the signals of the rules, literally",
            of(rows, |row| literal::detect(&row.exchange())),
        ),
        (
            "phrases alone",
            of(rows, |row| {
                let detection = detector.by_phrases(&row.exchange());
                (detection.feedback_type, detection.confidence)
            }),
        ),
        ("model alone", of(rows, |row| by_model(detector, row))),
        ("**the detector**", both.clone()),
    ];
    let _ = write!(tables, "| detector | {HEAD}");
    for (name, said) in &detectors {
        line(&mut tables, name, said);
    }
    let _ = writeln!(
        tables,
        "\n| class | rows | precision | recall | F1 |\n|---|---|---|---|---|"
    );
    for class in CLASSES {
        let [right, labelled, detected] = counts(&both, class);
        let _ = writeln!(
            tables,
            "| {} | {labelled} | {} | {} | {:.2} |",
            class.as_str(),
            with_interval(right, detected),
            with_interval(right, labelled),
            f1(&both, class),
        );
    }
    let by_language = groups(&scored, |row| row.language.clone().unwrap_or_default());
    for (name, groups) in [
        ("writer", groups(&scored, |row| row.source.clone())),
        ("language", by_language),
    ] {
        let _ = write!(tables, "\n| {name} | {HEAD}");
        for (group, said) in groups {
            line(&mut tables, &group, &said);
        }
    }
    let _ = writeln!(tables, "\n| confidence | verdicts | right |\n|---|---|---|");
    for (at, low) in CONFIDENCES.iter().enumerate() {
        let high = CONFIDENCES.get(at + 1).copied().unwrap_or(f64::INFINITY);
        let inferred = |(_, said, confidence): &&Said| {
            *said != FeedbackStatus::Neutral && (*low..high).contains(confidence)
        };
        let within: Vec<Said> = both.iter().filter(inferred).copied().collect();
        if !within.is_empty() {
            let share = with_interval(right(&within), within.len());
            let _ = writeln!(tables, "| from {low:.2} | {} | {share} |", within.len());
        }
    }
    let _ = writeln!(
        tables,
        "\n| label | kind | rows | right |\n|---|---|---|---|"
    );
    let kinds = groups(&scored, |row| {
        let kind = row.kind.clone().unwrap_or_default();
        format!("{} | {kind}", row.label.as_str())
    });
    for (kind, said) in kinds {
        let _ = writeln!(
            tables,
            "| {kind} | {} | {:.2} |",
            said.len(),
            share(right(&said), said.len()).unwrap_or(0.0)
        );
    }
    tables
}

fn said(scored: &Scored<'_>) -> Said {
    let detection = &scored.detection;
    (
        scored.labelled.label,
        detection.feedback_type,
        detection.confidence,
    )
}

fn of(rows: &[Labelled], detect: impl Fn(&Labelled) -> (FeedbackStatus, f64)) -> Vec<Said> {
    let said = |row: &Labelled| {
        let (said, confidence) = detect(row);
        (row.label, said, confidence)
    };
    rows.iter().map(said).collect()
}

/// The class with the highest probability.
fn by_model(detector: &Detector, row: &Labelled) -> (FeedbackStatus, f64) {
    let [accepted, neutral, rejected] = detector.probabilities(&row.exchange());
    let classes = [
        (FeedbackStatus::Accepted, accepted),
        (FeedbackStatus::Neutral, neutral),
        (FeedbackStatus::Rejected, rejected),
    ];
    let best = classes
        .into_iter()
        .max_by(|one, other| one.1.total_cmp(&other.1));
    best.unwrap_or((FeedbackStatus::Neutral, 0.0))
}

fn groups(scored: &[Scored<'_>], by: impl Fn(&Labelled) -> String) -> BTreeMap<String, Vec<Said>> {
    let mut groups: BTreeMap<String, Vec<Said>> = BTreeMap::new();
    for each in scored {
        groups
            .entry(by(each.labelled))
            .or_default()
            .push(said(each));
    }
    groups
}

pub(crate) fn line(tables: &mut String, name: &str, all: &[Said]) {
    let rejected = FeedbackStatus::Rejected;
    let [right_rejections, labelled, detected] = counts(all, rejected);
    let falsely = detected - right_rejections;
    let written = |(_, said, confidence): &&Said| {
        *said != FeedbackStatus::Neutral && *confidence >= MIN_CONFIDENCE
    };
    let reactions: Vec<Said> = all.iter().filter(written).copied().collect();
    let macro_f1 = CLASSES.iter().map(|class| f1(all, *class)).sum::<f64>() / 3.0;
    let _ = writeln!(
        tables,
        "| {name} | {macro_f1:.2} | {} | {} | {} | {} | {} |",
        with_interval(right_rejections, detected),
        with_interval(right_rejections, labelled),
        with_interval(falsely, all.len() - labelled),
        reactions.len(),
        with_interval(right(&reactions), reactions.len()),
    );
}

fn right(all: &[Said]) -> usize {
    all.iter().filter(|(label, said, _)| label == said).count()
}

/// How many rows of a class are detected as it, are labelled, and are detected.
fn counts(all: &[Said], class: FeedbackStatus) -> [usize; 3] {
    let count = |is: &dyn Fn(&Said) -> bool| all.iter().filter(|said| is(said)).count();
    [
        count(&|(label, said, _)| *label == class && *said == class),
        count(&|(label, ..)| *label == class),
        count(&|(_, said, _)| *said == class),
    ]
}

/// The harmonic mean of precision and recall.
fn f1(all: &[Said], class: FeedbackStatus) -> f64 {
    let [right, labelled, detected] = counts(all, class);
    share(2 * right, labelled + detected).unwrap_or(0.0)
}

/// A share with its 95 % interval by Wilson.
pub(crate) fn with_interval(part: usize, whole: usize) -> String {
    let Some(p) = share(part, whole) else {
        return "–".to_owned();
    };
    let (n, z) = (number(whole), 1.96_f64);
    let middle = (p + z * z / (2.0 * n)) / (1.0 + z * z / n);
    let spread = z * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt() / (1.0 + z * z / n);
    format!("{p:.2} ({:.2} to {:.2})", middle - spread, middle + spread)
}

#[cfg(test)]
mod tests {
    use crate::corpus::Part;

    use super::*;

    #[test]
    fn the_tables_of_the_page_are_those_of_the_detector() {
        let page = include_str!("../../../docs/detection.md");
        let after = page.split_once("<!-- tables -->\n\n").unwrap().1;
        let tables = after.split_once("\n<!-- end -->").unwrap().0;
        let rows = Part::Test.rows().unwrap();
        assert_eq!(tables, markdown(&rows, &Detector::embedded()));
    }
}

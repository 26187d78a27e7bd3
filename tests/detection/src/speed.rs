//! What the detector costs: in time to load, for a message, and beside one pass of a regex set.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::Context;
use chrono::{TimeDelta, Utc};
use hearback_domain::detection::{Detector, Exchange};
use hearback_domain::embedded::Embedded;
use hearback_domain::target::{Stored, TOP_K, nearest};
use regex::{RegexSet, RegexSetBuilder};
use serde::Deserialize;

use crate::Labelled;

/// Detections of one run.
const RUN: u32 = 100_000;
/// Stored vectors of one user.
const VECTORS: usize = 5_000;
/// Bytes of the long message.
const LONG: usize = 100_000;

pub(crate) fn print(labelled: &[Labelled]) -> anyhow::Result<()> {
    println!("\ncost");
    let (detector, first) = timed(|| {
        let detector = Detector::embedded();
        black_box(detector.detect(&message("that's wrong")));
        detector
    });
    println!("  load and the first message, English  {first:>10.2?}");
    for (language, text) in [("de", "das ist falsch"), ("ja", "違います")] {
        let exchange = Exchange {
            language: Some(language),
            ..message(text)
        };
        let (_, first) = timed(|| black_box(detector.detect(&exchange)));
        println!("  the first message in {language}              {first:>10.2?}");
    }
    let exchanges: Vec<_> = labelled.iter().map(Labelled::exchange).collect();
    let run: Vec<_> = exchanges.iter().cycle().take(as_usize(RUN)).collect();
    let ((), detecting) = timed(|| {
        for exchange in &run {
            black_box(detector.detect(exchange));
        }
    });
    println!(
        "  {RUN} detections                    {detecting:>10.2?}  {:.0} a second",
        rate(detecting)
    );
    let set = regex_set()?;
    let read = |exchange: &Exchange<'_>| {
        let before = [exchange.prev_query, exchange.prev_response];
        for text in before.into_iter().flatten().chain([exchange.message]) {
            black_box(set.matches(text));
        }
    };
    // The set builds its automaton while it reads: the first pass pays for that, as the first
    // detection pays for the phrases.
    for pass in ["first", "second"] {
        let ((), matching) = timed(|| run.iter().for_each(|exchange| read(exchange)));
        println!(
            "  {pass} pass of a regex set, {} phrases {matching:>10.2?}  ratio {:.2}",
            set.len(),
            detecting.as_secs_f64() / matching.as_secs_f64()
        );
    }
    for (what, unit) in [
        ("prose", "that is wrong, really. "),
        ("marks", "“'\"`"),
        ("lines", "> no\n"),
    ] {
        let long = unit.repeat(LONG / unit.len());
        let exchange = Exchange {
            prev_query: Some(&long),
            prev_response: Some(&long),
            ..message(&long)
        };
        let (_, cost) = timed(|| black_box(detector.detect(&exchange)));
        println!("  a message of 100 kB, {what}             {cost:>10.2?}");
    }
    print_ranking(labelled);
    Ok(())
}

/// Ranks one user's turns for a message.
fn print_ranking(labelled: &[Labelled]) {
    let texts: Vec<_> = labelled
        .iter()
        .map(|labelled| labelled.message.as_str())
        .collect();
    let (embedded, embedding) = timed(|| {
        let embedded = texts.iter().map(|text| Embedded::lexical(text));
        embedded.collect::<Vec<_>>()
    });
    let stored: Vec<_> = embedded.iter().map(Embedded::stored).collect();
    let Some(query) = embedded.first() else {
        return;
    };
    let now = Utc::now();
    let turns = || {
        let turns = stored.iter().cycle().take(VECTORS).enumerate();
        turns.map(|(turn, vector)| Stored {
            turn,
            ts: now - TimeDelta::hours(1),
            vector,
        })
    };
    let (_, ranking) = timed(|| black_box(nearest(query, turns(), now, TOP_K)));
    let each = embedding / u32::try_from(texts.len()).unwrap_or(1).max(1);
    println!("  embedding a message                    {each:>10.2?}");
    println!("  ranking {VECTORS} vectors                   {ranking:>10.2?}");
}

fn message(message: &str) -> Exchange<'_> {
    Exchange {
        message,
        ..Exchange::default()
    }
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let done = work();
    (done, start.elapsed())
}

fn rate(run: Duration) -> f64 {
    f64::from(RUN) / run.as_secs_f64()
}

fn as_usize(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// What a phrase file has for the regex set.
#[derive(Deserialize)]
struct Phrases {
    classes: BTreeMap<String, Vec<String>>,
    phrases: BTreeMap<String, Vec<String>>,
}

/// The English phrases as regular expressions, without regard to case and to where they stand.
fn regex_set() -> anyhow::Result<RegexSet> {
    let text = include_str!("../../../shared/domain/phrases/en.toml");
    let file: Phrases = toml::from_str(text).context("the English phrases cannot be read")?;
    let classes: Vec<_> = file
        .classes
        .iter()
        .map(|(name, words)| {
            (
                format!("{{{name}}}"),
                format!("(?:{})", words.join("|").replace('*', r"\w*")),
            )
        })
        .collect();
    let expression = |phrase: &String| {
        let mut written = phrase.trim_matches(['^', '$', ',', ' ']).to_owned();
        for (from, to) in [
            ("(", "(?:"),
            ("*", r"(?:\S+ ){0,3}"),
            ("[", "(?:"),
            ("]", ")?"),
        ] {
            written = written.replace(from, to);
        }
        for (class, words) in &classes {
            written = written.replace(class, words);
        }
        let words = written
            .split(' ')
            .map(|word| if word == "_" { r"\S+" } else { word });
        format!(r"(?-u:\b){}(?-u:\b)", words.collect::<Vec<_>>().join(" ?"))
    };
    let phrases = file.phrases.values().flatten().map(expression);
    RegexSetBuilder::new(phrases)
        .case_insensitive(true)
        .size_limit(1 << 28)
        .dfa_size_limit(1 << 26)
        .build()
        .context("the phrases are no regular expressions")
}

//! Measures the speed of the detector: the time to load it, the time for a message, and both relative to one pass of a
//! set of regular expressions.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::Context;
use chrono::{TimeDelta, Utc};
use hearback_detection::{Detector, Earlier, Exchange};
use hearback_domain::turns::embedded::Embedded;
use hearback_domain::turns::target::{Stored, TOP_K, nearest};
use regex::{RegexSet, RegexSetBuilder};
use serde::Deserialize;

use crate::Labelled;

/// Messages that are timed: the first of the file.
const TIMED: usize = 600;
/// Detections of one run.
const RUN: u32 = 100_000;
/// How often these messages are timed again, for the detector and for the regular expressions.
const ROUNDS: usize = 50;
/// Stored vectors of one user.
const VECTORS: usize = 5_000;
/// Characters of the longest message that people write.
const WRITTEN: usize = 2_000;
/// How often each message of so many characters is timed. The fastest counts.
const RUNS: usize = 5;
/// Bytes of a message that nobody writes.
const LONG: usize = 100_000;

pub(crate) fn print(labelled: &[Labelled]) -> anyhow::Result<()> {
    let labelled = labelled.get(..TIMED).unwrap_or(labelled);
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
    compare_with_regex_sets(&detector, labelled)?;
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
    print_written(&detector, labelled);
    print_ranking(labelled);
    Ok(())
}

/// Runs the detector on all messages repeatedly, and matches sets of regular expressions against the same texts.
fn compare_with_regex_sets(detector: &Detector, labelled: &[Labelled]) -> anyhow::Result<()> {
    let exchanges: Vec<_> = labelled.iter().map(Labelled::exchange).collect();
    let texts: Vec<_> = exchanges.iter().map(own_texts).collect();
    let run = exchanges.iter().zip(&texts).cycle().take(as_usize(RUN));
    let run: Vec<_> = run.collect();
    let detect = |run: &[(&Exchange<'_>, &Vec<String>)]| {
        let detect =
            |(exchange, _): &(&Exchange<'_>, _)| drop(black_box(detector.detect(exchange)));
        timed(|| run.iter().for_each(detect)).1
    };
    let detecting = detect(&run);
    let once = run.get(..labelled.len()).unwrap_or(&run);
    println!(
        "  {RUN} detections                    {detecting:>10.2?}  {:.0} a second",
        rate(detecting)
    );
    for (what, files) in [("English", &FILES[..1]), ("all languages", &FILES[..])] {
        let set = regex_set(files)?;
        let matching = |run: &[(&Exchange<'_>, &Vec<String>)]| {
            let texts = run.iter().flat_map(|(_, texts)| texts.iter());
            timed(|| texts.for_each(|text| drop(black_box(set.matches(text))))).1
        };
        // The set builds its automaton lazily. The first pass includes that, as the first detection includes loading
        // the phrases. In later passes, the set has seen every text before.
        let cold = ratio(detecting, matching(&run));
        // Other work on the machine slows some rounds down, so the fastest rounds are compared.
        let (mut fastest, mut matched) = (Duration::MAX, Duration::MAX);
        for _ in 0..ROUNDS {
            fastest = fastest.min(detect(once));
            matched = matched.min(matching(once));
        }
        println!(
            "  compared with a regex set, {what}, {} phrases: ratio {cold:.2} at first, {:.2} later",
            set.len(),
            ratio(fastest, matched),
        );
    }
    Ok(())
}

/// The times for messages of 2,000 characters in the languages of the corpus, with what was said before them.
fn print_written(detector: &Detector, labelled: &[Labelled]) {
    let message = |from: usize| {
        let language = labelled.get(from).map(|row| &row.language);
        let rest = labelled.iter().cycle().skip(from);
        let rest = rest.filter(|row| Some(&row.language) == language);
        let rest = rest.take(WRITTEN).map(|row| row.message.as_str());
        let text: Vec<&str> = rest.collect();
        text.join(" ").chars().take(WRITTEN).collect::<String>()
    };
    let messages: Vec<String> = (0..labelled.len()).map(message).collect();
    let mut times: Vec<Duration> = Vec::new();
    for (row, message) in labelled.iter().zip(&messages) {
        let earlier =
            [(&row.prev_query, &row.prev_response); Earlier::MOST].map(|(query, answer)| Earlier {
                query: query.as_deref().unwrap_or_default(),
                answer: answer.as_deref(),
            });
        let exchange = Exchange {
            message,
            earlier: &earlier,
            ..row.exchange()
        };
        let runs = (0..RUNS).map(|_| timed(|| black_box(detector.detect(&exchange))).1);
        times.extend(runs.min());
    }
    times.sort_unstable();
    let of = |percent: usize| times.get(times.len() * percent / 100).copied();
    if let (Some(median), Some(highest)) = (of(50), of(99)) {
        println!("  a message of {WRITTEN} characters       {median:>10.2?}  p99 {highest:.2?}");
    }
}

fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64()
}

/// Ranks one user's turns for a message.
fn print_ranking(labelled: &[Labelled]) {
    let texts: Vec<_> = labelled
        .iter()
        .map(|labelled| labelled.message.as_str())
        .collect();
    let (embedded, embedding) = timed(|| {
        let embedded = texts.iter().map(|text| Embedded::of(text));
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

/// The built-in phrase files, English first.
const FILES: [&str; 7] = [
    include_str!("../../../shared/detection/phrases/en.toml"),
    include_str!("../../../shared/detection/phrases/de.toml"),
    include_str!("../../../shared/detection/phrases/fr.toml"),
    include_str!("../../../shared/detection/phrases/es.toml"),
    include_str!("../../../shared/detection/phrases/pt.toml"),
    include_str!("../../../shared/detection/phrases/zh.toml"),
    include_str!("../../../shared/detection/phrases/ja.toml"),
];

/// The texts of an exchange, in lower case and without punctuation, so that the regular expressions need not handle
/// either.
fn own_texts(exchange: &Exchange<'_>) -> Vec<String> {
    let before = [exchange.prev_query, exchange.prev_response];
    let texts = before.into_iter().flatten().chain([exchange.message]);
    let words = |text: &str| {
        let words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '\'');
        let words = words.filter(|word| !word.is_empty());
        words.collect::<Vec<_>>().join(" ").to_lowercase()
    };
    texts.map(words).collect()
}

/// The parts of a phrase file that the set of regular expressions needs.
#[derive(Deserialize)]
struct Phrases {
    #[serde(default)]
    classes: BTreeMap<String, Vec<String>>,
    phrases: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    answers: BTreeMap<String, Vec<String>>,
}

/// The phrases of some files as one set of regular expressions, which ignore the position of a phrase.
fn regex_set(files: &[&str]) -> anyhow::Result<RegexSet> {
    let mut expressions = Vec::new();
    for text in files {
        let file: Phrases = toml::from_str(text).context("the phrases cannot be read")?;
        let spaced = !text.contains("Every character is a word");
        let classes: Vec<_> = file
            .classes
            .iter()
            .map(|(name, words)| {
                let words = words.join("|").replace('*', r"\w*");
                (format!("{{{name}}}"), format!("(?:{words})"))
            })
            .collect();
        let all = file.phrases.values().chain(file.answers.values());
        let all = all.flatten();
        expressions.extend(all.map(|phrase| expression(phrase, &classes, spaced)));
    }
    RegexSetBuilder::new(expressions)
        .size_limit(1 << 30)
        .dfa_size_limit(1 << 28)
        .build()
        .context("the phrases are not valid regular expressions")
}

/// A phrase as a regular expression, with the classes of its file. `spaced`: whether spaces separate the words.
fn expression(phrase: &str, classes: &[(String, String)], spaced: bool) -> String {
    let mut written = phrase.trim_matches(['^', '$', ',', '?', ' ']).to_owned();
    for (from, to) in [
        ("(", "(?:"),
        ("*", r"(?:\S+ ){0,3}"),
        ("[", "(?:"),
        ("]", ")?"),
    ] {
        written = written.replace(from, to);
    }
    for (class, words) in classes {
        written = written.replace(class, words);
    }
    let words = written
        .split(' ')
        .map(|word| if word == "_" { r"\S+" } else { word });
    let written = words.collect::<Vec<_>>().join(" ?");
    if spaced {
        format!(r"(?-u:\b){written}(?-u:\b)")
    } else {
        written
    }
}

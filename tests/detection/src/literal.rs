//! A baseline: the signals that the rules name, as literal strings in a message, in the order of their priority.

use std::collections::BTreeSet;

use hearback_detection::{Exchange, FeedbackStatus};

/// What a message starts with to reject the answer.
const STARTS: [&str; 3] = ["no,", "no ", "not what i"];
/// What rejects the answer at any position, or gives up.
const REJECTS: [&str; 14] = [
    "i meant",
    "i want",
    "i need",
    "that's wrong",
    "you misunderstood",
    "try again",
    "that doesn't help",
    "not helpful",
    "not useful",
    "not what i need",
    "never mind",
    "forget that",
    "let me rephrase",
    "start over",
];
/// What continues from the answer.
const ACCEPTS: [&str; 8] = [
    "tell me more",
    "can you explain",
    "what about the",
    "how does",
    "compare",
    "i'll go with",
    "thanks",
    "perfect",
];
/// A query that is at least so similar to the previous one is a rephrase.
const SIMILAR: f64 = 0.8;
/// The confidences of the rules.
const EXPLICIT: f64 = 0.9;
const CONTINUES: f64 = 0.7;

/// What the literal rules say, and how confidently.
pub(crate) fn detect(exchange: &Exchange<'_>) -> (FeedbackStatus, f64) {
    let message = exchange.message.to_lowercase();
    let has = |signals: &[&str]| signals.iter().any(|signal| message.contains(signal));
    let starts = STARTS.iter().any(|start| message.starts_with(start));
    let query = exchange.prev_query.unwrap_or_default().to_lowercase();
    if starts || has(&REJECTS) || similarity(&message, &query) > SIMILAR {
        (FeedbackStatus::Rejected, EXPLICIT)
    } else if has(&ACCEPTS) {
        (FeedbackStatus::Accepted, CONTINUES)
    } else {
        (FeedbackStatus::Neutral, 0.5)
    }
}

/// The share of strings of three characters that two texts have in common.
fn similarity(one: &str, other: &str) -> f64 {
    let trigrams = |text: &str| -> BTreeSet<String> {
        let letters: Vec<char> = text.chars().collect();
        letters.windows(3).map(String::from_iter).collect()
    };
    let (one, other) = (trigrams(one), trigrams(other));
    let number = |count: usize| u32::try_from(count).map_or(0.0, f64::from);
    let all = one.union(&other).count();
    if all == 0 {
        return 0.0;
    }
    number(one.intersection(&other).count()) / number(all)
}

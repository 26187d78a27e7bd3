//! What the turns before the last exchange add to a detection, on the conversations of the corpus.

use std::collections::BTreeMap;
use std::fmt::Write;

use anyhow::Context;
use hearback_detection::{Cue, Detection, Detector, Earlier, Exchange, FeedbackStatus};
use hearback_domain::feedback::reaction::MIN_CONFIDENCE;
use hearback_domain::turns::turn::{ENDING, SUMMARY};
use serde::Deserialize;

use crate::corpus::{Part, read_all};
use crate::quality::{CLASSES, share};
use crate::tables::{HEAD, Said, line, with_interval};

/// Characters of an answer of which the excerpts are surely all.
const WHOLE: usize = SUMMARY + ENDING - 1;
/// The cues that earlier turns give.
const CUES: [Cue; 2] = [Cue::AskedBefore, Cue::AnswerRepeated];

/// A conversation, and the message after it with its label.
#[derive(Debug, Deserialize)]
pub(crate) struct Conversation {
    turns: Vec<Turn>,
    message: String,
    label: FeedbackStatus,
    situation: String,
}

/// A turn of a conversation.
#[derive(Debug, Deserialize)]
struct Turn {
    user: String,
    assistant: String,
}

impl Conversation {
    /// The conversations of a part.
    pub(crate) fn all(part: Part) -> anyhow::Result<Vec<Self>> {
        read_all(&part.conversations()?)
    }

    /// What is detected by the last exchange, and what with the turns before it.
    fn detected(&self, detector: &Detector) -> anyhow::Result<[Detection; 2]> {
        let (last, before) = self.turns.split_last().context("no turn")?;
        let is_whole = |turn: &Turn| turn.assistant.chars().count() <= WHOLE;
        let earlier: Vec<_> = (before.iter().rev().take(Earlier::MOST))
            .map(|turn| Earlier {
                query: &turn.user,
                answer: (is_whole(turn) && is_whole(last)).then_some(&*turn.assistant),
            })
            .collect();
        let exchange = Exchange {
            prev_query: Some(&last.user),
            prev_response: Some(&last.assistant),
            message: &self.message,
            ..Exchange::default()
        };
        let with = Exchange {
            earlier: &earlier,
            ..exchange
        };
        Ok([exchange, with].map(|exchange| detector.detect(&exchange)))
    }
}

/// The tables of docs/detection.md, "Beyond the message".
pub(crate) fn markdown(detector: &Detector) -> anyhow::Result<String> {
    let mut tables = format!("| part, and what is seen | {HEAD}");
    let mut cues = String::from(
        "\n| cue | part | detected | of these right | reactions | of these right |\n|---|---|---|---|---|---|\n",
    );
    let mut situations = String::new();
    for part in [Part::Development, Part::Test] {
        let name = part.name();
        let conversations = Conversation::all(part)?;
        let detected: anyhow::Result<Vec<_>> = conversations
            .iter()
            .map(|conversation| Ok((conversation, conversation.detected(detector)?)))
            .collect();
        let detected = detected?;
        for (at, seen) in ["the last exchange", "earlier turns too"]
            .into_iter()
            .enumerate()
        {
            let said = |(of, detections): &(&Conversation, [Detection; 2])| {
                let detection = detections.get(at)?;
                Some((of.label, detection.feedback_type, detection.confidence))
            };
            let said: Vec<Said> = detected.iter().filter_map(said).collect();
            line(&mut tables, &format!("{name}: {seen}"), &said);
        }
        for cue in CUES {
            let has = |detection: &Detection| {
                detection
                    .evidence
                    .iter()
                    .any(|evidence| evidence.cue == cue)
            };
            let of_cue = detected.iter().filter(|(_, [_, with])| has(with));
            let of_cue: Vec<_> = of_cue.map(|(of, [_, with])| (of.label, with)).collect();
            let reacts =
                |(_, with): &&(FeedbackStatus, &Detection)| with.confidence >= MIN_CONFIDENCE;
            let reactions: Vec<_> = of_cue.iter().filter(reacts).copied().collect();
            let _ = writeln!(
                cues,
                "| `{}` | {name} | {} | {} | {} | {} |",
                cue.as_str(),
                of_cue.len(),
                rejected(&of_cue),
                reactions.len(),
                rejected(&reactions),
            );
        }
        if part == Part::Development {
            situations = by_situation(&conversations);
        }
    }
    Ok(tables + &cues + &situations)
}

/// The share of these that are labelled as rejected.
fn rejected(of: &[(FeedbackStatus, &Detection)]) -> String {
    let rejected = of
        .iter()
        .filter(|(label, _)| *label == FeedbackStatus::Rejected);
    with_interval(rejected.count(), of.len())
}

/// How often a message has each label, by what was before it.
fn by_situation(conversations: &[Conversation]) -> String {
    let mut situations: BTreeMap<&str, Vec<FeedbackStatus>> = BTreeMap::new();
    for conversation in conversations {
        let labels = situations.entry(&conversation.situation).or_default();
        labels.push(conversation.label);
    }
    let mut table = String::from(
        "\n| situation | conversations | rejected | accepted | neutral |\n|---|---|---|---|---|\n",
    );
    for (situation, labels) in situations {
        let of = |class: FeedbackStatus| {
            let count = labels.iter().filter(|label| **label == class).count();
            share(count, labels.len()).unwrap_or(0.0)
        };
        let [rejected, accepted, neutral] = CLASSES.map(of);
        let _ = writeln!(
            table,
            "| {situation} | {} | {rejected:.2} | {accepted:.2} | {neutral:.2} |",
            labels.len()
        );
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_of_the_page_are_those_of_the_detector() {
        let page = include_str!("../../../docs/detection.md");
        let tables = markdown(&Detector::embedded()).unwrap();
        assert!(page.contains(&tables), "{tables}");
    }
}

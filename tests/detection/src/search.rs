//! How often the embedded embedder finds the turn that a text is about, among a hundred turns in the same language.
//!
//! The paraphrases are those of the parts `train` and `test`, the messages those of `test`.

use std::fmt::Write;

use chrono::{DateTime, Utc};
use hearback_domain::turns::embedded::Embedded;
use hearback_domain::turns::embedding::LEXICAL_DIMENSIONS;
use hearback_domain::turns::target::{MIN_SIMILARITY, Stored, TOP_K, Target, nearest};
use hearback_domain::turns::turn::quantized;

use crate::Labelled;
use crate::corpus::Part;
use crate::quality::share;

/// The turns of a search, with the one that is searched.
const TURNS: usize = 100;
/// One of so many rows is searched, to save time.
const EACH: usize = 2;
/// The minimum bytes of a message that names what it is about.
const LEAST: usize = 30;

/// What is searched with.
#[derive(Debug, Clone, Copy)]
enum Query {
    /// The question in other words.
    Paraphrase,
    /// Any message after the answer.
    Message,
}

impl Query {
    fn is(self, row: &Labelled) -> bool {
        match self {
            Self::Paraphrase => is_paraphrase(row),
            Self::Message => !is_paraphrase(row) && row.message.len() >= LEAST,
        }
    }
}

fn is_paraphrase(row: &Labelled) -> bool {
    let kind = row.kind.as_deref().unwrap_or_default();
    ["rephrased", "repeated_request"].contains(&kind)
}

/// The rows that are searched.
pub(crate) fn rows() -> anyhow::Result<Vec<Labelled>> {
    let mut rows = Part::Train.rows()?;
    rows.retain(is_paraphrase);
    rows.extend(Part::Test.rows()?);
    Ok(rows)
}

/// A row with its vectors.
struct Searched<'a> {
    row: &'a Labelled,
    message: Embedded,
    /// The stored vector of the turn: its lexical half, and both.
    turn: [Vec<u8>; 2],
}

/// Results of searches.
#[derive(Debug, Default, Clone, Copy)]
struct Found {
    searches: usize,
    /// The turn is the most similar one.
    first: usize,
    /// It is among the five most similar ones.
    among: usize,
    /// Another turn is similar enough if this one is not stored.
    falsely: usize,
}

/// The table of searches, in Markdown.
pub(crate) fn markdown(rows: &[Labelled]) -> String {
    let searched: Vec<_> = rows.iter().map(Searched::of).collect();
    let mut table = String::from(
        "| searched with | language | searches | words alone: first | in five | falsely | with meanings: first | in five | falsely |\n|---|---|---|---|---|---|---|---|---|\n",
    );
    for (query, name) in [
        (Query::Paraphrase, "a paraphrase"),
        (Query::Message, "the next message"),
    ] {
        for (language, is_english) in [("en", true), ("others", false)] {
            let found = |half: usize| {
                let of_language =
                    |row: &Labelled| (row.language.as_deref() == Some("en")) == is_english;
                search(&searched, |row| query.is(row) && of_language(row), half)
            };
            let (words, both) = (found(0), found(1));
            let _ = writeln!(
                table,
                "| {name} | {language} | {} | {} | {} |",
                words.searches,
                words.shares(),
                both.shares()
            );
        }
    }
    table
}

impl<'a> Searched<'a> {
    fn of(row: &'a Labelled) -> Self {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let turn = format!("{}\n{}", text(&row.prev_query), text(&row.prev_response));
        let vector = Embedded::of(&turn).vector;
        Self {
            row,
            message: Embedded::of(&row.message),
            turn: [
                vector.get(..LEXICAL_DIMENSIONS).unwrap_or_default(),
                &vector,
            ]
            .map(quantized),
        }
    }
}

impl Found {
    fn shares(self) -> String {
        let of = |part: usize| share(part, self.searches).unwrap_or(0.0);
        let [first, among, falsely] = [self.first, self.among, self.falsely].map(of);
        format!("{first:.2} | {among:.2} | {falsely:.2}")
    }
}

/// Searches the turn of each row that is `wanted` among the next ones in its language, in vectors of one kind.
fn search(rows: &[Searched<'_>], wanted: impl Fn(&Labelled) -> bool, kind: usize) -> Found {
    let mut found = Found::default();
    for (at, searched) in rows.iter().enumerate().step_by(EACH) {
        if !wanted(searched.row) {
            continue;
        }
        let (before, from) = rows.split_at(at);
        let turns = from.iter().chain(before);
        let of_language = turns.filter(|other| other.row.language == searched.row.language);
        let vectors: Vec<&[u8]> = of_language
            .take(TURNS)
            .filter_map(|other| other.turn.get(kind).map(Vec::as_slice))
            .collect();
        let nearest = |from: usize| {
            let stored = vectors.iter().enumerate().skip(from);
            let stored = stored.map(|(turn, vector)| Stored {
                turn,
                ts: DateTime::<Utc>::UNIX_EPOCH,
                vector,
            });
            nearest(&searched.message, stored, DateTime::UNIX_EPOCH, TOP_K)
        };
        let is_own = |target: &Target<usize>| target.turn == 0;
        let is_similar = |target: &Target<usize>| target.similarity >= MIN_SIMILARITY;
        let all = nearest(0);
        found.searches += 1;
        found.first += usize::from(all.first().is_some_and(is_own));
        found.among += usize::from(all.iter().any(is_own));
        found.falsely += usize::from(nearest(1).first().is_some_and(is_similar));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_the_page_is_that_of_the_embedder() {
        let page = include_str!("../../../docs/detection.md");
        let table = markdown(&rows().unwrap());
        assert!(page.contains(&table), "{table}");
    }
}

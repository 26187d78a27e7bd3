//! The syntax of phrases.
//!
//! | written | matches |
//! |---|---|
//! | `that is wrong` | these words, with fillers ("really") between them |
//! | `{this} is wrong` | a word of the class `this` |
//! | `(wrong|not right)` | either |
//! | `[all] wrong` | with or without it |
//! | `_` | any one word |
//! | `*` | up to three words |
//! | `^wrong` | at the start of a sentence, after openers ("oh, sorry") |
//! | `^^no` | at the start of the message |
//! | `, not` | after a comma |
//! | `wrong $` | before a comma, or the end of a sentence |
//! | `correct ?` | before a question mark |

use std::ops::Range;

/// Where a phrase has to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Start {
    /// Anywhere.
    Anywhere,
    /// In a clause after a comma.
    Clause,
    /// In a sentence.
    Sentence,
    /// In the message.
    Message,
}

/// Where a phrase has to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Anywhere.
    Anywhere,
    /// With its clause.
    Clause,
    /// With a question.
    Question,
}

/// One step of a phrase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step<'a> {
    /// This word, as it is written.
    Word(&'a str),
    /// A word of a class.
    Class(&'a str),
    /// Any word.
    Any,
}

/// A parsed phrase: where it must be, and its elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern<'a> {
    /// Where it has to start.
    pub start: Start,
    /// Where it has to end.
    pub end: End,
    /// The steps of all alternatives of all elements, in order.
    steps: Vec<Step<'a>>,
    /// The end of each alternative in `steps`.
    ways: Vec<usize>,
    /// The end of each element in `ways`.
    elements: Vec<usize>,
}

/// The maximum number of alternatives of one phrase. A phrase with more is a mistake, and slow to match.
const MAX_WAYS: usize = 20_000;
/// The maximum number of steps of one alternative.
const MAX_STEPS: usize = 12;

impl<'a> Pattern<'a> {
    /// Reads a phrase, or returns why it is invalid.
    pub(crate) fn read(written: &'a str) -> Result<Self, String> {
        let written = written.trim();
        let (start, rest) = if let Some(rest) = written.strip_prefix("^^") {
            (Start::Message, rest)
        } else if let Some(rest) = written.strip_prefix('^') {
            (Start::Sentence, rest)
        } else if let Some(rest) = written.strip_prefix(',') {
            (Start::Clause, rest)
        } else {
            (Start::Anywhere, written)
        };
        let (end, mut rest) = if let Some(rest) = rest.strip_suffix('$') {
            (End::Clause, rest)
        } else if let Some(rest) = rest.strip_suffix('?') {
            (End::Question, rest)
        } else {
            (End::Anywhere, rest)
        };
        let mut read = Self {
            start,
            end,
            steps: Vec::with_capacity(rest.len() / 4),
            ways: Vec::with_capacity(rest.len() / 6),
            elements: Vec::with_capacity(8),
        };
        while !rest.trim().is_empty() {
            rest = read.element(rest.trim())?;
            read.elements.push(read.ways.len());
        }
        read.check()?;
        Ok(read)
    }

    /// The elements, each as its alternatives.
    pub(crate) fn elements(&self) -> impl Iterator<Item = impl Iterator<Item = &[Step<'a>]>> {
        parts(&self.elements).map(|ways| {
            let first = ways.start;
            let before = first
                .checked_sub(1)
                .and_then(|before| self.ways.get(before));
            let ends = self.ways.get(ways).unwrap_or_default();
            let starts = before.or(Some(&0)).into_iter().chain(ends);
            let steps = starts
                .zip(ends)
                .map(|(start, end)| self.steps.get(*start..*end));
            steps.map(Option::unwrap_or_default)
        })
    }

    fn check(&self) -> Result<(), String> {
        let says = |way: &[Step<'_>]| way.iter().any(|step| *step != Step::Any);
        let (mut says_something, mut longest, mut ways) = (false, 0, 1_usize);
        for element in self.elements() {
            let (mut all_say, mut most, mut count) = (true, 0, 0);
            for way in element {
                all_say &= says(way);
                most = way.len().max(most);
                count += 1;
            }
            says_something |= all_say;
            longest += most;
            ways = ways.saturating_mul(count);
        }
        if !says_something {
            return Err("must have a word or a class in every way to say it".to_owned());
        }
        if longest > MAX_STEPS {
            return Err(format!("must have at most {MAX_STEPS} words"));
        }
        if ways > MAX_WAYS {
            return Err(format!("must stand for at most {MAX_WAYS} ways to say it"));
        }
        Ok(())
    }

    /// Reads the first element of a phrase, and returns the rest.
    fn element(&mut self, rest: &'a str) -> Result<&'a str, String> {
        let first = rest.chars().next().unwrap_or(' ');
        let after = rest.get(first.len_utf8()..).unwrap_or_default();
        let group = |closer| {
            let split = after.split_once(closer);
            split.ok_or_else(|| format!("has `{first}` without `{closer}`"))
        };
        match first {
            '(' => {
                let (inner, after) = group(')')?;
                inner.split('|').try_for_each(|way| self.way(way))?;
                Ok(after)
            }
            '[' => {
                let (inner, after) = group(']')?;
                inner.split('|').try_for_each(|way| self.way(way))?;
                self.way("")?;
                Ok(after)
            }
            '*' => {
                ["", "_", "_ _", "_ _ _"]
                    .into_iter()
                    .try_for_each(|way| self.way(way))?;
                Ok(after)
            }
            _ => {
                let end = rest.find(['(', '[', '*']).unwrap_or(rest.len());
                let (plain, after) = rest.split_at(end);
                self.way(plain)?;
                Ok(after)
            }
        }
    }

    /// Adds words and classes as an alternative of the element.
    fn way(&mut self, written: &'a str) -> Result<(), String> {
        for word in written.split_whitespace() {
            self.steps.push(step(word)?);
        }
        self.ways.push(self.steps.len());
        Ok(())
    }
}

/// The consecutive ranges that end at these numbers.
fn parts(ends: &[usize]) -> impl Iterator<Item = Range<usize>> {
    let starts = std::iter::once(0).chain(ends.iter().copied());
    starts.zip(ends).map(|(start, end)| start..*end)
}

fn step(word: &str) -> Result<Step<'_>, String> {
    // Nearly all words are plain.
    if word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return Ok(Step::Word(word));
    }
    match word.strip_prefix('{') {
        _ if word == "_" => Ok(Step::Any),
        Some(class) => class
            .strip_suffix('}')
            .map(Step::Class)
            .ok_or_else(|| "has `{` without `}`, or no space after it".to_owned()),
        None if word.contains(['{', '}', ')', ']', '^', '$', '?', '|', ',']) => Err(format!(
            "has `{word}`, which is no word: see the signs in the built-in files"
        )),
        None => Ok(Step::Word(word)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All alternatives of a phrase.
    fn ways(written: &str) -> Vec<String> {
        let step = |step: &Step<'_>| match step {
            Step::Word(word) => format!(" {word}"),
            Step::Class(class) => format!(" <{class}>"),
            Step::Any => " _".to_owned(),
        };
        let mut ways = vec![String::new()];
        for alternatives in Pattern::read(written).unwrap().elements() {
            let alternatives: Vec<String> = alternatives
                .map(|way| way.iter().map(step).collect())
                .collect();
            ways = ways
                .iter()
                .flat_map(|way| {
                    alternatives
                        .iter()
                        .map(move |other| format!("{way}{other}"))
                })
                .collect();
        }
        ways.iter().map(|way| way.trim().to_owned()).collect()
    }

    #[test]
    fn phrase_matches_all_alternatives() {
        assert_eq!(
            ways("{this} is [all] (wrong|not right)"),
            [
                "<this> is all wrong",
                "<this> is all not right",
                "<this> is wrong",
                "<this> is not right"
            ]
        );
        assert_eq!(
            ways("not * that"),
            ["not that", "not _ that", "not _ _ that", "not _ _ _ that"]
        );
    }

    #[test]
    fn anchors_restrict_the_position() {
        let anchors = |written| {
            let pattern = Pattern::read(written).unwrap();
            (pattern.start, pattern.end)
        };
        assert_eq!(anchors("^^no $"), (Start::Message, End::Clause));
        assert_eq!(anchors("^ wrong"), (Start::Sentence, End::Anywhere));
        assert_eq!(anchors(", not _ $"), (Start::Clause, End::Clause));
        assert_eq!(anchors("right ?"), (Start::Anywhere, End::Question));
    }

    #[test]
    fn invalid_phrase_is_rejected_with_a_reason() {
        for (written, expected) in [
            ("", "must have a word"),
            ("* _", "must have a word"),
            ("[only]", "must have a word"),
            ("(a|b", "has `(` without `)`"),
            ("{this is", "has `{` without `}`"),
            ("no, not", "has `no,`"),
            (
                "[a|b|c|d|e|f] [a|b|c|d|e|f] [a|b|c|d|e|f] [a|b|c|d|e|f] [a|b|c|d|e|f] [a|b|c|d|e|f] a",
                "at most 20000 ways",
            ),
            ("a b c d e f g h i j k l m", "at most 12 words"),
        ] {
            let error = Pattern::read(written).unwrap_err();
            assert!(error.contains(expected), "{written}: {error}");
        }
    }
}

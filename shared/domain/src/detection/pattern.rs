//! The little language in which phrases are written.
//!
//! | written | matches |
//! |---|---|
//! | `that is wrong` | these words, with fillers ("really") between them |
//! | `{this} is wrong` | a word of the class `this` |
//! | `(wrong|not right)` | either |
//! | `[all] wrong` | with or without it |
//! | `_` | any one word |
//! | `*` | up to three words |
//! | `^wrong` | at the start of a sentence, behind openers ("oh, sorry") |
//! | `^^no` | at the start of the message |
//! | `, not` | behind a comma |
//! | `wrong $` | before a comma, or the end of a sentence |
//! | `correct ?` | before a question mark |

/// Where a phrase has to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Start {
    /// Anywhere.
    Anywhere,
    /// In a clause that goes on behind a comma.
    Clause,
    /// In a sentence.
    Sentence,
    /// In the message.
    Message,
}

/// Where a phrase has to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// Anywhere.
    Anywhere,
    /// With its clause.
    Clause,
    /// With a question.
    Question,
}

/// One step of a phrase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step<'a> {
    /// This word, as it is written.
    Word(&'a str),
    /// A word of a class.
    Class(&'a str),
    /// Any word.
    Any,
}

/// The ways to say one element of a phrase.
pub(super) type Alternatives<'a> = Vec<Vec<Step<'a>>>;

/// A phrase that is read: where it has to stand, and what it is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern<'a> {
    /// Where it has to start.
    pub start: Start,
    /// Where it has to end.
    pub end: End,
    /// One behind the other.
    pub elements: Vec<Alternatives<'a>>,
}

/// Most ways that one phrase may stand for: more are a mistake, and would be walked in vain.
const MAX_WAYS: usize = 20_000;
/// Most steps of one way.
const MAX_STEPS: usize = 12;

impl<'a> Pattern<'a> {
    /// Reads a phrase, or says what is wrong with it.
    pub(super) fn read(written: &'a str) -> Result<Self, String> {
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
        let mut elements = Vec::new();
        while let Some((alternatives, behind)) = element(rest.trim())? {
            elements.push(alternatives);
            rest = behind;
        }
        let read = Self {
            start,
            end,
            elements,
        };
        read.check()?;
        Ok(read)
    }

    fn check(&self) -> Result<(), String> {
        let says = |way: &Vec<Step<'_>>| way.iter().any(|step| *step != Step::Any);
        let longest = |ways: &Alternatives<'_>| ways.iter().map(Vec::len).max().unwrap_or(0);
        if !self.elements.iter().any(|ways| ways.iter().all(says)) {
            return Err("must have a word or a class in every way to say it".to_owned());
        }
        if self.elements.iter().map(longest).sum::<usize>() > MAX_STEPS {
            return Err(format!("must have at most {MAX_STEPS} words"));
        }
        if self.elements.iter().map(Vec::len).product::<usize>() > MAX_WAYS {
            return Err(format!("must stand for at most {MAX_WAYS} ways to say it"));
        }
        Ok(())
    }
}

/// The alternatives of a phrase's first element, and what is behind it.
type Element<'a> = (Alternatives<'a>, &'a str);

fn element(rest: &str) -> Result<Option<Element<'_>>, String> {
    let Some(first) = rest.chars().next() else {
        return Ok(None);
    };
    let behind = rest.get(first.len_utf8()..).unwrap_or_default();
    let alternatives = |closer| -> Result<Element<'_>, String> {
        let (inner, behind) = behind
            .split_once(closer)
            .ok_or_else(|| format!("has `{first}` without `{closer}`"))?;
        let ways: Result<_, _> = inner.split('|').map(words).collect();
        Ok((ways?, behind))
    };
    let element = match first {
        '(' => alternatives(')')?,
        '[' => {
            let (mut ways, behind) = alternatives(']')?;
            ways.push(Vec::new());
            (ways, behind)
        }
        '*' => (
            (0..=3).map(|words| vec![Step::Any; words]).collect(),
            behind,
        ),
        _ => {
            let end = rest.find(['(', '[', '*']).unwrap_or(rest.len());
            let (plain, behind) = rest.split_at(end);
            (vec![words(plain)?], behind)
        }
    };
    Ok(Some(element))
}

/// Words and classes, one behind the other.
fn words(written: &str) -> Result<Vec<Step<'_>>, String> {
    written
        .split_whitespace()
        .map(|word| match word.strip_prefix('{') {
            _ if word == "_" => Ok(Step::Any),
            Some(class) => class
                .strip_suffix('}')
                .map(Step::Class)
                .ok_or_else(|| "has `{` without `}`, or no space behind it".to_owned()),
            None if word.contains(['{', '}', ')', ']', '^', '$', '?', '|', ',']) => Err(format!(
                "has `{word}`, which is no word: see the signs in the built-in files"
            )),
            None => Ok(Step::Word(word)),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each way to say it.
    fn ways(written: &str) -> Vec<String> {
        let step = |step: &Step<'_>| match step {
            Step::Word(word) => format!(" {word}"),
            Step::Class(class) => format!(" <{class}>"),
            Step::Any => " _".to_owned(),
        };
        let mut ways = vec![String::new()];
        for alternatives in Pattern::read(written).unwrap().elements {
            let alternatives: Vec<String> = alternatives
                .iter()
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
    fn a_phrase_stands_for_all_its_ways() {
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
    fn anchors_say_where_it_stands() {
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
    fn what_is_wrong_with_a_phrase_is_said() {
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

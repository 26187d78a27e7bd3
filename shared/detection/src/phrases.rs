//! Phrase files: TOML, one for each language, with everything that the detector knows about it.
//!
//! The built-in files are in `phrases/`; `en.toml` explains their format. Files of a deployment add phrases to them, or
//! another language. Reading a file reports all of its errors, each with its line.

use std::fmt;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::cue::Role;
use crate::lexicon::Lexicon;

/// An error in a phrase file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct PhraseError {
    /// The name of the file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong there and what is expected, as a sentence part: `must be one word`.
    pub detail: String,
}

impl fmt::Display for PhraseError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {}", self.file, self.line, self.detail)
    }
}

/// A phrase file, parsed as TOML.
#[derive(Debug)]
pub(crate) struct PhraseFile<'a> {
    name: &'a str,
    text: &'a str,
    language: &'a str,
    table: DeTable<'a>,
}

/// The members of a phrase file.
const LANGUAGE: &str = "language";
const FUNCTION_WORDS: &str = "function_words";
const SPELLING: &str = "spelling";
const SYNONYMS: &str = "synonyms";
const CLASSES: &str = "classes";
const PHRASES: &str = "phrases";
const ANSWERS: &str = "answers";
const QUESTIONS: &str = "questions";
const MEMBERS: [&str; 8] = [
    LANGUAGE,
    FUNCTION_WORDS,
    SPELLING,
    SYNONYMS,
    CLASSES,
    PHRASES,
    ANSWERS,
    QUESTIONS,
];

impl<'a> PhraseFile<'a> {
    /// Parses a file as TOML, and reads its language.
    pub(crate) fn read(name: &'a str, text: &'a str) -> Result<Self, PhraseError> {
        let error = |at: usize, detail: String| PhraseError {
            file: name.to_owned(),
            line: line(text, at),
            detail,
        };
        let table = DeTable::parse(text).map_err(|failed| {
            let at = failed.span().map_or(0, |span| span.start);
            error(at, failed.message().to_owned())
        })?;
        let table = table.into_inner();
        let expected = "must be the language's code, two or three small letters: \"en\"";
        let Some(language) = table.get(LANGUAGE) else {
            return Err(error(0, format!("`{LANGUAGE}` {expected}")));
        };
        let written = text.get(language.span()).unwrap_or_default();
        let code = written.trim_matches(['"', '\'']);
        let letters = code.bytes().all(|byte| byte.is_ascii_lowercase());
        if !letters || !(2..=3).contains(&code.len()) {
            return Err(error(language.span().start, format!("`{code}` {expected}")));
        }
        Ok(Self {
            name,
            text,
            language: code,
            table,
        })
    }

    /// The language's code: `en`.
    pub(crate) fn language(&self) -> &str {
        self.language
    }

    /// Frequent words by which the language is recognised.
    pub(crate) fn function_words(&self) -> Vec<&str> {
        let mut words = Vec::new();
        if let Some(entry) = self.table.get(FUNCTION_WORDS) {
            // `add_to` reports their errors.
            self.each(entry, &mut Vec::new(), |word| {
                words.push(word);
                Ok(())
            });
        }
        words
    }

    /// Adds the content of the file to the lexicon of its language, and collects the errors.
    pub(crate) fn add_to(&self, lexicon: &mut Lexicon, errors: &mut Vec<PhraseError>) {
        for (name, entry) in &self.table {
            let name: &str = name.get_ref();
            if !MEMBERS.contains(&name) {
                let detail = format!("is not a member; the members are {}", MEMBERS.join(", "));
                errors.push(self.error(entry.span(), name, &detail));
            }
        }
        if let Some(entry) = self.table.get(FUNCTION_WORDS) {
            self.each(entry, errors, |_| Ok(()));
        }
        self.members(SPELLING, errors, |word, as_words, errors| {
            match as_words.get_ref().as_str() {
                Some(words) => lexicon.vocabulary.spell(word, words),
                None => Err("must be a string".to_owned()),
            }
            .unwrap_or_else(|detail| errors.push(self.error(as_words.span(), word, &detail)));
        });
        self.members(SYNONYMS, errors, |word, others, errors| {
            self.each(others, errors, |other| lexicon.synonyms.add(other, word));
        });
        self.members(CLASSES, errors, |name, words, errors| {
            match lexicon.vocabulary.class_or_new(name) {
                Ok(class) => {
                    self.each(words, errors, |word| lexicon.vocabulary.member(class, word));
                }
                Err(detail) => errors.push(self.error(words.span(), name, &detail)),
            }
        });
        let messages: Vec<_> = Role::of_messages().collect();
        self.sections(PHRASES, &messages, lexicon, errors);
        let questions: Vec<_> = Role::of_questions().collect();
        self.sections(QUESTIONS, &questions, lexicon, errors);
        let answers: Vec<_> = Role::of_answers().collect();
        self.sections(ANSWERS, &answers, lexicon, errors);
    }

    fn sections(
        &self,
        table: &str,
        known: &[(&'static str, Role)],
        lexicon: &mut Lexicon,
        errors: &mut Vec<PhraseError>,
    ) {
        self.members(table, errors, |name, phrases, errors| {
            if let Some((_, role)) = known.iter().find(|(known, _)| *known == name) {
                self.each(phrases, errors, |phrase| lexicon.phrase(*role, phrase));
            } else {
                let names: Vec<_> = known.iter().map(|(name, _)| *name).collect();
                let detail = format!("is not a section; the sections are {}", names.join(", "));
                errors.push(self.error(phrases.span(), name, &detail));
            }
        });
    }

    /// Reads each member of a table.
    fn members(
        &self,
        table: &str,
        errors: &mut Vec<PhraseError>,
        mut read: impl FnMut(&str, &Spanned<DeValue<'a>>, &mut Vec<PhraseError>),
    ) {
        let Some(entry) = self.table.get(table) else {
            return;
        };
        if let Some(members) = entry.get_ref().as_table() {
            for (name, value) in members {
                read(name.get_ref(), value, errors);
            }
        } else {
            errors.push(self.error(entry.span(), table, "must be a table"));
        }
    }

    /// Adds each string of an array.
    fn each<'s>(
        &'s self,
        entries: &'s Spanned<DeValue<'a>>,
        errors: &mut Vec<PhraseError>,
        mut add: impl FnMut(&'s str) -> Result<(), String>,
    ) {
        let Some(array) = entries.get_ref().as_array() else {
            errors.push(self.error(entries.span(), "", "must be an array of strings"));
            return;
        };
        for entry in array {
            let (written, added) = match entry.get_ref().as_str() {
                Some(written) => (written, add(written)),
                None => ("", Err("must be a string".to_owned())),
            };
            if let Err(detail) = added {
                errors.push(self.error(entry.span(), written, &detail));
            }
        }
    }

    fn error(&self, at: Range<usize>, entry: &str, detail: &str) -> PhraseError {
        let entry = match entry {
            "" => self.text.get(at.clone()).unwrap_or_default(),
            entry => entry,
        };
        PhraseError {
            file: self.name.to_owned(),
            line: line(self.text, at.start),
            detail: format!("`{entry}` {detail}"),
        }
    }
}

/// The line of a byte, from 1.
fn line(text: &str, at: usize) -> usize {
    let before = text.bytes().take(at);
    1 + before.filter(|byte| *byte == b'\n').count()
}

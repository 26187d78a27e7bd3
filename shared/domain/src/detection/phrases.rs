//! Phrase files: TOML, one for each language, with everything that the detector knows of it.
//!
//! The built-in files are in `phrases/`; `en.toml` explains their form. A deployer's files add to
//! them, or bring a language that is not built in. What is wrong with a file is found when it is
//! read, all of it, and said with its line.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;

use super::cue::Role;
use super::lexicon::Lexicon;

/// What is wrong with a phrase file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct PhraseError {
    /// The name that the file was given with.
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

/// Texts of a file by a name, each with where it stands.
type Named<T> = BTreeMap<Spanned<String>, T>;

/// A phrase file as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    language: Spanned<String>,
    #[serde(default)]
    function_words: Vec<Spanned<String>>,
    #[serde(default)]
    spelling: Named<Spanned<String>>,
    #[serde(default)]
    classes: Named<Vec<Spanned<String>>>,
    #[serde(default)]
    phrases: Named<Vec<Spanned<String>>>,
    #[serde(default)]
    answers: Named<Vec<Spanned<String>>>,
}

/// A phrase file that is read.
#[derive(Debug)]
pub(super) struct PhraseFile<'a> {
    name: &'a str,
    text: &'a str,
    written: Written,
}

impl<'a> PhraseFile<'a> {
    /// Reads a file, without its phrases.
    pub(super) fn read(name: &'a str, text: &'a str) -> Result<Self, PhraseError> {
        match toml::from_str(text) {
            Ok(written) => {
                let file = Self {
                    name,
                    text,
                    written,
                };
                file.check_language()?;
                Ok(file)
            }
            Err(error) => Err(PhraseError {
                file: name.to_owned(),
                line: line(text, error.span().map_or(0, |span| span.start)),
                detail: error.message().to_owned(),
            }),
        }
    }

    /// The language's code: `en`.
    pub(super) fn language(&self) -> &str {
        self.written.language.get_ref()
    }

    /// Frequent words by which the language is told.
    pub(super) fn function_words(&self) -> impl Iterator<Item = &str> {
        self.written
            .function_words
            .iter()
            .map(|word| word.get_ref().as_str())
    }

    fn check_language(&self) -> Result<(), PhraseError> {
        let language = &self.written.language;
        let code = language.get_ref();
        let letters = code.bytes().all(|byte| byte.is_ascii_lowercase());
        if letters && (2..=3).contains(&code.len()) {
            return Ok(());
        }
        let detail = "must be the language's code, two or three small letters: \"en\"";
        Err(self.error(language.span(), code, detail))
    }

    /// Adds what the file says to a lexicon of its language, and collects what is wrong with it.
    pub(super) fn add_to(&self, lexicon: &mut Lexicon, errors: &mut Vec<PhraseError>) {
        for (word, as_words) in &self.written.spelling {
            if let Err(detail) = lexicon.spell(word.get_ref(), as_words.get_ref()) {
                errors.push(self.error(word.span(), word.get_ref(), &detail));
            }
        }
        for (name, words) in &self.written.classes {
            match lexicon.class(name.get_ref()) {
                Ok(class) => self.each(words, errors, |word| lexicon.member(class, word)),
                Err(detail) => errors.push(self.error(name.span(), name.get_ref(), &detail)),
            }
        }
        let messages: Vec<_> = Role::of_messages().collect();
        self.sections(&self.written.phrases, &messages, lexicon, errors);
        let answers: Vec<_> = Role::of_answers().collect();
        self.sections(&self.written.answers, &answers, lexicon, errors);
    }

    fn sections(
        &self,
        sections: &Named<Vec<Spanned<String>>>,
        known: &[(&'static str, Role)],
        lexicon: &mut Lexicon,
        errors: &mut Vec<PhraseError>,
    ) {
        for (name, phrases) in sections {
            let role = known.iter().find(|(known, _)| known == name.get_ref());
            if let Some((_, role)) = role {
                self.each(phrases, errors, |phrase| lexicon.phrase(*role, phrase));
            } else {
                let names: Vec<_> = known.iter().map(|(name, _)| *name).collect();
                let detail = format!("is no section; those are {}", names.join(", "));
                errors.push(self.error(name.span(), name.get_ref(), &detail));
            }
        }
    }

    fn each(
        &self,
        entries: &[Spanned<String>],
        errors: &mut Vec<PhraseError>,
        mut add: impl FnMut(&str) -> Result<(), String>,
    ) {
        for entry in entries {
            if let Err(detail) = add(entry.get_ref()) {
                errors.push(self.error(entry.span(), entry.get_ref(), &detail));
            }
        }
    }

    fn error(&self, at: Range<usize>, entry: &str, detail: &str) -> PhraseError {
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

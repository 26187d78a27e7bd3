//! BCP 47 language tags.

use std::fmt;

use hearback_wire::{Errors, FromJson, Pointer, noted, parse};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};

/// Maximum length of a tag, in characters. Registered tags are much shorter.
pub const MAX_LENGTH: usize = 64;
/// The form of a tag, as a regular expression: a language of letters, then subtags of letters and digits.
pub const PATTERN: &str = "^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$";

/// A BCP 47 language tag such as `de`, `pt-BR` or `zh-Hant-TW`. Whether its subtags are registered is not
/// checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Language(String);

/// The string is not a language tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a BCP 47 language tag such as \"de\" or \"pt-BR\"")]
pub struct InvalidLanguage;

impl Language {
    /// The tag as a string.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromJson for Language {
    fn read(value: &Value, at: Pointer<'_>, errors: &mut Errors) -> Option<Self> {
        noted(parse::identifier(value), at, errors)
    }

    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .max_length(Some(MAX_LENGTH))
            .pattern(Some(PATTERN))
            .into()
    }
}

impl TryFrom<String> for Language {
    type Error = InvalidLanguage;

    fn try_from(tag: String) -> Result<Self, InvalidLanguage> {
        let mut subtags = tag.split('-');
        let language = subtags.next().unwrap_or_default();
        let is_tag = tag.len() <= MAX_LENGTH
            && (2..=8).contains(&language.len())
            && language.bytes().all(|byte| byte.is_ascii_alphabetic())
            && subtags.all(|subtag| {
                let alphanumeric = subtag.bytes().all(|byte| byte.is_ascii_alphanumeric());
                alphanumeric && (1..=8).contains(&subtag.len())
            });
        is_tag.then_some(Self(tag)).ok_or(InvalidLanguage)
    }
}

impl TryFrom<&str> for Language {
    type Error = InvalidLanguage;

    fn try_from(tag: &str) -> Result<Self, InvalidLanguage> {
        Self::try_from(tag.to_owned())
    }
}

impl From<Language> for String {
    fn from(language: Language) -> Self {
        language.0
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_checked_against_the_grammar() {
        for tag in ["de", "pt-BR", "zh-Hant-TW", "sr-Latn-RS", "es-419", "gsw"] {
            assert_eq!(Language::try_from(tag).unwrap().as_str(), tag);
        }
        let long = format!("de{}", "-abcdefgh".repeat(8));
        for invalid in [
            "",
            "d",
            "german language",
            "pt_BR",
            "de-",
            "-de",
            "1a",
            "de-ß",
            &long,
        ] {
            assert_eq!(
                Language::try_from(invalid),
                Err(InvalidLanguage),
                "{invalid}"
            );
        }
    }
}

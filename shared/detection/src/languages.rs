//! The phrase sets of all languages, each compiled when it is first needed.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use hearback_text::Text;
use hearback_text::hash::FastMap;
use hearback_text::language::guess;

use crate::lexicon::Lexicon;
use crate::phrases::{PhraseError, PhraseFile};

/// The built-in phrase files, by language.
const EMBEDDED: [(&str, &str, &str); 7] = [
    ("en", "phrases/en.toml", include_str!("../phrases/en.toml")),
    ("de", "phrases/de.toml", include_str!("../phrases/de.toml")),
    ("fr", "phrases/fr.toml", include_str!("../phrases/fr.toml")),
    ("es", "phrases/es.toml", include_str!("../phrases/es.toml")),
    ("pt", "phrases/pt.toml", include_str!("../phrases/pt.toml")),
    ("zh", "phrases/zh.toml", include_str!("../phrases/zh.toml")),
    ("ja", "phrases/ja.toml", include_str!("../phrases/ja.toml")),
];

/// The languages that a detector knows, and their phrases.
#[derive(Debug)]
pub(crate) struct Languages {
    lexicons: BTreeMap<String, OnceLock<Lexicon>>,
    /// Frequent words of languages that were added, each with its language.
    function_words: FastMap<String, String>,
}

impl Languages {
    /// The built-in ones.
    pub(crate) fn embedded() -> Self {
        let lazy = |(language, _, _): (&str, _, _)| (language.to_owned(), OnceLock::new());
        Self {
            lexicons: EMBEDDED.into_iter().map(lazy).collect(),
            function_words: FastMap::default(),
        }
    }

    /// Adds the phrases of a file to those of its language.
    pub(crate) fn add(&mut self, file: &PhraseFile<'_>, errors: &mut Vec<PhraseError>) {
        let language = file.language().to_owned();
        let known = self.lexicons.remove(&language);
        let mut lexicon = known
            .and_then(OnceLock::into_inner)
            .unwrap_or_else(|| built_in(&language));
        file.add_to(&mut lexicon, errors);
        for word in file.function_words() {
            let word = word.to_lowercase();
            self.function_words.insert(word, language.clone());
        }
        self.lexicons.insert(language, OnceLock::from(lexicon));
    }

    /// The guessed language of a text, if there are phrases for it.
    pub(crate) fn guessed(&self, text: &Text) -> Option<&str> {
        guess(text, &self.function_words).filter(|code| self.has(code))
    }

    /// The phrases of the guessed language of a text.
    pub(crate) fn lexicon_of(&self, text: &Text) -> Option<&Lexicon> {
        let (_, lexicon) = self.lexicon(self.guessed(text)?)?;
        Some(lexicon)
    }

    fn has(&self, code: &str) -> bool {
        self.lexicons.contains_key(code)
    }

    /// The language of a tag, if there are phrases for it. A tag may be in any case, and have a region or a script:
    /// `de`, `De-AT`, `pt_BR`, `zh-Hans`.
    pub(crate) fn given(&self, tag: Option<&str>) -> Option<&str> {
        let code = tag?.trim().split(['-', '_']).next()?.to_ascii_lowercase();
        let (code, _) = self.lexicons.get_key_value(&code)?;
        Some(code)
    }

    pub(crate) fn lexicon(&self, language: &str) -> Option<(&str, &Lexicon)> {
        let (language, lexicon) = self.lexicons.get_key_value(language)?;
        Some((language, lexicon.get_or_init(|| built_in(language))))
    }
}

/// The lexicon of a built-in language; an empty one for any other language.
fn built_in(language: &str) -> Lexicon {
    let file = EMBEDDED.into_iter().find(|(code, _, _)| *code == language);
    let mut lexicon = Lexicon::new(file.map_or(0, |(_, _, text)| text.len()));
    if let Some((_, name, text)) = file {
        // A test reads every built-in file, so that no error is possible here.
        if let Ok(file) = PhraseFile::read(name, text) {
            file.add_to(&mut lexicon, &mut Vec::new());
        }
    }
    lexicon
}

/// Whether a language is built in.
pub(crate) fn is_built_in(language: &str) -> bool {
    EMBEDDED.iter().any(|(code, ..)| *code == language)
}

/// The names and texts of the built-in files.
#[cfg(test)]
pub(crate) fn embedded_files() -> impl Iterator<Item = (&'static str, &'static str)> {
    EMBEDDED.into_iter().map(|(_, name, text)| (name, text))
}

//! Words that mean the same.

use hearback_text::Text;
use hearback_text::hash::FastMap;

/// Words with the same meaning in a question, such as "under" and "below".
#[derive(Debug, Default, Clone)]
pub(crate) struct Synonyms(FastMap<Box<str>, Box<str>>);

impl Synonyms {
    /// Adds a word with the same meaning as another.
    pub(crate) fn add(&mut self, word: &str, same_as: &str) -> Result<(), String> {
        let folded = |word: &str| {
            let text = Text::read(word, word.len(), 0);
            let mut words = text.all_folded();
            let first = words.next().map(Box::<str>::from);
            first.filter(|_| words.next().is_none())
        };
        let (Some(word), Some(same_as)) = (folded(word), folded(same_as)) else {
            return Err("must be one word, for one word".to_owned());
        };
        self.0.insert(word, same_as);
        Ok(())
    }

    /// The word that represents all with the same meaning.
    pub(crate) fn of<'a>(&'a self, word: &'a str) -> &'a str {
        self.0.get(word).map_or(word, |same| same)
    }
}

//! The detector: makes a detection from a message, with the phrases of all languages.

use std::cell::OnceCell;

use crate::cue::FeedbackStatus;
use crate::detection::{Detection, Evidence, Exchange};
use crate::languages::{Languages, is_built_in};
use crate::learned::features::{BLOCKS, COUNT, Features};
use crate::learned::{KINDS, probabilities, second_opinion};
use crate::matching::Matched;
use crate::phrases::{PhraseError, PhraseFile};
use crate::verdict::{Case, READ, Verdict};
use hearback_text::Text;
use hearback_text::language::LATIN;

/// The language of a message if it cannot be guessed.
const FALLBACK: &str = "en";
/// Maximum words of a message whose guessed language may be wrong.
const FEW: usize = 8;
/// Minimum bytes of a word that indicates another language.
const DISTINCT: usize = 4;
/// Maximum characters of `user_said`: as many as a reaction's text may have.
const SAID: usize = 1000;

/// Maps the verdict of the phrases to the final one.
type Decide = fn(&Case<'_>, Verdict) -> Verdict;

/// Detects feedback in messages. Create it once and share it.
///
/// The phrases of a built-in language are compiled for the first message in it, so that unused languages cost nothing.
#[derive(Debug)]
pub struct Detector {
    languages: Languages,
}

impl Detector {
    /// A detector with the built-in phrases.
    #[must_use]
    pub fn embedded() -> Self {
        Self {
            languages: Languages::embedded(),
        }
    }

    /// A detector with the built-in phrases and those of further files, each given as its name and its text. A file
    /// adds to the phrases of a built-in language, or adds a language. All errors in the files are reported together.
    pub fn with_additions<'a>(
        files: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, Vec<PhraseError>> {
        let mut detector = Self::embedded();
        let mut errors = Vec::new();
        for (name, text) in files {
            match PhraseFile::read(name, text) {
                Ok(file) => detector.languages.add(&file, &mut errors),
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() {
            Ok(detector)
        } else {
            Err(errors)
        }
    }

    /// Detects what a message says about the answer before it, in time linear in the length of the message.
    #[must_use]
    pub fn detect(&self, exchange: &Exchange<'_>) -> Detection {
        self.decide(exchange, second_opinion)
    }

    /// What the phrases alone detect, without the learned model.
    #[must_use]
    pub fn by_phrases(&self, exchange: &Exchange<'_>) -> Detection {
        self.decide(exchange, |_, verdict| verdict)
    }

    /// Detects with the phrases, and maps their verdict to the final one.
    fn decide(&self, exchange: &Exchange<'_>, decide: Decide) -> Detection {
        let detection = self.read(exchange, |case, language| {
            let verdict = case.verdict();
            let verdict = if is_built_in(language) {
                decide(case, verdict)
            } else {
                verdict
            };
            Detection::of(verdict, case, language)
        });
        detection.unwrap_or_else(Detection::nothing)
    }

    /// Reads a message with the phrases of its language.
    fn read<T>(
        &self,
        exchange: &Exchange<'_>,
        read: impl FnOnce(&Case<'_>, &str) -> T,
    ) -> Option<T> {
        let text = Text::read(exchange.message, READ, READ);
        self.with_case(self.language(exchange, &text), exchange, &text, read)
    }

    /// The language of a message: as given, or as guessed. The guess of a few words may be wrong. If they have no cue in
    /// that language, it is the first other one in which they clearly have one.
    fn language<'a>(&'a self, exchange: &Exchange<'_>, text: &Text) -> &'a str {
        if let Some(given) = self.languages.given(exchange.language) {
            return given;
        }
        let guessed = self.languages.guessed(text).unwrap_or(FALLBACK);
        let by_phrases = |language: &str| {
            let of =
                |case: &Case<'_>, language: &str| Detection::of(case.verdict(), case, language);
            self.with_case(language, exchange, text, of)
        };
        let may_differ = || text.words.len() <= FEW && self.has_foreign_word(text);
        let has_cue = || by_phrases(guessed).is_some_and(|found| !found.evidence.is_empty());
        if !may_differ() || has_cue() {
            return guessed;
        }
        let mut others = LATIN.into_iter().filter(|other| *other != guessed);
        let other = others.find(|other| {
            by_phrases(other).is_some_and(|found| self.is_unambiguous(&found, exchange.message))
        });
        other.unwrap_or(guessed)
    }

    /// Reads a message with the phrases of one language.
    fn with_case<T>(
        &self,
        language: &str,
        exchange: &Exchange<'_>,
        text: &Text,
        read: impl FnOnce(&Case<'_>, &str) -> T,
    ) -> Option<T> {
        let (language, lexicon) = self.languages.lexicon(language)?;
        let has_text = |text: &&str| !text.trim().is_empty();
        let case = Case {
            languages: &self.languages,
            text,
            message: exchange.message,
            embedding_similarity: exchange.embedding_similarity,
            repeats_query: exchange.repeats_query,
            matched: &Matched::message(text, lexicon),
            asked: OnceCell::new(),
            response: exchange.prev_response.filter(has_text),
            response_text: OnceCell::new(),
            query: exchange.prev_query.filter(has_text),
            query_text: OnceCell::new(),
            earlier: exchange.earlier,
            lexicon,
        };
        Some(read(&case, language))
    }

    /// Whether a text has a word that is unknown in the fallback language and long enough to indicate another one.
    fn has_foreign_word(&self, text: &Text) -> bool {
        let Some((_, lexicon)) = self.languages.lexicon(FALLBACK) else {
            return false;
        };
        let foreign = |word: &str| word.len() >= DISTINCT && !lexicon.vocabulary.knows(word);
        text.all_folded().any(foreign)
    }

    /// Whether a cue of another language has a word that the fallback language does not know.
    fn is_unambiguous(&self, detection: &Detection, message: &str) -> bool {
        detection.evidence.iter().any(|evidence| {
            let length = evidence.end - evidence.start;
            let cue: String = message.chars().skip(evidence.start).take(length).collect();
            let cue = Text::read(&cue, cue.len(), 0);
            evidence.cue.has_phrases() && self.has_foreign_word(&cue)
        })
    }
}

impl Detection {
    fn nothing() -> Self {
        Self {
            feedback_type: FeedbackStatus::Neutral,
            confidence: 0.5,
            correction_type: None,
            user_said: None,
            evidence: Vec::new(),
        }
    }

    fn of(verdict: Verdict, case: &Case<'_>, language: &str) -> Self {
        let (message, text, matched) = (case.message, case.text, case.matched);
        let byte = |token: usize, end: bool| {
            let token = matched.tokens.get(token)?;
            let word = text.words.get(token.word)?;
            Some(if end { word.span.end } else { word.span.start })
        };
        let evidence = verdict.because.and_then(|(cue, from, to)| {
            let (start, end) = (byte(from, false)?, byte(to.checked_sub(1)?, true)?);
            let start = characters(message, start);
            Some(Evidence {
                cue,
                start,
                end: characters(message, end),
                language: language.to_owned(),
            })
        });
        let rejected = verdict.feedback_type == FeedbackStatus::Rejected;
        Self {
            feedback_type: verdict.feedback_type,
            confidence: verdict.confidence,
            correction_type: verdict.correction_type,
            user_said: rejected.then(|| said(message, verdict, text, matched)),
            evidence: evidence.into_iter().collect(),
        }
    }
}

/// How many characters a text has before a byte.
fn characters(text: &str, byte: usize) -> usize {
    text.get(..byte).map_or(0, |before| before.chars().count())
}

/// The message. If it is too long, the part from the sentence with the cue.
fn said(message: &str, verdict: Verdict, text: &Text, matched: &Matched) -> String {
    let message = message.trim_end();
    if message.len() <= SAID {
        return message.trim_start().to_owned();
    }
    let from = verdict.because.map_or(0, |(_, from, _)| from);
    let tokens = matched.tokens.get(..=from).unwrap_or_default();
    let sentence = tokens
        .iter()
        .rev()
        .find(|token| token.before.ends_sentence());
    let word = sentence.and_then(|token| text.words.get(token.word));
    let rest = message.get(word.map_or(0, |word| word.span.start)..);
    rest.unwrap_or(message).chars().take(SAID).collect()
}

/// For training and measuring the learned model.
impl Detector {
    /// What the learned model sees of a message: each feature with its index and its value.
    #[must_use]
    pub fn features(&self, exchange: &Exchange<'_>) -> Vec<(usize, f32)> {
        let features = self.read(exchange, |case, _| {
            Features::of(case, &case.verdict()).values
        });
        features.unwrap_or_default()
    }

    /// The probabilities that the learned model gives: accepted, neutral, rejected.
    #[must_use]
    pub fn probabilities(&self, exchange: &Exchange<'_>) -> [f64; 3] {
        self.read(exchange, |case, _| probabilities(case))
            .unwrap_or_default()
    }

    /// The kinds of messages that the model distinguishes, with their classes, in the order of its weights.
    pub fn kinds() -> impl Iterator<Item = (FeedbackStatus, &'static str)> {
        KINDS.iter().map(|kind| (kind.class, kind.name))
    }

    /// The index of the first feature of each block, and the number of features.
    pub fn feature_blocks() -> impl Iterator<Item = usize> {
        BLOCKS.into_iter().chain([COUNT])
    }
}

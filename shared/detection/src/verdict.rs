//! The decision: one verdict from the cues of a message and from what it replies to.
//!
//! The order of the checks is that of docs/reference/rules.md, "Detection". A weak rejecting cue ("no", "actually")
//! loses against other cues of the same message, and depends on what the answer asked.

use std::cell::OnceCell;
use std::ops::Range;

use crate::cue::{Cue, FeedbackStatus, RejectionKind, Role};
use crate::detection::Earlier;
use crate::languages::Languages;
use crate::lexicon::Lexicon;
use crate::matching::{Found, Matched};
use crate::pattern::Start;
use crate::reply::{Asked, asked, may_fail};
use crate::vocabulary::{Token, Trait};
use hearback_text::{Break, Text, Word};

/// The maximum number of words of a short message.
const SHORT: usize = 30;
/// The maximum number of words of a message that consists of a wish.
const WISH: usize = 10;

/// A message and the turn before it, parsed.
pub(crate) struct Case<'a> {
    /// The phrases of all languages.
    pub languages: &'a Languages,
    /// The message.
    pub message: &'a str,
    /// The words of the message.
    pub text: &'a Text,
    /// The phrases in the message.
    pub matched: &'a Matched,
    /// What the answer asks, read when needed.
    pub asked: OnceCell<Asked>,
    /// The answer before it.
    pub response: Option<&'a str>,
    /// Its words, read when needed.
    pub response_text: OnceCell<Text>,
    /// The query before that.
    pub query: Option<&'a str>,
    /// Its words, read when needed.
    pub query_text: OnceCell<Text>,
    /// The cosine of the caller's own embeddings of both turns.
    pub embedding_similarity: Option<f64>,
    /// Whether the message is the query again, if the caller knows.
    pub repeats_query: Option<bool>,
    /// Earlier turns of the conversation, the latest first.
    pub earlier: &'a [Earlier<'a>],
    /// The phrases of the message's language.
    pub lexicon: &'a Lexicon,
}

/// The decision and its evidence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Verdict {
    /// Whether the answer was rejected or accepted.
    pub feedback_type: FeedbackStatus,
    /// 0 to 1.
    pub confidence: f64,
    /// How the message rejects, if it does.
    pub correction_type: Option<RejectionKind>,
    /// The cue, its first token, and the token after its last.
    pub because: Option<(Cue, usize, usize)>,
}

impl Verdict {
    fn rejected(cue: Cue, found: Found) -> Self {
        let correction = if cue == Cue::Abandonment {
            RejectionKind::Abandonment
        } else {
            RejectionKind::Explicit
        };
        Self {
            feedback_type: FeedbackStatus::Rejected,
            confidence: cue.confidence(),
            correction_type: Some(correction),
            because: Some((cue, found.from, found.to)),
        }
    }

    pub(crate) fn accepted(cue: Cue, from: usize, to: usize) -> Self {
        Self {
            feedback_type: FeedbackStatus::Accepted,
            confidence: cue.confidence(),
            correction_type: None,
            because: Some((cue, from, to)),
        }
    }

    fn neutral(because: Option<(Cue, Found)>) -> Self {
        Self {
            feedback_type: FeedbackStatus::Neutral,
            confidence: NEUTRAL,
            correction_type: None,
            because: because.map(|(cue, found)| (cue, found.from, found.to)),
        }
    }
}

/// The confidence of a verdict without a cue.
pub(crate) const NEUTRAL: f64 = 0.5;

/// The maximum confidence in an acceptance by a message with a cue that rejects, or by a repeat of the query: too
/// little for a machine reaction.
const CONTRADICTED: f64 = 0.6;

/// Cues that may lose against another cue of their message, but lower the confidence.
const CONTRARY: &[Cue] = &[
    Cue::Negation,
    Cue::Symptom,
    Cue::Change,
    Cue::Contrast,
    Cue::Abandonment,
];

/// Cues that reject at any position and whatever the answer asked.
const STRONG: &[Cue] = &[
    Cue::Correction,
    Cue::Wrong,
    Cue::Quality,
    Cue::Failure,
    Cue::Unasked,
    Cue::Confusion,
];

impl Case<'_> {
    /// What the answer asks.
    pub(crate) fn asked(&self) -> Asked {
        *self
            .asked
            .get_or_init(|| asked(self.response, self.lexicon))
    }

    /// The words of the answer; none if it is not known.
    pub(crate) fn response(&self) -> &Text {
        let read = || Text::read(self.response.unwrap_or_default(), READ, READ);
        self.response_text.get_or_init(read)
    }

    /// The words of the query; none if it is not known.
    pub(crate) fn query(&self) -> &Text {
        let read = || Text::read(self.query.unwrap_or_default(), READ, READ);
        self.query_text.get_or_init(read)
    }

    /// The verdict, in the order of docs/reference/rules.md, "Detection".
    pub(crate) fn verdict(&self) -> Verdict {
        self.repeated()
            .or_else(|| self.explicit())
            .or_else(|| self.rephrased())
            .or_else(|| self.abandoned())
            .or_else(|| self.accepted().map(|verdict| self.limited(verdict)))
            .unwrap_or_else(|| self.neutral())
    }

    /// Limits the confidence if the same message also has a cue against the answer, or is the query again.
    fn limited(&self, verdict: Verdict) -> Verdict {
        // A "no" to a question only declines what it offers.
        let contrary = (CONTRARY.iter()).any(|cue| match cue {
            Cue::Negation => self.has(*cue) && !self.asked().wants_reply(),
            other => self.has(*other),
        });
        let limit = if contrary || self.is_query() {
            CONTRADICTED
        } else {
            1.0
        };
        Verdict {
            confidence: verdict.confidence.min(limit),
            ..verdict
        }
    }

    /// Priority 1: an explicit rejection.
    fn explicit(&self) -> Option<Verdict> {
        self.strong()
            .or_else(|| self.doubt())
            .or_else(|| self.negation())
            .or_else(|| self.symptom())
            .or_else(|| self.change())
            .or_else(|| self.wanted())
    }

    fn strong(&self) -> Option<Verdict> {
        let all = STRONG
            .iter()
            .filter_map(|cue| Some((*cue, self.first(*cue)?)));
        // After the user changed something, "try again" is no complaint.
        let retry = self.first(Cue::Retry);
        let retry = retry.filter(|_| !self.matched.has(Role::UserFixed));
        let (cue, found) = all
            .chain(retry.map(|found| (Cue::Retry, found)))
            .min_by_key(|(_, found)| found.from)?;
        Some(Verdict::rejected(cue, found))
    }

    /// "No, …" rejects a statement, and declines an offer.
    fn negation(&self) -> Option<Verdict> {
        let found = self.first(Cue::Negation)?;
        let content = [Cue::Thanks, Cue::Praise, Cue::Enough];
        let rejects = match self.asked() {
            Asked::Detail => false,
            Asked::More | Asked::Closing => self.has_any(&[Cue::Change, Cue::Contrast]),
            Asked::Offer => self.replaces(),
            Asked::Unknown | Asked::Nothing | Asked::Confirmation => true,
        };
        let loses = self.has_any(&content) || self.has_any(&[Cue::Decline, Cue::Unsure]);
        (rejects && !loses).then(|| Verdict::rejected(Cue::Negation, found))
    }

    /// Whether a reply to an offer wants something else instead.
    fn replaces(&self) -> bool {
        if self.has_any(&[Cue::Change, Cue::Contrast]) {
            return true;
        }
        // "Play it in the kitchen": the offer, but changed.
        let tokens = &self.matched.tokens;
        let continues = |at: usize| {
            tokens
                .get(at)
                .is_some_and(|token| token.before == Break::None)
        };
        let object =
            |at: usize, token: &Token| token.is(Trait::Reference) && (at..=at + 2).all(continues);
        let mut later = tokens.iter().enumerate().skip(1);
        self.matched.has(Role::Request) && later.any(|(at, token)| object(at, token))
    }

    /// A reported error is about the answer if that gave or did something that can fail.
    fn symptom(&self) -> Option<Verdict> {
        let found = self.first(Cue::Symptom)?;
        let may_fail = self
            .response
            .is_some_and(|text| may_fail(text, self.lexicon));
        may_fail.then(|| Verdict::rejected(Cue::Symptom, found))
    }

    /// "Wasn't that Bern?", "Lyon? It was Nice.": the message only replaces a part of the answer by a name or a number
    /// that the answer does not have.
    fn doubt(&self) -> Option<Verdict> {
        self.response?;
        let mut doubts = self.matched.of_role(Role::Doubt);
        let found = doubts.find(|found| {
            let sentence = self.matched.sentence(found.from);
            let tokens = &self.matched.tokens;
            let next = tokens.get(sentence.end);
            let asks = next.map_or(self.text.end, |token| token.before) == Break::Question;
            let after_question = tokens
                .get(found.from)
                .is_some_and(|token| token.before == Break::Question);
            let echoes = after_question && self.is_in_answer(0..found.from);
            (asks || echoes) && self.names_another(found.to..sentence.end)
        })?;
        Some(Verdict::rejected(Cue::Contrast, found))
    }

    /// Whether everything that these tokens name is in the answer.
    fn is_in_answer(&self, tokens: Range<usize>) -> bool {
        self.words(tokens)
            .all(|word| self.is_plain(word) || self.answers_with(word))
    }

    /// Whether these tokens are only names and numbers, one of which the answer does not have.
    fn names_another(&self, tokens: Range<usize>) -> bool {
        let names = |word: &Word| {
            let digits = |byte: u8| byte.is_ascii_digit();
            word.capital || self.text.folded(word).bytes().any(digits)
        };
        let mut words = self.words(tokens.clone());
        words.all(|word| self.is_plain(word) || names(word))
            && self
                .words(tokens)
                .any(|word| names(word) && !self.answers_with(word))
    }

    fn words(&self, tokens: Range<usize>) -> impl Iterator<Item = &Word> {
        let tokens = self.matched.tokens.get(tokens).unwrap_or_default();
        tokens
            .iter()
            .filter_map(|token| self.text.words.get(token.word))
    }

    fn is_plain(&self, word: &Word) -> bool {
        !matters(self.text.folded(word))
    }

    fn answers_with(&self, word: &Word) -> bool {
        let folded = self.text.folded(word);
        self.response().all_folded().any(|other| other == folded)
    }

    /// Something other than what was understood.
    fn change(&self) -> Option<Verdict> {
        if self.asked().wants_reply() || self.is_content() {
            return None;
        }
        let mut found = self.matched.found.iter();
        let request = found.find(|found| found.role == Role::Request);
        // "Do you have others instead?" asks, and changes nothing.
        if self.text.end == Break::Question && request.is_none() {
            return None;
        }
        let cues = [Cue::Contrast, Cue::Change].into_iter();
        let mut cues = cues.filter_map(|cue| Some((cue, self.first(cue)?)));
        if let Some((cue, found)) = cues.next()
            && self.matched.tokens.len() <= SHORT
        {
            return Some(Verdict::rejected(cue, found));
        }
        // To a request for confirmation, another request is a correction.
        let asks = self.has_any(&[Cue::FollowUp, Cue::DrillDown, Cue::Comparison]);
        let corrects = self.asked() == Asked::Confirmation && !asks;
        let request = request.filter(|_| corrects)?;
        Some(Verdict::rejected(Cue::Change, *request))
    }

    /// "I want gaming laptops" after a query for laptops: the query again, with what the answer missed.
    fn wanted(&self) -> Option<Verdict> {
        let found = self.first(Cue::Wanted)?;
        if self.asked().wants_reply()
            || self.is_content()
            || self.matched.head(found.from) != Start::Message
        {
            return None;
        }
        let all = self.matched.tokens.len();
        let query = self.query();
        let last = self.text.all_folded().filter(|word| matters(word)).last();
        let again = last.is_some_and(|last| query.all_folded().any(|word| word == last));
        let only = all <= WISH && self.text.end != Break::Question;
        (found.to == all || (again && only)).then(|| Verdict::rejected(Cue::Wanted, found))
    }

    /// Priority 3: the user gives up.
    fn abandoned(&self) -> Option<Verdict> {
        let found = self.first(Cue::Abandonment)?;
        // "How do I cancel the request" gives nothing up.
        let tokens = self.matched.tokens.get(..found.from).unwrap_or_default();
        let sentence = tokens
            .iter()
            .rposition(|token| token.before.ends_sentence());
        let sentence = tokens.get(sentence.unwrap_or(0)..).unwrap_or_default();
        if sentence.iter().any(|token| token.is(Trait::Interrogative)) {
            return None;
        }
        let solved = self.matched.has(Role::OwnFault) || self.has(Cue::Praise);
        (!solved).then(|| Verdict::rejected(Cue::Abandonment, found))
    }

    /// Priority 4: the message continues from the answer, or is content with it.
    fn accepted(&self) -> Option<Verdict> {
        let no = [Cue::Negation, Cue::Decline]
            .into_iter()
            .find_map(|cue| self.first(cue));
        let closes = [Cue::Decline, Cue::Thanks, Cue::Enough, Cue::Praise];
        // "No, it never arrived" is no answer to "Anything else?".
        if let Some(no) = no
            && self.asked().is_more()
            && (no.to == self.matched.tokens.len() || self.has_any(&closes))
        {
            return Some(Verdict::accepted(Cue::Enough, no.from, no.to));
        }
        let declines = self.has_any(&[Cue::Decline, Cue::Unsure]);
        if declines && !self.asked().is_more() && !self.closes() {
            return None;
        }
        let by = |cue: Cue| {
            let found = self.first(cue)?;
            Some(Verdict::accepted(cue, found.from, found.to))
        };
        // "A hatchback is always nice" answers what was asked, and praises nothing.
        if self.asked() == Asked::Detail {
            let opens = |found: &Found| self.matched.head(found.from) == Start::Message;
            let praise = self.first(Cue::Praise).filter(opens);
            let praise = praise.map(|found| Verdict::accepted(Cue::Praise, found.from, found.to));
            return praise.or_else(|| by(Cue::Thanks));
        }
        let content = [Cue::Praise, Cue::Thanks, Cue::Chosen, Cue::Enough];
        if let Some(verdict) = content.into_iter().find_map(by) {
            return Some(verdict);
        }
        if let Some(found) = self.overcome() {
            return Some(Verdict::accepted(Cue::Praise, found.from, found.to));
        }
        let agreement = by(Cue::Agreement).filter(|_| !self.only_acknowledges());
        if agreement.is_some() {
            return agreement;
        }
        self.continues()
    }

    /// Priority 5: neither can be inferred.
    fn neutral(&self) -> Verdict {
        let by = |cue: Cue| Some((cue, self.first(cue)?));
        let cues = [Cue::Decline, Cue::Unsure, Cue::Agreement];
        Verdict::neutral(cues.into_iter().find_map(by))
    }
}

/// Bytes of the message, the query and the answer that are read, at the start and at the end.
pub(crate) const READ: usize = 1_000;

/// Whether a word may say what a text is about.
pub(crate) fn matters(word: &str) -> bool {
    !hearback_text::language::is_function_word(word)
}

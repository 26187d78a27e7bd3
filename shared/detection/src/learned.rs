//! A learned second opinion beside the phrases: what the message, the answer and the query say together.
//!
//! The phrases are precise where they were written for; what people write to assistants is wider. The model weighs
//! everything, including what the phrases found. docs/reference/rules.md, "The learned opinion", has the rules, and
//! docs/detection.md how it is measured.

pub(crate) mod features;
mod model;

use crate::conversation::evidence;
use crate::cue::{Cue, FeedbackStatus, RejectionKind, Role};
use crate::pattern::Start;
use crate::reply::Asked;
use crate::verdict::{Case, NEUTRAL, Verdict};
use crate::vocabulary::{Token, Trait};
use features::Features;
use hearback_text::Break;
use model::{Opinion, strength};

pub(crate) use model::KINDS;

/// The classes in the order of [`probabilities`].
const CLASSES: [FeedbackStatus; 3] = [
    FeedbackStatus::Accepted,
    FeedbackStatus::Neutral,
    FeedbackStatus::Rejected,
];
/// The minimum probability of an acceptance by the phrases that is kept.
const KEPT: f64 = 0.4;
/// The same of a rejection that opens the message, or replies to an answer that asks something: "No, …" is rarely about
/// anything else, even if the rest of the message does not complain.
const KEPT_FIRST: f64 = 0.2;
/// The minimum probability of a rejection by a phrase that opens the message for which a machine reaction is written.
const TRUSTED_FIRST: f64 = 0.35;
/// The minimum probability of a rejection, unless another constant says otherwise. A false one costs more than a missed one.
const REJECTS: f64 = 0.78;
/// The same of one that the phrases do not find, after an answer that asks something: most messages then only reply, and
/// the model takes some of the replies for rejections.
const REJECTS_REPLY: f64 = 0.9;
/// The minimum probability of a rejection by a query that is repeated with added words. Of unseen writers' messages at or
/// above it, 7 of 11 reject: too few for a machine reaction.
const EXTENDED: f64 = 0.9;
/// The minimum probability of a verdict for which a machine reaction is written, except for a phrase that opens the message
/// ([`TRUSTED_FIRST`]). Of unseen writers' messages at or above it, nine of ten are classified right (docs/detection.md).
const CERTAIN: f64 = 0.8;
/// The minimum share of the tokens of a message that phrases cover for which the phrases decide alone: "No, that's wrong"
/// leaves nothing to weigh.
const COVERED: f64 = 0.7;
/// The maximum confidence of an uncertain verdict: too little for a machine reaction.
pub(crate) const UNCERTAIN: f64 = 0.65;
/// The minimum similarity of a message to the query for which the rules of rephrases alone decide whether it asks the
/// same again.
const REPEATED: f64 = 0.6;

/// The verdict of the phrases, or that of the model where they are silent or wrong.
///
/// The model judges a message by the answer. Without one, and for a repeated query, the phrases decide; but a query that
/// is repeated with added words may be another one.
pub(crate) fn second_opinion(case: &Case<'_>, phrases: Verdict) -> Verdict {
    let is_repeated = is_rephrase(&phrases) && !case.extends_query();
    let is_without_words = case.text.words.is_empty();
    if case.response.is_none() || is_without_words || is_repeated || is_covered(case, &phrases) {
        return phrases;
    }
    let features = Features::of(case, &phrases);
    let opinion = Opinion::read(&features);
    let may_reject = features.similarity < REPEATED && !features.asks_of_another;
    let by_exchange = weighed(case, phrases, &features, &opinion, may_reject);
    let is_content = (phrases.because).is_some_and(|(cue, ..)| cue.is_content());
    if by_exchange.is_certain() || is_content {
        return by_exchange;
    }
    let by_conversation = evidence(case).map(|(cue, odds)| {
        let verdict = weighed(case, phrases, &features, &opinion.with_odds(odds), true);
        verdict.because_of(cue, case)
    });
    let rejects = |verdict: &Verdict| verdict.feedback_type == FeedbackStatus::Rejected;
    by_conversation.filter(rejects).unwrap_or(by_exchange)
}

fn is_rephrase(phrases: &Verdict) -> bool {
    matches!(phrases.because, Some((Cue::Rephrase, ..)))
}

/// The verdict of the phrases and the model together.
fn weighed(
    case: &Case<'_>,
    phrases: Verdict,
    features: &Features,
    opinion: &Opinion,
    may_reject: bool,
) -> Verdict {
    let rejects = if is_rephrase(&phrases) {
        EXTENDED
    } else if case.answer_asks() {
        REJECTS_REPLY
    } else {
        REJECTS
    };
    let class = opinion.class(may_reject.then_some(rejects));
    if let Some(kept) = kept(case, &phrases, opinion, class) {
        return kept;
    }
    let is_topic_change = matches!(phrases.because, Some((Cue::TopicChange, ..)));
    if is_topic_change && class != FeedbackStatus::Rejected {
        return phrases;
    }
    let confidence = confidence(class, opinion);
    if class == phrases.feedback_type && phrases.because.is_some() {
        return Verdict {
            confidence: confidence.min(phrases.confidence),
            ..phrases
        };
    }
    let (from, to) = strongest(case, features, opinion, class);
    Verdict {
        feedback_type: class,
        confidence,
        correction_type: (class == FeedbackStatus::Rejected).then(|| correction(case, opinion)),
        because: Some((Cue::Learned, from, to)),
    }
}

impl Verdict {
    /// Whether a machine reaction is written.
    fn is_certain(&self) -> bool {
        self.feedback_type != FeedbackStatus::Neutral && self.confidence > UNCERTAIN
    }

    /// With this cue of the conversation, if no phrase is the evidence.
    fn because_of(self, cue: Cue, case: &Case<'_>) -> Self {
        if (self.because).is_some_and(|(cue, ..)| cue.has_phrases()) {
            return self;
        }
        let asks = cue == Cue::AskedBefore && self.correction_type == Some(RejectionKind::Explicit);
        Self {
            correction_type: if asks {
                Some(RejectionKind::Rephrased)
            } else {
                self.correction_type
            },
            because: Some((cue, 0, case.matched.tokens.len())),
            ..self
        }
    }
}

/// The verdict of a phrase that says something about the answer, unless the model, whose verdict is `class`, contradicts
/// it.
fn kept(
    case: &Case<'_>,
    phrases: &Verdict,
    opinion: &Opinion,
    class: FeedbackStatus,
) -> Option<Verdict> {
    let (cue, from, _) = phrases.because?;
    let probability = opinion.of(phrases.feedback_type);
    let (is_kept, is_trusted) = match phrases.feedback_type {
        FeedbackStatus::Rejected if cue == Cue::Rephrase => (probability >= EXTENDED, false),
        FeedbackStatus::Rejected => {
            let opens = case.matched.head(from) == Start::Message;
            let least = if opens || case.answer_asks() {
                KEPT_FIRST
            } else {
                REJECTS
            };
            let trusted = if opens { TRUSTED_FIRST } else { CERTAIN };
            (probability >= least, probability >= trusted)
        }
        FeedbackStatus::Accepted if cue.goes_on() => {
            let is_kept = class != FeedbackStatus::Rejected;
            (is_kept, probability >= CERTAIN)
        }
        FeedbackStatus::Accepted if cue.is_content() => {
            (probability >= KEPT, probability >= CERTAIN)
        }
        // "Ok" says no more than that it was read.
        FeedbackStatus::Neutral if cue == Cue::Agreement => (true, true),
        FeedbackStatus::Accepted | FeedbackStatus::Neutral => (false, false),
    };
    let confidence = if is_trusted {
        phrases.confidence
    } else {
        phrases.confidence.min(UNCERTAIN)
    };
    is_kept.then_some(Verdict {
        confidence,
        ..*phrases
    })
}

/// The probabilities of accepted, neutral and rejected.
pub(crate) fn probabilities(case: &Case<'_>) -> [f64; 3] {
    let opinion = Opinion::read(&Features::of(case, &case.verdict()));
    CLASSES.map(|class| opinion.of(class))
}

/// Whether a message consists of little but phrases, one of which decided. "Hm, but" says nothing of its own.
fn is_covered(case: &Case<'_>, phrases: &Verdict) -> bool {
    let tokens = &case.matched.tokens;
    let mut covered = vec![false; tokens.len()];
    for found in &case.matched.found {
        if matches!(found.role, Role::Cue(_) | Role::Harmless) {
            let tokens = covered.get_mut(found.from..found.to);
            tokens.unwrap_or_default().fill(true);
        }
    }
    let is_light = |token: &Token| {
        let light = [Trait::Opener, Trait::Filler, Trait::Adversative];
        light.into_iter().any(|class| token.is(class))
    };
    let says = tokens
        .iter()
        .zip(&covered)
        .filter(|(token, covered)| **covered || !is_light(token));
    let all = says.clone().count();
    let count = covered.iter().filter(|covered| **covered).count();
    let number = |count: usize| u32::try_from(count).map_or(f64::INFINITY, f64::from);
    let decided = phrases.because.is_some_and(|(cue, ..)| cue.has_phrases());
    decided && number(count) >= COVERED * number(all)
}

impl Case<'_> {
    /// Whether the answer asks something, anywhere in it.
    fn answer_asks(&self) -> bool {
        let response = self.response();
        let mut words = response.words.iter();
        response.end == Break::Question
            || words.any(|word| word.before == Break::Question)
            || !matches!(self.asked(), Asked::Nothing | Asked::Unknown)
    }
}

impl Opinion {
    /// The class with the highest probability, or the second one if a rejection is not possible or does not have the
    /// probability `rejects`.
    fn class(&self, rejects: Option<f64>) -> FeedbackStatus {
        let probable = |class: &FeedbackStatus| {
            *class != FeedbackStatus::Rejected
                || rejects.is_some_and(|least| self.of(*class) >= least)
        };
        let classes = CLASSES.into_iter().filter(probable);
        let highest = classes.max_by(|one, other| self.of(*one).total_cmp(&self.of(*other)));
        highest.unwrap_or(FeedbackStatus::Neutral)
    }
}

/// The confidence in a class, in hundredths.
fn confidence(class: FeedbackStatus, opinion: &Opinion) -> f64 {
    if class == FeedbackStatus::Neutral {
        return NEUTRAL;
    }
    let probability = opinion.of(class);
    let confidence = if probability >= CERTAIN {
        probability
    } else {
        probability.clamp(NEUTRAL, UNCERTAIN)
    };
    (confidence * 100.0).round() / 100.0
}

/// How a rejection by the model rejects: it gives up if a phrase says so, and in the most probable way otherwise.
fn correction(case: &Case<'_>, opinion: &Opinion) -> RejectionKind {
    if case.matched.of_cue(Cue::Abandonment).next().is_some() {
        return RejectionKind::Abandonment;
    }
    let probability =
        |correction: &RejectionKind| opinion.sum(|kind| kind.correction == Some(*correction));
    let all = [
        RejectionKind::Abandonment,
        RejectionKind::Rephrased,
        RejectionKind::Explicit,
    ];
    let most = |one: &_, other: &_| probability(one).total_cmp(&probability(other));
    all.into_iter()
        .max_by(most)
        .unwrap_or(RejectionKind::Explicit)
}

/// The tokens of the n-gram that adds most to the probability of a class; all tokens if none does.
fn strongest(
    case: &Case<'_>,
    features: &Features,
    opinion: &Opinion,
    class: FeedbackStatus,
) -> (usize, usize) {
    let leaning = opinion.leaning(class);
    let strength = |(at, ..): &(usize, usize, usize)| {
        let feature = features.values.get(*at);
        feature.map_or(0.0, |(index, value)| value * strength(*index, &leaning))
    };
    let grams = features.grams.iter().map(|gram| (strength(gram), gram));
    let for_class = grams.filter(|(strength, _)| *strength > 0.0);
    let strongest = for_class.max_by(|(one, _), (other, _)| one.total_cmp(other));
    strongest
        .and_then(|(_, (_, from, to))| tokens(case, *from, *to))
        .unwrap_or((0, case.matched.tokens.len()))
}

/// The tokens of these words.
fn tokens(case: &Case<'_>, from: usize, to: usize) -> Option<(usize, usize)> {
    let tokens = &case.matched.tokens;
    let first = tokens.iter().position(|token| token.word >= from)?;
    let last = tokens.iter().rposition(|token| token.word <= to)?;
    Some((first, last + 1))
}

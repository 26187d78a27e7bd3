//! Combines all feedback on an answer into one verdict.
//!
//! | feedback | counts as |
//! |---|---|
//! | `ok`, `helpful` | good |
//! | `not_ok`, `not_helpful` | bad; the last of a user's ratings counts |
//! | `neutral` | neither, and overrides inferred feedback of the same user |
//! | `inaccurate`, `unsafe` | bad, whatever else the same user rated |
//! | `edit`, an event with a correction | no verdict, but a pair |
//! | an event that accepts, rejects or rates | good or bad, like a reaction |
//! | `regenerate` | nothing |
//! | machine reactions `ok`, `not_ok` | good, bad, if there is no explicit feedback |

use std::collections::BTreeSet;

use chrono::{DateTime, NaiveDate, Utc};
use uuid::Uuid;

use super::Days;
use crate::events::recency::Recency;
use crate::feedback::message_signal::{MessageSignal, StoredSignal};
use crate::feedback::reaction::{
    FeedbackKind, MIN_CONFIDENCE, Origin, Reaction, ReactionCore, TrainingUse,
};
use crate::identity::identifier::UserId;

/// The feedback on an answer. A row is based on that of a period; feedback of any time may contradict the row.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Feedback {
    ratings: Vec<AnswerRating>,
    edits: Vec<StoredSignal>,
    corrections: Vec<Uuid>,
    /// The number of signals and events of the period that are excluded from training.
    pub excluded: u64,
}

/// A reaction, signal or event that rates the answer.
#[derive(Debug, Clone, PartialEq)]
struct AnswerRating {
    user: UserId,
    origin: Origin,
    value: RatingValue,
    confidence: f64,
    /// Its position in time: of a user's ratings the last counts.
    recency: Recency,
    /// Whether a row may be based on it: it was given in the period and is not excluded from training. What any other
    /// rating contradicts gets no label.
    usable: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RatingValue {
    /// Good, bad, or neither. A later rating of the same user replaces it.
    Replaceable(Option<bool>),
    /// Inaccurate or unsafe: bad until it is withdrawn.
    Fault,
}

impl RatingValue {
    fn good(self) -> Option<bool> {
        match self {
            Self::Replaceable(good) => good,
            Self::Fault => Some(false),
        }
    }
}

/// Whether an answer was good, and the feedback that says so.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerVerdict {
    /// Whether the answer was good.
    pub good: bool,
    /// Whether the feedback is explicit or inferred.
    pub origin: Origin,
    /// The confidence, 0 to 1.
    pub confidence: f64,
    /// The time of the latest feedback.
    pub ts: DateTime<Utc>,
    /// The events in the ledger.
    pub feedback_ids: Vec<Uuid>,
}

impl AnswerVerdict {
    /// Combines two verdicts that are both required: the confidence is the minimum.
    pub(super) fn and(mut self, other: Self) -> Self {
        self.confidence = self.confidence.min(other.confidence);
        self.ts = self.ts.max(other.ts);
        self.feedback_ids.extend(other.feedback_ids);
        self
    }

    /// Combines two verdicts that agree: the confidence is the maximum.
    fn or(mut self, other: Self) -> Self {
        self.confidence = self.confidence.max(other.confidence);
        self.ts = self.ts.max(other.ts);
        self.feedback_ids.extend(other.feedback_ids);
        self
    }
}

/// The explicit feedback of a user.
enum ExplicitVerdict {
    /// None.
    Missing,
    /// Neither good nor bad.
    Neutral,
    /// Good or bad.
    Verdict(AnswerVerdict),
}

/// The combined feedback of all users on an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Consensus {
    /// There is no verdict.
    NoVerdict,
    /// The verdicts contradict each other.
    Contested,
    /// The verdicts agree.
    Agreed(AnswerVerdict),
}

impl Feedback {
    /// The feedback in these reactions and signals, without withdrawn feedback. Feedback on other days than `days` is no
    /// evidence for a row, but may contradict one. If a user excludes a signal or an event from training, their reactions
    /// and the machine reactions in their name are excluded, too, because reactions have no such flag.
    ///
    /// `signals` may be those of the period only: the verdict of any other signal is in `reactions`, in the form in which
    /// it counts ([`crate::feedback::counted::of_signal`]).
    #[must_use]
    pub fn new(reactions: &[ReactionCore], signals: Vec<StoredSignal>, days: &Days) -> Self {
        let mut feedback = Self::default();
        let mut excluded_users = BTreeSet::new();
        let given: BTreeSet<_> = (signals.iter())
            .map(|signal| (signal.core.user_id.clone(), signal.core.signal.as_str()))
            .collect();
        for signal in signals {
            let core = &signal.core;
            if core.retracted {
                continue;
            }
            let in_period = days.contain(core.updated_at);
            let excluded = core.exclude_from_training;
            if excluded {
                feedback.excluded += u64::from(in_period);
                excluded_users.insert(core.user_id.clone());
            }
            let value = match core.signal {
                MessageSignal::Helpful => RatingValue::Replaceable(Some(true)),
                MessageSignal::NotHelpful => RatingValue::Replaceable(Some(false)),
                MessageSignal::Inaccurate | MessageSignal::Unsafe => RatingValue::Fault,
                MessageSignal::Edit => {
                    if in_period && !excluded {
                        feedback.edits.push(signal);
                    }
                    continue;
                }
                MessageSignal::Regenerate => continue,
            };
            feedback.ratings.push(AnswerRating {
                user: core.user_id.clone(),
                origin: Origin::User,
                value,
                confidence: 1.0,
                recency: core.recency(),
                usable: in_period && !excluded,
            });
        }
        let reactions: Vec<_> = (reactions.iter())
            .filter(|core| core.origin == Origin::User || core.confidence >= MIN_CONFIDENCE)
            .filter(|core| match core.kind.signal_name() {
                Some(name) => {
                    let known = given.contains(&(core.user_id.clone(), name));
                    core.reaction.is_some() && !known
                }
                None => true,
            })
            .collect();
        for core in &reactions {
            if core.training_use == TrainingUse::Nothing {
                let counts = days.contain(core.ts) && core.kind.signal_name().is_none();
                feedback.excluded += u64::from(counts);
                excluded_users.insert(core.user_id.clone());
            }
        }
        for core in reactions {
            let in_period = days.contain(core.ts);
            if in_period && core.training_use == TrainingUse::Correction {
                feedback.corrections.push(core.id);
            }
            let usable = match core.kind {
                FeedbackKind::Reaction => !excluded_users.contains(&core.user_id),
                FeedbackKind::Event => core.training_use != TrainingUse::Nothing,
                // The signal itself is the evidence.
                FeedbackKind::Helpful
                | FeedbackKind::NotHelpful
                | FeedbackKind::Inaccurate
                | FeedbackKind::Unsafe => false,
            };
            feedback
                .ratings
                .extend(AnswerRating::of(core, in_period && usable));
        }
        feedback.ratings.sort_by_key(|rating| rating.recency);
        feedback
            .edits
            .sort_by_key(|edit| (edit.core.ts, edit.core.act));
        feedback
    }

    /// The edits of the answer.
    #[must_use]
    pub fn edits(&self) -> &[StoredSignal] {
        &self.edits
    }

    /// The events that may contain a corrected answer.
    #[must_use]
    pub fn corrections(&self) -> &[Uuid] {
        &self.corrections
    }

    /// Whether there are edits or corrections.
    #[must_use]
    pub fn has_corrections(&self) -> bool {
        !self.edits.is_empty() || !self.corrections.is_empty()
    }

    /// The combined verdict. Explicit feedback overrides inferred feedback. If users disagree, there is no label, not
    /// even that of the majority. Feedback that is excluded from training, or of another day, gives no label, but
    /// prevents one that it contradicts.
    #[must_use]
    pub fn consensus(&self) -> Consensus {
        let ratings: Vec<_> = self.ratings.iter().collect();
        undisputed(&ratings)
    }

    /// The verdict of a user: the explicit one, or else the inferred one. `None` if there is none, or if it is
    /// ambiguous.
    #[must_use]
    pub fn of_user(&self, user: &UserId) -> Option<AnswerVerdict> {
        let own = self.ratings.iter().filter(|rating| rating.user == *user);
        match undisputed(&own.collect::<Vec<_>>()) {
            Consensus::Agreed(verdict) => Some(verdict),
            Consensus::NoVerdict | Consensus::Contested => None,
        }
    }
}

/// The verdict in the ratings that a row may be based on, unless all ratings together give another.
fn undisputed(ratings: &[&AnswerRating]) -> Consensus {
    let usable: Vec<_> = (ratings.iter().copied())
        .filter(|rating| rating.usable)
        .collect();
    match (consensus_of(&usable), consensus_of(ratings)) {
        (Consensus::Agreed(verdict), Consensus::Agreed(all)) if verdict.good == all.good => {
            Consensus::Agreed(verdict)
        }
        (Consensus::Agreed(_), Consensus::NoVerdict) | (Consensus::NoVerdict, _) => {
            Consensus::NoVerdict
        }
        (Consensus::Agreed(_) | Consensus::Contested, _) => Consensus::Contested,
    }
}

fn consensus_of(ratings: &[&AnswerRating]) -> Consensus {
    let users: BTreeSet<_> = ratings.iter().map(|rating| &rating.user).collect();
    let mut explicit = Vec::new();
    let mut inferred = Vec::new();
    for user in users {
        let of_user = |origin| {
            let own = move |rating: &&AnswerRating| rating.user == *user && rating.origin == origin;
            ratings.iter().copied().filter(own)
        };
        match explicit_verdict(&of_user(Origin::User).collect::<Vec<_>>()) {
            ExplicitVerdict::Verdict(verdict) => explicit.push(verdict),
            ExplicitVerdict::Neutral => {}
            ExplicitVerdict::Missing => inferred.extend(
                of_user(Origin::Machine)
                    .filter_map(|rating| Some(rating.verdict(rating.value.good()?))),
            ),
        }
    }
    if explicit.is_empty() {
        consensus(inferred)
    } else {
        consensus(explicit)
    }
}

/// The verdict of a user's explicit ratings: a fault, or else the last rating.
fn explicit_verdict(ratings: &[&AnswerRating]) -> ExplicitVerdict {
    let fault = ratings
        .iter()
        .find(|rating| rating.value == RatingValue::Fault);
    let Some(deciding) = fault.or(ratings.last()) else {
        return ExplicitVerdict::Missing;
    };
    let Some(good) = deciding.value.good() else {
        return ExplicitVerdict::Neutral;
    };
    let agreeing = ratings
        .iter()
        .filter(|rating| rating.value.good() == Some(good));
    (agreeing.map(|rating| rating.verdict(good)))
        .reduce(AnswerVerdict::or)
        .map_or(ExplicitVerdict::Missing, ExplicitVerdict::Verdict)
}

fn consensus(verdicts: impl IntoIterator<Item = AnswerVerdict>) -> Consensus {
    let mut consensus = Consensus::NoVerdict;
    for verdict in verdicts {
        consensus = match consensus {
            Consensus::NoVerdict => Consensus::Agreed(verdict),
            Consensus::Agreed(all) if all.good == verdict.good => {
                Consensus::Agreed(all.or(verdict))
            }
            Consensus::Agreed(_) | Consensus::Contested => return Consensus::Contested,
        };
    }
    consensus
}

impl AnswerRating {
    /// The rating in a reaction; `None` for a tombstone.
    fn of(core: &ReactionCore, usable: bool) -> Option<Self> {
        let good = match core.reaction? {
            Reaction::Ok => Some(true),
            Reaction::NotOk => Some(false),
            Reaction::Neutral => None,
        };
        Some(Self {
            user: core.user_id.clone(),
            origin: core.origin,
            value: match core.kind {
                FeedbackKind::Inaccurate | FeedbackKind::Unsafe => RatingValue::Fault,
                FeedbackKind::Reaction
                | FeedbackKind::Helpful
                | FeedbackKind::NotHelpful
                | FeedbackKind::Event => RatingValue::Replaceable(good),
            },
            confidence: core.confidence,
            recency: core.recency(),
            usable,
        })
    }

    fn verdict(&self, good: bool) -> AnswerVerdict {
        AnswerVerdict {
            good,
            origin: self.origin,
            confidence: self.confidence,
            ts: self.recency.at(),
            feedback_ids: vec![self.recency.id()],
        }
    }
}

/// The last day of a period on which a user reacted to a turn, as of `as_of`. A run exports the turn on that day only.
/// The trail of replaced reactions is considered, so that a reaction during the run does not move the turn to another
/// day.
#[must_use]
pub fn last_day(
    reactions: &[ReactionCore],
    days: &Days,
    as_of: DateTime<Utc>,
) -> Option<NaiveDate> {
    // The turns of message signals are found by the signals themselves.
    let reactions = (reactions.iter()).filter(|core| core.kind.signal_name().is_none());
    let versions = reactions.flat_map(|core| {
        let current = (core.ts, core.received_at, core.is_reportable());
        let replaced = core.trail.iter();
        let replaced = replaced.map(|trace| (trace.ts, trace.received_at, trace.counts));
        std::iter::once(current).chain(replaced)
    });
    versions
        .filter(|(ts, received_at, counts)| *counts && *received_at <= as_of && days.contain(*ts))
        .map(|(ts, _, _)| ts.date_naive())
        .max()
}

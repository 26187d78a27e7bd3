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
use crate::identifier::UserId;
use crate::message_signal::{MessageSignal, StoredSignal};
use crate::reaction::{MIN_CONFIDENCE, Origin, Reaction, ReactionCore, TrainingUse};

/// The feedback on an answer in a period, without feedback that is excluded from training.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Feedback {
    ratings: Vec<Rating>,
    edits: Vec<StoredSignal>,
    corrections: Vec<Uuid>,
    /// The number of signals and events that are excluded from training.
    pub excluded: u64,
}

/// A reaction, signal or event that rates the answer.
#[derive(Debug, Clone, PartialEq)]
struct Rating {
    user: UserId,
    origin: Origin,
    value: RatingValue,
    confidence: f64,
    ts: DateTime<Utc>,
    id: Uuid,
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
pub struct Verdict {
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

impl Verdict {
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
    Verdict(Verdict),
}

/// The combined feedback of all users on an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Consensus {
    /// There is no verdict.
    NoVerdict,
    /// The verdicts contradict each other.
    Contested,
    /// The verdicts agree.
    Agreed(Verdict),
}

impl Feedback {
    /// The feedback in these reactions and signals, without withdrawn feedback and feedback on other days. If a user
    /// excludes a signal from training, their reactions and the machine reactions in their name are excluded, too,
    /// because reactions have no such flag.
    #[must_use]
    pub fn new(reactions: &[ReactionCore], signals: Vec<StoredSignal>, days: &Days) -> Self {
        let mut feedback = Self::default();
        let mut excluded_users = BTreeSet::new();
        for signal in signals {
            let core = &signal.core;
            if core.retracted || !days.contain(core.updated_at) {
                continue;
            }
            if core.exclude_from_training {
                feedback.excluded += 1;
                excluded_users.insert(core.user_id.clone());
                continue;
            }
            let value = match core.signal {
                MessageSignal::Helpful => RatingValue::Replaceable(Some(true)),
                MessageSignal::NotHelpful => RatingValue::Replaceable(Some(false)),
                MessageSignal::Inaccurate | MessageSignal::Unsafe => RatingValue::Fault,
                MessageSignal::Edit => {
                    feedback.edits.push(signal);
                    continue;
                }
                MessageSignal::Regenerate => continue,
            };
            feedback.ratings.push(Rating {
                user: core.user_id.clone(),
                origin: Origin::User,
                value,
                confidence: 1.0,
                ts: core.ts,
                id: core.act,
            });
        }
        let included = reactions.iter().filter(|core| {
            let confident = core.origin == Origin::User || core.confidence >= MIN_CONFIDENCE;
            confident && days.contain(core.ts) && !excluded_users.contains(&core.user_id)
        });
        for core in included {
            match core.training_use {
                TrainingUse::Nothing => {
                    feedback.excluded += 1;
                    continue;
                }
                TrainingUse::Correction => feedback.corrections.push(core.id),
                TrainingUse::Verdict => {}
            }
            feedback.ratings.extend(Rating::of(core));
        }
        feedback
            .ratings
            .sort_by_key(|rating| (rating.ts, rating.id));
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
    /// even that of the majority.
    #[must_use]
    pub fn consensus(&self) -> Consensus {
        let users: BTreeSet<_> = self.ratings.iter().map(|rating| &rating.user).collect();
        let mut explicit = Vec::new();
        let mut inferred = Vec::new();
        for user in users {
            match self.explicit_of(user) {
                ExplicitVerdict::Verdict(verdict) => explicit.push(verdict),
                ExplicitVerdict::Neutral => {}
                ExplicitVerdict::Missing => inferred.extend(self.inferred_of(user)),
            }
        }
        if explicit.is_empty() {
            consensus(inferred)
        } else {
            consensus(explicit)
        }
    }

    /// The verdict of a user: the explicit one, or else the inferred one. `None` if there is none, or if it is
    /// ambiguous.
    #[must_use]
    pub fn of_user(&self, user: &UserId) -> Option<Verdict> {
        match self.explicit_of(user) {
            ExplicitVerdict::Verdict(verdict) => Some(verdict),
            ExplicitVerdict::Neutral => None,
            ExplicitVerdict::Missing => match consensus(self.inferred_of(user)) {
                Consensus::Agreed(verdict) => Some(verdict),
                Consensus::NoVerdict | Consensus::Contested => None,
            },
        }
    }

    /// The explicit feedback of a user: a fault, or else the last rating.
    fn explicit_of(&self, user: &UserId) -> ExplicitVerdict {
        let ratings: Vec<_> = self.ratings_of(user, Origin::User).collect();
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
            .reduce(Verdict::or)
            .map_or(ExplicitVerdict::Missing, ExplicitVerdict::Verdict)
    }

    fn inferred_of(&self, user: &UserId) -> impl Iterator<Item = Verdict> {
        let inferred = self.ratings_of(user, Origin::Machine);
        inferred.filter_map(|rating| Some(rating.verdict(rating.value.good()?)))
    }

    fn ratings_of(&self, user: &UserId, origin: Origin) -> impl Iterator<Item = &Rating> {
        let of_user = move |rating: &&Rating| rating.origin == origin && rating.user == *user;
        self.ratings.iter().filter(of_user)
    }
}

fn consensus(verdicts: impl IntoIterator<Item = Verdict>) -> Consensus {
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

impl Rating {
    /// The rating in a reaction; `None` for a tombstone.
    fn of(core: &ReactionCore) -> Option<Self> {
        Some(Self {
            user: core.user_id.clone(),
            origin: core.origin,
            value: RatingValue::Replaceable(match core.reaction? {
                Reaction::Ok => Some(true),
                Reaction::NotOk => Some(false),
                Reaction::Neutral => None,
            }),
            confidence: core.confidence,
            ts: core.ts,
            id: core.id,
        })
    }

    fn verdict(&self, good: bool) -> Verdict {
        Verdict {
            good,
            origin: self.origin,
            confidence: self.confidence,
            ts: self.ts,
            feedback_ids: vec![self.id],
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
    let versions = reactions.iter().flat_map(|core| {
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

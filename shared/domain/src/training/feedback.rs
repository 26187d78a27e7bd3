//! How everything that was said of one answer becomes one verdict.
//!
//! | said | counts as |
//! |---|---|
//! | `ok`, `helpful` | good |
//! | `not_ok`, `not_helpful` | bad; of a user's thumbs the last counts |
//! | `neutral` | neither, and outranks what was inferred of the same user |
//! | `inaccurate`, `unsafe` | bad, whatever thumb the same user gave |
//! | `edit`, an event that corrects | nothing by itself: it makes a pair |
//! | an event that accepts, rejects or rates | as a thumb |
//! | `regenerate` | nothing: too weak |
//! | the machine's `ok`, `not_ok` | good, bad, if nobody said anything on purpose |

use std::collections::BTreeSet;

use chrono::{DateTime, NaiveDate, Utc};
use uuid::Uuid;

use super::Days;
use crate::identifier::UserId;
use crate::message_signal::{MessageSignal, StoredSignal};
use crate::reaction::{GATE, Origin, Reaction, ReactionCore, Teaches};

/// What was said of one answer in a period, as far as a model may learn from it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Feedback {
    statements: Vec<Statement>,
    edits: Vec<StoredSignal>,
    corrections: Vec<Uuid>,
    /// Signals and events that no model may learn from.
    pub excluded: u64,
}

/// One thing that somebody said.
#[derive(Debug, Clone, PartialEq)]
struct Statement {
    user: UserId,
    origin: Origin,
    says: Says,
    confidence: f64,
    ts: DateTime<Utc>,
    id: Uuid,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    /// Good, bad, or neither: the last one counts.
    Thumb(Option<bool>),
    /// Wrong or harmful, which is bad until it is taken back.
    Fault,
}

impl Says {
    fn good(self) -> Option<bool> {
        match self {
            Self::Thumb(good) => good,
            Self::Fault => Some(false),
        }
    }
}

/// How good an answer was, and who says so.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// Whether it was.
    pub good: bool,
    /// Whether people said so on purpose.
    pub origin: Origin,
    /// How sure that is, 0 to 1.
    pub confidence: f64,
    /// When the last of it was said.
    pub ts: DateTime<Utc>,
    /// The events in the ledger.
    pub feedback_ids: Vec<Uuid>,
}

impl Verdict {
    /// Two verdicts of which a conclusion needs both.
    pub(super) fn and(mut self, other: Self) -> Self {
        self.confidence = self.confidence.min(other.confidence);
        self.ts = self.ts.max(other.ts);
        self.feedback_ids.extend(other.feedback_ids);
        self
    }

    /// Two that say the same: each of them is enough.
    fn also(mut self, other: Self) -> Self {
        self.confidence = self.confidence.max(other.confidence);
        self.ts = self.ts.max(other.ts);
        self.feedback_ids.extend(other.feedback_ids);
        self
    }
}

/// What one user said on purpose.
enum OnPurpose {
    /// Nothing.
    Nothing,
    /// That it is neither good nor bad.
    Neither,
    /// Whether it is good.
    Says(Verdict),
}

/// What all together say of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    /// Nothing that a label could rest on.
    Nothing,
    /// They contradict each other.
    Contested,
    /// They agree.
    Agreed(Verdict),
}

impl Feedback {
    /// What counts of these reactions and signals. What was cleared or taken back does not, nor what is
    /// of another day. An exclusion covers also the user's reaction to the answer and what the machine
    /// inferred in their name: a reaction has no such flag of its own.
    #[must_use]
    pub fn new(reactions: &[ReactionCore], signals: Vec<StoredSignal>, days: &Days) -> Self {
        let mut feedback = Self::default();
        let mut silent = BTreeSet::new();
        for said in signals {
            let core = &said.core;
            if core.retracted || !days.contain(core.updated_at) {
                continue;
            }
            if core.exclude_from_training {
                feedback.excluded += 1;
                silent.insert(core.user_id.clone());
                continue;
            }
            let says = match core.signal {
                MessageSignal::Helpful => Says::Thumb(Some(true)),
                MessageSignal::NotHelpful => Says::Thumb(Some(false)),
                MessageSignal::Inaccurate | MessageSignal::Unsafe => Says::Fault,
                MessageSignal::Edit => {
                    feedback.edits.push(said);
                    continue;
                }
                MessageSignal::Regenerate => continue,
            };
            feedback.statements.push(Statement {
                user: core.user_id.clone(),
                origin: Origin::User,
                says,
                confidence: 1.0,
                ts: core.ts,
                id: core.act,
            });
        }
        let heard = reactions.iter().filter(|core| {
            let sure = core.origin == Origin::User || core.confidence >= GATE;
            sure && days.contain(core.ts) && !silent.contains(&core.user_id)
        });
        for core in heard {
            match core.teaches {
                Teaches::Nothing => {
                    feedback.excluded += 1;
                    continue;
                }
                Teaches::Correction => feedback.corrections.push(core.id),
                Teaches::Verdict => {}
            }
            feedback.statements.extend(Statement::of(core));
        }
        feedback.statements.sort_by_key(|said| (said.ts, said.id));
        feedback
            .edits
            .sort_by_key(|said| (said.core.ts, said.core.act));
        feedback
    }

    /// The texts that users put in the place of the answer.
    #[must_use]
    pub fn edits(&self) -> &[StoredSignal] {
        &self.edits
    }

    /// The events that may say what the answer should have been.
    #[must_use]
    pub fn corrections(&self) -> &[Uuid] {
        &self.corrections
    }

    /// Whether anything was put in the place of the answer.
    #[must_use]
    pub fn replaces(&self) -> bool {
        !self.edits.is_empty() || !self.corrections.is_empty()
    }

    /// What all together say. What anybody said on purpose outranks what was inferred of them. An answer of
    /// which people say different things has no label, rather than the majority's or two that contradict each
    /// other.
    #[must_use]
    pub fn heard(&self) -> Heard {
        let users: BTreeSet<_> = self.statements.iter().map(|said| &said.user).collect();
        let mut on_purpose = Vec::new();
        let mut inferred = Vec::new();
        for user in users {
            match self.said_by(user) {
                OnPurpose::Says(verdict) => on_purpose.push(verdict),
                OnPurpose::Neither => {}
                OnPurpose::Nothing => inferred.extend(self.inferred_of(user)),
            }
        }
        if on_purpose.is_empty() {
            agreed(inferred)
        } else {
            agreed(on_purpose)
        }
    }

    /// What one user says: on purpose, or else as the machine inferred it; `None` if that is nothing, or
    /// nothing clear.
    #[must_use]
    pub fn of_user(&self, user: &UserId) -> Option<Verdict> {
        match self.said_by(user) {
            OnPurpose::Says(verdict) => Some(verdict),
            OnPurpose::Neither => None,
            OnPurpose::Nothing => match agreed(self.inferred_of(user)) {
                Heard::Agreed(verdict) => Some(verdict),
                Heard::Nothing | Heard::Contested => None,
            },
        }
    }

    /// What a user said on purpose: a fault, or else the last thumb.
    fn said_by(&self, user: &UserId) -> OnPurpose {
        let said: Vec<_> = self.statements_of(user, Origin::User).collect();
        let fault = said.iter().find(|said| said.says == Says::Fault);
        let Some(decides) = fault.or(said.last()) else {
            return OnPurpose::Nothing;
        };
        let Some(good) = decides.says.good() else {
            return OnPurpose::Neither;
        };
        let agreeing = said.iter().filter(|said| said.says.good() == Some(good));
        (agreeing.map(|said| said.verdict(good)))
            .reduce(Verdict::also)
            .map_or(OnPurpose::Nothing, OnPurpose::Says)
    }

    fn inferred_of(&self, user: &UserId) -> impl Iterator<Item = Verdict> {
        let inferred = self.statements_of(user, Origin::Machine);
        inferred.filter_map(|said| Some(said.verdict(said.says.good()?)))
    }

    fn statements_of(&self, user: &UserId, origin: Origin) -> impl Iterator<Item = &Statement> {
        let of_user = move |said: &&Statement| said.origin == origin && said.user == *user;
        self.statements.iter().filter(of_user)
    }
}

/// One verdict of many that say the same.
fn agreed(verdicts: impl IntoIterator<Item = Verdict>) -> Heard {
    let mut heard = Heard::Nothing;
    for verdict in verdicts {
        heard = match heard {
            Heard::Nothing => Heard::Agreed(verdict),
            Heard::Agreed(all) if all.good == verdict.good => Heard::Agreed(all.also(verdict)),
            Heard::Agreed(_) | Heard::Contested => return Heard::Contested,
        };
    }
    heard
}

impl Statement {
    /// What a reaction says; a tombstone says nothing.
    fn of(core: &ReactionCore) -> Option<Self> {
        Some(Self {
            user: core.user_id.clone(),
            origin: core.origin,
            says: Says::Thumb(match core.reaction? {
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

/// The last day of a period on which anybody reacted to a turn, as it stood at `as_of`: a run lists the
/// turn when it comes to that day, and at no other. What a reaction took the place of since then still
/// tells, so that a turn is not listed twice because somebody changes their mind meanwhile.
#[must_use]
pub fn last_day(
    reactions: &[ReactionCore],
    days: &Days,
    as_of: DateTime<Utc>,
) -> Option<NaiveDate> {
    let versions = reactions.iter().flat_map(|core| {
        let stands = (core.ts, core.received_at, core.says_something());
        let stood = core.trail.iter();
        let stood = stood.map(|trace| (trace.ts, trace.received_at, trace.counts));
        std::iter::once(stands).chain(stood)
    });
    versions
        .filter(|(ts, received_at, counts)| *counts && *received_at <= as_of && days.contain(*ts))
        .map(|(ts, _, _)| ts.date_naive())
        .max()
}

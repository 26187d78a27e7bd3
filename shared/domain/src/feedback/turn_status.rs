//! The status of a turn: inferred from later messages, or given explicitly by its owner.
//!
//! Explicit feedback overrides inferred feedback. A user may give several kinds of explicit feedback: a reaction,
//! message signals, and events. The latest one that was not withdrawn counts.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::events::recency::Recency;
use crate::feedback::follow_up::{FollowUpCorrection, UserFeedback};
use crate::feedback::reaction::{FeedbackKind, Reaction, ReactionCore};
use crate::identity::identifier::TurnId;
use hearback_detection::FeedbackStatus;

/// Explicit feedback of a turn's owner, or its withdrawal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExplicitAct {
    /// Its kind.
    pub kind: FeedbackKind,
    /// The verdict; `None` if the feedback was withdrawn.
    pub verdict: Option<Reaction>,
    /// Its position in time.
    pub recency: Recency,
    /// When it no longer counts, if that may be before the turn expires.
    pub expires_at: Option<DateTime<Utc>>,
}

impl ExplicitAct {
    /// A reaction of the turn's owner, or what counts as one.
    #[must_use]
    pub fn of(core: &ReactionCore) -> Self {
        let is_event = core.kind == FeedbackKind::Event;
        Self {
            kind: core.kind,
            verdict: core.reaction,
            recency: core.recency(),
            // The others are kept as long as their turn.
            expires_at: core.expires_at.filter(|_| is_event),
        }
    }
}

/// The explicit feedback of a turn's owner: the latest of each kind, including withdrawals.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExplicitFeedback(BTreeMap<FeedbackKind, TimedVerdict>);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct TimedVerdict {
    /// `None` if the feedback was withdrawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    verdict: Option<Reaction>,
    at: DateTime<Utc>,
    /// `at`, if missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    received_at: Option<DateTime<Utc>>,
    /// Missing in rows of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<Uuid>,
    /// Never, if missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_at: Option<DateTime<Utc>>,
    /// Earlier events, the latest first: each event counts for itself, and once the latest is withdrawn, the one before
    /// it counts. Of any other kind, there is only one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    earlier: Vec<TimedVerdict>,
}

/// Events of a turn's owner that are known by its row.
const EVENTS: usize = 16;

impl TimedVerdict {
    fn new(act: ExplicitAct) -> Self {
        let (at, received_at) = (act.recency.at(), act.recency.received_at());
        Self {
            verdict: act.verdict,
            at,
            received_at: (received_at != at).then_some(received_at),
            id: Some(act.recency.id()),
            expires_at: act.expires_at,
            earlier: Vec::new(),
        }
    }

    /// These events with another; `None` if it is known, or not among the latest.
    fn with_event(&self, event: Self) -> Option<Self> {
        let mut events = self.clone();
        let mut all = std::mem::take(&mut events.earlier);
        all.push(events);
        match all.iter_mut().find(|known| known.id == event.id) {
            // Once withdrawn, an event does not count again, even if it is processed later.
            Some(known) if known.verdict.is_some() && event.verdict.is_none() => *known = event,
            Some(_) => return None,
            None => all.push(event),
        }
        all.sort_by_key(|event| Reverse(event.recency()));
        if all.len() > EVENTS {
            // A withdrawn event does not count, and the tombstone of its row still records the withdrawal.
            let withdrawn = all.iter().rposition(|event| event.verdict.is_none());
            all.remove(withdrawn.unwrap_or(EVENTS));
        }
        let earlier = all.split_off(1);
        let latest = Self {
            earlier,
            ..all.pop()?
        };
        (latest != *self).then_some(latest)
    }

    fn recency(&self) -> Recency {
        let received_at = self.received_at.unwrap_or(self.at);
        Recency::new(self.at, received_at, self.id.unwrap_or_default())
    }
}

impl ExplicitFeedback {
    /// The feedback with another act; `None` if that is known, or one of the same kind is newer.
    #[must_use]
    pub fn with(&self, act: ExplicitAct) -> Option<Self> {
        let stored = self.0.get(&act.kind);
        let new = TimedVerdict::new(act);
        let updated = match stored {
            Some(stored) if act.kind == FeedbackKind::Event => stored.with_event(new)?,
            Some(stored) if stored.recency() >= new.recency() => return None,
            Some(_) | None => new,
        };
        let mut feedback = self.clone();
        feedback.0.insert(act.kind, updated);
        Some(feedback)
    }

    /// The feedback without message signals, which are private: what others see of the turn's status depends on this
    /// alone, because only the turn's user can set that status.
    #[must_use]
    pub fn shared(&self) -> Self {
        let mut shared = self.clone();
        shared.0.retain(|kind, _| !kind.is_private());
        shared
    }

    /// The verdict that counts at `now`: the latest that was not withdrawn and has not expired.
    #[must_use]
    pub fn verdict(&self, now: DateTime<Utc>) -> Option<Reaction> {
        self.latest(now).map(|(_, verdict, _)| verdict)
    }

    /// The act that counts at `now`, with its kind and its verdict.
    #[must_use]
    pub fn latest(&self, now: DateTime<Utc>) -> Option<(FeedbackKind, Reaction, Recency)> {
        self.live(now).max_by_key(|(_, _, recency)| *recency)
    }

    /// The latest act that does not reject the turn: earlier complaints are settled by it.
    #[must_use]
    pub fn settled_by(&self, now: DateTime<Utc>) -> Option<Recency> {
        let settled = self
            .live(now)
            .filter(|(_, verdict, _)| *verdict != Reaction::NotOk);
        settled.map(|(_, _, recency)| recency).max()
    }

    /// The rejections that count at `now` and are not settled, the latest first.
    #[must_use]
    pub fn complaints(&self, now: DateTime<Utc>) -> Vec<(FeedbackKind, Recency)> {
        let settled = self.settled_by(now);
        let complaints = self.live(now).filter_map(|(kind, verdict, recency)| {
            let complains = verdict == Reaction::NotOk && Some(recency) > settled;
            complains.then_some((kind, recency))
        });
        let mut complaints: Vec<_> = complaints.collect();
        complaints.sort_by_key(|(_, recency)| Reverse(*recency));
        complaints
    }

    /// The acts that were not withdrawn and have not expired.
    fn live(&self, now: DateTime<Utc>) -> impl Iterator<Item = (FeedbackKind, Reaction, Recency)> {
        let all = self.0.iter().flat_map(|(kind, timed)| {
            let all = std::iter::once(timed).chain(&timed.earlier);
            all.map(|timed| (*kind, timed))
        });
        all.filter_map(move |(kind, timed)| {
            let expired = timed.expires_at.is_some_and(|expires| expires <= now);
            let verdict = timed.verdict.filter(|_| !expired)?;
            Some((kind, verdict, timed.recency()))
        })
    }
}

/// All feedback of the owner on a turn.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TurnStatus {
    /// The inferred feedback.
    pub inferred: Option<UserFeedback>,
    /// The explicit verdict, if it was not withdrawn.
    pub explicit: Option<Reaction>,
}

impl TurnStatus {
    /// The status. Explicit feedback overrides inferred feedback.
    #[must_use]
    pub fn status(&self) -> FeedbackStatus {
        match (self.explicit, &self.inferred) {
            (Some(Reaction::Ok), _) => FeedbackStatus::Accepted,
            (Some(Reaction::NotOk), _) => FeedbackStatus::Rejected,
            (Some(Reaction::Neutral), _) | (None, None) => FeedbackStatus::Neutral,
            (None, Some(inferred)) => inferred.status,
        }
    }

    /// The confidence of the status: 1 for explicit feedback, 0.5 for a turn without feedback.
    #[must_use]
    pub fn confidence(&self) -> f64 {
        match (self.explicit, &self.inferred) {
            (Some(_), _) => 1.0,
            (None, Some(inferred)) => inferred.confidence,
            (None, None) => UNKNOWN,
        }
    }

    /// The turn whose message rejects this one, unless explicit feedback overrides it.
    #[must_use]
    pub fn rejection_detected_in(&self) -> Option<&TurnId> {
        let inferred = self.inferred.as_ref()?;
        let counts = self.explicit.is_none() && inferred.status == FeedbackStatus::Rejected;
        inferred.detected_in_turn.as_ref().filter(|_| counts)
    }

    /// How a message rejects the turn, unless explicit feedback overrides it.
    #[must_use]
    pub fn correction_type(&self) -> Option<FollowUpCorrection> {
        let inferred = self.inferred.as_ref().filter(|_| self.explicit.is_none());
        inferred.and_then(|inferred| inferred.correction_type)
    }

    /// Whether a person corrected what was inferred, and that decides the status.
    #[must_use]
    pub fn is_corrected(&self) -> bool {
        let inferred = self.inferred.as_ref().filter(|_| self.explicit.is_none());
        inferred.is_some_and(|inferred| inferred.corrected.is_some())
    }

    /// Whether the explicit verdict is positive or neutral.
    #[must_use]
    pub fn is_explicitly_not_rejected(&self) -> bool {
        match self.explicit {
            Some(Reaction::Ok | Reaction::Neutral) => true,
            Some(Reaction::NotOk) | None => false,
        }
    }
}

/// Confidence in the status of a turn without feedback.
const UNKNOWN: f64 = 0.5;

#[cfg(test)]
mod tests {
    use super::*;

    fn explicit(
        kind: FeedbackKind,
        (verdict, recency): (Option<Reaction>, Recency),
    ) -> ExplicitAct {
        ExplicitAct {
            kind,
            verdict,
            recency,
            expires_at: None,
        }
    }

    #[test]
    fn after_a_withdrawal_the_previous_event_counts_in_any_order_of_processing() {
        let at = |second| DateTime::from_timestamp(second, 0).unwrap();
        let event = |second: u8, verdict| {
            let ts = at(second.into());
            let recency = Recency::new(ts, ts, Uuid::from_u128(second.into()));
            explicit(FeedbackKind::Event, (verdict, recency))
        };
        let mut acts = [
            event(1, Some(Reaction::NotOk)),
            event(2, Some(Reaction::Neutral)),
            event(3, Some(Reaction::Ok)),
            event(2, None),
            event(3, None),
        ];
        let processed = |acts: &[ExplicitAct]| {
            let none = ExplicitFeedback::default();
            acts.iter().fold(none, |feedback, act| {
                feedback.with(*act).unwrap_or(feedback)
            })
        };
        let expected = processed(&acts);
        assert_eq!(expected.verdict(at(9)), Some(Reaction::NotOk));
        for rotation in 0..acts.len() {
            acts.rotate_left(1);
            assert_eq!(processed(&acts), expected, "{rotation}");
            acts.reverse();
            assert_eq!(processed(&acts), expected, "{rotation}, reversed");
            acts.reverse();
        }
    }

    #[test]
    fn a_row_keeps_at_most_sixteen_events() {
        let mut feedback = ExplicitFeedback::default();
        for second in 0..40 {
            let ts = DateTime::from_timestamp(second, 0).unwrap();
            let recency = Recency::new(ts, ts, Uuid::from_u128(second.unsigned_abs().into()));
            let event = explicit(FeedbackKind::Event, (Some(Reaction::Ok), recency));
            feedback = feedback.with(event).unwrap();
        }
        assert_eq!(feedback.0[&FeedbackKind::Event].earlier.len(), EVENTS - 1);
        assert!(serde_json::to_string(&feedback).unwrap().len() < 3_000);
    }

    #[test]
    fn withdrawn_events_are_dropped_first() {
        let at = |second| DateTime::from_timestamp(second, 0).unwrap();
        let event = |second: i64, verdict| {
            let recency = Recency::new(
                at(second),
                at(second),
                Uuid::from_u128(second.unsigned_abs().into()),
            );
            explicit(FeedbackKind::Event, (verdict, recency))
        };
        let mut feedback = ExplicitFeedback::default();
        let complaint = event(1, Some(Reaction::NotOk));
        feedback = feedback.with(complaint).unwrap();
        for second in 2..40 {
            feedback = feedback.with(event(second, Some(Reaction::Ok))).unwrap();
            feedback = feedback.with(event(second, None)).unwrap();
        }
        assert_eq!(feedback.verdict(at(99)), Some(Reaction::NotOk));
        assert_eq!(feedback.0[&FeedbackKind::Event].earlier.len(), EVENTS - 1);
        assert_eq!(feedback.with(complaint), None, "it is known");
    }

    #[test]
    fn feedback_that_has_expired_does_not_count() {
        let at = |second| DateTime::from_timestamp(second, 0).unwrap();
        let act = |kind, verdict, second| {
            let recency = Recency::new(at(second), at(second), Uuid::nil());
            explicit(kind, (Some(verdict), recency))
        };
        let event = ExplicitAct {
            expires_at: Some(at(10)),
            ..act(FeedbackKind::Event, Reaction::NotOk, 2)
        };
        let feedback = ExplicitFeedback::default().with(event).unwrap();
        assert_eq!(feedback.verdict(at(9)), Some(Reaction::NotOk));
        assert_eq!(feedback.verdict(at(10)), None);
        let feedback = feedback.with(act(FeedbackKind::Reaction, Reaction::Ok, 1));
        assert_eq!(feedback.unwrap().verdict(at(10)), Some(Reaction::Ok));
    }

    #[test]
    fn the_latest_verdict_that_was_not_withdrawn_counts_in_any_order_of_arrival() {
        let at = |second: u8| {
            let ts = DateTime::from_timestamp(second.into(), 0).unwrap();
            Recency::new(ts, ts, Uuid::from_u128(second.into()))
        };
        let acts = [
            (
                FeedbackKind::Reaction,
                (Some(Reaction::Ok), at(1)),
                Some(Reaction::Ok),
            ),
            (
                FeedbackKind::Inaccurate,
                (Some(Reaction::NotOk), at(2)),
                Some(Reaction::NotOk),
            ),
            (
                FeedbackKind::Event,
                (Some(Reaction::Neutral), at(3)),
                Some(Reaction::Neutral),
            ),
            (FeedbackKind::Event, (None, at(3)), Some(Reaction::NotOk)),
            (FeedbackKind::Inaccurate, (None, at(5)), Some(Reaction::Ok)),
            (FeedbackKind::Reaction, (None, at(6)), None),
        ];
        let mut feedback = ExplicitFeedback::default();
        let now = DateTime::from_timestamp(9, 0).unwrap();
        for (kind, act, verdict) in acts {
            feedback = feedback.with(explicit(kind, act)).unwrap();
            assert_eq!(feedback.verdict(now), verdict, "{kind:?}");
        }
        let reversed = acts.iter().rev();
        let reversed = reversed.fold(ExplicitFeedback::default(), |feedback, (kind, act, _)| {
            feedback.with(explicit(*kind, *act)).unwrap_or(feedback)
        });
        assert_eq!(reversed, feedback);
        assert_eq!(
            feedback.with(explicit(FeedbackKind::Reaction, (None, at(6)))),
            None,
            "the withdrawal is stored already"
        );
    }

    #[test]
    fn equal_times_are_ordered_by_receipt() {
        let at = |second| DateTime::from_timestamp(second, 0).unwrap();
        let act = |received, id| Recency::new(at(5), at(received), Uuid::from_u128(id));
        let acts = [
            (FeedbackKind::Inaccurate, Reaction::NotOk, act(7, 1)),
            (FeedbackKind::Event, Reaction::Neutral, act(6, 9)),
            (FeedbackKind::Event, Reaction::Ok, act(8, 2)),
            (FeedbackKind::Event, Reaction::NotOk, act(8, 1)),
        ];
        for rotation in 0..acts.len() {
            let mut feedback = ExplicitFeedback::default();
            for (kind, verdict, recency) in acts.iter().cycle().skip(rotation).take(acts.len()) {
                let updated = feedback.with(explicit(*kind, (Some(*verdict), *recency)));
                feedback = updated.unwrap_or(feedback);
            }
            assert_eq!(feedback.verdict(at(9)), Some(Reaction::Ok), "{rotation}");
        }
    }

    #[test]
    fn rows_of_older_versions_are_read() {
        let stored = r#"{"reaction":{"verdict":"ok","at":"2026-01-04T09:00:00Z"}}"#;
        let feedback: ExplicitFeedback = serde_json::from_str(stored).unwrap();
        assert_eq!(feedback.verdict(Utc::now()), Some(Reaction::Ok));
        assert_eq!(serde_json::to_string(&feedback).unwrap(), stored);
    }
}

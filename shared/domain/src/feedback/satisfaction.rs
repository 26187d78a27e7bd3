//! The satisfaction rate of reports, satisfaction scores of turns, and the ranking of turns in the strategy search.
//!
//! See docs/reference/rules.md, "Satisfaction" and "Ranking of strategies".

use std::cmp::Ordering;
use std::collections::BTreeMap;

use hearback_wire::wire_names;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use hearback_detection::FeedbackStatus;

use crate::feedback::reaction::{Reaction, StoredReaction};
use crate::feedback::voice::Voice;
use crate::identity::caller::Caller;

/// The result of a validation of the answer before the user saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum ValidationOutcome {
    /// The answer is good.
    Approve,
    /// The answer should be improved.
    Revise,
    /// The answer should be regenerated.
    Retry,
    /// The answer must not be shown.
    Fail,
}

wire_names!(ValidationOutcome {
    Approve = "APPROVE",
    Revise = "REVISE",
    Retry = "RETRY",
    Fail = "FAIL",
});

/// The score of a rejected turn, whatever its validation outcome.
const REJECTED: f64 = -1.0;
/// Added to the score of an accepted turn.
const ACCEPTED: f64 = 0.5;
/// The weights of quality and of feedback in the ranking score.
pub const SHARES: (f64, f64) = (0.6, 0.4);

impl ValidationOutcome {
    /// The outcome with this name; `None` for an unknown name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let found = Self::NAMES.iter().find(|(known, _)| *known == name);
        found.map(|(_, outcome)| *outcome)
    }

    /// The score of a turn without feedback.
    #[must_use]
    pub fn base_score(self) -> f64 {
        match self {
            Self::Approve => 0.5,
            Self::Revise => 0.3,
            Self::Retry => 0.1,
            Self::Fail => -0.5,
        }
    }
}

/// ok ÷ (ok + `not_ok` + neutral) of reactions in one conversation, 0 to 1; `None` without any. Tombstones do not count.
///
/// Each user counts once for a turn, by their [`Voice`]: the latest verdict that they gave, or else what was inferred.
/// Reactions whose author the caller does not see are a separate voice: otherwise the rate would reveal that they have
/// the same author as other reactions.
#[must_use]
pub fn satisfaction_rate<'a>(
    reactions: impl IntoIterator<Item = &'a StoredReaction>,
    caller: &Caller,
) -> Option<f64> {
    let mut voices = BTreeMap::new();
    for reaction in reactions {
        let core = &reaction.core;
        let Some(verdict) = core.reaction else {
            continue;
        };
        let voice = Voice::of(core);
        let is_named = reaction.is_visible_to(caller);
        let of_user = voices.entry((&core.at.turn, &core.user_id, is_named));
        let counting = of_user.or_insert((voice, verdict));
        if counting.0 < voice {
            *counting = (voice, verdict);
        }
    }
    let (mut ok, mut all) = (0, 0);
    for (_, verdict) in voices.values() {
        ok += u32::from(*verdict == Reaction::Ok);
        all += 1;
    }
    (all > 0).then(|| f64::from(ok) / f64::from(all))
}

/// The satisfaction score, −1 to 1. The base score of a turn without a validation outcome is 0.
#[must_use]
pub fn satisfaction_score(outcome: Option<ValidationOutcome>, status: FeedbackStatus) -> f64 {
    let base = outcome.map_or(0.0, ValidationOutcome::base_score);
    match status {
        FeedbackStatus::Rejected => REJECTED,
        FeedbackStatus::Accepted => (base + ACCEPTED).min(1.0),
        FeedbackStatus::Neutral => base,
    }
}

/// The value of feedback in the ranking score.
#[must_use]
pub fn feedback_weight(status: FeedbackStatus) -> f64 {
    match status {
        FeedbackStatus::Rejected => -1.0,
        FeedbackStatus::Accepted => 0.5,
        FeedbackStatus::Neutral => 0.0,
    }
}

/// The ranking score, for a quality of 0 to 1.
#[must_use]
pub fn ranking_score(quality: f64, status: FeedbackStatus) -> f64 {
    let (quality_weight, status_weight) = SHARES;
    quality * quality_weight + feedback_weight(status) * status_weight
}

/// The rank of a turn in the strategy search: accepted turns before neutral ones, then by ranking score, then by
/// similarity to the query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rank {
    accepted: bool,
    /// See [`ranking_score`].
    pub ranking_score: f64,
    /// The similarity to the query, −1 to 1.
    pub similarity: f64,
}

impl Rank {
    /// The rank of a turn; `None` for a rejected turn, whose strategy is never returned.
    #[must_use]
    pub fn of((quality, similarity): (f64, f64), status: FeedbackStatus) -> Option<Self> {
        let accepted = match status {
            FeedbackStatus::Rejected => return None,
            FeedbackStatus::Accepted => true,
            FeedbackStatus::Neutral => false,
        };
        Some(Self {
            accepted,
            ranking_score: ranking_score(quality, status),
            similarity,
        })
    }

    /// The order of two turns: `Less` comes first.
    #[must_use]
    pub fn order(&self, other: &Self) -> Ordering {
        let by_status = other.accepted.cmp(&self.accepted);
        by_status
            .then(other.ranking_score.total_cmp(&self.ranking_score))
            .then(other.similarity.total_cmp(&self.similarity))
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use serde_json::json;
    use uuid::Uuid;

    use super::*;
    use crate::feedback::reaction::{FeedbackKind, Origin};
    use FeedbackStatus::{Accepted, Neutral, Rejected};

    fn ada() -> Caller {
        Caller {
            user: "ada".try_into().unwrap(),
            tenant: "acme".try_into().unwrap(),
            projects: Vec::new(),
            scopes: Vec::new(),
        }
    }

    /// A reaction to the turn `t` at a second.
    fn reaction(
        user: &str,
        origin: Origin,
        verdict: Option<Reaction>,
        second: i64,
    ) -> StoredReaction {
        let at = DateTime::from_timestamp(second, 0).unwrap();
        let core = json!({
            "id": Uuid::from_u128(second.unsigned_abs().into()),
            "tenant": "acme", "project": "p", "conversation_id": "c", "turn_id": "t", "turn_ts": at,
            "user_id": user, "origin": origin, "reaction": verdict, "confidence": 1.0, "ts": at, "received_at": at
        });
        StoredReaction {
            core: serde_json::from_value(core).unwrap(),
            text: String::new(),
        }
    }

    #[test]
    fn each_user_counts_once_in_the_satisfaction_rate() {
        let user = |name, verdict, second| reaction(name, Origin::User, Some(verdict), second);
        let clicks = [
            user("ada", Reaction::Ok, 1),
            user("eve", Reaction::Ok, 2),
            user("eve", Reaction::NotOk, 4),
            user("eve", Reaction::NotOk, 3),
            reaction("eve", Origin::User, None, 9),
        ];
        assert_eq!(satisfaction_rate(&clicks, &ada()), Some(0.5));
        assert_eq!(satisfaction_rate(&clicks[4..], &ada()), None);
    }

    #[test]
    fn a_rate_does_not_reveal_the_author_of_a_private_signal() {
        let private = |user| {
            let mut signal = reaction(user, Origin::User, Some(Reaction::NotOk), 5);
            signal.core.kind = FeedbackKind::Unsafe;
            signal
        };
        for origin in [Origin::User, Origin::Machine] {
            let named = reaction("ada", origin, Some(Reaction::Ok), 1);
            let reader = Caller {
                user: "reader".try_into().unwrap(),
                ..ada()
            };
            for user in ["ada", "eve"] {
                let rate = satisfaction_rate([&named, &private(user)], &reader);
                assert_eq!(rate, Some(0.5), "{user}");
            }
            let own = satisfaction_rate([&named, &private("ada")], &ada());
            assert_eq!(own, Some(0.0), "ada sees her latest verdict");
        }
    }

    #[test]
    fn an_inferred_verdict_counts_only_for_a_user_without_an_explicit_one() {
        let inferred = reaction("ada", Origin::Machine, Some(Reaction::Ok), 9);
        assert_eq!(satisfaction_rate([&inferred], &ada()), Some(1.0));
        let given = reaction("ada", Origin::User, Some(Reaction::NotOk), 1);
        assert_eq!(satisfaction_rate([&inferred, &given], &ada()), Some(0.0));
    }

    #[test]
    fn the_later_received_of_two_acts_at_the_same_time_counts_in_any_order() {
        let act = |verdict, received, id| {
            let mut act = reaction("ada", Origin::User, Some(verdict), 5);
            act.core.received_at = DateTime::from_timestamp(received, 0).unwrap();
            act.core.id = Uuid::from_u128(id);
            act
        };
        for [one, other] in [
            [act(Reaction::NotOk, 6, 9), act(Reaction::Ok, 7, 1)],
            [act(Reaction::NotOk, 6, 1), act(Reaction::Ok, 6, 9)],
        ] {
            assert_eq!(satisfaction_rate([&one, &other], &ada()), Some(1.0));
            assert_eq!(satisfaction_rate([&other, &one], &ada()), Some(1.0));
        }
    }

    #[test]
    fn the_nearest_of_two_following_turns_counts_unless_a_message_names_the_turn() {
        let inferred = |verdict, second, follow_up| {
            let mut inferred = reaction("ada", Origin::Machine, Some(verdict), second);
            inferred.core.follow_up = follow_up;
            inferred
        };
        let thanks = inferred(Reaction::Ok, 120, true);
        let rejection = inferred(Reaction::NotOk, 60, true);
        assert_eq!(satisfaction_rate([&thanks, &rejection], &ada()), Some(0.0));
        let named = inferred(Reaction::Ok, 30, false);
        assert_eq!(
            satisfaction_rate([&thanks, &rejection, &named], &ada()),
            Some(1.0)
        );
    }

    #[test]
    fn satisfaction_scores_follow_the_table() {
        let score = |name, status| satisfaction_score(ValidationOutcome::named(name), status);
        for (name, base) in [
            ("APPROVE", 0.5),
            ("REVISE", 0.3),
            ("RETRY", 0.1),
            ("FAIL", -0.5),
        ] {
            let near = |one: f64, other: f64| assert!((one - other).abs() < 1e-12, "{one} {other}");
            near(score(name, Neutral), base);
            near(score(name, Accepted), (base + 0.5).min(1.0));
            near(score(name, Rejected), -1.0);
        }
        assert!((score("whatever", Accepted) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn accepted_turns_come_first_and_rejected_turns_are_left_out() {
        assert_eq!(Rank::of((1.0, 1.0), Rejected), None);
        let mut ranks = [
            ("fair", (0.2, 0.9), Neutral),
            ("fair, more similar", (0.2, 1.0), Neutral),
            ("poor but accepted", (0.1, 0.3), Accepted),
            ("best", (1.0, 0.4), Neutral),
            ("good and accepted", (0.9, 0.2), Accepted),
        ]
        .map(|(name, scores, status)| (name, Rank::of(scores, status).unwrap()));
        ranks.sort_by(|(_, one), (_, other)| one.order(other));
        let names = ranks.map(|(name, _)| name);
        let order = [
            "good and accepted",
            "poor but accepted",
            "best",
            "fair, more similar",
            "fair",
        ];
        assert_eq!(names, order);
        assert!((ranking_score(0.85, Accepted) - 0.71).abs() < 1e-12);
        assert!((ranking_score(0.85, Rejected) - 0.11).abs() < 1e-12);
    }
}

//! The weights of the learned model, and what they say about a message.
//!
//! A network with one hidden layer, for the kinds of messages that the corpus distinguishes. "Still the same error" and
//! "shorter, please" are both rejections and have nothing else in common, so the network learns kinds; the probability of
//! a class is that of its kinds together. Most hashed features contribute little and have no weights.
//!
//! `tests/detection/train.py` writes the file, little-endian: the biases of the hidden units; the weights from each unit to
//! the kinds; the biases of the kinds; for each group of 64 features a bit for each that has weights, and the number of such
//! features before the group; and for each such feature a scale, and a weight of four bits for each unit.

use crate::cue::{FeedbackStatus, RejectionKind};
use crate::learned::features::{COUNT, Features};

static WEIGHTS: &[u8] = include_bytes!("../../weights.bin");

/// A kind of message, as the corpus names it.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) class: FeedbackStatus,
    /// How it rejects the answer, if it does.
    pub(crate) correction: Option<RejectionKind>,
}

/// The number of hidden units.
const HIDDEN: usize = 64;
/// The number of kinds.
const KIND_COUNT: usize = 37;
/// The kinds in the order of the weights: by class, and by name.
pub(crate) const KINDS: [Kind; KIND_COUNT] = [
    accepted("agrees_with_proposal"),
    accepted("builds_on"),
    accepted("follow_up"),
    accepted("negated_negative"),
    accepted("next_step"),
    accepted("praise"),
    accepted("thanks"),
    accepted("uses"),
    accepted("withdrawn_objection"),
    accepted("works"),
    neutral("about_others"),
    neutral("answers_question"),
    neutral("declines_offer"),
    neutral("gives_info"),
    neutral("meta_question"),
    neutral("new_requirement"),
    neutral("own_mistake"),
    neutral("small_talk"),
    neutral("topic_change"),
    neutral("unrelated_question"),
    neutral("will_try_later"),
    rejected("abandonment", RejectionKind::Abandonment),
    rejected("already_tried", RejectionKind::Explicit),
    rejected("broke_something", RejectionKind::Explicit),
    rejected("escalate_to_human", RejectionKind::Abandonment),
    rejected("fact_contradicted", RejectionKind::Explicit),
    rejected("flat_wrong", RejectionKind::Explicit),
    rejected("format_tone", RejectionKind::Explicit),
    rejected("ignored_instruction", RejectionKind::Explicit),
    rejected("partly_right", RejectionKind::Explicit),
    rejected("pasted_error", RejectionKind::Explicit),
    rejected("repeated_request", RejectionKind::Rephrased),
    rejected("rephrased", RejectionKind::Rephrased),
    rejected("sarcasm", RejectionKind::Explicit),
    rejected("still_broken", RejectionKind::Explicit),
    rejected("undo_request", RejectionKind::Explicit),
    rejected("wrong_target", RejectionKind::Explicit),
];

const fn accepted(name: &'static str) -> Kind {
    Kind {
        name,
        class: FeedbackStatus::Accepted,
        correction: None,
    }
}

const fn neutral(name: &'static str) -> Kind {
    Kind {
        name,
        class: FeedbackStatus::Neutral,
        correction: None,
    }
}

const fn rejected(name: &'static str, correction: RejectionKind) -> Kind {
    Kind {
        name,
        class: FeedbackStatus::Rejected,
        correction: Some(correction),
    }
}

/// A number for each hidden unit.
pub(crate) type ByUnit = [f32; HIDDEN];
/// A number for each kind.
type ByKind = [f32; KIND_COUNT];

/// What the model says about a message.
pub(crate) struct Opinion {
    /// The hidden units; zero where a unit is silent.
    hidden: ByUnit,
    /// The probability of each kind.
    kinds: ByKind,
}

impl Opinion {
    /// Reads the features of a message.
    pub(crate) fn read(features: &Features) -> Self {
        let mut sums: ByUnit = std::array::from_fn(|unit| number(PARTS.bias, unit));
        for (index, value) in &features.values {
            if let Some((scale, row)) = PARTS.row(*index) {
                let value = value * scale;
                for (sum, weight) in sums.iter_mut().zip(unpacked(row)) {
                    *sum += value * weight;
                }
            }
        }
        let hidden = sums.map(|sum| sum.max(0.0));
        let mut logits: ByKind = std::array::from_fn(|kind| number(PARTS.biases, kind));
        for (unit, value) in hidden.iter().enumerate() {
            for (kind, logit) in logits.iter_mut().enumerate() {
                *logit += value * PARTS.second(unit, kind);
            }
        }
        let highest = logits.iter().copied().fold(f32::MIN, f32::max);
        let odds = logits.map(|logit| (logit - highest).exp());
        Self::normal(hidden, odds)
    }

    fn normal(hidden: ByUnit, odds: ByKind) -> Self {
        let sum: f32 = odds.iter().sum();
        Self {
            hidden,
            kinds: odds.map(|odds| odds / sum),
        }
    }

    /// The total probability of the kinds that match.
    pub(crate) fn sum(&self, is: impl Fn(&Kind) -> bool) -> f32 {
        let kinds = KINDS.iter().zip(self.kinds);
        kinds
            .filter_map(|(kind, probability)| is(kind).then_some(probability))
            .sum()
    }

    /// The probability of a class.
    pub(crate) fn of(&self, class: FeedbackStatus) -> f64 {
        self.sum(|kind| kind.class == class).into()
    }

    /// With the odds of a rejection multiplied by a factor.
    pub(crate) fn with_odds(&self, factor: f32) -> Self {
        let mut odds = self.kinds;
        for (odds, kind) in odds.iter_mut().zip(&KINDS) {
            if kind.class == FeedbackStatus::Rejected {
                *odds *= factor;
            }
        }
        Self::normal(self.hidden, odds)
    }

    /// How much each hidden unit speaks for a class here: the gradient of the logarithm of its probability.
    pub(crate) fn leaning(&self, class: FeedbackStatus) -> ByUnit {
        let all = self.sum(|kind| kind.class == class);
        let mut kinds = self.kinds.map(|probability| -probability);
        for ((leaning, kind), probability) in kinds.iter_mut().zip(&KINDS).zip(self.kinds) {
            if kind.class == class && all > 0.0 {
                *leaning += probability / all;
            }
        }
        let of = |unit| {
            let kinds = kinds.iter().enumerate();
            kinds
                .map(|(kind, leaning)| leaning * PARTS.second(unit, kind))
                .sum()
        };
        std::array::from_fn(|unit| {
            let is_silent = self.hidden.get(unit).is_none_or(|value| *value <= 0.0);
            if is_silent { 0.0 } else { of(unit) }
        })
    }
}

/// How much a feature speaks for the class of a leaning.
pub(crate) fn strength(index: usize, leaning: &ByUnit) -> f32 {
    PARTS.row(index).map_or(0.0, |(scale, row)| {
        let weights = unpacked(row).into_iter().zip(leaning);
        scale
            * weights
                .map(|(weight, leaning)| weight * leaning)
                .sum::<f32>()
    })
}

/// The parts of the weights.
struct Parts {
    bias: &'static [u8],
    second: &'static [u8],
    biases: &'static [u8],
    groups: &'static [u8],
    rows: &'static [u8],
}

static PARTS: Parts = parts();
/// Features of a group.
const GROUP: usize = 64;
/// Bytes of a group: the bits, and the number of features with weights before it.
const GROUP_BYTES: usize = 8 + 2;
/// Two weights in a byte: in its lower half that of a unit of the first half, in the other that of one of the second.
type Row = [u8; HIDDEN / 2];
/// Bytes of a feature: its scale, and its row.
const ROW_BYTES: usize = 4 + HIDDEN / 2;

/// Divides the weights when the program is compiled.
const fn parts() -> Parts {
    let (bias, rest) = WEIGHTS.split_at(HIDDEN * 4);
    let (second, rest) = rest.split_at(HIDDEN * KIND_COUNT * 4);
    let (biases, rest) = rest.split_at(KIND_COUNT * 4);
    let (groups, rows) = rest.split_at(COUNT.div_ceil(GROUP) * GROUP_BYTES);
    Parts {
        bias,
        second,
        biases,
        groups,
        rows,
    }
}

impl Parts {
    /// The weight of a hidden unit for a kind.
    fn second(&self, unit: usize, kind: usize) -> f32 {
        number(self.second, unit * KIND_COUNT + kind)
    }

    /// The scale and the weights of a feature, if it has some.
    fn row(&self, index: usize) -> Option<(f32, &'static Row)> {
        let group = self.groups.get(index / GROUP * GROUP_BYTES..)?;
        let (bits, rest) = group.split_first_chunk()?;
        let (bits, before) = (u64::from_le_bytes(*bits), rest.first_chunk()?);
        let bit = 1 << (index % GROUP);
        if bits & bit == 0 {
            return None;
        }
        let within = usize::try_from((bits & (bit - 1)).count_ones()).ok()?;
        let row = usize::from(u16::from_le_bytes(*before)) + within;
        let (scale, row) = self.rows.get(row * ROW_BYTES..)?.split_first_chunk()?;
        Some((f32::from_le_bytes(*scale), row.first_chunk()?))
    }
}

/// The weights of a row.
fn unpacked(row: &Row) -> ByUnit {
    let mut weights = [0.0; HIDDEN];
    let (first, second) = weights.split_at_mut(HIDDEN / 2);
    for ((first, second), byte) in first.iter_mut().zip(second).zip(row) {
        *first = f32::from((byte << 4).cast_signed() >> 4);
        *second = f32::from(byte.cast_signed() >> 4);
    }
    weights
}

fn number(bytes: &[u8], at: usize) -> f32 {
    let bytes = bytes.get(at * 4..).and_then(|rest| rest.first_chunk());
    bytes.map_or(0.0, |bytes| f32::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `train.py` sorts the kinds of the corpus like this.
    #[test]
    fn kinds_are_sorted() {
        let names = KINDS.map(|kind| (kind.class.as_str(), kind.name));
        assert!(names.is_sorted(), "{names:?}");
    }

    /// A model that was trained for other features compiles, so that it can be trained again.
    #[test]
    fn the_weights_are_those_of_the_features() {
        let kept = (0..COUNT).filter(|index| PARTS.row(*index).is_some());
        assert_eq!(PARTS.rows.len(), kept.count() * ROW_BYTES);
    }
}

//! The weights of the learned model, and what they say about a message.
//!
//! A multinomial logistic regression. `tests/detection/train.py` writes the weights: the scale of each block of
//! features, the bias of each class, and then a signed byte for each feature and class.

use crate::cue::FeedbackStatus;
use crate::learned::features::{BLOCKS, Features};

static WEIGHTS: &[u8] = include_bytes!("../../weights.bin");

/// The classes, in the order of the weights.
pub(crate) const CLASSES: [FeedbackStatus; 3] = [
    FeedbackStatus::Accepted,
    FeedbackStatus::Neutral,
    FeedbackStatus::Rejected,
];
/// Where the bytes of the features begin.
const FIRST: usize = (BLOCKS.len() + CLASSES.len()) * 4;

/// What the model says about a message.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Opinion {
    /// The probability of each class, in the order of [`CLASSES`].
    pub(crate) probabilities: [f32; 3],
}

impl Opinion {
    /// Reads the features of a message.
    pub(crate) fn read(features: &Features) -> Self {
        let mut logits = [0, 1, 2].map(|class| number(BLOCKS.len() + class));
        for (index, value) in &features.values {
            for (logit, weight) in logits.iter_mut().zip(weights(*index)) {
                *logit += value * weight;
            }
        }
        let highest = logits.iter().copied().fold(f32::MIN, f32::max);
        let powers = logits.map(|logit| (logit - highest).exp());
        let sum: f32 = powers.iter().sum();
        Self {
            probabilities: powers.map(|power| power / sum),
        }
    }

    /// The probability of a class.
    pub(crate) fn of(&self, class: FeedbackStatus) -> f64 {
        let mut classes = CLASSES.iter().zip(self.probabilities);
        let own = classes.find(|(of, _)| **of == class);
        own.map_or(0.0, |(_, probability)| probability.into())
    }
}

/// How much a feature speaks for each class.
pub(crate) fn weights(index: usize) -> [f32; 3] {
    let block = BLOCKS.iter().rposition(|first| *first <= index);
    let scale = block.map_or(0.0, number);
    let from = FIRST + index * CLASSES.len();
    let bytes = WEIGHTS.get(from..).and_then(|rest| rest.first_chunk::<3>());
    bytes.map_or([0.0; 3], |bytes| {
        bytes.map(|byte| scale * f32::from(byte.cast_signed()))
    })
}

/// A number at the start of the weights.
fn number(at: usize) -> f32 {
    let bytes = WEIGHTS
        .get(at * 4..)
        .and_then(|rest| rest.first_chunk::<4>());
    bytes.map_or(0.0, |bytes| f32::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learned::features::COUNT;

    /// A model that was trained for other features compiles, so that it can be trained again.
    #[test]
    fn the_weights_are_those_of_the_features() {
        assert_eq!(WEIGHTS.len(), FIRST + COUNT * CLASSES.len());
    }
}

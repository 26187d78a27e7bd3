//! Similarity of the embedded embedder's vectors, weighted by how rare each dimension is in the user's own turns.
//!
//! Stored vectors do not contain words, so the inverse document frequency of a word cannot be computed. The frequency
//! of a dimension can: a dimension that is strong in most turns contains words or subjects that the user
//! repeats in every turn, and gets a low weight. The weights are computed from the vectors that a search reads anyway.

use crate::turns::embedding::to_f32;
use crate::turns::quantized::Quantized;

/// Number of virtual turns with equal strengths, which smooth the weights of users with few turns.
const PRIOR_TURNS: f32 = 20.0;
/// Maximum number of turns that are sampled, evenly over time. More do not change the weights.
const MAX_SAMPLED_TURNS: usize = 1_000;
/// Added to each strength. It limits the weight of a dimension to about four times the average.
const SMOOTHING: f32 = 0.3;
/// The maximum quantized weight. The sum of 384 products of weights and squared bytes fits into 32 bits.
const MAX_WEIGHT: f32 = 255.0;
/// The maximum quantized number of the query vector, for the same reason.
const MAX_NUMBER: f32 = 8_191.0;

/// The weighted similarity of stored vectors to a query vector.
#[derive(Debug)]
pub struct WeightedSimilarity {
    /// The squared weight of each dimension, quantized.
    weights: Vec<i16>,
    /// The query vector, multiplied by the squared weights and quantized.
    weighted: Vec<i16>,
    /// The weighted length of the query vector, in the same scale.
    length: f64,
}

impl WeightedSimilarity {
    /// The similarity to `vector`, weighted for these turns; those with other dimensions are skipped. The squared weight
    /// of a dimension is inversely proportional to its strength in the turns.
    #[must_use]
    pub fn new(vector: &Quantized<'_>, turns: &[Quantized<'_>]) -> Self {
        let dimensions = vector.bytes().len();
        // The strengths of a turn add up to the number of dimensions, so that their average is 1.
        let total = u32::try_from(dimensions).map_or(0.0, f64::from);
        let mut strengths = vec![PRIOR_TURNS; dimensions];
        let mut count = PRIOR_TURNS;
        for turn in turns
            .iter()
            .step_by(turns.len().div_ceil(MAX_SAMPLED_TURNS).max(1))
        {
            let square = turn.square();
            if square > 0.0 && turn.bytes().len() == dimensions {
                let share = to_f32(total / square);
                for (strength, number) in strengths.iter_mut().zip(turn.numbers()) {
                    *strength += number * number * share;
                }
                count += 1.0;
            }
        }
        let weights = strengths
            .iter()
            .map(|strength| 1.0 / (strength / count + SMOOTHING));
        let weights = quantize(weights.collect(), MAX_WEIGHT);
        let weighted: Vec<_> = (vector.numbers().zip(&weights))
            .map(|(number, weight)| number * f32::from(*weight))
            .collect();
        let square: f32 = vector.numbers().zip(&weighted).map(|(a, b)| a * b).sum();
        let largest = weighted.iter().fold(0.0, |most: f32, x| most.max(x.abs()));
        let scale = if largest > 0.0 {
            MAX_NUMBER / largest
        } else {
            0.0
        };
        Self {
            weighted: quantize(weighted, MAX_NUMBER),
            weights,
            length: f64::from(square).sqrt() * f64::from(scale),
        }
    }

    /// The cosine of the query vector and `other`, −1 to 1; `None` if their dimensions differ.
    #[must_use]
    pub fn cosine(&self, other: &Quantized<'_>) -> Option<f64> {
        if self.weighted.len() != other.bytes().len() {
            return None;
        }
        // Four independent sums. The compiler does not unroll the loop when it optimizes for size.
        let mut sums = [(0_i32, 0_i32); 4];
        let (bytes, _) = other.bytes().as_chunks::<4>();
        let (weighted, _) = self.weighted.as_chunks::<4>();
        let (weights, _) = self.weights.as_chunks::<4>();
        for ((bytes, weighted), weights) in bytes.iter().zip(weighted).zip(weights) {
            let factors = bytes.iter().zip(weighted).zip(weights);
            for (((byte, weighted), weight), (dot, square)) in factors.zip(&mut sums) {
                let number = i32::from(byte.cast_signed());
                *dot += number * i32::from(*weighted);
                *square += number * number * i32::from(*weight);
            }
        }
        let dot: i32 = sums.iter().map(|(dot, _)| dot).sum();
        let square: i32 = sums.iter().map(|(_, square)| square).sum();
        let lengths = self.length * f64::from(square).sqrt();
        let cosine = if lengths > 0.0 {
            f64::from(dot) / lengths
        } else {
            0.0
        };
        Some(cosine.clamp(-1.0, 1.0))
    }
}

/// Scales numbers so that the largest magnitude becomes `largest`, and rounds them.
fn quantize(numbers: Vec<f32>, largest: f32) -> Vec<i16> {
    let most = numbers.iter().fold(0.0, |most: f32, x| most.max(x.abs()));
    let scale = if most > 0.0 { largest / most } else { 0.0 };
    numbers
        .into_iter()
        .map(|number| to_i16(number * scale))
        .collect()
}

#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "the number was scaled to fit"
)]
fn to_i16(number: f32) -> i16 {
    number.round() as i16
}

//! How rare the dimensions of the embedded embedder are in a user's own turns.
//!
//! A stored vector no longer knows its words, so that the inverse document frequency of a word cannot
//! be told from it. That of a dimension can: where most of a user's turns are strong, there is what the
//! user says in every turn, and it tells little. It is told from the vectors that a search reads
//! anyway.

use crate::embedding::{DIMENSIONS, Quantized, to_f32};

/// Turns that every user is taken to have had before the first, in which no dimension is rare.
const PRIOR_TURNS: f32 = 20.0;
/// The sum of the shares of all dimensions, so that one has 1 on average.
const AVERAGE: f64 = 256.0;
/// What every dimension has beside its own strength, which is 1 on average: none counts more than
/// about four times as much as the average.
const FLOOR: f32 = 0.3;

/// Numbers that are worked on at once, of which the dimensions are a multiple.
const LANES: usize = 8;
const _: () = assert!(DIMENSIONS.is_multiple_of(LANES));

/// How near stored vectors are to one, in the weights of a user's own turns.
#[derive(Debug)]
pub struct Towards {
    /// The square of each dimension's weight.
    weights: Vec<f32>,
    /// The vector, each number with that weight.
    weighted: Vec<f32>,
    square: f32,
}

impl Towards {
    /// Nearness to `vector` among these turns. The weight of a dimension is the inverse root of how
    /// strong it is in them.
    #[must_use]
    pub fn among<'a>(
        vector: &Quantized<'_>,
        turns: impl IntoIterator<Item = &'a Quantized<'a>>,
    ) -> Self {
        let mut strengths = vec![PRIOR_TURNS; DIMENSIONS];
        let mut count = PRIOR_TURNS;
        for turn in turns {
            let square = turn.square();
            if square > 0.0 && turn.bytes().len() == DIMENSIONS {
                // A share of 1 for each dimension, were the vector as strong in all.
                let share = to_f32(AVERAGE / square);
                for (strength, number) in strengths.iter_mut().zip(turn.numbers()) {
                    *strength += number * number * share;
                }
                count += 1.0;
            }
        }
        let weights: Vec<_> = (strengths.iter())
            .map(|strength| 1.0 / (strength / count + FLOOR))
            .collect();
        let weighted: Vec<_> = (vector.numbers().zip(&weights))
            .map(|(number, weight)| number * weight)
            .collect();
        let square = vector.numbers().zip(&weighted).map(|(a, b)| a * b).sum();
        Self {
            weights,
            weighted,
            square,
        }
    }

    /// The cosine of that vector and this, −1 to 1; `None` if they have not both [`DIMENSIONS`] numbers.
    #[must_use]
    pub fn cosine(&self, other: &Quantized<'_>) -> Option<f64> {
        let lengths = [self.weighted.len(), other.bytes().len()];
        if lengths != [DIMENSIONS; 2] {
            return None;
        }
        // Sums side by side, which the processor adds at once.
        let (mut dots, mut squares) = ([0.0_f32; LANES], [0.0_f32; LANES]);
        let (weighted, _) = self.weighted.as_chunks::<LANES>();
        let (weights, _) = self.weights.as_chunks::<LANES>();
        let (bytes, _) = other.bytes().as_chunks::<LANES>();
        for ((weighted, weights), bytes) in weighted.iter().zip(weights).zip(bytes) {
            let numbers = bytes.map(|byte| f32::from(byte.cast_signed()));
            let lanes = dots.iter_mut().zip(&mut squares);
            let factors = numbers.iter().zip(weighted).zip(weights);
            for ((dot, square), ((number, weighted), weight)) in lanes.zip(factors) {
                *dot += weighted * number;
                *square += weight * number * number;
            }
        }
        let (dot, square): (f32, f32) = (dots.iter().sum(), squares.iter().sum());
        let lengths = (self.square * square).sqrt();
        let cosine = if lengths > 0.0 { dot / lengths } else { 0.0 };
        Some(f64::from(cosine.clamp(-1.0, 1.0)))
    }
}

//! How rare the dimensions of the embedded embedder are in a user's own turns.
//!
//! A stored vector no longer knows its words, so that the inverse document frequency of a word cannot
//! be told from it. That of a dimension can: where most of a user's turns are strong, there is what the
//! user says in every turn, and it tells little. It is told from the vectors that a search reads
//! anyway.

use crate::embedding::{DIMENSIONS, Quantized, to_f32};

/// Turns that every user is taken to have had before the first, in which no dimension is rare.
const PRIOR_TURNS: f32 = 20.0;
/// Of how many turns the strengths are told, from all over the time: more would tell the same.
const TOLD_BY: usize = 1_000;
/// The sum of the shares of all dimensions, so that one has 1 on average.
const AVERAGE: f64 = 256.0;
/// What every dimension has beside its own strength: none counts more than about four times as much
/// as the average.
const FLOOR: f32 = 0.3;
/// The largest weight as a whole number. Sums of 256 products of it with squares of bytes fit into 32
/// bits.
const HEAVIEST: f32 = 255.0;
/// The largest number of the vector that is compared with, likewise.
const LARGEST: f32 = 8_191.0;

/// How near stored vectors are to one, in the weights of a user's own turns.
#[derive(Debug)]
pub struct Towards {
    /// The square of each dimension's weight, as a whole number.
    weights: Vec<i16>,
    /// The vector, each number with that weight, as a whole number.
    weighted: Vec<i16>,
    /// The vector's length, in the measure of both.
    length: f64,
}

impl Towards {
    /// Nearness to `vector` among these turns. The weight of a dimension is the inverse root of how
    /// strong it is in them.
    #[must_use]
    pub fn among(vector: &Quantized<'_>, turns: &[Quantized<'_>]) -> Self {
        let mut strengths = vec![PRIOR_TURNS; DIMENSIONS];
        let mut count = PRIOR_TURNS;
        for turn in turns.iter().step_by(turns.len().div_ceil(TOLD_BY).max(1)) {
            let square = turn.square();
            if square > 0.0 && turn.bytes().len() == DIMENSIONS {
                let share = to_f32(AVERAGE / square);
                for (strength, number) in strengths.iter_mut().zip(turn.numbers()) {
                    *strength += number * number * share;
                }
                count += 1.0;
            }
        }
        let weights = strengths
            .iter()
            .map(|strength| 1.0 / (strength / count + FLOOR));
        let weights = whole(weights.collect(), HEAVIEST);
        let weighted: Vec<_> = (vector.numbers().zip(&weights))
            .map(|(number, weight)| number * f32::from(*weight))
            .collect();
        let square: f32 = vector.numbers().zip(&weighted).map(|(a, b)| a * b).sum();
        let largest = weighted.iter().fold(0.0, |most: f32, x| most.max(x.abs()));
        let scale = if largest > 0.0 {
            LARGEST / largest
        } else {
            0.0
        };
        Self {
            weighted: whole(weighted, LARGEST),
            weights,
            length: f64::from(square).sqrt() * f64::from(scale),
        }
    }

    /// The cosine of that vector and this, −1 to 1; `None` if they have not both [`DIMENSIONS`] numbers.
    #[must_use]
    pub fn cosine(&self, other: &Quantized<'_>) -> Option<f64> {
        if [self.weighted.len(), other.bytes().len()] != [DIMENSIONS; 2] {
            return None;
        }
        // Four sums side by side, none of which waits for another. Where a function is built for its
        // size, nobody else sees to that.
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

/// Numbers as whole ones, of which the largest becomes `largest`.
fn whole(numbers: Vec<f32>, largest: f32) -> Vec<i16> {
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
    reason = "what was scaled to fit is rounded"
)]
fn to_i16(number: f32) -> i16 {
    number.round() as i16
}

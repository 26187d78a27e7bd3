//! Stored vectors: a signed byte for each number, and their cosine.

/// A stored vector as [`crate::turns::turn::quantized`] returns it: a scale, and a signed byte for each number. The scale is
/// ignored, because the cosine does not depend on it.
#[derive(Debug, Clone, Copy)]
pub struct Quantized<'a> {
    numbers: &'a [u8],
}

/// Bytes of the scale before the numbers.
const SCALE: usize = 4;
/// Number of products of two bytes whose sum always fits into 32 bits.
const CHUNK: usize = 4_096;

impl<'a> Quantized<'a> {
    /// Parses a stored vector; `None` if it is too short.
    #[must_use]
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        let numbers = bytes.get(SCALE..)?;
        Some(Self { numbers })
    }

    /// The quantized numbers, one signed byte each.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.numbers
    }

    /// The quantized numbers.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = f32> {
        (self.numbers.iter()).map(|byte| f32::from(byte.cast_signed()))
    }

    /// The first `count` numbers.
    pub(crate) fn first(&self, count: usize) -> Self {
        Self {
            numbers: self.numbers.get(..count).unwrap_or(self.numbers),
        }
    }

    /// The squared length of the quantized vector.
    pub(crate) fn square(&self) -> f64 {
        to_f64(dot(self.numbers, self.numbers))
    }

    /// The cosine of two stored vectors, −1 to 1; `None` if their dimensions differ.
    #[must_use]
    pub fn cosine(&self, other: &Quantized<'_>) -> Option<f64> {
        self.cosine_of(self.square(), other)
    }

    /// Like [`cosine`](Self::cosine), with the squared length of this vector precomputed.
    pub(crate) fn cosine_of(&self, square: f64, other: &Quantized<'_>) -> Option<f64> {
        if self.numbers.len() != other.numbers.len() {
            return None;
        }
        let dot = to_f64(dot(self.numbers, other.numbers));
        Some(quotient(dot, square, other.square()))
    }
}

fn dot(one: &[u8], other: &[u8]) -> i64 {
    let signed = |byte: &u8| i32::from(byte.cast_signed());
    let parts = one.chunks(CHUNK).zip(other.chunks(CHUNK));
    parts
        .map(|(one, other)| {
            let products = one.iter().zip(other).map(|(a, b)| signed(a) * signed(b));
            i64::from(products.sum::<i32>())
        })
        .sum()
}

#[expect(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "sums of squared bytes are far below 2^53"
)]
fn to_f64(sum: i64) -> f64 {
    sum as f64
}

fn quotient(dot: f64, one: f64, other: f64) -> f64 {
    let lengths = (one * other).sqrt();
    if lengths > 0.0 {
        (dot / lengths).clamp(-1.0, 1.0)
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::turns::turn::quantized;

    /// The cosine of two vectors, −1 to 1; `None` if their dimensions differ, 0 if one of them is zero.
    fn cosine(one: &[f32], other: &[f32]) -> Option<f64> {
        if one.len() != other.len() {
            return None;
        }
        let dot = |one: &[f32], other: &[f32]| -> f64 {
            let pairs = one.iter().zip(other);
            pairs.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
        };
        Some(quotient(dot(one, other), dot(one, one), dot(other, other)))
    }

    #[test]
    fn vectors_of_different_dimensions_have_no_cosine() {
        assert_eq!(cosine(&[1.0], &[1.0, 0.0]), None);
        assert!(Quantized::read(&[0, 0, 0]).is_none());
        let (one, two) = (quantized(&[1.0]), quantized(&[1.0, 0.0]));
        let [one, two] = [&one, &two].map(|bytes| Quantized::read(bytes).unwrap());
        assert_eq!(one.cosine(&two), None);
        assert_eq!(one.cosine(&one), Some(1.0));
    }

    proptest! {
        #[test]
        fn quantized_vectors_keep_their_cosine(
            pairs in prop::collection::vec((-1.0_f32..1.0, -1.0_f32..1.0), 64..300)
        ) {
            let (one, other): (Vec<f32>, Vec<f32>) = pairs.into_iter().unzip();
            let exact = cosine(&one, &other).unwrap();
            let (one, other) = (quantized(&one), quantized(&other));
            let stored = Quantized::read(&one).unwrap().cosine(&Quantized::read(&other).unwrap());
            prop_assert!((stored.unwrap() - exact).abs() < 0.02);
        }
    }
}

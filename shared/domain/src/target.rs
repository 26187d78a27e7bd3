//! Which past turn a message is about: the nearest by what was said, and by when.
//!
//! Source: `Feedback System` (v2.2), target location; product specification, section 3: 0.85 of
//! the score is similarity and 0.15 is recency, five turns, of the last 365 days.

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use crate::embedded::{Embedded, EmbeddingKind};
use crate::embedding::{NAME, Quantized};
use crate::rarity::Towards;

/// How many turns are found.
pub const TOP_K: usize = 5;
/// The least similarity at which a message is about a turn: recency alone is no reason.
pub const LEAST_SIMILARITY: f64 = 0.2;
/// How far back turns are looked for.
pub const WINDOW: TimeDelta = TimeDelta::days(365);
/// After how long a turn is half as recent.
pub const HALF_LIFE: TimeDelta = TimeDelta::days(7);
const SIMILARITY: f64 = 0.85;
const RECENCY: f64 = 0.15;

/// A past turn with its vector, as it is stored.
#[derive(Debug, Clone, Copy)]
pub struct Stored<'a, T> {
    /// Which turn it is.
    pub turn: T,
    /// When it was.
    pub ts: DateTime<Utc>,
    /// Its vector, as [`Embedded::stored`] makes it.
    pub vector: &'a [u8],
}

/// A turn that a message may be about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Target<T> {
    /// Which turn it is.
    pub turn: T,
    /// When it was.
    pub ts: DateTime<Utc>,
    /// How alike the vectors are, −1 to 1.
    pub similarity: f64,
    /// The score by which turns rank, −0.85 to 1.
    pub score: f64,
}

/// Which vectors of the user's turns were looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct Compared {
    /// Who made the vector of the text.
    pub embedding: EmbeddingKind,
    /// Turns of the project within 365 days whose vectors the same maker made: these were compared.
    pub candidates: usize,
    /// Turns of the project whose vectors another maker made: these cannot be found.
    pub not_comparable: usize,
}

/// How recent a turn is: 1 now, half of it a week later. What is ahead of our clock is now.
#[must_use]
pub fn recency(age: TimeDelta) -> f64 {
    let age = age.max(TimeDelta::zero());
    let half_lives = age.as_seconds_f64() / HALF_LIFE.as_seconds_f64();
    (-half_lives).exp2()
}

/// The score of a turn by its similarity, −1 to 1, and its age.
#[must_use]
pub fn score(similarity: f64, age: TimeDelta) -> f64 {
    SIMILARITY * similarity + RECENCY * recency(age)
}

/// So many turns with the highest scores, the highest first; of equal ones the newer. Turns
/// beyond [`WINDOW`], and those with vectors of another size, are passed over. Vectors of the embedded
/// embedder are compared by how rare each dimension is in these turns.
#[must_use]
pub fn nearest<'a, T>(
    about: &Embedded,
    stored: impl IntoIterator<Item = Stored<'a, T>>,
    now: DateTime<Utc>,
    count: usize,
) -> Vec<Target<T>> {
    let (turns, vectors): (Vec<_>, Vec<_>) = (stored.into_iter())
        .map(|stored| (Some(stored.turn), (stored.ts, stored.vector)))
        .unzip();
    let mut turns = turns;
    let best = ranked(about, &vectors, now, count).into_iter();
    best.filter_map(|ranked| {
        let turn = turns.get_mut(ranked.turn).and_then(Option::take)?;
        Some(Target {
            turn,
            ts: ranked.ts,
            similarity: ranked.similarity,
            score: ranked.score,
        })
    })
    .collect()
}

/// [`nearest`] of turns that are called by their places. It is for no type, so that it is compiled here,
/// for speed, and not for size with whoever calls it.
fn ranked(
    about: &Embedded,
    stored: &[(DateTime<Utc>, &[u8])],
    now: DateTime<Utc>,
    count: usize,
) -> Vec<Target<usize>> {
    let mut best: Vec<Target<usize>> = Vec::with_capacity(count + 1);
    let vector = about.stored();
    let Some(vector) = Quantized::read(&vector) else {
        return best;
    };
    let (turns, vectors): (Vec<_>, Vec<_>) = (stored.iter().enumerate())
        .filter(|(_, (ts, _))| now - *ts <= WINDOW)
        .filter_map(|(turn, (ts, vector))| Some(((turn, *ts), Quantized::read(vector)?)))
        .unzip();
    let square = vector.square();
    let towards = (about.embedder == NAME).then(|| Towards::among(&vector, &vectors));
    for ((turn, ts), stored) in turns.into_iter().zip(&vectors) {
        let cosine = match &towards {
            Some(towards) => towards.cosine(stored),
            None => vector.cosine_of(square, stored),
        };
        let Some(similarity) = cosine else {
            continue;
        };
        let score = score(similarity, now - ts);
        let after =
            |other: &Target<usize>| other.score > score || (other.score >= score && other.ts >= ts);
        let at = best.partition_point(after);
        if at < count {
            let target = Target {
                turn,
                ts,
                similarity,
                score,
            };
            best.insert(at, target);
            best.truncate(count);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::turn::quantized;

    fn now() -> DateTime<Utc> {
        "2026-01-04T09:30:00Z".parse().unwrap()
    }

    fn read(bytes: &[u8]) -> Quantized<'_> {
        Quantized::read(bytes).unwrap()
    }

    fn given(vector: &[f32]) -> Embedded {
        Embedded::given(vector)
    }

    #[test]
    fn recency_halves_in_a_week() {
        assert!((recency(TimeDelta::zero()) - 1.0).abs() < 1e-12);
        assert!((recency(TimeDelta::days(7)) - 0.5).abs() < 1e-12);
        assert!((recency(TimeDelta::days(-1)) - 1.0).abs() < 1e-12);
        assert!((score(1.0, TimeDelta::days(14)) - (0.85 + 0.15 * 0.25)).abs() < 1e-12);
    }

    #[test]
    fn the_turn_that_is_meant_comes_first() {
        let texts = [
            "gaming laptops",
            "hamster food",
            "a table for two",
            "train to Rome",
            "tax",
            "x",
        ];
        let vectors: Vec<_> = texts
            .iter()
            .map(|text| Embedded::lexical(text).stored())
            .collect();
        let stored = texts
            .iter()
            .zip(&vectors)
            .enumerate()
            .map(|(days, (text, vector))| Stored {
                turn: *text,
                ts: now() - TimeDelta::days(i64::try_from(days).unwrap()),
                vector,
            });
        let query = Embedded::lexical("that food for my hamster was wrong");
        let found = nearest(&query, stored, now(), TOP_K);
        assert_eq!(found.len(), TOP_K);
        assert_eq!(found[0].turn, "hamster food");
    }

    #[test]
    fn what_is_said_in_every_turn_tells_little() {
        let mut texts: Vec<_> = (0..60)
            .map(|n| format!("dear assistant, please book number {n}"))
            .collect();
        texts.push("dear assistant, a hamster".to_owned());
        let vectors: Vec<_> = (texts.iter())
            .map(|text| Embedded::lexical(text).stored())
            .collect();
        let query = Embedded::lexical("dear assistant, hamster number");
        let of_all = query.stored();
        let [polite, hamster] = [&vectors[7], &vectors[60]].map(|bytes| read(bytes));
        let plain =
            read(&of_all).cosine(&hamster).unwrap() - read(&of_all).cosine(&polite).unwrap();
        let all: Vec<_> = vectors.iter().map(|bytes| read(bytes)).collect();
        let towards = Towards::among(&read(&of_all), &all);
        let weighted = towards.cosine(&hamster).unwrap() - towards.cosine(&polite).unwrap();
        assert!(weighted > plain + 0.1, "{weighted} {plain}");
    }

    #[test]
    fn turns_beyond_the_window_are_passed_over() {
        let vector = quantized(&[1.0, 0.0]);
        let turn = |days| Stored {
            turn: days,
            ts: now() - TimeDelta::days(days),
            vector: &vector,
        };
        let found = nearest(
            &given(&[1.0, 0.0]),
            [turn(366), turn(365), turn(1)],
            now(),
            TOP_K,
        );
        let turns: Vec<_> = found.iter().map(|target| target.turn).collect();
        assert_eq!(turns, [1, 365]);
    }

    proptest! {
        #[test]
        fn the_best_are_those_of_a_full_sort(
            turns in prop::collection::vec((-1.0_f32..1.0, -1.0_f32..1.0, 0_i64..400), 0..40)
        ) {
            let vectors: Vec<_> = turns.iter().map(|(x, y, _)| quantized(&[*x, *y])).collect();
            let stored = || turns.iter().zip(&vectors).enumerate().map(|(n, ((_, _, days), vector))| Stored {
                turn: n,
                ts: now() - TimeDelta::days(*days),
                vector,
            });
            let found = nearest(&given(&[0.6, 0.8]), stored(), now(), TOP_K);
            let mut all: Vec<f64> = stored()
                .filter(|turn| now() - turn.ts <= WINDOW)
                .flat_map(|turn| nearest(&given(&[0.6, 0.8]), [turn], now(), TOP_K))
                .map(|target| target.score)
                .collect();
            all.sort_by(|a, b| b.total_cmp(a));
            all.truncate(TOP_K);
            let scores: Vec<f64> = found.iter().map(|target| target.score).collect();
            prop_assert_eq!(scores, all);
        }
    }
}

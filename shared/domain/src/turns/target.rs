//! Finds the past turn that a message is about, by similarity and recency.
//!
//! See docs/reference/rules.md, "Target location".

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use crate::turns::embedded::{Embedded, EmbeddingKind};
use crate::turns::embedding::{LEXICAL_DIMENSIONS, NAME};
use crate::turns::quantized::Quantized;
use crate::turns::rarity::WeightedSimilarity;

/// The number of turns in a result.
pub const TOP_K: usize = 5;
/// The minimum similarity of a message and the turn it is about. Recency alone is not sufficient.
pub const MIN_SIMILARITY: f64 = 0.2;
/// The maximum age of the turns.
pub const WINDOW: TimeDelta = TimeDelta::days(365);
/// The age at which the recency of a turn is one half.
pub const HALF_LIFE: TimeDelta = TimeDelta::days(7);
/// The weight of the similarity in the score.
pub const SIMILARITY: f64 = 0.85;
/// The weight of the recency in the score.
pub const RECENCY: f64 = 0.15;

/// A past turn with its stored vector.
#[derive(Debug, Clone, Copy)]
pub struct Stored<'a, T> {
    /// The turn.
    pub turn: T,
    /// The time of the turn.
    pub ts: DateTime<Utc>,
    /// The vector of the turn, as [`Embedded::stored`] returns it.
    pub vector: &'a [u8],
}

/// A turn that a message may be about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Target<T> {
    /// The turn.
    pub turn: T,
    /// The time of the turn.
    pub ts: DateTime<Utc>,
    /// The similarity of the vectors, −1 to 1.
    pub similarity: f64,
    /// The score by which turns are ranked, −0.85 to 1.
    pub score: f64,
}

/// The vectors that a search compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct Compared {
    /// The embedder of the text's vector.
    pub embedding: EmbeddingKind,
    /// Turns of the project in the last 365 days with vectors of the same embedder, which were compared.
    pub candidates: usize,
    /// Turns of the project with vectors of another embedder, which cannot be found.
    pub not_comparable: usize,
}

/// The recency of a turn: 1 now, halved every week. A negative age counts as 0.
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

/// The `count` turns with the highest scores, the highest first; of equal scores the newer turn. Turns older than
/// [`WINDOW`] and vectors with other dimensions are skipped. Vectors of the embedded embedder are compared by
/// [`WeightedSimilarity`], with those of earlier versions by their lexical half.
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

/// [`nearest`] for turns that are identified by their index. It is not generic, so that it is compiled in this crate,
/// which is optimized for speed.
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
    let is_embedded = about.embedder == NAME;
    let whole = is_embedded.then(|| WeightedSimilarity::new(&vector, &vectors));
    let has_earlier = |vector: &Quantized<'_>| vector.bytes().len() == LEXICAL_DIMENSIONS;
    let lexical = (is_embedded && vectors.iter().any(has_earlier))
        .then(|| WeightedSimilarity::new(&vector.first(LEXICAL_DIMENSIONS), &vectors));
    for ((turn, ts), stored) in turns.into_iter().zip(&vectors) {
        let cosine = if is_embedded {
            let mut weighted = [&whole, &lexical].into_iter().flatten();
            weighted.find_map(|weighted| weighted.cosine(stored))
        } else {
            vector.cosine_of(square, stored)
        };
        let Some(similarity) = cosine else {
            continue;
        };
        let score = score(similarity, now - ts);
        let ranks_before =
            |other: &Target<usize>| other.score > score || (other.score >= score && other.ts >= ts);
        let at = best.partition_point(ranks_before);
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
    use crate::turns::turn::quantized;

    fn now() -> DateTime<Utc> {
        "2026-01-04T09:30:00Z".parse().unwrap()
    }

    fn read(bytes: &[u8]) -> Quantized<'_> {
        Quantized::read(bytes).unwrap()
    }

    fn from_caller(vector: &[f32]) -> Embedded {
        Embedded::from_caller(vector)
    }

    #[test]
    fn the_recency_halves_every_week() {
        assert!((recency(TimeDelta::zero()) - 1.0).abs() < 1e-12);
        assert!((recency(TimeDelta::days(7)) - 0.5).abs() < 1e-12);
        assert!((recency(TimeDelta::days(-1)) - 1.0).abs() < 1e-12);
        assert!((score(1.0, TimeDelta::days(14)) - (0.85 + 0.15 * 0.25)).abs() < 1e-12);
    }

    #[test]
    fn the_turn_with_the_same_words_comes_first() {
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
            .map(|text| Embedded::of(text).stored())
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
        let query = Embedded::of("that food for my hamster was wrong");
        let found = nearest(&query, stored, now(), TOP_K);
        assert_eq!(found.len(), TOP_K);
        assert_eq!(found[0].turn, "hamster food");
    }

    #[test]
    fn words_that_occur_in_every_turn_have_a_low_weight() {
        let mut texts: Vec<_> = (0..60)
            .map(|n| format!("dear assistant, please book number {n}"))
            .collect();
        texts.push("dear assistant, a hamster".to_owned());
        let vectors: Vec<_> = (texts.iter())
            .map(|text| Embedded::of(text).stored())
            .collect();
        let query = Embedded::of("dear assistant, hamster number");
        let query_vector = query.stored();
        let [polite, hamster] = [&vectors[7], &vectors[60]].map(|bytes| read(bytes));
        let plain = read(&query_vector).cosine(&hamster).unwrap()
            - read(&query_vector).cosine(&polite).unwrap();
        let all: Vec<_> = vectors.iter().map(|bytes| read(bytes)).collect();
        let similarity = WeightedSimilarity::new(&read(&query_vector), &all);
        let weighted = similarity.cosine(&hamster).unwrap() - similarity.cosine(&polite).unwrap();
        assert!(weighted > plain + 0.1, "{weighted} {plain}");
    }

    #[test]
    fn vectors_of_earlier_versions_are_compared_by_their_lexical_half() {
        let texts = ["hamster food", "gaming laptops", "train to Rome"];
        let vectors: Vec<_> = (texts.iter().enumerate())
            .map(|(at, text)| {
                let vector = Embedded::of(text).vector;
                let length = if at < 2 {
                    LEXICAL_DIMENSIONS
                } else {
                    vector.len()
                };
                quantized(&vector[..length])
            })
            .collect();
        let stored = || {
            texts.iter().zip(&vectors).map(|(text, vector)| Stored {
                turn: *text,
                ts: now(),
                vector,
            })
        };
        for text in texts {
            let query = Embedded::of(&format!("the {text} please"));
            let found = nearest(&query, stored(), now(), TOP_K);
            assert_eq!((found.len(), found[0].turn), (texts.len(), text));
            assert!(found[0].similarity > 0.6, "{found:?}");
        }
        let other = from_caller(&Embedded::of("hamster food").vector);
        assert_eq!(nearest(&other, stored(), now(), TOP_K).len(), 1);
    }

    #[test]
    fn turns_older_than_the_window_are_skipped() {
        let vector = quantized(&[1.0, 0.0]);
        let turn = |days| Stored {
            turn: days,
            ts: now() - TimeDelta::days(days),
            vector: &vector,
        };
        let found = nearest(
            &from_caller(&[1.0, 0.0]),
            [turn(366), turn(365), turn(1)],
            now(),
            TOP_K,
        );
        let turns: Vec<_> = found.iter().map(|target| target.turn).collect();
        assert_eq!(turns, [1, 365]);
    }

    proptest! {
        #[test]
        fn the_result_equals_that_of_a_full_sort(
            turns in prop::collection::vec((-1.0_f32..1.0, -1.0_f32..1.0, 0_i64..400), 0..40)
        ) {
            let vectors: Vec<_> = turns.iter().map(|(x, y, _)| quantized(&[*x, *y])).collect();
            let stored = || turns.iter().zip(&vectors).enumerate().map(|(n, ((_, _, days), vector))| Stored {
                turn: n,
                ts: now() - TimeDelta::days(*days),
                vector,
            });
            let found = nearest(&from_caller(&[0.6, 0.8]), stored(), now(), TOP_K);
            let mut all: Vec<f64> = stored()
                .filter(|turn| now() - turn.ts <= WINDOW)
                .flat_map(|turn| nearest(&from_caller(&[0.6, 0.8]), [turn], now(), TOP_K))
                .map(|target| target.score)
                .collect();
            all.sort_by(|a, b| b.total_cmp(a));
            all.truncate(TOP_K);
            let scores: Vec<f64> = found.iter().map(|target| target.score).collect();
            prop_assert_eq!(scores, all);
        }
    }
}

//! A user's turns by time, each with its embedding. The turn before a follow-up and the target of a
//! message are found here.
//!
//! They are in the partition of their user, so that no search reaches another user's turns.

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity};
use chrono::{DateTime, Utc};
use hearback_domain::events::recency::MAX_AHEAD;
use hearback_domain::identity::identifier::{ProjectId, UserRef};
use hearback_domain::turns::embedded::Embedded;
use hearback_domain::turns::target::{Compared, Stored, Target, WINDOW, nearest};
use hearback_domain::turns::turn::{TurnCore, TurnRef};
use serde::{Deserialize, Serialize};

use crate::attributes::CORE;
use crate::item::{self, Builder, Item};
use crate::turn_rows::IndexRow;
use crate::{Error, Store, keys};

const VECTOR: &str = "turn vector";
const EMBEDDING: &str = "embedding";
/// Largest number of candidates whose rows are read at once.
const CANDIDATES: usize = 25;
/// Largest number of candidates whose rows are read if those before do not suffice.
pub const MAX_CANDIDATES: usize = 250;

/// A reference to a user's turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnMark {
    /// The turn.
    #[serde(flatten)]
    pub at: TurnRef,
    /// The time of the turn.
    pub ts: DateTime<Utc>,
    /// The embedder of its vector.
    pub embedder: String,
}

/// A user's turn with its stored embedding.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnVector {
    /// The reference to the turn.
    pub mark: TurnMark,
    /// The quantized embedding: a scale, and a signed byte for each dimension.
    pub embedding: Vec<u8>,
}

/// Turns that a text may be about.
#[derive(Debug, Clone, PartialEq)]
pub struct Targets {
    /// The turns, the likeliest first.
    pub found: Vec<(Target<TurnRef>, IndexRow)>,
    /// The vectors that were compared.
    pub compared: Compared,
}

/// A time range.
#[derive(Debug, Clone, Copy)]
pub struct TimeRange {
    /// The start, included.
    pub from: DateTime<Utc>,
    /// The end, not included.
    pub to: DateTime<Utc>,
}

/// Which of a user's turns a text may be about.
#[derive(Debug, Clone, Copy)]
pub struct TargetSearch<'a> {
    /// Whose turns.
    pub owner: UserRef<'a>,
    /// Their project.
    pub project: &'a ProjectId,
    /// The vector of the text.
    pub about: &'a Embedded,
    /// The time of the search: recent turns are likelier.
    pub now: DateTime<Utc>,
}

impl Store {
    /// Stores the vector of a user's turn, or replaces it. One call, one write.
    pub async fn put_vector(&self, turn: &TurnCore, embedded: &Embedded) -> Result<(), Error> {
        let mark = TurnMark {
            at: turn.at.clone(),
            ts: turn.ts,
            embedder: embedded.embedder.clone(),
        };
        let mut item = Builder::new(keys::user(turn.owner()), keys::vector(turn.ts, &turn.at))
            .json(VECTOR, CORE, &mark)?
            .expires_at(turn.expires_at)
            .build();
        let bytes = AttributeValue::B(Blob::new(embedded.stored()));
        item.insert(EMBEDDING.to_owned(), bytes);
        self.client
            .put_item()
            .table_name(&self.table)
            .set_item(Some(item))
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
            .send()
            .await
            .map(|_| ())
            .map_err(|error| Error::unavailable("PutItem", &error))
    }

    /// A user's latest turns in a time range with their vectors, at most `limit`, the latest first, and whether there may
    /// be more. Strongly consistent. One call, one read for each 4 KB.
    pub async fn latest_turns(
        &self,
        owner: UserRef<'_>,
        span: TimeRange,
        limit: i32,
    ) -> Result<(Vec<TurnVector>, bool), Error> {
        let query = self.turns_of(owner, span);
        let response = query
            .consistent_read(true)
            .limit(limit)
            .send()
            .await
            .map_err(|error| Error::unavailable("Query", &error))?;
        let items = response.items().iter();
        let turns = items.filter_map(|item| item::readable(item, stored(item)));
        Ok((turns.collect(), response.last_evaluated_key().is_some()))
    }

    /// The user's own turns of a project that a text may be about, the likeliest first, at most 25.
    /// Only vectors of comparable embedders are compared. One eventually consistent query over a year
    /// of turns: one call for each MB, half a read for each 4 KB. One more call, and a read for
    /// each candidate.
    pub async fn targets(&self, search: &TargetSearch<'_>) -> Result<Targets, Error> {
        let (mut candidates, compared) = self.candidates(search).await?;
        candidates.truncate(CANDIDATES);
        Ok(Targets {
            found: self.own_turns(search, candidates).await?,
            compared,
        })
    }

    /// Up to `count` of the user's own turns of a project that a text may be about, the likeliest first. Those that
    /// `wanted` rejects, and those less similar than `least`, are skipped; at most the 250 likeliest are examined.
    /// The costs are those of [`targets`](Self::targets), for each 25 candidates that are `least` similar.
    pub async fn wanted_targets<T>(
        &self,
        search: &TargetSearch<'_>,
        least: f64,
        count: usize,
        wanted: impl Fn(&Target<TurnRef>, IndexRow) -> Option<T>,
    ) -> Result<(Vec<T>, Compared), Error> {
        let (mut candidates, compared) = self.candidates(search).await?;
        candidates.retain(|target| target.similarity >= least);
        let mut found = Vec::new();
        while found.len() < count && !candidates.is_empty() {
            let rest = candidates.split_off(candidates.len().min(CANDIDATES));
            let turns = self.own_turns(search, candidates).await?;
            let turns = turns.into_iter();
            found.extend(turns.filter_map(|(target, row)| wanted(&target, row)));
            candidates = rest;
        }
        found.truncate(count);
        Ok((found, compared))
    }

    /// The likeliest turns that a text may be about, and the vectors that were compared.
    async fn candidates(
        &self,
        search: &TargetSearch<'_>,
    ) -> Result<(Vec<Target<TurnRef>>, Compared), Error> {
        let TargetSearch {
            owner,
            project,
            about,
            now,
        } = *search;
        let span = TimeRange {
            from: now - WINDOW,
            to: now + MAX_AHEAD,
        };
        let turns = self.vectors_of(owner, span, now).await?;
        let of_project = (turns.iter()).filter(|turn| turn.mark.at.within.project == *project);
        let (comparable, others): (Vec<_>, Vec<_>) =
            of_project.partition(|turn| about.is_comparable(&turn.mark.embedder));
        let compared = Compared {
            embedding: about.kind(),
            candidates: comparable.len(),
            not_comparable: others.len(),
        };
        let stored = comparable.into_iter().map(|turn| Stored {
            turn: &turn.mark.at,
            ts: turn.mark.ts,
            vector: &turn.embedding,
        });
        let mut targets: Vec<Target<TurnRef>> = Vec::new();
        for target in nearest(about, stored, now, MAX_CANDIDATES) {
            // A turn may have two vectors, one of which is valid.
            if !targets.iter().any(|other| other.turn == *target.turn) {
                targets.push(Target {
                    turn: target.turn.clone(),
                    ts: target.ts,
                    similarity: target.similarity,
                    score: target.score,
                });
            }
        }
        Ok((targets, compared))
    }

    /// The turns that are still stored, complete, and the user's own.
    async fn own_turns(
        &self,
        search: &TargetSearch<'_>,
        targets: Vec<Target<TurnRef>>,
    ) -> Result<Vec<(Target<TurnRef>, IndexRow)>, Error> {
        let at: Vec<TurnRef> = targets.iter().map(|target| target.turn.clone()).collect();
        let rows = self.live_turns(&at, search.now).await?;
        let own = targets.into_iter().zip(rows).filter_map(|(target, row)| {
            // An open turn has no answer yet.
            let row = row.filter(|row| row.core.user_id == *search.owner.user && !row.core.open)?;
            Some((target, row))
        });
        Ok(own.collect())
    }

    async fn vectors_of(
        &self,
        owner: UserRef<'_>,
        span: TimeRange,
        now: DateTime<Utc>,
    ) -> Result<Vec<TurnVector>, Error> {
        let mut turns = Vec::new();
        let mut resume = None;
        loop {
            let query = self.turns_of(owner, span);
            let response = query
                .set_exclusive_start_key(resume)
                .send()
                .await
                .map_err(|error| Error::unavailable("Query", &error))?;
            for item in response
                .items()
                .iter()
                .filter(|item| !item::is_expired(item, now))
            {
                turns.extend(item::readable(item, stored(item)));
            }
            resume = response.last_evaluated_key;
            if resume.is_none() {
                return Ok(turns);
            }
        }
    }

    /// A query for a user's turns in a time range, the latest first.
    fn turns_of(&self, owner: UserRef<'_>, span: TimeRange) -> QueryFluentBuilder {
        self.client
            .query()
            .table_name(&self.table)
            .key_condition_expression("PK = :pk AND SK BETWEEN :from AND :to")
            .expression_attribute_values(":pk", AttributeValue::S(keys::user(owner)))
            .expression_attribute_values(":from", AttributeValue::S(keys::vectors(span.from)))
            // A turn at `to` has a longer key, and so sorts after this.
            .expression_attribute_values(":to", AttributeValue::S(keys::vectors(span.to)))
            .scan_index_forward(false)
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
    }
}

fn stored(item: &Item) -> Result<TurnVector, Error> {
    let embedding = item.get(EMBEDDING).and_then(|bytes| bytes.as_b().ok());
    Ok(TurnVector {
        mark: item::json(item, VECTOR, CORE)?,
        embedding: embedding
            .map(|bytes| bytes.as_ref().to_vec())
            .ok_or_else(|| Error::unreadable(VECTOR, "embedding is missing"))?,
    })
}

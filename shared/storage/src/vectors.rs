//! A user's turns by time, each with its embedding: where a follow-up finds what it follows, and what
//! is searched for what it is about.
//!
//! They lie in the partition of their user, so that nobody's search reaches another's turns.

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity};
use chrono::{DateTime, Utc};
use hearback_domain::embedded::Embedded;
use hearback_domain::identifier::{ProjectId, TenantId, UserId};
use hearback_domain::reaction::AHEAD;
use hearback_domain::target::{Compared, Stored, Target, WINDOW, nearest};
use hearback_domain::turn::{TurnCore, TurnRef};
use serde::{Deserialize, Serialize};

use crate::item::{self, Builder, Item};
use crate::turns::{CORE, IndexRow};
use crate::{Error, Store, keys};

const VECTOR: &str = "turn vector";
const EMBEDDING: &str = "embedding";
/// Turns among which the one before is looked for: nobody has more in other conversations within a
/// session.
const LATEST: i32 = 25;
/// Turns that may be what is looked for.
const CANDIDATES: usize = 25;

/// A turn of a user's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Mark {
    /// Where it is.
    #[serde(flatten)]
    pub at: TurnRef,
    /// When it was.
    pub ts: DateTime<Utc>,
    /// What made its embedding: vectors of one maker can be compared.
    pub embedder: String,
}

/// A turn of a user's, with its embedding as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnVector {
    /// Which turn.
    pub mark: Mark,
    /// A scale, and a signed byte for each number.
    pub embedding: Vec<u8>,
}

/// Turns that a text may be about.
#[derive(Debug, Clone, PartialEq)]
pub struct Targets {
    /// The turns, the likeliest first.
    pub found: Vec<(Target<TurnRef>, IndexRow)>,
    /// Among which vectors they were looked for.
    pub compared: Compared,
}

/// A span of time: from the first, included, to the second, not included.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    /// The first instant.
    pub from: DateTime<Utc>,
    /// The first one behind.
    pub to: DateTime<Utc>,
}

impl Store {
    /// Notes a turn of a user's, in the place of what was noted of it before. One call, one write.
    pub async fn put_vector(&self, turn: &TurnCore, embedded: &Embedded) -> Result<(), Error> {
        let mark = Mark {
            at: turn.at.clone(),
            ts: turn.ts,
            embedder: embedded.embedder.clone(),
        };
        let mut item = Builder::new(
            keys::user(&turn.at.within.tenant, &turn.user_id),
            keys::vector(turn.ts, &turn.at),
        )
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

    /// The latest of a user's turns of a span with their vectors, at most 25, the latest first; sees
    /// every write that was acknowledged. One call, one read for each 4 KB.
    pub async fn latest_turns(
        &self,
        owner: (&TenantId, &UserId),
        span: Span,
    ) -> Result<Vec<TurnVector>, Error> {
        let query = self.turns_of(owner, span);
        let found = query
            .consistent_read(true)
            .limit(LATEST)
            .send()
            .await
            .map_err(|error| Error::unavailable("Query", &error))?;
        found.items().iter().map(stored).collect()
    }

    /// The user's own turns of a project that a text may be about, the likeliest first, at most
    /// 25, as far as their vectors are of the maker of this one. One query over a year of
    /// turns, which may miss what was written a moment ago: a call for each MB, half a read for each
    /// 4 KB; and a call and a read for each candidate.
    pub async fn targets(
        &self,
        owner: (&TenantId, &UserId),
        project: &ProjectId,
        about: &Embedded,
        now: DateTime<Utc>,
    ) -> Result<Targets, Error> {
        let span = Span {
            from: now - WINDOW,
            to: now + AHEAD,
        };
        let turns = self.vectors_of(owner, span, now).await?;
        let of_project = (turns.iter()).filter(|turn| turn.mark.at.within.project == *project);
        let (comparable, others): (Vec<_>, Vec<_>) =
            of_project.partition(|turn| turn.mark.embedder == about.embedder);
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
        let mut found: Vec<Target<TurnRef>> = Vec::new();
        for target in nearest(about, stored, now, CANDIDATES) {
            // A turn may be marked twice, of which one counts.
            if !found.iter().any(|other| other.turn == *target.turn) {
                found.push(Target {
                    turn: target.turn.clone(),
                    ts: target.ts,
                    similarity: target.similarity,
                    score: target.score,
                });
            }
        }
        let at: Vec<TurnRef> = found.iter().map(|target| target.turn.clone()).collect();
        let rows = self.live_turns(&at, now).await?;
        let (_, user) = owner;
        let own = found.into_iter().zip(rows).filter_map(|(target, row)| {
            // Nothing is about an answer that is not there yet.
            let row = row.filter(|row| row.core.user_id == *user && !row.core.open)?;
            Some((target, row))
        });
        Ok(Targets {
            found: own.collect(),
            compared,
        })
    }

    async fn vectors_of(
        &self,
        owner: (&TenantId, &UserId),
        span: Span,
        now: DateTime<Utc>,
    ) -> Result<Vec<TurnVector>, Error> {
        let mut turns = Vec::new();
        let mut resume = None;
        loop {
            let query = self.turns_of(owner, span);
            let found = query
                .set_exclusive_start_key(resume)
                .send()
                .await
                .map_err(|error| Error::unavailable("Query", &error))?;
            for item in found
                .items()
                .iter()
                .filter(|item| !item::is_expired(item, now))
            {
                turns.push(stored(item)?);
            }
            resume = found.last_evaluated_key;
            if resume.is_none() {
                return Ok(turns);
            }
        }
    }

    /// A query for a user's turns of a span, the latest first.
    fn turns_of(&self, (tenant, user): (&TenantId, &UserId), span: Span) -> QueryFluentBuilder {
        self.client
            .query()
            .table_name(&self.table)
            .key_condition_expression("PK = :pk AND SK BETWEEN :from AND :to")
            .expression_attribute_values(":pk", AttributeValue::S(keys::user(tenant, user)))
            .expression_attribute_values(":from", AttributeValue::S(keys::vectors(span.from)))
            // What is at `to` itself has more behind its time, and so sorts behind this.
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

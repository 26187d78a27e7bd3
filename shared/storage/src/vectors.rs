//! A user's turns by time, each with its embedding: where a follow-up finds what it follows, and what
//! is searched for what it is about.
//!
//! They lie in the partition of their user, so that nobody's search reaches another's turns.

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity};
use chrono::{DateTime, Utc};
use hearback_domain::embedded::Embedded;
use hearback_domain::identifier::{ProjectId, TenantId, UserId};
use hearback_domain::reaction::AHEAD;
use hearback_domain::target::{Stored, Target, WINDOW, top_k};
use hearback_domain::turn::{TurnCore, TurnRef};
use serde::{Deserialize, Serialize};

use crate::item::{self, Builder, Item};
use crate::preferences::Freshness;
use crate::turns::CORE;
use crate::{Error, Store, keys};

const VECTOR: &str = "turn vector";
const EMBEDDING: &str = "embedding";

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

/// A span of time: from the first, included, to the second, not included.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    /// The first instant.
    pub from: DateTime<Utc>,
    /// The first one behind.
    pub to: DateTime<Utc>,
}

impl Store {
    /// Notes a turn of a user's. The same again is there already. One call, one write.
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

    /// A user's turns of a span, the latest first. One call for each MB, one read for each 4 KB, or
    /// half.
    pub async fn turns_of(
        &self,
        (tenant, user): (&TenantId, &UserId),
        span: Span,
        freshness: Freshness,
    ) -> Result<Vec<TurnVector>, Error> {
        let mut turns = Vec::new();
        let mut resume = None;
        loop {
            let found = self
                .client
                .query()
                .table_name(&self.table)
                .key_condition_expression("PK = :pk AND SK BETWEEN :from AND :to")
                .expression_attribute_values(":pk", AttributeValue::S(keys::user(tenant, user)))
                .expression_attribute_values(":from", AttributeValue::S(keys::vectors(span.from)))
                // What is at `to` itself has more behind its time, and so sorts behind this.
                .expression_attribute_values(":to", AttributeValue::S(keys::vectors(span.to)))
                .scan_index_forward(false)
                .consistent_read(freshness.is_consistent())
                .set_exclusive_start_key(resume)
                .return_consumed_capacity(ReturnConsumedCapacity::Total)
                .send()
                .await
                .map_err(|error| Error::unavailable("Query", &error))?;
            for item in found.items() {
                turns.push(stored(item)?);
            }
            resume = found.last_evaluated_key;
            if resume.is_none() {
                return Ok(turns);
            }
        }
    }
}

impl Store {
    /// The user's own turns of a project that a text may be about, the likeliest first, as far as
    /// their vectors are of the maker of this one. One query over a year of turns.
    pub async fn targets(
        &self,
        (tenant, user): (&TenantId, &UserId),
        project: &ProjectId,
        about: &Embedded,
        now: DateTime<Utc>,
    ) -> Result<Vec<Target<TurnRef>>, Error> {
        let span = Span {
            from: now - WINDOW,
            to: now + AHEAD,
        };
        let turns = self
            .turns_of((tenant, user), span, Freshness::Eventual)
            .await?;
        let comparable = turns.iter().filter(|TurnVector { mark, .. }| {
            mark.at.within.project == *project && mark.embedder == about.embedder
        });
        let stored = comparable.map(|turn| Stored {
            turn: &turn.mark.at,
            ts: turn.mark.ts,
            vector: &turn.embedding,
        });
        let found = top_k(&about.vector, stored, now).into_iter();
        Ok(found
            .map(|target| Target {
                turn: target.turn.clone(),
                ts: target.ts,
                similarity: target.similarity,
                score: target.score,
            })
            .collect())
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

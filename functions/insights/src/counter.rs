//! Counts the hours that messages are about, and their days.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent};
use chrono::{DateTime, NaiveDate, Utc};
use futures::stream::{self, StreamExt};
use hearback_domain::identity::identifier::{Label, ProjectId, TenantId};
use hearback_domain::turns::turn::{ConversationRef, TurnRef};
use hearback_domain::views::insights::Interval;
use hearback_lambda::MissingSetting;
use hearback_lambda::app::store_from_env;
use hearback_lambda::aws::{Aws, Service};
use hearback_lambda::clock::Clock;
use hearback_lambda::dead_letters::DeadLetters;
use hearback_lambda::queue::{MessageFailure, Reason, RetryLimit, report};
use hearback_lambda::settings::setting;
use hearback_storage::insights::{CountedHour, Marked, ProjectRef, TurnDigest, Wanted};
use hearback_storage::stream::CountedTurn;
use hearback_storage::{Error, Store};
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use crate::message::Message;

/// The setting that names the URL of the queue for dead letters of the insights' queue.
pub const INSIGHTS_DEAD_LETTERS_URL: &str = "HEARBACK_INSIGHTS_DEAD_LETTERS_URL";
/// Hours or days that are counted at the same time.
const AT_ONCE: usize = 8;
/// How often counts are begun again, because another worker replaced them or the index lags behind.
const ATTEMPTS: usize = 5;
/// How long the count of an hour may take, less than half of the function's timeout: an hour with too many events must
/// not stop the others of its batch.
const HOUR_TIMEOUT: Duration = Duration::from_secs(45);
/// How long a batch may take, less than the function's timeout. The messages of what is not counted then come again.
const BATCH_TIMEOUT: Duration = Duration::from_secs(105);
/// How long an index may lag behind before the hour is counted again.
const LAG: Duration = Duration::from_secs(1);

/// Processes the queue of insights.
#[derive(Debug, Clone)]
pub struct Counter {
    store: Store,
    clock: Clock,
    dead_letters: DeadLetters,
}

/// Why a message was not processed.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("the message cannot be read")]
    Unreadable,
    #[error("the index by hour does not show the change yet")]
    NotIndexed,
    #[error("counting the hour takes longer than {} seconds", HOUR_TIMEOUT.as_secs())]
    TooManyEvents,
    #[error("the batch takes too long")]
    OutOfTime,
    #[error("other workers replaced the counts {ATTEMPTS} times")]
    Contended,
    #[error(transparent)]
    Storage(#[from] Error),
}

impl MessageFailure for Failure {
    fn tries(&self) -> RetryLimit {
        match self {
            Self::Unreadable => RetryLimit::Few,
            Self::TooManyEvents | Self::NotIndexed | Self::Contended | Self::OutOfTime => {
                RetryLimit::Many
            }
            Self::Storage(error) => error.tries(),
        }
    }
}

/// What a count must show.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Expected {
    /// The event.
    Present(Uuid),
    /// The event, as retracted.
    Retracted(Uuid),
    /// Not the event.
    Gone(Uuid),
    /// The turn in this state.
    Turn(CountedTurn),
}

/// A project's hour or day.
type ProjectInterval = (TenantId, ProjectId, Interval);
/// What messages expect of an hour, each with its index in the batch.
type Expectations = Vec<(usize, Expected)>;

impl Counter {
    /// A counter with its dead letters.
    #[must_use]
    pub fn new(store: Store, clock: Clock, dead_letters: DeadLetters) -> Self {
        Self {
            store,
            clock,
            dead_letters,
        }
    }

    /// Reads the settings and builds the clients.
    pub fn from_env() -> Result<Self, MissingSetting> {
        let sqs = aws_sdk_sqs::Client::new(&Aws::from_env(Service::Sqs).config());
        let dead_letters = DeadLetters::new(sqs, setting(INSIGHTS_DEAD_LETTERS_URL)?);
        Ok(Self::new(store_from_env()?, Clock::system(), dead_letters))
    }

    /// Processes messages, and returns those that must be delivered again.
    pub async fn handle(&self, batch: SqsEvent) -> SqsBatchResponse {
        let deadline = Instant::now() + BATCH_TIMEOUT;
        let mut failures: BTreeMap<usize, Reason> = BTreeMap::new();
        let mut changes = Vec::new();
        for (index, message) in batch.records.iter().enumerate() {
            let body = message.body.as_deref().unwrap_or_default();
            match serde_json::from_str::<Message>(body) {
                Ok(message) => changes.push((index, message)),
                Err(_) => _ = failures.insert(index, Failure::Unreadable.into()),
            }
        }
        let processed = |message: &Message| match message {
            Message::Processed {
                tenant,
                project_id: Some(_),
                feedback_id,
                ..
            } => Some((tenant.clone(), *feedback_id)),
            Message::Processed { .. }
            | Message::Retracted { .. }
            | Message::Erased { .. }
            | Message::TurnChanged { .. } => None,
        };
        let events = changes.iter().filter_map(|(_, message)| processed(message));
        // The message about a retraction may have come before its event was processed.
        let retracted = match Box::pin(self.store.retracted(&events.collect())).await {
            Ok(retracted) => retracted,
            Err(error) => {
                let reason = Reason::from(error);
                let failed = changes.extract_if(.., |(_, message)| processed(message).is_some());
                failures.extend(failed.map(|(index, _)| (index, reason.clone())));
                BTreeSet::new()
            }
        };
        let mut hours: BTreeMap<ProjectInterval, Expectations> = BTreeMap::new();
        for (index, message) in changes {
            match self.expectation(message, &retracted).await {
                Ok(None) => {}
                Ok(Some((place, expected))) => {
                    let expectations = hours.entry(place).or_default();
                    expectations.push((index, expected));
                }
                Err(failure) => _ = failures.insert(index, failure.into()),
            }
        }
        let mut days: BTreeMap<(TenantId, ProjectId, NaiveDate), BTreeSet<usize>> = BTreeMap::new();
        let counted = stream::iter(hours)
            .map(async |(place, expectations)| {
                let limit = Instant::now() + HOUR_TIMEOUT;
                let counting = Box::pin(self.count_hour(&place, &expectations));
                let counted = timeout_at(limit.min(deadline), counting).await;
                let late = if limit < deadline {
                    Failure::TooManyEvents
                } else {
                    Failure::OutOfTime
                };
                (place, expectations, counted.unwrap_or(Err(late)))
            })
            .buffer_unordered(AT_ONCE)
            .collect::<Vec<_>>();
        for ((tenant, project, hour), expectations, counted) in counted.await {
            let messages: BTreeSet<_> = expectations.iter().map(|(index, _)| *index).collect();
            match counted {
                Ok(unseen) => {
                    let day = (tenant, project, hour.day());
                    days.entry(day).or_default().extend(messages);
                    let reason = Reason::from(Failure::NotIndexed);
                    failures.extend(unseen.into_iter().map(|index| (index, reason.clone())));
                }
                Err(failure) => {
                    let reason = Reason::from(failure);
                    failures.extend(messages.into_iter().map(|index| (index, reason.clone())));
                }
            }
        }
        let counted = stream::iter(days)
            .map(async |(day, messages)| {
                let counted = timeout_at(deadline, Box::pin(self.count_day(&day))).await;
                (messages, counted.unwrap_or(Err(Failure::OutOfTime)))
            })
            .buffer_unordered(AT_ONCE)
            .collect::<Vec<_>>();
        for (messages, counted) in counted.await {
            if let Err(failure) = counted {
                let reason = Reason::from(failure);
                failures.extend(messages.into_iter().map(|index| (index, reason.clone())));
            }
        }
        let failed = batch.records.into_iter().enumerate();
        let failed =
            failed.filter_map(|(index, message)| Some((message, failures.remove(&index)?)));
        report(&self.dead_letters, failed.collect()).await
    }

    /// The hour that a message is about, and what its count must show; `None` if nothing is counted.
    async fn expectation(
        &self,
        message: Message,
        retracted: &BTreeSet<(TenantId, Uuid)>,
    ) -> Result<Option<(ProjectInterval, Expected)>, Failure> {
        let hour = |tenant: TenantId, project: Option<Label>, at: DateTime<Utc>| {
            // Events name projects by labels, which may be longer.
            let project = ProjectId::try_from(project?.as_str()).ok()?;
            Some((tenant, project, Interval::hour_of(at)))
        };
        Ok(match message {
            Message::Processed {
                tenant,
                project_id,
                feedback_id,
                occurred_at,
            } => {
                if retracted.contains(&(tenant.clone(), feedback_id)) {
                    return self.retract(tenant, feedback_id).await;
                }
                hour(tenant, project_id, occurred_at)
                    .map(|hour| (hour, Expected::Present(feedback_id)))
            }
            Message::Retracted {
                tenant,
                feedback_id,
            } => self.retract(tenant, feedback_id).await?,
            Message::Erased {
                tenant,
                project_id,
                feedback_id,
                occurred_at,
            } => hour(tenant, Some(project_id), occurred_at)
                .map(|hour| (hour, Expected::Gone(feedback_id))),
            Message::TurnChanged {
                tenant,
                project_id,
                conversation_id,
                turn_id,
                hour,
                position,
                state,
            } => {
                let at = TurnRef {
                    within: ConversationRef {
                        tenant: tenant.clone(),
                        project: project_id.clone(),
                        conversation: conversation_id,
                    },
                    turn: turn_id,
                };
                let turn = CountedTurn {
                    at,
                    hour,
                    position,
                    state,
                };
                let place = (tenant, project_id, Interval::hour_of(hour));
                Some((place, Expected::Turn(turn)))
            }
        })
    }

    /// Marks an event as retracted. If it has no outcome yet, the message about that finds the retraction.
    async fn retract(
        &self,
        tenant: TenantId,
        event: Uuid,
    ) -> Result<Option<(ProjectInterval, Expected)>, Failure> {
        Ok(
            match Box::pin(self.store.mark_retracted(&tenant, event)).await? {
                Marked::In(project, hour) => {
                    let place = (tenant, project, Interval::Hour(hour));
                    Some((place, Expected::Retracted(event)))
                }
                Marked::Uncounted => None,
            },
        )
    }

    /// Counts an hour. Returns the messages whose change the count did not show.
    async fn count_hour(
        &self,
        (tenant, project, hour): &ProjectInterval,
        expectations: &Expectations,
    ) -> Result<BTreeSet<usize>, Failure> {
        let mut wanted = Wanted::default();
        for (_, expected) in expectations {
            match expected {
                Expected::Present(event) | Expected::Retracted(event) | Expected::Gone(event) => {
                    wanted.events.insert(*event);
                }
                Expected::Turn(turn) => _ = wanted.turns.insert(turn.position.clone()),
            }
        }
        let place = ProjectRef { tenant, project };
        let mut unseen = BTreeSet::new();
        for attempt in 0..ATTEMPTS {
            if !unseen.is_empty() {
                tokio::time::sleep(LAG).await;
                unseen.clear();
            }
            let now = self.clock.now();
            // Read before the events are counted: a writer that replaces the counts meanwhile makes this one begin
            // again.
            let current = self.store.overview(place, *hour).await?;
            let counted = self.store.count_hour(place, hour.begin(), &wanted, now);
            let mut counted = counted.await?;
            let put = self.store.put_counts(
                place,
                *hour,
                std::mem::take(&mut counted.rollup).bounded(),
                (current.as_ref(), now),
                counted.expires_at,
            );
            if !put.await? {
                continue;
            }
            let changed = expectations
                .iter()
                .filter_map(|(_, expected)| match expected {
                    Expected::Turn(turn) => {
                        let seen = counted.turns.get(&turn.position);
                        (seen != turn.state.as_ref()).then_some(&turn.at)
                    }
                    Expected::Present(_) | Expected::Retracted(_) | Expected::Gone(_) => None,
                });
            let current = self.store.turn_digests(changed).await?;
            for (index, expected) in expectations {
                if !self
                    .is_shown(tenant, (&counted, &current), expected)
                    .await?
                {
                    unseen.insert(*index);
                }
            }
            if unseen.is_empty() || attempt + 1 == ATTEMPTS {
                return Ok(unseen);
            }
        }
        Err(Failure::Contended)
    }

    /// Whether a count shows what a message expects, or the current state of the event or turn.
    async fn is_shown(
        &self,
        tenant: &TenantId,
        (counted, current): (&CountedHour, &BTreeMap<String, TurnDigest>),
        expected: &Expected,
    ) -> Result<bool, Failure> {
        Ok(match expected {
            Expected::Present(event) => {
                counted.seen.contains_key(event) || !self.store.is_counted(tenant, *event).await?
            }
            Expected::Retracted(event) => match counted.seen.get(event) {
                Some(is_retracted) => *is_retracted,
                None => !self.store.is_counted(tenant, *event).await?,
            },
            Expected::Gone(event) => !counted.seen.contains_key(event),
            Expected::Turn(turn) => {
                let seen = counted.turns.get(&turn.position);
                seen == turn.state.as_ref() || seen == current.get(&turn.position)
            }
        })
    }

    async fn count_day(
        &self,
        (tenant, project, day): &(TenantId, ProjectId, NaiveDate),
    ) -> Result<(), Failure> {
        let place = ProjectRef { tenant, project };
        for _ in 0..ATTEMPTS {
            let day = Interval::Day(*day);
            if self.store.count_day(place, day, self.clock.now()).await? {
                return Ok(());
            }
        }
        Err(Failure::Contended)
    }
}

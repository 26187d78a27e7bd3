//! The training export: preference pairs and labelled answers, as JSON Lines in the bucket.
//!
//! A run walks the days. On each it meets the conversations in which somebody reacted, by their activity
//! markers, and lists a turn when it comes to the last day on which anybody reacted to it. What was said of
//! messages lies with those who said it, so a run first learns, from keys alone, which messages of the
//! period anything was said of; the turns among them to which nobody reacted come last. Memory holds those
//! keys, the conversations of a few days, one file of each kind and a few turns.
//!
//! Files, manifest and `resume` are as those of a day (`day.rs`).

mod files;
mod listed;
mod said;

use chrono::{DateTime, NaiveDate, Utc};
use futures::stream::{self, StreamExt, TryStreamExt};
use hearback_domain::evaluation::Request;
use hearback_domain::identifier::ConversationId;
use hearback_domain::training::{Asked, Days, Kind, last_day};
use hearback_domain::turn::{ConversationRef, TurnRef};
use hearback_storage::activity::Day;
use hearback_storage::exports::ExportRun;
use hearback_storage::message_signals::MessageKey;
use hearback_storage::reactions::behind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ops::AddAssign;

use crate::{Exporter, Failure, ROWS_AT_ONCE, drawn, opened, run_name, sealed};
use files::Files;
use listed::{Found, Listed, TURNS_AT_ONCE};
pub(crate) use said::MOST;
use said::Said;

/// Days whose markers are read at once.
const DAYS_AT_ONCE: usize = 4;
/// Shards of each of them.
const SHARDS_AT_ONCE: usize = 4;

/// What a run wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Trained {
    /// The days whose feedback it is of, both included.
    pub days: Days,
    /// The preference pairs.
    pub pairs: Written,
    /// The labelled answers.
    pub labels: Written,
    /// What is not in them, and why.
    pub left_out: Unlearned,
    /// Where this is written down once all is done, an `s3://` URI.
    pub manifest: Option<String>,
    /// With which `resume` to ask for the rest; `null` when all is done.
    pub resume: Option<String>,
}

/// Rows of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Written {
    /// The files, each an `s3://` URI.
    pub files: Vec<String>,
    /// Rows in them.
    pub rows: u64,
}

/// What gave no rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unlearned {
    /// Signals that no model may learn from.
    pub excluded: u64,
    /// Answers of which people say different things.
    pub contested: u64,
    /// Answers whose turn is gone.
    pub without_turn: u64,
    /// Labels and pairs with an empty text, or two that are the same.
    pub without_text: u64,
}

impl AddAssign for Unlearned {
    fn add_assign(&mut self, other: Self) {
        self.excluded += other.excluded;
        self.contested += other.contested;
        self.without_turn += other.without_turn;
        self.without_text += other.without_text;
    }
}

/// How far a run is.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Progress {
    run: String,
    days: Days,
    /// When the run began: a turn is listed where it belonged then.
    as_of: DateTime<Utc>,
    at: At,
    files: Vec<(Kind, String, u32)>,
    rows: (u64, u64),
    left_out: Unlearned,
}

/// Where a run goes on.
#[derive(Debug, Clone, Serialize, Deserialize)]
enum At {
    /// On this day, behind a conversation, or within it from a key on.
    Reactions {
        day: NaiveDate,
        conversation: Option<(ConversationId, Option<String>)>,
    },
    /// Among what was only said of messages, behind this one.
    Signals { after: Option<MessageKey> },
}

impl Exporter {
    /// Writes what a model can learn, or what a run before did not get to.
    pub(crate) async fn training(
        &self,
        request: &Request,
        asked: &Asked,
        until: Option<DateTime<Utc>>,
    ) -> Result<Trained, Failure> {
        let progress = match opened(request)? {
            Some(progress) => progress,
            None => self.begin(asked)?,
        };
        let into = ExportRun::of_training(&request.tenant, &asked.project, &progress.run);
        let said = self.said(&request.tenant, &progress.days).await?;
        let mut run = Run {
            exporter: self,
            request,
            asked,
            until,
            said,
            files: Files::new(&self.blobs, into, drawn()),
            progress,
        };
        let done = run.write().await?;
        run.finish(done).await
    }

    fn begin(&self, asked: &Asked) -> Result<Progress, Failure> {
        let now = self.clock.now();
        let days = asked.days(now.date_naive());
        let days = days.map_err(|error| Failure::Invalid(vec![error]))?;
        Ok(Progress {
            run: run_name(now),
            days,
            as_of: now,
            at: At::Reactions {
                day: days.from,
                conversation: None,
            },
            files: Vec::new(),
            rows: (0, 0),
            left_out: Unlearned::default(),
        })
    }
}

/// Whether a run goes on, or its time is up.
#[derive(PartialEq, Eq)]
enum Time {
    Left,
    Up,
}

struct Run<'a> {
    exporter: &'a Exporter,
    request: &'a Request,
    asked: &'a Asked,
    until: Option<DateTime<Utc>>,
    said: Said,
    files: Files<'a>,
    progress: Progress,
}

impl Run<'_> {
    /// Writes until all is done, or the time is up; answers which.
    async fn write(&mut self) -> Result<bool, Failure> {
        if let At::Reactions { day, conversation } = self.progress.at.clone() {
            if self.reactions(day, conversation).await? == Time::Up {
                return Ok(false);
            }
            self.progress.at = At::Signals { after: None };
        }
        Ok(self.signals().await? == Time::Left)
    }

    /// Lists the turns to which anybody reacted, day by day.
    async fn reactions(
        &mut self,
        first: NaiveDate,
        mut begun: Option<(ConversationId, Option<String>)>,
    ) -> Result<Time, Failure> {
        let days: Vec<_> = self.progress.days.each_from(first).collect();
        for some in days.chunks(DAYS_AT_ONCE) {
            // All of them, before anything else is waited for: a call that nobody waits for times out.
            let met: Vec<_> = stream::iter(some.iter().copied())
                .map(async |day| Ok::<_, Failure>((day, self.conversations(day).await?)))
                .buffered(DAYS_AT_ONCE)
                .try_collect()
                .await?;
            for (day, met) in met {
                if self.day(day, met, begun.take()).await? == Time::Up {
                    return Ok(Time::Up);
                }
            }
        }
        Ok(Time::Left)
    }

    /// The conversations in which anybody reacted on a day.
    async fn conversations(&self, date: NaiveDate) -> Result<BTreeSet<ConversationId>, Failure> {
        let store = &self.exporter.store;
        let day = Day::whole(&self.request.tenant, &self.asked.project, date);
        let shards = stream::iter(0..store.shards())
            .map(|shard| store.activity(day, shard, None))
            .buffer_unordered(SHARDS_AT_ONCE);
        let markers = shards.try_fold(BTreeSet::new(), async |mut met, (markers, _)| {
            met.extend(
                markers
                    .into_iter()
                    .map(|(_, activity)| activity.conversation),
            );
            Ok(met)
        });
        Ok(markers.await?)
    }

    /// Lists the turns that belong to a day, of these conversations, from the one on that was begun.
    async fn day(
        &mut self,
        day: NaiveDate,
        met: BTreeSet<ConversationId>,
        begun: Option<(ConversationId, Option<String>)>,
    ) -> Result<Time, Failure> {
        for conversation in met {
            let from = match &begun {
                Some((begun, key)) if *begun == conversation => match key {
                    Some(key) => Some(key.clone()),
                    None => continue,
                },
                Some((begun, _)) if *begun > conversation => continue,
                Some(_) | None => None,
            };
            if self.conversation(day, conversation, from).await? == Time::Up {
                return Ok(Time::Up);
            }
        }
        Ok(Time::Left)
    }

    /// Lists the turns of a conversation whose last reaction was on this day.
    async fn conversation(
        &mut self,
        day: NaiveDate,
        conversation: ConversationId,
        mut from: Option<String>,
    ) -> Result<Time, Failure> {
        let exporter = self.exporter;
        let within = ConversationRef {
            tenant: self.request.tenant.clone(),
            project: self.asked.project.clone(),
            conversation,
        };
        loop {
            let page = (exporter.store)
                .reacted_turns(&within, from.as_deref(), exporter.clock.now())
                .await?;
            let days = self.progress.days;
            let as_of = self.progress.as_of;
            let found: Vec<_> = (page.turns.into_iter())
                .filter(|(_, reactions)| last_day(reactions, &days, as_of) == Some(day))
                .map(|(turn, reactions)| Found {
                    at: TurnRef {
                        within: within.clone(),
                        turn,
                    },
                    reactions,
                })
                .collect();
            for found in found.chunks(ROWS_AT_ONCE) {
                self.list(found).await?;
                let last = found.last().map(|found| behind(&found.at.turn));
                self.reached(day, &within, last);
                if self.is_up() {
                    return Ok(Time::Up);
                }
            }
            from = page.next;
            self.reached(day, &within, from.clone());
            if self.is_up() {
                return Ok(Time::Up);
            }
            if from.is_none() {
                return Ok(Time::Left);
            }
        }
    }

    /// Notes that a run is in a conversation, at a key, or behind it.
    fn reached(&mut self, day: NaiveDate, within: &ConversationRef, key: Option<String>) {
        let conversation = Some((within.conversation.clone(), key));
        self.progress.at = At::Reactions { day, conversation };
    }

    /// Lists the turns of which something was said, and to which nobody reacted.
    async fn signals(&mut self) -> Result<Time, Failure> {
        let exporter = self.exporter;
        loop {
            let At::Signals { after } = &self.progress.at else {
                return Ok(Time::Left);
            };
            let Some((places, last)) = self.said.behind(after.as_ref(), ROWS_AT_ONCE) else {
                return Ok(Time::Left);
            };
            let now = exporter.clock.now();
            let said = exporter.store.signals_at(&places, now).await?;
            let mut turns: Vec<TurnRef> = said.into_iter().map(|said| said.core.at).collect();
            turns.retain(|at| at.within.project == self.asked.project);
            turns.sort();
            turns.dedup();
            let mut found = Vec::new();
            for at in turns {
                let reactions = exporter.store.live_reactions_of(&at, now).await?;
                // One to which somebody reacted was listed on its day.
                if last_day(&reactions, &self.progress.days, self.progress.as_of).is_none() {
                    found.push(Found { at, reactions });
                }
            }
            for found in found.chunks(ROWS_AT_ONCE) {
                self.list(found).await?;
            }
            self.progress.at = At::Signals { after: Some(last) };
            if self.is_up() {
                return Ok(Time::Up);
            }
        }
    }

    /// Writes the rows of some turns.
    async fn list(&mut self, found: &[Found]) -> Result<(), Failure> {
        let exporter = self.exporter;
        let judged = exporter
            .judged(found, &self.said, &self.progress.days)
            .await?;
        for some in judged.chunks(TURNS_AT_ONCE) {
            let listed = exporter.listed(some, &self.said, &self.progress.days);
            for listed in listed.await? {
                self.add(listed).await?;
            }
        }
        Ok(())
    }

    async fn add(&mut self, listed: Listed) -> Result<(), Failure> {
        let Listed {
            pairs,
            label,
            left_out,
        } = listed;
        self.progress.left_out += left_out;
        let (paired, labelled) = &mut self.progress.rows;
        for pair in &pairs {
            self.files.add(Kind::Pairs, pair).await?;
            *paired += 1;
        }
        if let Some(label) = &label {
            self.files.add(Kind::Labels, label).await?;
            *labelled += 1;
        }
        Ok(())
    }

    fn is_up(&self) -> bool {
        let now = self.exporter.clock.now();
        self.until.is_some_and(|until| now >= until)
    }

    async fn finish(mut self, done: bool) -> Result<Trained, Failure> {
        self.progress.files.extend(self.files.close().await?);
        let (pairs, labels) = self.progress.rows;
        let written = |of, rows| Written {
            files: (self.progress.files.iter())
                .filter(|(kind, _, _)| *kind == of)
                .flat_map(|(_, invocation, count)| self.files.uris(of, invocation, *count))
                .collect(),
            rows,
        };
        let mut trained = Trained {
            days: self.progress.days,
            pairs: written(Kind::Pairs, pairs),
            labels: written(Kind::Labels, labels),
            left_out: self.progress.left_out,
            manifest: None,
            resume: None,
        };
        if done {
            trained.manifest = Some(self.files.manifest());
            self.files.put_manifest(&trained).await?;
        } else {
            trained.resume = Some(sealed(self.request, &self.progress));
        }
        Ok(trained)
    }
}

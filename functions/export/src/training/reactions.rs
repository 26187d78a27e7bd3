//! The turns with reactions, day by day.

use std::collections::BTreeSet;

use chrono::NaiveDate;
use futures::stream::{self, StreamExt, TryStreamExt};
use hearback_domain::export::training::last_day;
use hearback_domain::identity::identifier::ConversationId;
use hearback_domain::turns::turn::{ConversationRef, TurnRef};
use hearback_storage::activity::ActivityDay;
use hearback_storage::reactions::key_after_turn;

use super::progress::ResumePoint;
use super::rows::ReviewedTurn;
use super::run::{Run, Step};
use crate::{Failure, ROWS_AT_ONCE};

/// Days whose markers are read concurrently.
const DAYS_AT_ONCE: usize = 4;
/// Shards of each day that are read concurrently.
const SHARDS_AT_ONCE: usize = 4;

impl Run<'_> {
    /// Exports the turns with reactions from the day `first` on. The first day may be resumed in a conversation.
    pub(super) async fn export_reactions(
        &mut self,
        first: NaiveDate,
        mut resumed: Option<(ConversationId, Option<String>)>,
    ) -> Result<Step, Failure> {
        let days: Vec<_> = self.progress.days.each_from(first).collect();
        for days in days.chunks(DAYS_AT_ONCE) {
            // Await all of these calls first: one that is not polled would time out.
            let days: Vec<_> = stream::iter(days.iter().copied())
                .map(async |day| Ok::<_, Failure>((day, self.conversations(day).await?)))
                .buffered(DAYS_AT_ONCE)
                .try_collect()
                .await?;
            for (day, conversations) in days {
                if self.export_day(day, conversations, resumed.take()).await? == Step::OutOfTime {
                    return Ok(Step::OutOfTime);
                }
            }
        }
        Ok(Step::Done)
    }

    /// The conversations with reactions on a day.
    async fn conversations(&self, date: NaiveDate) -> Result<BTreeSet<ConversationId>, Failure> {
        let store = &self.exporter.store;
        let day = ActivityDay::whole(&self.request.tenant, &self.training.project, date);
        let shards = stream::iter(0..store.shards())
            .map(|shard| store.activity(day, shard, None))
            .buffer_unordered(SHARDS_AT_ONCE);
        let conversations = shards.try_fold(BTreeSet::new(), async |mut found, (markers, _)| {
            found.extend(
                markers
                    .into_iter()
                    .map(|(_, activity)| activity.conversation),
            );
            Ok(found)
        });
        Ok(conversations.await?)
    }

    /// Exports the turns of these conversations that belong to a day.
    async fn export_day(
        &mut self,
        day: NaiveDate,
        conversations: BTreeSet<ConversationId>,
        resumed: Option<(ConversationId, Option<String>)>,
    ) -> Result<Step, Failure> {
        for conversation in conversations {
            let from = match &resumed {
                Some((resumed, key)) if *resumed == conversation => match key {
                    Some(key) => Some(key.clone()),
                    None => continue,
                },
                Some((resumed, _)) if *resumed > conversation => continue,
                Some(_) | None => None,
            };
            if self.export_conversation(day, conversation, from).await? == Step::OutOfTime {
                return Ok(Step::OutOfTime);
            }
        }
        Ok(Step::Done)
    }

    /// Exports the turns of a conversation whose last reaction was on this day.
    async fn export_conversation(
        &mut self,
        day: NaiveDate,
        conversation: ConversationId,
        mut from: Option<String>,
    ) -> Result<Step, Failure> {
        let exporter = self.exporter;
        let within = ConversationRef {
            tenant: self.request.tenant.clone(),
            project: self.training.project.clone(),
            conversation,
        };
        loop {
            let page = (exporter.store)
                .reacted_turns(&within, from.as_deref(), exporter.clock.now())
                .await?;
            let days = self.progress.days;
            let as_of = self.progress.as_of;
            let turns: Vec<_> = (page.turns.into_iter())
                .filter(|(_, reactions)| last_day(reactions, &days, as_of) == Some(day))
                .map(|(turn, reactions)| ReviewedTurn {
                    at: TurnRef {
                        within: within.clone(),
                        turn,
                    },
                    reactions,
                })
                .collect();
            for chunk in turns.chunks(ROWS_AT_ONCE) {
                self.write_turns(chunk).await?;
                let last = chunk.last().map(|turn| key_after_turn(&turn.at.turn));
                self.note_position(day, &within, last);
                if self.is_out_of_time() {
                    return Ok(Step::OutOfTime);
                }
            }
            from = page.next;
            self.note_position(day, &within, from.clone());
            if self.is_out_of_time() {
                return Ok(Step::OutOfTime);
            }
            if from.is_none() {
                return Ok(Step::Done);
            }
        }
    }

    /// Notes that the run continues at a key of a conversation, or after the conversation without one.
    fn note_position(&mut self, day: NaiveDate, within: &ConversationRef, key: Option<String>) {
        let conversation = Some((within.conversation.clone(), key));
        self.progress.at = ResumePoint::Reactions { day, conversation };
    }
}

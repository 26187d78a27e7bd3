//! The one way by which events of a batch come into the table, whichever way the batch came.

use chrono::{DateTime, Utc};
use futures::future::join_all;
use hearback_domain::caller::{Caller, Scope};
use hearback_domain::event::{EventCore, FeedbackEvent};
use hearback_domain::identifier::{TenantId, UserId};
use hearback_domain::privacy::Pseudonyms;
use hearback_domain::submission::{Refused, Rejection, Submission};
use hearback_lambda::clock::Clock;
use hearback_lambda::{App, BadSetting, FromEnv};
use hearback_storage::{Attempt, Error, LARGEST, Store, Written};
use serde_json::Value;
use uuid::Uuid;

use crate::order::{Order, Turn};
use crate::pace::Pace;

/// The error of an event that is larger than the table keeps.
const TOO_LARGE: &str = "too_large_to_store";

/// Takes events into the table, at a pace that it bears.
#[derive(Debug, Clone)]
pub struct Intake {
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    pseudonyms: Pseudonyms,
    pace: Pace,
}

/// Who sends events.
#[derive(Debug, Clone, Copy)]
pub enum Sender<'a> {
    /// Who called with a token, which holds some projects.
    Token(&'a Caller),
    /// Who may write into the tenant's queue or folder, and so speaks for all of it.
    BackEnd(&'a Caller),
}

/// An event that is in the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// Which it is.
    pub feedback_id: Uuid,
    /// Of several events with this key the first counts; in the caller's own names.
    pub dedupe_key: String,
    /// Whether it was there before.
    pub known: bool,
    /// Whether it asks for anonymity.
    pub anonymous: bool,
}

/// Why an event is not in the table.
#[derive(Debug, thiserror::Error)]
pub enum NotTaken {
    /// It is not to be.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// It is larger than the table keeps: no other try helps.
    #[error("must have at most {LARGEST} bytes as it is stored, and has {measured}")]
    TooLarge {
        /// Its bytes, as they would be stored.
        measured: usize,
    },
    /// The table failed. Worth another try.
    #[error(transparent)]
    Failed(Error),
}

impl From<Error> for NotTaken {
    fn from(error: Error) -> Self {
        match error {
            Error::TooLarge { measured } => Self::TooLarge { measured },
            Error::Unavailable { .. } | Error::Unreadable { .. } => Self::Failed(error),
        }
    }
}

impl NotTaken {
    /// Why the event is not stored, for good; or that the table failed.
    pub(crate) fn rejection(self) -> Result<Rejection, Error> {
        let detail = self.to_string();
        match self {
            Self::Refused(refused) => Ok(refused.into()),
            Self::TooLarge { .. } => Ok(Rejection::whole(TOO_LARGE, detail)),
            Self::Failed(error) => Err(error),
        }
    }
}

impl From<App> for Intake {
    fn from(app: App) -> Self {
        Self {
            store: app.store,
            clock: app.clock,
            pseudonyms: app.pseudonyms,
            pace: Pace::default(),
        }
    }
}

impl FromEnv for Intake {
    fn from_env() -> Result<Self, BadSetting> {
        App::from_env().map(Self::from)
    }
}

impl Intake {
    /// Takes the events of a batch, and answers for each in its place. Each has its attempt: what that stored
    /// before, it may store again. Of several with one dedupe key, or one id, the first counts.
    pub async fn take<'a>(
        &self,
        sender: Sender<'_>,
        events: impl IntoIterator<Item = (Attempt, &'a Value)>,
        received_at: DateTime<Utc>,
    ) -> Vec<Result<Taken, NotTaken>> {
        let mut order = Order::default();
        let taken = events.into_iter().map(|(by, body)| {
            let read = self.read(sender, (body, received_at));
            let read = read.map(|submission| {
                let turn = order.next(&submission.event.core);
                (turn, submission)
            });
            async move {
                let (turn, submission) = read?;
                self.put(by, submission, turn).await
            }
        });
        // Each has its place before any is stored.
        let taken: Vec<_> = taken.collect();
        join_all(taken).await
    }

    /// Reads one event. It was received when it was handed over, however long it waited since and however
    /// often it is delivered: by that an erasure tells what came before.
    pub(crate) fn read(
        &self,
        sender: Sender<'_>,
        (body, received_at): (&Value, DateTime<Utc>),
    ) -> Result<Submission, Refused> {
        let (Sender::Token(caller) | Sender::BackEnd(caller)) = sender;
        let read = Submission::parse(body, caller, &self.pseudonyms, received_at)?;
        if let Sender::Token(caller) = sender {
            caller.may_say(&read.event.core)?;
        }
        Ok(read)
    }

    /// Stores an event that was read, when it is its turn.
    pub(crate) async fn put(
        &self,
        by: Attempt,
        submission: Submission,
        mut turn: Turn,
    ) -> Result<Taken, NotTaken> {
        let Submission { event, dedupe_key } = submission;
        let FeedbackEvent { core, text } = event;
        if let Some(settled) = turn.settled() {
            let store = &self.store;
            while let Some((first, by)) = settled.first()
                && !(store.has_event_by(*by, (&core.tenant, first.feedback_id))).await?
            {
                settled.remove(0);
            }
        }
        let put = |core: EventCore| async move {
            let event = FeedbackEvent { core, text };
            let written = (self.pace).run(|| self.store.put_event_by(by, &event));
            let known = written.await? == Written::Known;
            let taken = Taken {
                known,
                feedback_id: event.core.feedback_id,
                dedupe_key,
                anonymous: event.core.privacy.anonymize,
            };
            Ok::<_, NotTaken>((taken, !known))
        };
        turn.take(core, put).await
    }
}

/// Who sends what comes by a queue or a file: a back end that may speak for all users of the tenant.
/// That it may is settled by who may write there.
pub(crate) fn back_end(tenant: TenantId, user: UserId) -> Caller {
    Caller {
        user,
        tenant,
        projects: Vec::new(),
        scopes: vec![Scope::OnBehalf.as_str().to_owned()],
    }
}

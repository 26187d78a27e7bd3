//! Validates and stores the events of a batch, wherever the batch comes from.

use chrono::{DateTime, Utc};
use futures::future::join_all;
use hearback_domain::events::event::{EventCore, FeedbackEvent};
use hearback_domain::events::submission::{Draft, EventRejected, RejectionReason, Submission};
use hearback_domain::identity::caller::{Caller, Scope};
use hearback_domain::identity::identifier::{TenantId, UserId};
use hearback_domain::identity::privacy::Pseudonyms;
use hearback_lambda::clock::Clock;
use hearback_lambda::{App, BadSetting, FromEnv, anonymous};
use hearback_storage::{Error, LARGEST, Store, WriteToken, Written};
use serde_json::Value;
use uuid::Uuid;

use crate::order::{Order, OrderSlot};
use crate::pace::Pace;

/// The error of an event that is too large for the table.
const TOO_LARGE: &str = "too_large_to_store";

/// Stores events as fast as the table allows.
#[derive(Debug, Clone)]
pub struct Intake {
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    pseudonyms: Pseudonyms,
    pace: Pace,
    /// Whether the table's stream sends events to the signal generator.
    by_stream: bool,
}

/// The sender of events.
#[derive(Debug, Clone, Copy)]
pub enum Sender<'a> {
    /// A caller with a token for some projects.
    Token(&'a Caller),
    /// A back end that may write to the tenant's queue or folder, and so submits for the whole tenant.
    BackEnd(&'a Caller),
}

impl Sender<'_> {
    /// Returns the submission if the sender may submit it.
    fn authorize(self, submission: Submission) -> Result<Submission, EventRejected> {
        if let Self::Token(caller) = self {
            caller.may_submit(&submission.event.core)?;
        }
        Ok(submission)
    }
}

/// An event that is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedEvent {
    /// Its id.
    pub feedback_id: Uuid,
    /// Of several events with this key the first counts. It has the caller's own ids, not pseudonyms.
    pub dedupe_key: String,
    /// Whether it was stored before.
    pub known: bool,
    /// Whether it asks for anonymity.
    pub anonymous: bool,
    /// The message that the caller sends to the signal generator, if the table's stream does not
    /// ([`Intake::without_stream`]).
    pub(crate) message: Option<String>,
}

/// Why an event is not stored.
#[derive(Debug, thiserror::Error)]
pub enum NotStored {
    /// It is rejected.
    #[error(transparent)]
    EventRejected(#[from] EventRejected),
    /// It is too large for the table.
    #[error("must have at most {LARGEST} bytes as it is stored, and has {measured}")]
    TooLarge {
        /// Its size as it would be stored, in bytes.
        measured: usize,
    },
    /// The table failed. The event may be submitted again.
    #[error(transparent)]
    Failed(Error),
}

impl From<Error> for NotStored {
    fn from(error: Error) -> Self {
        match error {
            Error::TooLarge { measured } => Self::TooLarge { measured },
            Error::Unavailable { .. } | Error::Unreadable { .. } => Self::Failed(error),
        }
    }
}

impl NotStored {
    /// The rejection of the event, or the failure of the table.
    pub(crate) fn rejection(self) -> Result<RejectionReason, Error> {
        let detail = self.to_string();
        match self {
            Self::EventRejected(rejection) => Ok(rejection.into()),
            Self::TooLarge { .. } => Ok(RejectionReason::of_event(TOO_LARGE, detail)),
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
            by_stream: true,
        }
    }
}

impl FromEnv for Intake {
    fn from_env() -> Result<Self, BadSetting> {
        App::from_env().map(Self::from)
    }
}

impl Intake {
    /// Leaves it to the caller to send messages to the signal generator, so that millions of events do not delay those
    /// that a user waits for.
    pub(crate) fn without_stream(self) -> Self {
        Self {
            by_stream: false,
            ..self
        }
    }

    /// Stores the events of a batch, and returns the result of each in its position. Each has a token, by which a
    /// retry recognizes what it stored before. Of several events with one dedupe key, or one id, the first counts.
    pub async fn put_all<'a>(
        &self,
        sender: Sender<'_>,
        events: impl IntoIterator<Item = (WriteToken, &'a Value)>,
        received_at: DateTime<Utc>,
    ) -> Vec<Result<AcceptedEvent, NotStored>> {
        let (Sender::Token(caller) | Sender::BackEnd(caller)) = sender;
        let drafts = events.into_iter().map(|(by, body)| {
            let draft = Draft::read(body, caller, received_at);
            (by, draft)
        });
        let (tokens, drafts): (Vec<_>, Vec<_>) = drafts.unzip();
        let submissions = anonymous::submissions(drafts, &self.pseudonyms).await;
        let mut order = Order::default();
        let puts = tokens.into_iter().zip(submissions).map(|(by, submission)| {
            let submission = submission.and_then(|submission| sender.authorize(submission));
            let ordered = submission.map(|submission| {
                let slot = order.next(&submission.event.core);
                (slot, submission)
            });
            async move {
                let (slot, submission) = ordered?;
                self.put(by, submission, slot).await
            }
        });
        // Collected first: each has its slot before any is stored.
        let puts: Vec<_> = puts.collect();
        join_all(puts).await
    }

    /// Reads one event. `received_at` is when the batch was submitted, even if it is delivered late or repeatedly. An
    /// erasure uses it to recognize earlier events.
    pub(crate) async fn read(
        &self,
        sender: Sender<'_>,
        body: &Value,
        received_at: DateTime<Utc>,
    ) -> Result<Submission, EventRejected> {
        let (Sender::Token(caller) | Sender::BackEnd(caller)) = sender;
        let draft = Draft::read(body, caller, received_at)?;
        let submission = anonymous::submission(draft, &self.pseudonyms).await?;
        sender.authorize(submission)
    }

    /// Stores an event after those before it in its order.
    pub(crate) async fn put(
        &self,
        by: WriteToken,
        submission: Submission,
        mut slot: OrderSlot,
    ) -> Result<AcceptedEvent, NotStored> {
        let Submission { event, dedupe_key } = submission;
        let FeedbackEvent { core, text } = event;
        if let Some(settled) = slot.settled() {
            let store = &self.store;
            while let Some((first, by)) = settled.first()
                && !(store.has_event_by(*by, &core.tenant, first.feedback_id)).await?
            {
                settled.remove(0);
            }
        }
        let put = |core: EventCore| async move {
            let event = FeedbackEvent { core, text };
            let (known, message) = if self.by_stream {
                let written = (self.pace).run(|| self.store.put_event_by(by, &event));
                (written.await? == Written::AlreadyExists, None)
            } else {
                let put = (self.pace).run(|| self.store.put_sent_event_by(by, &event));
                let message = put.await?;
                (message.is_none(), message)
            };
            let accepted = AcceptedEvent {
                known,
                message,
                feedback_id: event.core.feedback_id,
                dedupe_key,
                anonymous: event.core.privacy.anonymize,
            };
            Ok::<_, NotStored>((accepted, !known))
        };
        slot.put_in_order(core, put).await
    }
}

/// The sender of messages and files: a back end that submits for all users of the tenant. IAM decides which principals
/// may write to the queue and the bucket.
pub(crate) fn back_end(tenant: TenantId, user: UserId) -> Caller {
    Caller {
        user,
        tenant,
        projects: Vec::new(),
        scopes: vec![Scope::OnBehalf.as_str().to_owned()],
    }
}

//! Whether an event counts for the turn that it names, in the response of `GET /v1/feedback/{feedbackId}`.

use hearback_domain::events::event::EventCore;
use hearback_domain::feedback::counted;
use hearback_domain::feedback::reaction::Reaction;
use hearback_domain::identity::identifier::TurnId;
use hearback_domain::learning::publication::Outcome;
use hearback_lambda::App;
use hearback_storage::Error;
use hearback_storage::events::StoredEvent;
use serde::Serialize;
use utoipa::ToSchema;

/// What an event counts as for a turn, or why it does not count.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Counted {
    /// The turn in the event's context.
    #[schema(value_type = String)]
    turn: TurnId,
    /// The verdict; null if the event does not count.
    #[serde(rename = "as")]
    #[schema(required = true)]
    verdict: Option<Reaction>,
    /// Why it does not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<NotCounted>,
}

/// Why an event does not count for a turn.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum NotCounted {
    /// Its context has no `projectId` that can be a project's name.
    NoProject,
    /// Its context has no `conversationId`.
    NoConversation,
    /// Events of this kind have no verdict.
    NoVerdict,
    /// The turn was not registered when the event was processed, or has expired since.
    TurnNotRegistered,
    /// An earlier event has the same dedupe key.
    Deduplicated,
    /// It was withdrawn.
    Retracted,
}

impl Counted {
    /// Reads what an event counts as. `None` if it names no turn, is not processed yet, or is the event of a reaction
    /// or a message signal, which counts itself. Costs one read if it was processed and names a turn, otherwise none.
    pub(crate) async fn read(app: &App, stored: &StoredEvent) -> Result<Option<Self>, Error> {
        let turn = stored.core.context.turn_id.clone();
        let Some(turn) = turn.filter(|_| !stored.core.derived) else {
            return Ok(None);
        };
        let verdict = match &stored.outcome {
            _ if stored.preceded_by().is_some() => Err(NotCounted::Deduplicated),
            _ if stored.retraction.is_some() => Err(NotCounted::Retracted),
            None => return Ok(None),
            Some(Outcome::Deduplicated { .. }) => Err(NotCounted::Deduplicated),
            Some(Outcome::Processed(_)) => verdict(app, &stored.core).await?,
        };
        Ok(Some(Self {
            turn,
            verdict: verdict.ok(),
            reason: verdict.err(),
        }))
    }
}

async fn verdict(app: &App, event: &EventCore) -> Result<Result<Reaction, NotCounted>, Error> {
    if event.context.conversation_id.is_none() {
        return Ok(Err(NotCounted::NoConversation));
    }
    let Some(turn) = counted::turn_of(event) else {
        return Ok(Err(NotCounted::NoProject));
    };
    if !counted::has_verdict(event) {
        return Ok(Err(NotCounted::NoVerdict));
    }
    let now = app.clock.now();
    let row = app.store.counted_event(&turn, event.feedback_id, now);
    let verdict = row.await?.and_then(|row| row.core.reaction);
    Ok(verdict.ok_or(NotCounted::TurnNotRegistered))
}

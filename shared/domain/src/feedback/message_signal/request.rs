//! The request that submits a message signal.

use chrono::{DateTime, Utc};
use hearback_wire::parse::to_instant;
use hearback_wire::{Change, Text, request};
use uuid::Uuid;

use super::{MAX_REASON, MessageSignal, SignalCore, SignalUpdate, StoredSignal};
use crate::events::event::EventContext;
use crate::identity::caller::Caller;
use crate::identity::identifier::{ConversationId, Label, MessageId, ProjectId, UserId};
use crate::turns::turn::TurnCore;

request! {
    /// A signal on a message.
    pub struct MessageSignalRequest, closed {
        /// The id of the message, as registered with its turn.
        "message_id" => message_id: required MessageId,
        /// The signal.
        "signal" => signal: required MessageSignal,
        /// Up to 4,096 characters; for an `edit`, the text that replaces the answer. If left out, the current reason is
        /// kept; `null` removes it.
        "reason" => reason: changed Text<MAX_REASON>,
        /// The conversation in which the user gave the signal. If it is in another project of the caller, the signal
        /// counts for that project.
        "chat_id" => chat_id: nullable ConversationId,
        /// The trace of the answer; the turn's own if left out.
        "trace_id" => trace_id: nullable Label,
        /// Whether the signal is excluded from training.
        "exclude_from_training" => exclude_from_training: nullable bool,
        /// Whether the signal withdraws the same user's contrary ones: `helpful` the other three verdicts, each of which
        /// withdraws `helpful`.
        "exclusive" => exclusive: nullable bool = false,
        /// The user whose signal it is, with `feedback:on-behalf`; the caller if left out.
        "user_id" => user_id: nullable UserId,
    }
    example {
        "message_id": "msg_abc", "chat_id": "chat_xyz", "signal": "not_helpful",
        "reason": "Wrong tool: should have used the calendar instead."
    }
}

impl MessageSignalRequest {
    /// The chat whose project must be looked up. `None` for the message's own conversation, and if the current signal
    /// already counts for the project of the same chat.
    #[must_use]
    pub fn chat_to_look_up<'a>(
        &'a self,
        turn: &TurnCore,
        caller: &Caller,
        current: Option<&StoredSignal>,
    ) -> Option<&'a ConversationId> {
        let chat = self.chat_id.as_ref()?;
        let own = &turn.at.within;
        let is_known = current.is_some_and(|StoredSignal { core, .. }| {
            let other_project = core.workspace != own.project && caller.holds(&core.workspace);
            !core.retracted && core.chat_id.as_ref() == Some(chat) && other_project
        });
        (*chat != own.conversation && !is_known).then_some(chat)
    }

    /// The effect of this request on the current signal. `chat_project` is the project of the chat that
    /// [`chat_to_look_up`](Self::chat_to_look_up) returned.
    #[must_use]
    pub fn resolve(
        &self,
        turn: &TurnCore,
        caller: &Caller,
        chat_project: Option<ProjectId>,
        current: Option<&StoredSignal>,
        now: DateTime<Utc>,
    ) -> SignalUpdate {
        let live = current.filter(|current| !current.core.retracted);
        let live_core = live.map(|current| &current.core);
        let ts = current.map_or(to_instant(now), |current| current.core.after(now));
        let workspace =
            chat_project.unwrap_or_else(|| self.default_workspace(turn, caller, live_core));
        let core = SignalCore {
            at: turn.at.clone(),
            message_id: self.message_id.clone(),
            turn_ts: turn.ts,
            own: caller.user == turn.user_id,
            user_id: caller.user.clone(),
            signal: self.signal,
            track_id: turn.track_id.clone(),
            user_type: turn.user_type.clone(),
            bundle_id: turn.bundle_id.clone(),
            chat_id: (self.chat_id.clone())
                .or_else(|| live_core.and_then(|core| core.chat_id.clone())),
            trace_id: (self.trace_id.clone())
                .or_else(|| live_core.and_then(|core| core.trace_id.clone()))
                .or_else(|| turn.trace_id.clone()),
            exclude_from_training: self
                .exclude_from_training
                .unwrap_or_else(|| live_core.is_some_and(|core| core.exclude_from_training)),
            act: Uuid::nil(),
            replaces: None,
            moved_from: live_core
                .map(|core| &core.at)
                .filter(|before| **before != turn.at)
                .cloned(),
            retracted: false,
            created_at: live_core.map_or(ts, |core| core.created_at),
            ts,
            updated_at: live_core.map_or(ts, |core| core.updated_at),
            context: EventContext {
                project_id: Label::try_from(workspace.as_str()).ok(),
                ..turn.context()
            },
            workspace,
            expires_at: turn.expires_at,
        };
        let reason = match &self.reason {
            Change::Keep => live.and_then(|current| current.reason.clone()),
            Change::Clear => None,
            Change::Set(reason) => Some(reason.0.clone()).filter(|reason| !reason.is_empty()),
        };
        let mut next = StoredSignal { core, reason };
        let Some(live) = live else {
            next.core.act = next.act_after(current);
            return SignalUpdate::Create(Box::new(next));
        };
        if next.has_same_event_as(live) {
            // The event stays the same, so this is not a new act: its id and time are kept. It is submitted again,
            // though, which counts if other feedback was given in between. In the same instant it is a retry.
            next.core.act = live.core.act;
            next.core.replaces = live.core.replaces;
            next.core.moved_from = (next.core.moved_from).or_else(|| live.core.moved_from.clone());
            next.core.ts = live.core.ts;
            let retried = to_instant(now) == live.core.updated_at;
            if next == *live && (retried || !next.core.signal.is_verdict()) {
                return SignalUpdate::Repeat(Box::new(next));
            }
        } else {
            next.core.act = next.act_after(Some(live));
            next.core.replaces = Some(live.core.act);
        }
        next.core.updated_at = ts;
        SignalUpdate::Replace(Box::new(next))
    }

    /// The project that the signal counts for if its chat does not give another: that of the current signal, or the
    /// turn's own.
    fn default_workspace(
        &self,
        turn: &TurnCore,
        caller: &Caller,
        current: Option<&SignalCore>,
    ) -> ProjectId {
        let own = &turn.at.within;
        let in_own_conversation = self.chat_id.as_ref() == Some(&own.conversation);
        current
            .filter(|current| !in_own_conversation && caller.holds(&current.workspace))
            .map_or_else(|| own.project.clone(), |current| current.workspace.clone())
    }
}

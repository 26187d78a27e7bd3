//! The request that submits a reaction.

use chrono::{DateTime, Utc};
use hearback_detection::{Detection, FeedbackStatus, RejectionKind};
use hearback_wire::parse::to_instant;
use hearback_wire::{Errors, FieldError, Members, Number, Text, from_json_with, request};
use serde_json::Value;
use uuid::Uuid;

use super::{MAX_TEXT, MIN_CONFIDENCE, NAMESPACE, Origin, Reaction, ReactionCore, StoredReaction};
use crate::events::recency::{AHEAD, MAX_AHEAD};
use crate::feedback::follow_up::UserFeedback;
use crate::identity::caller::{Caller, Forbidden, Scope};
use crate::identity::identifier::UserId;
use crate::text::digest::uuid;
use crate::turns::turn::{TurnCore, TurnRef};

/// The confidence of a user reaction.
const CERTAIN: Number<0, 1> = Number(1.0);

request! {
    /// A reaction to a turn.
    pub struct ReactionRequest, closed {
        /// The verdict; `null` withdraws the current one. A machine reaction cannot withdraw.
        "reaction" => reaction: required Option<Reaction>,
        /// The user's comment.
        "text" => text: nullable Text<MAX_TEXT> = Text(String::new()),
        /// When the user reacted: RFC 3339 with an offset, at most 5 minutes in the future; the time of receipt if
        /// left out.
        "ts" => ts: nullable DateTime<Utc>,
        /// The user who reacted: the caller, or with `feedback:on-behalf` any user.
        "user_id" => user_id: nullable UserId,
        /// Whether a user or the machine gave the verdict. `machine` requires `feedback:on-behalf`.
        "origin" => origin: nullable Origin = Origin::User,
        /// The confidence of the verdict: 1.0 for a user reaction; required, and at least 0.70, for a machine reaction.
        "confidence" => confidence: nullable Number<0, 1>,
        /// Whether the reaction is mirrored into the turn's log. The default is set by the deployment.
        "mirror" => mirror: nullable bool,
    }
    example {"reaction": "not_ok", "text": "I meant online orders"}
    example {"reaction": "not_ok", "origin": "machine", "confidence": 0.9}
}

/// A reaction before it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct NewReaction {
    user_id: Option<UserId>,
    origin: Origin,
    reaction: Option<Reaction>,
    confidence: f64,
    text: String,
    ts: Option<DateTime<Utc>>,
    mirror: Option<bool>,
    rejection: Option<RejectionKind>,
    /// The message of an inference that names the turn, if the text does not tell it.
    heard_in: Option<String>,
}

/// Why a reaction is rejected.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ReactionRejected {
    /// The body does not match the schema: 400.
    #[error("the reaction does not match the schema")]
    Invalid(Vec<FieldError>),
    /// The confidence of a machine reaction is too low: 422.
    #[error("an inferred reaction with a confidence below {MIN_CONFIDENCE} is not stored")]
    LowConfidence,
    /// The token does not allow it: 403.
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
}

impl NewReaction {
    /// Parses a request and reports all errors at once.
    pub fn parse(
        body: &Value,
        caller: &Caller,
        now: DateTime<Utc>,
    ) -> Result<Self, ReactionRejected> {
        let request: ReactionRequest =
            from_json_with(body, |members, errors| check(members, now, errors))
                .map_err(ReactionRejected::Invalid)?;
        let new = Self::from(request);
        if let Some(user) = &new.user_id {
            caller.act_as(user)?;
        }
        if new.origin == Origin::Machine {
            caller.require(Scope::OnBehalf)?;
            if new.confidence < MIN_CONFIDENCE {
                return Err(ReactionRejected::LowConfidence);
            }
        }
        Ok(new)
    }

    /// The user whose current reaction this one replaces; `None` for a machine reaction, which replaces none.
    #[must_use]
    pub fn replaces_reaction_of<'a>(&'a self, caller: &'a Caller) -> Option<&'a UserId> {
        match self.origin {
            Origin::User => Some(self.user_id.as_ref().unwrap_or(&caller.user)),
            Origin::Machine => None,
        }
    }

    /// The reaction to `turn`. `mirror` is the default for requests without `mirror`.
    #[must_use]
    pub fn on(
        self,
        turn: &TurnCore,
        caller: &Caller,
        mirror: bool,
        now: DateTime<Utc>,
    ) -> StoredReaction {
        // A machine reaction is inferred from the message of the turn's owner.
        let default_user = match self.origin {
            Origin::User => &caller.user,
            Origin::Machine => &turn.user_id,
        };
        let user_id = self.user_id.clone().unwrap_or_else(|| default_user.clone());
        let now = to_instant(now);
        let ts = self.ts.map_or(now, to_instant);
        let id = self.id(&turn.at, &user_id, ts);
        StoredReaction {
            core: ReactionCore {
                origin: self.origin,
                reaction: self.reaction,
                confidence: self.confidence,
                rejection: self.rejection,
                received_at: now,
                mirror: self.mirror.unwrap_or(mirror),
                context: turn.context(),
                ..ReactionCore::on(turn, id, user_id, ts)
            },
            text: self.text,
        }
    }

    /// The machine reaction for a detection; `None` if it is neutral or its confidence is too low. The same message
    /// always gives the same reaction.
    #[must_use]
    pub fn inferred(detection: &Detection, ts: DateTime<Utc>) -> Option<Self> {
        let said = detection.user_said.as_deref();
        let inferred = Self::of_machine(detection.feedback_type, detection.confidence, said, ts)?;
        (inferred.confidence >= MIN_CONFIDENCE).then_some(Self {
            rejection: detection.correction_type,
            ..inferred
        })
    }

    /// The machine reaction for a message of the time `ts` whose meaning a person has corrected; `None` if it says
    /// nothing about the turn.
    #[must_use]
    pub fn corrected(feedback: &UserFeedback, ts: DateTime<Utc>) -> Option<Self> {
        let said = feedback.user_said.as_deref();
        Self::of_machine(feedback.status, feedback.confidence, said, ts)
    }

    fn of_machine(
        status: FeedbackStatus,
        confidence: f64,
        said: Option<&str>,
        ts: DateTime<Utc>,
    ) -> Option<Self> {
        let reaction = match status {
            FeedbackStatus::Rejected => Reaction::NotOk,
            FeedbackStatus::Accepted => Reaction::Ok,
            FeedbackStatus::Neutral => return None,
        };
        Some(Self {
            user_id: None,
            origin: Origin::Machine,
            reaction: Some(reaction),
            confidence,
            text: said.unwrap_or_default().to_owned(),
            ts: Some(ts),
            mirror: None,
            rejection: None,
            heard_in: None,
        })
    }

    /// The same from this message. An acceptance has no text, so only the message tells two of them apart.
    #[must_use]
    pub fn heard_in(self, message: &str) -> Self {
        let heard_in = self.text.is_empty().then(|| message.to_owned());
        Self { heard_in, ..self }
    }

    /// The id of the act: the same for a retry, different for another reaction. The id of a machine reaction does not
    /// depend on its time.
    fn id(&self, at: &TurnRef, user: &UserId, ts: DateTime<Utc>) -> Uuid {
        let ts = match self.origin {
            Origin::User => ts.timestamp_micros().to_string(),
            Origin::Machine => String::new(),
        };
        let parts = [
            at.within.tenant.as_str(),
            at.within.project.as_str(),
            at.within.conversation.as_str(),
            at.turn.as_str(),
            user.as_str(),
            self.origin.as_str(),
            self.reaction.map_or("", Reaction::as_str),
            self.text.as_str(),
            ts.as_str(),
        ];
        uuid(NAMESPACE, parts.into_iter().chain(self.heard_in.as_deref()))
    }
}

impl From<ReactionRequest> for NewReaction {
    fn from(request: ReactionRequest) -> Self {
        Self {
            user_id: request.user_id,
            origin: request.origin,
            reaction: request.reaction,
            confidence: request.confidence.unwrap_or(CERTAIN).0,
            text: request.text.0,
            ts: request.ts,
            mirror: request.mirror,
            rejection: None,
            heard_in: None,
        }
    }
}

/// The rules between members.
fn check(members: Members<'_>, now: DateTime<Utc>, errors: &mut Errors) {
    let machine = members.peek::<Origin>("origin") == Some(Origin::Machine);
    match members.peek::<Option<Number<0, 1>>>("confidence") {
        Some(Some(confidence)) if !machine && confidence != CERTAIN => {
            errors.add("/confidence", "is 1.0 for a user's reaction");
        }
        Some(None) if machine => errors.add("/confidence", "is required of the machine"),
        None if machine && !members.has("confidence") => {
            errors.add("/confidence", "is required of the machine");
        }
        _ => {}
    }
    if machine && members.peek::<Option<Reaction>>("reaction") == Some(None) {
        errors.add("/reaction", "the machine cannot withdraw a reaction");
    }
    let ts = members.peek::<DateTime<Utc>>("ts");
    if ts.is_some_and(|ts| ts > now + MAX_AHEAD) {
        errors.add("/ts", AHEAD);
    }
}

//! Webhooks: which published messages one receives, how a call is signed, and when one that fails is called again. See
//! docs/reference/webhooks.md.

mod filter;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, TimeDelta, Utc};
use hearback_wire::wire_names;
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use uuid::Uuid;

use crate::identity::identifier::WebhookName;

pub use filter::{MessageFacts, WebhookFilter, WebhookRequest};

/// Maximum number of webhooks of a tenant.
pub const MAX_WEBHOOKS: usize = 20;
/// For how long the previous secret also signs after a new one was made.
pub const SECRET_OVERLAP: TimeDelta = TimeDelta::days(1);
/// Maximum number of previous secrets that sign.
const MAX_PREVIOUS: usize = 3;
/// A webhook that fails for so long is paused.
pub const PAUSED_AFTER: TimeDelta = TimeDelta::days(1);
/// The shortest time before a target that is unavailable is called again. It then grows with the time for which the
/// webhook has failed.
pub const SHORTEST_PAUSE: TimeDelta = TimeDelta::seconds(1);
/// The longest such time.
pub const LONGEST_PAUSE: TimeDelta = TimeDelta::minutes(15);
/// The prefix of a secret, as the standard writes it.
const SECRET_PREFIX: &str = "whsec_";

/// A secret that signs calls, as the standard writes it: `whsec_` and the key in base64.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WebhookSecret(String);

/// Shows nothing of the secret.
impl std::fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WebhookSecret")
    }
}

impl WebhookSecret {
    /// The secret with this key.
    #[must_use]
    pub fn of(key: &[u8; 32]) -> Self {
        Self(format!("{SECRET_PREFIX}{}", STANDARD.encode(key)))
    }

    /// The secret as a text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The signature of a call: `v1,` and a base64 text.
    fn signature(&self, id: Uuid, timestamp: i64, body: &[u8]) -> Option<String> {
        let key = self.0.strip_prefix(SECRET_PREFIX)?;
        let key = STANDARD.decode(key).ok()?;
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).ok()?;
        mac.update(format!("{id}.{timestamp}.").as_bytes());
        mac.update(body);
        Some(format!(
            "v1,{}",
            STANDARD.encode(mac.finalize().into_bytes())
        ))
    }
}

/// Why a webhook is paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PauseReason {
    /// It failed for a day.
    Failing,
    /// The target answered 410: nothing is wanted any more.
    Gone,
}

wire_names!(PauseReason {
    Failing = "failing",
    Gone = "gone",
});

/// How a webhook fails.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failing {
    /// Since when no call has succeeded.
    pub since: DateTime<Utc>,
    /// The last failure, without data of a message.
    pub last: String,
    /// No call is made before this time: the target is unavailable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<DateTime<Utc>>,
    /// Since when nothing is sent any more, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<(DateTime<Utc>, PauseReason)>,
}

/// A webhook of a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Webhook {
    /// Its name, unique in the tenant.
    pub name: WebhookName,
    /// The target.
    pub url: String,
    /// Which messages it receives.
    #[serde(default)]
    pub filter: WebhookFilter,
    /// The secret that signs its calls.
    pub secret: WebhookSecret,
    /// Secrets before, which also sign until these times, the newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub previous_secrets: Vec<(WebhookSecret, DateTime<Utc>)>,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// How it fails, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing: Option<Failing>,
}

/// A call that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallFailure {
    /// The target cannot be reached, or answers nothing at present; perhaps with the time after which it wants to be
    /// called again.
    #[error("{0}")]
    Unavailable(String, Option<TimeDelta>),
    /// The target rejects the message, or the way in which it is sent.
    #[error("{0}")]
    Rejected(String),
    /// The target wants nothing any more.
    #[error("the target answered 410")]
    Gone,
}

/// Whether a webhook may be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    /// It may be.
    Ready,
    /// By one worker, with one message: the target was unavailable.
    Probe,
    /// Later: the target is unavailable.
    Waiting,
    /// Not until it is put again.
    Paused,
}

impl Webhook {
    /// Whether the webhook may be called now.
    #[must_use]
    pub fn readiness(&self, now: DateTime<Utc>) -> Readiness {
        match &self.failing {
            Some(Failing {
                paused: Some(_), ..
            }) => Readiness::Paused,
            Some(Failing {
                retry_at: Some(at), ..
            }) if now < *at => Readiness::Waiting,
            Some(Failing {
                retry_at: Some(_), ..
            }) => Readiness::Probe,
            Some(_) | None => Readiness::Ready,
        }
    }

    /// The webhook while one worker calls its target again: until then, or until that worker has a result, no other does.
    #[must_use]
    pub fn probed(mut self, until: DateTime<Utc>) -> Self {
        if let Some(failing) = &mut self.failing {
            failing.retry_at = Some(until);
        }
        self
    }

    /// The webhook after calls with these outcomes.
    #[must_use]
    pub fn after(self, outcomes: &[Result<(), CallFailure>], now: DateTime<Utc>) -> Self {
        let failures = outcomes.iter().filter_map(|outcome| outcome.as_ref().err());
        let is_gone = |failure: &&CallFailure| **failure == CallFailure::Gone;
        let is_unavailable =
            |failure: &&CallFailure| matches!(failure, CallFailure::Unavailable(..));
        if let Some(gone) = failures.clone().find(is_gone) {
            self.failed(gone, now)
        } else if outcomes.iter().any(Result::is_ok) {
            self.succeeded()
        } else if let Some(failure) = failures.max_by_key(is_unavailable) {
            self.failed(failure, now)
        } else {
            self
        }
    }

    /// The webhook after a call succeeded.
    #[must_use]
    pub fn succeeded(self) -> Self {
        Self {
            failing: None,
            ..self
        }
    }

    /// The webhook after calls failed and none succeeded.
    #[must_use]
    pub fn failed(self, failure: &CallFailure, now: DateTime<Utc>) -> Self {
        let since = self.failing.as_ref().map_or(now, |failing| failing.since);
        let retry_at = match failure {
            CallFailure::Unavailable(_, retry_after) => {
                let pause = retry_after.unwrap_or_default().max(now - since);
                Some(now + pause.clamp(SHORTEST_PAUSE, LONGEST_PAUSE))
            }
            CallFailure::Rejected(_) | CallFailure::Gone => None,
        };
        let paused = match failure {
            CallFailure::Gone => Some((now, PauseReason::Gone)),
            _ if now - since >= PAUSED_AFTER => Some((now, PauseReason::Failing)),
            _ => None,
        };
        Self {
            failing: Some(Failing {
                since,
                last: failure.to_string(),
                retry_at,
                paused,
            }),
            ..self
        }
    }

    /// The webhook with a new secret. The ones before sign for [`SECRET_OVERLAP`], too: more than one, because a request
    /// whose response was lost is repeated, and the target then knows only the first.
    #[must_use]
    pub fn with_secret(self, secret: WebhookSecret, now: DateTime<Utc>) -> Self {
        let replaced = std::iter::once((self.secret, now + SECRET_OVERLAP));
        let valid = self
            .previous_secrets
            .into_iter()
            .filter(|(_, until)| now < *until);
        Self {
            previous_secrets: replaced.chain(valid).take(MAX_PREVIOUS).collect(),
            secret,
            ..self
        }
    }

    /// The header `webhook-signature` of a call: one signature by each valid secret.
    #[must_use]
    pub fn signatures(&self, id: Uuid, at: DateTime<Utc>, body: &[u8]) -> String {
        let previous = self
            .previous_secrets
            .iter()
            .filter(|(_, until)| at < *until);
        let secrets = std::iter::once(&self.secret).chain(previous.map(|(secret, _)| secret));
        let signatures = secrets.filter_map(|secret| secret.signature(id, at.timestamp(), body));
        signatures.collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: DateTime<Utc> = DateTime::UNIX_EPOCH;

    fn webhook() -> Webhook {
        Webhook {
            name: "crm".try_into().unwrap(),
            url: "https://example.com/".to_owned(),
            filter: WebhookFilter::default(),
            secret: WebhookSecret::of(&[7; 32]),
            previous_secrets: Vec::new(),
            created_at: START,
            failing: None,
        }
    }

    #[test]
    fn a_target_that_is_unavailable_is_called_by_one_worker_after_growing_pauses() {
        let seconds = TimeDelta::seconds;
        let unavailable = CallFailure::Unavailable("timeout".to_owned(), None);
        let (mut hook, mut now, mut calls) = (webhook(), START, 0);
        while hook.readiness(now) != Readiness::Paused {
            hook = hook.failed(&unavailable, now);
            let Some(at) = hook.failing.as_ref().unwrap().retry_at else {
                break;
            };
            if hook.readiness(now) == Readiness::Paused {
                break;
            }
            assert_eq!(hook.readiness(at - seconds(1)), Readiness::Waiting);
            assert_eq!(hook.readiness(at), Readiness::Probe);
            assert_eq!(
                hook.clone().probed(at + seconds(1)).readiness(at),
                Readiness::Waiting
            );
            (now, calls) = (at, calls + 1);
        }
        assert!(now - START >= PAUSED_AFTER && now - START < PAUSED_AFTER + LONGEST_PAUSE);
        assert!((90..120).contains(&calls), "{calls}");
        assert_eq!(hook.clone().succeeded().readiness(now), Readiness::Ready);
    }

    #[test]
    fn a_target_says_when_it_wants_to_be_called_again() {
        let after = |time| CallFailure::Unavailable(String::new(), Some(time));
        let retry_at = |time| {
            webhook()
                .failed(&after(time), START)
                .failing
                .unwrap()
                .retry_at
        };
        assert_eq!(
            retry_at(TimeDelta::seconds(60)),
            Some(START + TimeDelta::seconds(60))
        );
        assert_eq!(
            retry_at(TimeDelta::seconds(0)),
            Some(START + SHORTEST_PAUSE)
        );
        assert_eq!(retry_at(TimeDelta::days(9)), Some(START + LONGEST_PAUSE));
    }

    #[test]
    fn a_rejected_message_delays_no_other_but_a_day_of_them_pauses() {
        let rejected = CallFailure::Rejected("the target answered 400".to_owned());
        let hook = webhook().failed(&rejected, START);
        assert_eq!(hook.readiness(START), Readiness::Ready);
        let hook = hook.failed(&rejected, START + PAUSED_AFTER);
        assert_eq!(hook.readiness(START), Readiness::Paused);
        let gone = webhook().failed(&CallFailure::Gone, START);
        assert_eq!(gone.readiness(START), Readiness::Paused);
    }

    #[test]
    fn both_secrets_sign_during_a_rotation() {
        let id = Uuid::nil();
        let signatures = |hook: &Webhook, at| hook.signatures(id, at, b"{}");
        let before = webhook();
        let rotated = before
            .clone()
            .with_secret(WebhookSecret::of(&[8; 32]), START);
        let both = signatures(&rotated, START);
        let [new, old] = both.split(' ').collect::<Vec<_>>().try_into().unwrap();
        assert_eq!(old, signatures(&before, START));
        assert_ne!(new, old);
        let later = START + SECRET_OVERLAP;
        assert!(!signatures(&rotated, later).contains(' '));
        // A repeated rotation does not end the secret that the target has.
        let again = rotated.with_secret(WebhookSecret::of(&[9; 32]), START);
        assert!(signatures(&again, START).ends_with(&signatures(&before, START)));
        let many = (0..9).fold(again, |hook, key| {
            hook.with_secret(WebhookSecret::of(&[key; 32]), START)
        });
        assert_eq!(many.previous_secrets.len(), MAX_PREVIOUS);
    }
}

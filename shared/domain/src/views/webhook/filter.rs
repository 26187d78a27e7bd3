//! Which messages a webhook receives.

use hearback_wire::{List, Text, request};
use serde::{Deserialize, Serialize};

use crate::identity::identifier::{Label, ProjectId, TenantId};
use crate::learning::publication::{Action, Subject};
use crate::views::feed::EventType;

request! {
    /// Where messages are sent, and which. What is left out or empty matches every message.
    pub struct WebhookRequest, closed {
        /// The target. `https`, unless `http` is allowed for an address inside of the deployment's own network.
        "url" => url: required Text<2048>,
        /// Subjects of the messages.
        "subjects" => subjects: nullable List<Subject, 0, 16>,
        /// `eventType`s of the messages.
        "eventTypes" => event_types: nullable List<EventType, 0, 16>,
        /// Outcomes of processed feedback. Of the other messages, only retractions are sent then.
        "outcomes" => outcomes: nullable List<Action, 0, 16>,
        /// Projects, which the token must have.
        "projects" => projects: nullable List<ProjectId, 0, 100>,
    }
    example {"url": "https://example.com/hearback", "subjects": ["feedback.processed"], "outcomes": ["rejected"]}
}

/// Which messages a webhook receives. An empty list matches every message.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WebhookFilter {
    /// Subjects of the messages.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subjects: Vec<Subject>,
    /// Types of the messages.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub event_types: Vec<EventType>,
    /// Outcomes of processed feedback.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outcomes: Vec<Action>,
    /// Projects.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub projects: Vec<ProjectId>,
    /// The projects of the token that made the webhook, which receives no message of another project; `None` for one
    /// that was made by an operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_projects: Option<Vec<ProjectId>>,
}

/// What decides whether a webhook receives a published message.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageFacts {
    /// The tenant; `None` in messages of older versions, which no webhook receives.
    #[serde(default)]
    pub tenant: Option<TenantId>,
    /// The type of the message.
    pub event_type: EventType,
    /// What the user did.
    #[serde(default)]
    pub outcome: Option<Action>,
    /// The project.
    #[serde(default)]
    pub project_id: Option<Label>,
    /// Whether only the feedback's own user may read it.
    #[serde(default)]
    pub private: bool,
}

impl WebhookRequest {
    /// The filter of a webhook that a token with these projects makes, or an operator.
    #[must_use]
    pub fn filter(&self, token_projects: Option<Vec<ProjectId>>) -> WebhookFilter {
        fn items<T: Clone, const LOW: usize, const HIGH: usize>(
            list: Option<&List<T, LOW, HIGH>>,
        ) -> Vec<T> {
            list.map(|list| list.0.clone()).unwrap_or_default()
        }
        WebhookFilter {
            subjects: items(self.subjects.as_ref()),
            event_types: items(self.event_types.as_ref()),
            outcomes: items(self.outcomes.as_ref()),
            projects: items(self.projects.as_ref()),
            token_projects,
        }
    }
}

impl WebhookFilter {
    /// Whether a message with this subject is sent. Private ones are not: only their own user may read them.
    #[must_use]
    pub fn wants(&self, subject: Subject, message: &MessageFacts) -> bool {
        fn any<T: PartialEq>(wanted: &[T], value: &T) -> bool {
            wanted.is_empty() || wanted.contains(value)
        }
        let has_project = match &message.project_id {
            None => self.projects.is_empty(),
            Some(project) => {
                let is = |wanted: &ProjectId| wanted.as_str() == project.as_str();
                (self.projects.is_empty() || self.projects.iter().any(is))
                    && (self.token_projects.as_ref()).is_none_or(|held| held.iter().any(is))
            }
        };
        let has_outcome = match message.outcome {
            Some(outcome) => any(&self.outcomes, &outcome),
            None => self.outcomes.is_empty() || message.event_type == EventType::Retracted,
        };
        !message.private
            && has_project
            && has_outcome
            && any(&self.subjects, &subject)
            && any(&self.event_types, &message.event_type)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(message: serde_json::Value) -> MessageFacts {
        serde_json::from_value(message).unwrap()
    }

    #[test]
    fn a_filter_selects_by_subject_type_outcome_and_project() {
        let project = |name: &str| ProjectId::try_from(name).unwrap();
        let rejected = facts(serde_json::json!({
            "tenant": "acme", "eventType": "feedback.processed", "outcome": "rejected", "projectId": "support"
        }));
        let retracted = facts(serde_json::json!({
            "tenant": "acme", "eventType": "feedback.retracted"
        }));
        let reward = facts(serde_json::json!({
            "tenant": "acme", "eventType": "learning.signal.generated", "projectId": "support"
        }));
        let subject = Subject::FeedbackProcessed;
        let sent = |filter: &WebhookFilter| {
            [
                filter.wants(subject, &rejected),
                filter.wants(subject, &retracted),
                filter.wants(Subject::Reward, &reward),
            ]
        };
        let all = WebhookFilter::default;
        for (filter, expected) in [
            (all(), [true, true, true]),
            (
                WebhookFilter {
                    subjects: vec![Subject::Reward],
                    ..all()
                },
                [false, false, true],
            ),
            (
                WebhookFilter {
                    event_types: vec![EventType::Processed],
                    ..all()
                },
                [true, false, false],
            ),
            (
                WebhookFilter {
                    outcomes: vec![Action::Rejected],
                    ..all()
                },
                [true, true, false],
            ),
            (
                WebhookFilter {
                    outcomes: vec![Action::Rated],
                    ..all()
                },
                [false, true, false],
            ),
            (
                WebhookFilter {
                    projects: vec![project("support")],
                    ..all()
                },
                [true, false, true],
            ),
            (
                WebhookFilter {
                    projects: vec![project("shop")],
                    ..all()
                },
                [false, false, false],
            ),
            // A token sees what has no project.
            (
                WebhookFilter {
                    token_projects: Some(vec![project("shop")]),
                    ..all()
                },
                [false, true, false],
            ),
            (
                WebhookFilter {
                    token_projects: Some(vec![]),
                    ..all()
                },
                [false, true, false],
            ),
        ] {
            assert_eq!(sent(&filter), expected, "{filter:?}");
        }
    }

    #[test]
    fn private_feedback_is_never_sent() {
        let private = facts(serde_json::json!({
            "tenant": "acme", "eventType": "feedback.processed", "private": true
        }));
        assert!(!WebhookFilter::default().wants(Subject::FeedbackProcessed, &private));
    }
}

//! What feedback is grouped by.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A property by which insights group events.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Dimension {
    /// All events are one group.
    All,
    /// The channel.
    Channel,
    /// The type.
    Type,
    /// What the user did.
    Outcome,
    /// `user`, or `machine` for what was inferred.
    Origin,
    /// What is wrong with the answer, where feedback says so.
    Reason,
    /// The kind of artifact.
    ArtifactType,
    /// The kind of task.
    TaskType,
    /// The agent that answered.
    AgentId,
    /// The strategy of the agent.
    Strategy,
    /// The value of the label with this key.
    Label(String),
}

/// The dimensions without labels, by name.
const NAMED: [(&str, Dimension); 10] = [
    ("all", Dimension::All),
    ("channel", Dimension::Channel),
    ("type", Dimension::Type),
    ("outcome", Dimension::Outcome),
    ("origin", Dimension::Origin),
    ("reason", Dimension::Reason),
    ("artifactType", Dimension::ArtifactType),
    ("taskType", Dimension::TaskType),
    ("agentId", Dimension::AgentId),
    ("strategy", Dimension::Strategy),
];
const LABEL: &str = "label.";

impl Dimension {
    /// Whether its values are a closed set.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        match self {
            Self::All
            | Self::Channel
            | Self::Type
            | Self::Outcome
            | Self::Origin
            | Self::Reason => true,
            Self::ArtifactType
            | Self::TaskType
            | Self::AgentId
            | Self::Strategy
            | Self::Label(_) => false,
        }
    }

    /// The names of the dimensions by which events are grouped, without labels; with those of a closed set or without.
    pub(super) fn names(with_closed: bool) -> impl Iterator<Item = &'static str> {
        let named = NAMED.iter().filter(move |(_, dimension)| {
            *dimension != Self::All && (with_closed || !dimension.is_closed())
        });
        named.map(|(name, _)| *name)
    }

    /// Whether it has rates by user: what people gave feedback on, not how they gave it.
    #[must_use]
    pub fn has_user_verdicts(&self) -> bool {
        *self == Self::All || !self.is_closed()
    }
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Label(key) = self {
            return write!(f, "{LABEL}{key}");
        }
        let named = NAMED.iter().find(|(_, dimension)| dimension == self);
        f.write_str(named.map_or("", |(name, _)| name))
    }
}

impl From<Dimension> for String {
    fn from(dimension: Dimension) -> Self {
        dimension.to_string()
    }
}

impl TryFrom<String> for Dimension {
    type Error = &'static str;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        if let Some(key) = name.strip_prefix(LABEL).filter(|key| !key.is_empty()) {
            return Ok(Self::Label(key.to_owned()));
        }
        let named = NAMED.iter().find(|(known, _)| *known == name);
        named
            .map(|(_, dimension)| dimension.clone())
            .ok_or("is not a dimension")
    }
}

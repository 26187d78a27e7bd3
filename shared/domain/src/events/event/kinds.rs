//! The closed sets of an event: its channel, its feedback type, the type of a correction, and the reason.

use hearback_detection::RejectionKind;
use hearback_wire::wire_names;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How feedback was captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Channel {
    /// Given on purpose: a rating, a click.
    Explicit,
    /// Inferred from behaviour.
    Implicit,
    /// The user's own version of the answer.
    Correction,
}

wire_names!(Channel {
    Explicit = "explicit",
    Implicit = "implicit",
    Correction = "correction",
});

/// The kind of feedback.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FeedbackType {
    /// Whether the artifact was accepted.
    ArtifactAcceptance,
    /// A rating from 1 to 5.
    Rating,
    /// A comment on the artifact.
    Comment,
    /// The artifact was rejected.
    Rejection,
    /// The user changed the artifact.
    Modification,
    /// How long the artifact was visible.
    DwellTime,
    /// How far the user scrolled.
    ScrollDepth,
}

wire_names!(FeedbackType {
    ArtifactAcceptance = "artifact-acceptance",
    Rating = "rating",
    Comment = "comment",
    Rejection = "rejection",
    Modification = "modification",
    DwellTime = "dwell-time",
    ScrollDepth = "scroll-depth",
});

/// What a correction corrects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CorrectionType {
    /// The content.
    Content,
    /// The format.
    Format,
    /// The accuracy.
    Accuracy,
    /// The completeness.
    Completeness,
}

wire_names!(CorrectionType {
    Content = "content",
    Format = "format",
    Accuracy = "accuracy",
    Completeness = "completeness",
});

/// What is wrong with the answer, where feedback says so: the type of a correction, or how a message rejects the answer
/// before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Its content was corrected.
    Content,
    /// Its format was corrected.
    Format,
    /// Its accuracy was corrected.
    Accuracy,
    /// It was completed.
    Completeness,
    /// The user's next message says that it is wrong.
    ExplicitCorrection,
    /// The user's next message asks the same in other words.
    Rephrased,
    /// The user's next message gives up.
    Abandonment,
}

wire_names!(Reason {
    Content = "content",
    Format = "format",
    Accuracy = "accuracy",
    Completeness = "completeness",
    ExplicitCorrection = "explicit_correction",
    Rephrased = "rephrased",
    Abandonment = "abandonment",
});

impl From<CorrectionType> for Reason {
    fn from(corrected: CorrectionType) -> Self {
        match corrected {
            CorrectionType::Content => Self::Content,
            CorrectionType::Format => Self::Format,
            CorrectionType::Accuracy => Self::Accuracy,
            CorrectionType::Completeness => Self::Completeness,
        }
    }
}

impl From<RejectionKind> for Reason {
    fn from(kind: RejectionKind) -> Self {
        match kind {
            RejectionKind::Explicit => Self::ExplicitCorrection,
            RejectionKind::Rephrased => Self::Rephrased,
            RejectionKind::Abandonment => Self::Abandonment,
        }
    }
}

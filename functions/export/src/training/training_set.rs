//! The result of a run: its files, and how much feedback is not in them.

use std::ops::AddAssign;

use hearback_domain::export::training::Days;
use serde::{Deserialize, Serialize};

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TrainingSet {
    /// The days of the feedback, both included.
    pub days: Days,
    /// The preference pairs.
    pub pairs: TrainingFiles,
    /// The labelled answers.
    pub labels: TrainingFiles,
    /// How much feedback is in neither.
    pub left_out: SkippedFeedback,
    /// The manifest of a complete run, an `s3://` URI.
    pub manifest: Option<String>,
    /// `resume` of the request for the rest; `null` if the run is complete.
    pub resume: Option<String>,
}

/// The files with one kind of rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TrainingFiles {
    /// The files, each an `s3://` URI.
    pub files: Vec<String>,
    /// Rows in the files.
    pub rows: u64,
}

/// Feedback without a row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedFeedback {
    /// Signals that are excluded from training.
    pub excluded: u64,
    /// Answers with contradicting feedback.
    pub contested: u64,
    /// Answers whose turn no longer exists or cannot be read.
    pub without_turn: u64,
    /// Labels and pairs with an empty text, and pairs of two equal texts.
    pub without_text: u64,
    /// Rows of the table, and logs, that cannot be read. The log names them.
    #[serde(default)]
    pub unreadable: u64,
}

impl AddAssign for SkippedFeedback {
    fn add_assign(&mut self, other: Self) {
        self.excluded += other.excluded;
        self.contested += other.contested;
        self.without_turn += other.without_turn;
        self.without_text += other.without_text;
        self.unreadable += other.unreadable;
    }
}

//! What the resources are called. `template.yaml` gives its queues the same names in a stack of
//! that name; table and bucket have names of AWS's making there.

use hearback_domain::publication::Subject;

/// The stack whose names are used unless another is named.
pub const DEFAULT_STACK: &str = "hearback";

/// The names of one stack's resources.
#[derive(Debug, Clone)]
pub struct Names {
    stack: String,
}

impl Names {
    /// The names of the stack.
    #[must_use]
    pub fn new(stack: impl Into<String>) -> Self {
        Self {
            stack: stack.into(),
        }
    }

    /// The table.
    #[must_use]
    pub fn table(&self) -> String {
        self.stack.clone()
    }

    /// The bucket.
    #[must_use]
    pub fn bucket(&self) -> String {
        self.of("data")
    }

    /// The queue of the signal generator.
    #[must_use]
    pub fn signals(&self) -> String {
        self.of("signals")
    }

    /// What the signal generator could not work off.
    #[must_use]
    pub fn dead_letters(&self) -> String {
        self.of("signals-dead-letters")
    }

    /// The queue by which back ends send events.
    #[must_use]
    pub fn ingest(&self) -> String {
        self.of("ingest")
    }

    /// What was no event there.
    #[must_use]
    pub fn ingest_dead_letters(&self) -> String {
        self.of("ingest-dead-letters")
    }

    /// The queue of imports.
    #[must_use]
    pub fn imports(&self) -> String {
        self.of("imports")
    }

    /// What could not be imported.
    #[must_use]
    pub fn imports_dead_letters(&self) -> String {
        self.of("imports-dead-letters")
    }

    /// The queue of erasures.
    #[must_use]
    pub fn erasures(&self) -> String {
        self.of("erasures")
    }

    /// Passes of erasures that failed for good.
    #[must_use]
    pub fn erasures_dead_letters(&self) -> String {
        self.of("erasures-dead-letters")
    }

    /// What the relay could not carry.
    #[must_use]
    pub fn stream_dead_letters(&self) -> String {
        self.of("stream-dead-letters")
    }

    /// What subscribers failed to take.
    #[must_use]
    pub fn subjects_dead_letters(&self) -> String {
        self.of("subjects-dead-letters")
    }

    /// The queue of a subject.
    #[must_use]
    pub fn subject(&self, subject: Subject) -> String {
        self.of(&subject.as_str().replace('.', "-"))
    }

    fn of(&self, name: &str) -> String {
        format!("{}-{name}", self.stack)
    }
}

impl Default for Names {
    fn default() -> Self {
        Self::new(DEFAULT_STACK)
    }
}

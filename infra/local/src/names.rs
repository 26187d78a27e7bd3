//! Names of resources. `template.yaml` gives the queues of a stack the same names; CloudFormation generates the names
//! of the table and the bucket.

use hearback_domain::learning::publication::Subject;
use hearback_operations::DeadLetterQueue;

/// The default name of a stack.
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

    /// The signal generator's queue of imported events.
    #[must_use]
    pub fn signals_bulk(&self) -> String {
        self.of("signals-bulk")
    }

    /// Dead letters of the signal generator.
    #[must_use]
    pub fn dead_letters(&self) -> String {
        self.of("signals-dead-letters")
    }

    /// The queue to which back ends send events.
    #[must_use]
    pub fn ingest(&self) -> String {
        self.of("ingest")
    }

    /// Dead letters of the ingest queue.
    #[must_use]
    pub fn ingest_dead_letters(&self) -> String {
        self.of("ingest-dead-letters")
    }

    /// The queue of imports.
    #[must_use]
    pub fn imports(&self) -> String {
        self.of("imports")
    }

    /// Dead letters of imports.
    #[must_use]
    pub fn imports_dead_letters(&self) -> String {
        self.of("imports-dead-letters")
    }

    /// The queue of erasures.
    #[must_use]
    pub fn erasures(&self) -> String {
        self.of("erasures")
    }

    /// Dead letters of erasures.
    #[must_use]
    pub fn erasures_dead_letters(&self) -> String {
        self.of("erasures-dead-letters")
    }

    /// The queue of the fan-out.
    #[must_use]
    pub fn fanout(&self) -> String {
        self.of("fanout")
    }

    /// Dead letters of the fan-out.
    #[must_use]
    pub fn fanout_dead_letters(&self) -> String {
        self.of("fanout-dead-letters")
    }

    /// The queue of insights.
    #[must_use]
    pub fn insights(&self) -> String {
        self.of("insights")
    }

    /// Dead letters of insights.
    #[must_use]
    pub fn insights_dead_letters(&self) -> String {
        self.of("insights-dead-letters")
    }

    /// The queue of what is published to NATS.
    #[must_use]
    pub fn nats(&self) -> String {
        self.of("nats")
    }

    /// Dead letters of NATS.
    #[must_use]
    pub fn nats_dead_letters(&self) -> String {
        self.of("nats-dead-letters")
    }

    /// The queue of what is sent to webhooks.
    #[must_use]
    pub fn webhooks(&self) -> String {
        self.of("webhooks")
    }

    /// Dead letters of webhooks.
    #[must_use]
    pub fn webhooks_dead_letters(&self) -> String {
        self.of("webhooks-dead-letters")
    }

    /// Dead letters of the table's stream.
    #[must_use]
    pub fn stream_dead_letters(&self) -> String {
        self.of("stream-dead-letters")
    }

    /// Dead letters of subscribers.
    #[must_use]
    pub fn subjects_dead_letters(&self) -> String {
        self.of("subjects-dead-letters")
    }

    /// The name of the table, the queue and the bucket that health checks write to.
    #[must_use]
    pub fn probe(&self) -> String {
        self.of("probe")
    }

    /// The queue of a subject.
    #[must_use]
    pub fn subject(&self, subject: Subject) -> String {
        self.of(&subject.queue())
    }

    /// A dead-letter queue.
    #[must_use]
    pub fn dead_letters_of(&self, queue: DeadLetterQueue) -> String {
        self.of(&queue.queue())
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

//! One second of a busy hour of a tenant that sends a billion events a day: its operations, and the partitions that
//! they use.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use hearback_detection::FeedbackStatus;
use hearback_domain::identity::identifier::{Label, MessageId, UserId, UserRef};
use hearback_domain::turns::turn::ConversationRef;
use hearback_storage::table::{
    BY_AUTHOR, BY_DAY, BY_FEED, BY_FEED_USER, BY_HOUR, BY_STATUS, BY_TRACE,
};
use hearback_storage::{Store, keys};
use hearback_tests::generate::Random;
use hearback_tests::touched::{Partition, Units};
use uuid::Uuid;

/// The kind of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Event,
    User,
    Preferences,
    Conversation,
    Message,
    Markers,
    Import,
    Author,
    Signals,
    Trace,
    Accepted,
    Rejected,
    Feed,
    FeedUser,
    Hour,
}

/// The partitions that one operation uses. The ids of events differ each time.
pub type Touches = Vec<(Kind, Units)>;

/// The time, user and targets of an operation.
#[derive(Debug, Clone)]
pub struct Names {
    at: DateTime<Utc>,
    user: UserId,
    within: ConversationRef,
    message: MessageId,
    trace: Label,
    import: String,
}

impl Names {
    pub fn new(
        at: DateTime<Utc>,
        user: &str,
        conversation: &str,
        (message, trace, import): (&str, &str, &str),
    ) -> Self {
        let within = ConversationRef {
            tenant: "acme".try_into().unwrap(),
            project: "order-service".try_into().unwrap(),
            conversation: conversation.try_into().unwrap(),
        };
        Self {
            at,
            user: user.try_into().unwrap(),
            within,
            message: message.try_into().unwrap(),
            trace: trace.try_into().unwrap(),
            import: import.to_owned(),
        }
    }

    /// The partition of a kind for these names, by the product's own functions; for events, that of `event`.
    pub fn partition(&self, store: &Store, kind: Kind, event: Uuid) -> Partition {
        let Self { user, within, .. } = self;
        let (tenant, project) = (&within.tenant, &within.project);
        let day = self.at.date_naive();
        let (index, key) = match kind {
            Kind::Event => (None, keys::event(tenant, event)),
            Kind::User => (None, keys::user(UserRef { tenant, user })),
            Kind::Preferences => (None, keys::preferences(UserRef { tenant, user })),
            Kind::Conversation => (None, keys::conversation(within)),
            Kind::Message => (None, keys::message(tenant, project, &self.message)),
            Kind::Markers => {
                let shard = store.shard(within.conversation.as_str());
                (None, keys::day(tenant, project, day, shard))
            }
            Kind::Import => (None, keys::import(tenant, &self.import)),
            Kind::Author => (Some(BY_AUTHOR), keys::user(UserRef { tenant, user })),
            Kind::Signals => {
                let shard = store.shard(user.as_str());
                (Some(BY_DAY), keys::signal_day(tenant, day, shard))
            }
            Kind::Accepted | Kind::Rejected => {
                let status = if kind == Kind::Accepted {
                    FeedbackStatus::Accepted
                } else {
                    FeedbackStatus::Rejected
                };
                let shard = store.shard(within.conversation.as_str());
                (
                    Some(BY_STATUS),
                    keys::turn_status(tenant, project, status, shard),
                )
            }
            Kind::Feed => {
                let shard = store.feed_shard(event);
                (Some(BY_FEED), keys::feed(tenant, day, shard))
            }
            Kind::FeedUser => (Some(BY_FEED_USER), keys::user(UserRef { tenant, user })),
            Kind::Hour => {
                let shard = store.hour_shard(event);
                (Some(BY_HOUR), keys::hour(tenant, project, self.at, shard))
            }
            Kind::Trace => (Some(BY_TRACE), keys::trace(tenant, &self.trace)),
        };
        Partition { index, key }
    }
}

/// Users of the tenant.
const USERS: f64 = 50_000_000.0;
/// The frequency of the user of rank `n` is proportional to `n` to the power of minus this. The first ranks are
/// busier than any person.
const SKEW: f64 = 0.8;
/// Posted events of a single service account, per hundred.
const WHALE: u64 = 1;
/// Operations in a conversation that all users share, per thousand.
const ROOM: u64 = 2;

/// The place of an operation, which determines its user and targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Posted,
    Conversation,
}

/// Draws the names of operations.
pub struct Crowd {
    random: Random,
    at: DateTime<Utc>,
}

impl Crowd {
    pub fn new(seed: u64, at: DateTime<Utc>) -> Self {
        let random = Random(seed);
        Self { random, at }
    }

    fn names(&mut self, place: Place) -> Names {
        let mut user = format!("user-{}", self.rank());
        if place == Place::Posted && self.random.below(100) < WHALE {
            "service-account".clone_into(&mut user);
        }
        let mut conversation = format!("conversation-of-{user}");
        if place == Place::Conversation && self.random.below(1_000) < ROOM {
            "room".clone_into(&mut conversation);
        }
        let message = format!("message-{}", self.random.next());
        // A conversation is one trace, and all imports are of one file.
        let trace = format!("trace-of-{conversation}");
        Names::new(self.at, &user, &conversation, (&message, &trace, "import"))
    }

    /// Draws the rank of the next user, by Zipf's law.
    fn rank(&mut self) -> u64 {
        let drawn = self.random.below(1 << 53) as f64 / (1_u64 << 53) as f64;
        let power = 1.0 - SKEW;
        let rank = (drawn * (USERS.powf(power) - 1.0) + 1.0).powf(1.0 / power);
        rank as u64
    }

    fn event(&mut self) -> Uuid {
        Uuid::from_u64_pair(self.random.next(), self.random.next())
    }
}

/// The load on the partitions of one kind in a second.
#[derive(Debug, Clone, Copy, Default)]
pub struct Load {
    pub partitions: usize,
    /// The load of the busiest partition.
    pub busiest: Units,
}

/// The load of one second of these operations, each with its partitions, place and rate.
pub fn second(
    operations: &[(&Touches, Place, u32)],
    crowd: &mut Crowd,
    store: &Store,
) -> HashMap<Kind, Load> {
    let mut touched: HashMap<(Kind, String), Units> = HashMap::new();
    for (touches, place, times) in operations {
        for _ in 0..*times {
            let names = crowd.names(*place);
            for (kind, units) in *touches {
                let Partition { key, .. } = names.partition(store, *kind, crowd.event());
                *touched.entry((*kind, key)).or_default() += *units;
            }
        }
    }
    let mut loads: HashMap<Kind, Load> = HashMap::new();
    for ((kind, _), units) in touched {
        let load = loads.entry(kind).or_default();
        load.partitions += 1;
        load.busiest.reads = load.busiest.reads.max(units.reads);
        load.busiest.writes = load.busiest.writes.max(units.writes);
    }
    loads
}

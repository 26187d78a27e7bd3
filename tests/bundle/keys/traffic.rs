//! A tenant that sends a billion events a day, in a second of its busy hours: who does what, and which
//! partitions that touches.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use hearback_domain::detection::FeedbackType;
use hearback_domain::identifier::{Label, MessageId, UserId};
use hearback_domain::turn::ConversationRef;
use hearback_storage::table::{BY_AUTHOR, BY_DAY, BY_STATUS, BY_TRACE};
use hearback_storage::{Store, keys};
use hearback_tests::generate::Random;
use hearback_tests::touched::{Partition, Units};
use uuid::Uuid;

/// What a partition is of.
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
}

/// What one act touches, as it was seen; an event is each time another one.
pub type Touches = Vec<(Kind, Units)>;

/// Who acts, when, and what it is about.
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

    /// The partition of a kind that an act with these names touches, by the functions that the product
    /// has for it; of events that of this one.
    pub fn partition(&self, store: &Store, kind: Kind, event: Uuid) -> Partition {
        let Self { user, within, .. } = self;
        let (tenant, project) = (&within.tenant, &within.project);
        let day = self.at.date_naive();
        let (index, key) = match kind {
            Kind::Event => (None, keys::event(tenant, event)),
            Kind::User => (None, keys::user(tenant, user)),
            Kind::Preferences => (None, keys::preferences(tenant, user)),
            Kind::Conversation => (None, keys::conversation(within)),
            Kind::Message => (None, keys::message(tenant, project, &self.message)),
            Kind::Markers => {
                let shard = store.shard(within.conversation.as_str());
                (None, keys::day(tenant, project, day, shard))
            }
            Kind::Import => (None, keys::import(tenant, &self.import)),
            Kind::Author => (Some(BY_AUTHOR), keys::user(tenant, user)),
            Kind::Signals => {
                let shard = store.shard(user.as_str());
                (Some(BY_DAY), keys::signal_day(tenant, day, shard))
            }
            Kind::Accepted | Kind::Rejected => {
                let status = if kind == Kind::Accepted {
                    FeedbackType::Accepted
                } else {
                    FeedbackType::Rejected
                };
                let shard = store.shard(within.conversation.as_str());
                (
                    Some(BY_STATUS),
                    keys::turn_status(tenant, project, status, shard),
                )
            }
            Kind::Trace => (Some(BY_TRACE), keys::trace(tenant, &self.trace)),
        };
        Partition { index, key }
    }
}

/// Users of the tenant.
const USERS: f64 = 50_000_000.0;
/// The user of rank `n` acts as often as `n` to the power of minus this. The first of them acts as often
/// as no person can.
const SKEW: f64 = 0.8;
/// Of a hundred posted events, those of one service account.
const WHALE: u64 = 1;
/// Of a thousand acts in conversations, those in one of all users.
const ROOM: u64 = 2;

/// Where an act happens, which decides who acts, and on what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Posted,
    Conversation,
}

/// Draws the names of acts.
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
        // Everything in a conversation is one trace, and all that is imported is in one file.
        let trace = format!("trace-of-{conversation}");
        Names::new(self.at, &user, &conversation, (&message, &trace, "import"))
    }

    /// Which user acts next, by Zipf's law.
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

/// Partitions of one kind in a second.
#[derive(Debug, Clone, Copy, Default)]
pub struct Load {
    pub partitions: usize,
    /// Of the one that has most of them.
    pub most: Units,
}

/// What a second of such acts touches: of each kind of act what it touches, where it happens, and how often.
pub fn second(
    acts: &[(&Touches, Place, u32)],
    crowd: &mut Crowd,
    store: &Store,
) -> HashMap<Kind, Load> {
    let mut touched: HashMap<(Kind, String), Units> = HashMap::new();
    for (touches, place, times) in acts {
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
        load.most.reads = load.most.reads.max(units.reads);
        load.most.writes = load.most.writes.max(units.writes);
    }
    loads
}

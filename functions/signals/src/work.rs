//! The steps from a user's events to what came of them. An event of somebody who is erased is removed
//! instead: it was under way when nobody could find it. Each step is a conditional write that may
//! be repeated, so a crash between any two of them changes nothing but who finishes.
//!
//! | died after | the next delivery finds | and goes on with |
//! |---|---|---|
//! | nothing | no claim | everything |
//! | the claim | its own claim, no version newer than its fence that names the event | learning |
//! | the version | the version that names the event | its turn, the outcome, with the crossing it recorded |
//! | any of what counts for its turn | the same, which is written once | the outcome |
//! | the outcome | the outcome | nothing |

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use futures::future::try_join_all;
use hearback_domain::erasure::{Erasure, Kind};
use hearback_domain::event::EventCore;
use hearback_domain::identifier::{TenantId, UserId};
use hearback_domain::preferences::{Cause, Crossing, Lesson, Version, learn};
use hearback_domain::publication::{Outcome, Processed};
use hearback_lambda::clock::Clock;
use hearback_lambda::queue::{self, Tries};
use hearback_storage::Written;
use hearback_storage::claims::Claim;
use hearback_storage::erasures::{Owner, Unit};
use hearback_storage::preferences::{Freshness, Page};
use hearback_storage::{Error, Store};
use uuid::Uuid;

use crate::counted::count_event;

/// The pauses before a preference version is tried again, when others write too. Each loss means that
/// somebody else went on; a message that lost them all is simply delivered again. Without pauses, workers
/// for one user lose to each other again and again: forty at once wrote ten times for each version.
const PAUSES: ExponentialBuilder = ExponentialBuilder::new()
    .with_min_delay(Duration::from_millis(10))
    .with_max_delay(Duration::from_millis(320))
    .with_max_times(19)
    .with_jitter();

/// Why events could not be worked off.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Storage(#[from] Error),
    #[error("what it writes to was changed too often at once")]
    Contended,
}

impl queue::Failure for Failure {
    fn tries(&self) -> Tries {
        match self {
            Self::Storage(error) => error.tries(),
            Self::Contended => Tries::Many,
        }
    }
}

/// The events of one user that are this delivery's to finish.
#[derive(Default)]
struct Open {
    events: Vec<EventCore>,
    /// If one of them was delivered before: versions newer than this may have learned from it.
    fence: Option<u64>,
}

/// Works off events of one user.
pub(crate) async fn work_off(
    store: &Store,
    clock: Clock,
    mut events: Vec<EventCore>,
) -> Result<(), Failure> {
    events.sort_by_key(|event| Reverse((event.received_at, event.feedback_id)));
    let Some(EventCore {
        tenant, user_id, ..
    }) = events.first().cloned()
    else {
        return Ok(());
    };
    let erasure = erasure_of(store, (&tenant, &user_id)).await?;
    if let Some(erasure) = &erasure {
        let late: Vec<_> = events
            .extract_if(.., |event| erasure.covers(event.received_at))
            .collect();
        // Each by itself: two may have one name, one received before it was removed and one after.
        for event in late {
            let unit = Unit::event(&event)?;
            store
                .erase((&tenant, &user_id), None, Kind::Events, vec![unit])
                .await?;
        }
    }
    // A message that is twice in a batch is one event; of one name the last that came is what is stored.
    let mut names = BTreeSet::new();
    events.retain(|event| names.insert(event.feedback_id));
    // First come, first claimed.
    events.reverse();
    let teaches = events.iter().any(|event| Lesson::of(event).is_some());
    let newest = if teaches {
        // Read before the claims: no version up to here can have learned from what is fresh.
        store
            .newest_version(&tenant, &user_id, Freshness::Eventual)
            .await?
    } else {
        None
    };
    let open = claim(store, clock, events, newest.as_ref()).await?;
    let learner = Learner {
        store,
        clock,
        tenant: &tenant,
        user: &user_id,
    };
    let crossings = learner.learn(&open, newest).await?;
    try_join_all(open.events.iter().map(|event| {
        let processed = Processed::of(event, crossings.get(&event.feedback_id), clock.now());
        let outcome = Outcome::Processed(Box::new(processed));
        let erased = erasure.as_ref().map(|erasure| erasure.id);
        async move {
            // Before its outcome, behind which nobody comes back to it.
            count_event(store, clock, event, erased).await?;
            store.put_outcome(event, &outcome).await?;
            Ok::<_, Failure>(())
        }
    }))
    .await?;
    Ok(())
}

/// The erasure of a user's data, if one was asked for. That it was is seen soon enough, since it waits for
/// what it was not seen by; that it is done is seen at once, since nothing that came after may be removed.
pub(crate) async fn erasure_of(
    store: &Store,
    owner: Owner<'_>,
) -> Result<Option<Erasure>, Failure> {
    let seen = store.erasure(owner, Freshness::Eventual).await?;
    Ok(if seen.as_ref().is_some_and(Erasure::is_open) {
        store.erasure(owner, Freshness::Latest).await?
    } else {
        seen
    })
}

/// Claims the key of each event, and settles those that came second.
async fn claim(
    store: &Store,
    clock: Clock,
    events: Vec<EventCore>,
    newest: Option<&Version>,
) -> Result<Open, Failure> {
    let seen = newest.map_or(0, |version| version.number);
    let mut open = Open::default();
    for event in events {
        match store.claim(&event, seen).await? {
            Claim::Fresh => open.events.push(event),
            Claim::Mine { fence } => {
                if !store.has_outcome(&event).await? {
                    open.fence = Some(open.fence.map_or(fence, |other| other.min(fence)));
                    open.events.push(event);
                }
            }
            Claim::Theirs { first } => {
                let outcome = Outcome::Deduplicated {
                    at: clock.now(),
                    duplicate_of: first,
                };
                store.put_outcome(&event, &outcome).await?;
            }
        }
    }
    Ok(open)
}

/// Appends what a user's events teach to the log of preferences.
struct Learner<'a> {
    store: &'a Store,
    clock: Clock,
    tenant: &'a TenantId,
    user: &'a UserId,
}

impl Learner<'_> {
    /// Learns from each event once, and answers which of them made an acceptance rate cross the
    /// threshold, then or now.
    async fn learn(
        &self,
        open: &Open,
        mut base: Option<Version>,
    ) -> Result<BTreeMap<Uuid, Crossing>, Failure> {
        let mut crossings = BTreeMap::new();
        let mut lessons: BTreeMap<usize, Lesson> = open
            .events
            .iter()
            .enumerate()
            .filter_map(|(at, event)| Some((at, Lesson::of(event)?)))
            .collect();
        // Versions up to here are known not to have learned from these events.
        let mut checked = number(base.as_ref()).min(open.fence.unwrap_or(u64::MAX));
        let mut check = open.fence.is_some();
        let mut pauses = PAUSES.build();
        loop {
            if check && !lessons.is_empty() {
                let newer = self.newer_than(checked).await?;
                let learned = learned_from(&newer, &open.events, &mut crossings);
                lessons.retain(|at, _| !learned.contains(at));
                base = newer.into_iter().next().or(base);
                checked = number(base.as_ref());
            }
            let profile = base.as_ref().map(Version::profile);
            let pending: Vec<_> = lessons.values().cloned().collect();
            let Some(learned) = learn(&profile.unwrap_or_default(), &pending) else {
                return Ok(crossings);
            };
            let cause = Cause::Feedback {
                feedback_ids: learned.events,
                crossings: learned.crossings.clone(),
                overflow: learned.overflow,
            };
            let version = Version::after(base.as_ref(), learned.profile, cause, self.clock.now());
            match self
                .store
                .put_version(self.tenant, self.user, &version)
                .await
            {
                Ok(Written::New) => {
                    crossings.extend(learned.crossings);
                    return Ok(crossings);
                }
                Ok(Written::Known) => {
                    check = true;
                    let pause = pauses.next().ok_or(Failure::Contended)?;
                    tokio::time::sleep(pause).await;
                }
                // What the user set fills the version. The events are processed all the same, or they would come
                // again for ever.
                Err(Error::TooLarge { measured }) => {
                    tracing::warn!(measured, "preferences have no room for what was learned");
                    return Ok(crossings);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Versions newer than a number, the newest first.
    async fn newer_than(&self, after: u64) -> Result<Vec<Version>, Failure> {
        let page = Page {
            after,
            before: None,
            limit: None,
            freshness: Freshness::Latest,
        };
        Ok(self.store.versions(self.tenant, self.user, page).await?)
    }
}

fn number(version: Option<&Version>) -> u64 {
    version.map_or(0, |version| version.number)
}

/// Which events versions learned from already, by their place; what crossed then is noted.
fn learned_from(
    versions: &[Version],
    events: &[EventCore],
    crossings: &mut BTreeMap<Uuid, Crossing>,
) -> BTreeSet<usize> {
    let mut learned = BTreeSet::new();
    for (at, event) in events.iter().enumerate() {
        let found = versions
            .iter()
            .find_map(|version| version.learned_from(event.feedback_id));
        if let Some(crossing) = found {
            learned.insert(at);
            crossings.extend(crossing.map(|crossing| (event.feedback_id, crossing.clone())));
        }
    }
    learned
}

//! The steps from a user's events to their outcomes. Events of a user whose data is erased are removed instead: they
//! were in flight when the erasure searched for them. Each step is a repeatable conditional write, so after a crash
//! between any two of them the next delivery continues.
//!
//! | crashed after | the next delivery finds | and continues with |
//! |---|---|---|
//! | nothing | no claim | everything |
//! | the retraction of an equal event that was received later | that event's claim | the same again |
//! | the claim | its own claim, no version newer than its fence that names the event | learning |
//! | the version | the version that names the event | its turn, the outcome, with the crossing it recorded |
//! | a write for its turn | the same, which is written once | the outcome |
//! | the outcome | the outcome | nothing |

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use futures::future::try_join_all;
use hearback_domain::events::event::EventCore;
use hearback_domain::export::erasure::{Erasure, RemovedKind};
use hearback_domain::identity::identifier::{TenantId, UserRef};
use hearback_domain::learning::ledger::retraction_of_duplicate;
use hearback_domain::learning::preferences::{Cause, Crossing, Lesson, NewestVersion, learn};
use hearback_domain::learning::publication::{Outcome, Processed};
use hearback_lambda::clock::Clock;
use hearback_storage::Written;
use hearback_storage::claims::{Claim, Held};
use hearback_storage::erasures::RowGroup;
use hearback_storage::events::StoredEvent;
use hearback_storage::preferences::{Freshness, StoredVersion, VersionRange};
use hearback_storage::{Error, Store, unless_unreadable};
use uuid::Uuid;

use crate::counted::{count_event, turn_of};
use crate::failure::Failure;

/// The pauses before a preference version is written again after a conflict. Each conflict means that another worker
/// succeeded; after the last one the message is delivered again. Without pauses, forty concurrent workers for one user
/// needed ten writes for each version.
const PAUSES: ExponentialBuilder = ExponentialBuilder::new()
    .with_min_delay(Duration::from_millis(10))
    .with_max_delay(Duration::from_millis(320))
    .with_max_times(19)
    .with_jitter();

/// The events of one user that this delivery processes.
#[derive(Default)]
struct Open {
    events: Vec<EventCore>,
    /// Set if one of them was delivered before: only versions newer than this may have learned from it.
    fence: Option<u64>,
    /// By event: equal events that were received later. What was learned from them is not learned again.
    preceded: BTreeMap<Uuid, Vec<Uuid>>,
}

impl Open {
    /// An event and the equal ones that it precedes.
    fn equals(&self, event: Uuid) -> impl Iterator<Item = Uuid> {
        let preceded = self.preceded.get(&event).into_iter().flatten();
        std::iter::once(event).chain(preceded.copied())
    }
}

/// Processes events of one user.
pub(crate) async fn process(
    store: &Store,
    clock: Clock,
    mut events: Vec<EventCore>,
) -> Result<(), Failure> {
    events.sort_by_key(|event| Reverse(event.receipt()));
    let Some(EventCore {
        tenant, user_id, ..
    }) = events.first().cloned()
    else {
        return Ok(());
    };
    let owner = UserRef::new(&tenant, &user_id);
    let erasure = erasure_of(store, owner).await?;
    if let Some(erasure) = &erasure {
        let erased: Vec<_> = events
            .extract_if(.., |event| erasure.covers(event.received_at))
            .collect();
        // One at a time: two deliveries of one event may have been received before and after its removal.
        for event in erased {
            let unit = RowGroup::event(&event)?;
            store
                .erase(owner, None, RemovedKind::Events, vec![unit])
                .await?;
        }
    }
    // Of several messages with the same id, the one received last is the stored event.
    let mut ids = BTreeSet::new();
    events.retain(|event| ids.insert(event.feedback_id));
    // Claim in the order in which the events were received.
    events.reverse();
    let has_lessons = events.iter().any(|event| Lesson::of(event).is_some());
    let newest = if has_lessons {
        // Read before the claims: no version up to this one can have learned from events that are claimed now.
        store.newest_version(owner, Freshness::Eventual).await?
    } else {
        NewestVersion::default()
    };
    let mut open = claim(store, clock, events, newest.number).await?;
    let turns = open.events.iter().map(|event| turn_of(store, clock, event));
    let turns = try_join_all(turns).await?;
    for (event, turn) in open.events.iter_mut().zip(&turns) {
        if let Some(turn) = turn {
            event.context.inherit(&turn.context());
        }
    }
    let learner = Learner {
        store,
        clock,
        owner,
    };
    let crossings = learner.learn(&open, newest).await?;
    try_join_all(open.events.iter().zip(&turns).map(|(event, turn)| {
        let crossing = crossings.get(&event.feedback_id);
        let erased = erasure.as_ref().map(|erasure| erasure.id);
        async move {
            // Before the outcome, because an event with an outcome is not processed again.
            if let Some(turn) = turn {
                count_event(store, clock, event, turn, erased).await?;
            }
            // The time of publication is read last: readers of the feed wait only a few seconds for late entries.
            let processed = Processed::of(event, crossing, clock.now());
            let outcome = Outcome::Processed(Box::new(processed));
            store.put_outcome(event, &outcome).await?;
            Ok::<_, Failure>(())
        }
    }))
    .await?;
    Ok(())
}

/// The latest erasure of a user's data. An eventually consistent read is enough to see a new one, because an erasure
/// waits for operations that did not see it. Whether it is done is read consistently, so that no later event is
/// removed.
pub(crate) async fn erasure_of(
    store: &Store,
    owner: UserRef<'_>,
) -> Result<Option<Erasure>, Failure> {
    let latest = store.erasure(owner, Freshness::Eventual).await?;
    Ok(if latest.as_ref().is_some_and(Erasure::is_open) {
        store.erasure(owner, Freshness::Latest).await?
    } else {
        latest
    })
}

/// Claims the key of each event, and stores the outcome of the events whose key another event holds.
async fn claim(
    store: &Store,
    clock: Clock,
    events: Vec<EventCore>,
    newest: u64,
) -> Result<Open, Failure> {
    let mut open = Open::default();
    for event in events {
        let claim = claim_of(store, clock, &event, newest).await?;
        match claim {
            Claim::New => open.events.push(event),
            Claim::Own(Held {
                fence, preceded, ..
            }) => {
                if !has_outcome(store, &event).await? {
                    open.fence = Some(open.fence.map_or(fence, |other| other.min(fence)));
                    open.preceded.insert(event.feedback_id, preceded);
                    open.events.push(event);
                }
            }
            Claim::Other { holder, .. } => {
                let outcome = Outcome::Deduplicated {
                    at: clock.now(),
                    duplicate_of: holder,
                };
                store.put_outcome(&event, &outcome).await?;
            }
        }
    }
    Ok(open)
}

/// Claims the key of an event, and takes it over from an event that was received later or that its user has withdrawn.
async fn claim_of(
    store: &Store,
    clock: Clock,
    event: &EventCore,
    newest: u64,
) -> Result<Claim, Failure> {
    let tenant = &event.tenant;
    loop {
        let claim = store.claim(event, newest).await?;
        let Claim::Other {
            holder,
            receipt,
            held,
        } = &claim
        else {
            return Ok(claim);
        };
        // This event was withdrawn while it was processed, and preferences may have learned from it already.
        if let Some(preceded) = held.released.get(&event.feedback_id) {
            return Ok(Claim::Own(Held {
                fence: held.fence,
                preceded: preceded.clone(),
                ..Held::default()
            }));
        }
        // If events of one batch are equal, the first one takes over the claim itself.
        let is_first =
            event.second_to.is_none() && receipt.is_some_and(|receipt| event.receipt() < receipt);
        let leaves = is_first || is_withdrawn(store, tenant, *holder).await?;
        // An event with an outcome held the claim before. A retracted one must not take it: neither would count.
        if !leaves || is_retracted(store, event).await? || has_outcome(store, event).await? {
            return Ok(claim);
        }
        let is_duplicate = is_first && retract_duplicate(store, clock, event, *holder).await?;
        let mut taken = Held {
            fence: held.fence.min(newest),
            ..held.clone()
        };
        if is_duplicate {
            taken.preceded.push(*holder);
        } else {
            let preceded = std::mem::take(&mut taken.preceded);
            if !store.has_outcome(tenant, *holder).await? {
                taken.released.insert(*holder, preceded);
            }
        }
        if store.take_claim(event, *holder, &taken).await? {
            return Ok(if is_first {
                Claim::Own(taken)
            } else {
                Claim::New
            });
        }
    }
}

async fn has_outcome(store: &Store, event: &EventCore) -> Result<bool, Error> {
    store.has_outcome(&event.tenant, event.feedback_id).await
}

/// Whether an event is retracted. A retraction that cannot be read is one, too.
async fn is_retracted(store: &Store, event: &EventCore) -> Result<bool, Error> {
    match store.retraction(&event.tenant, event.feedback_id).await {
        Err(Error::Unreadable { .. }) => Ok(true),
        read => Ok(read?.is_some()),
    }
}

/// Whether an event was withdrawn by its user. A retracted duplicate names the event that counts instead.
async fn is_withdrawn(store: &Store, tenant: &TenantId, event: Uuid) -> Result<bool, Error> {
    let retraction = unless_unreadable(store.retraction(tenant, event).await, tenant)?;
    Ok(retraction.is_some_and(|retraction| retraction.replaced_by.is_none()))
}

/// Retracts an event that was processed, or is being processed, although an equal one was received before it. Returns
/// whether it is a duplicate. An event that its user withdrew is not: preferences learn from it and from the event that
/// counts instead. The retraction is written before the claim, so that an erasure finds both events at any time.
async fn retract_duplicate(
    store: &Store,
    clock: Clock,
    first: &EventCore,
    second: Uuid,
) -> Result<bool, Failure> {
    let tenant = &first.tenant;
    while let Some(StoredEvent {
        core, retraction, ..
    }) = unless_unreadable(store.event(tenant, second, clock.now()).await, tenant)?
    {
        if let Some(retraction) = retraction {
            return Ok(retraction.replaced_by.is_some());
        }
        let turn = turn_of(store, clock, &core).await?;
        // The time of publication is read last.
        let mut retraction = retraction_of_duplicate(&core, first.feedback_id, clock.now());
        if let Some(turn) = turn {
            retraction = retraction.about(&turn);
        }
        store.put_withdrawal(&retraction, &core).await?;
    }
    Ok(true)
}

/// Appends what is learned from a user's events to their preferences.
struct Learner<'a> {
    store: &'a Store,
    clock: Clock,
    owner: UserRef<'a>,
}

impl Learner<'_> {
    /// Learns from each event once, and returns the crossings of these events, including earlier ones.
    async fn learn(
        &self,
        open: &Open,
        mut base: NewestVersion,
    ) -> Result<BTreeMap<Uuid, Crossing>, Failure> {
        let mut crossings = BTreeMap::new();
        let mut lessons: BTreeMap<usize, Lesson> = open
            .events
            .iter()
            .enumerate()
            .filter_map(|(at, event)| Some((at, Lesson::of(event)?)))
            .collect();
        // Versions up to this number have not learned from these events.
        let mut checked = base.number.min(open.fence.unwrap_or(u64::MAX));
        let mut check = open.fence.is_some();
        let mut pauses = PAUSES.build();
        loop {
            if check && !lessons.is_empty() {
                let newer = self.newer_than(checked).await?;
                let learned = learned_from(&newer, open, &mut crossings);
                lessons.retain(|at, _| !learned.contains(at));
                if !lessons.is_empty() && has_hidden_lessons(&newer) {
                    tracing::warn!(
                        tenant = %self.owner.tenant,
                        damaged = true,
                        "not learned: a preference version that cannot be read may have learned it"
                    );
                    return Ok(crossings);
                }
                base.number = newer.first().map_or(base.number, |newest| newest.number);
                let readable = newer.into_iter().find_map(|stored| stored.version);
                base.version = readable.or(base.version);
                checked = base.number;
            }
            let pending: Vec<_> = lessons.values().cloned().collect();
            let Some(learned) = learn(&base.profile(), &pending) else {
                return Ok(crossings);
            };
            // Includes equal events that were received later: a concurrent delivery of one of them finds its id here.
            let taught = learned.events.iter().flat_map(|event| open.equals(*event));
            let cause = Cause::Feedback {
                feedback_ids: taught.collect(),
                crossings: learned.crossings.clone(),
                overflow: learned.overflow,
            };
            let version = base.next(learned.profile, cause, self.clock.now());
            match self.store.put_version(self.owner, &version).await {
                Ok(Written::New) => {
                    crossings.extend(learned.crossings);
                    return Ok(crossings);
                }
                Ok(Written::AlreadyExists) => {
                    check = true;
                    let pause = pauses.next().ok_or(Failure::Contended)?;
                    tokio::time::sleep(pause).await;
                }
                // The user's own settings fill the version. The events are processed without learning, or they would be
                // delivered again forever.
                Err(Error::TooLarge { measured }) => {
                    tracing::warn!(
                        tenant = %self.owner.tenant,
                        measured,
                        "preferences have no room for what was learned"
                    );
                    return Ok(crossings);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Versions newer than a number, the newest first.
    async fn newer_than(&self, after: u64) -> Result<Vec<StoredVersion>, Failure> {
        let range = VersionRange {
            after,
            before: None,
            limit: None,
            freshness: Freshness::Latest,
        };
        Ok(self.store.versions(self.owner, range).await?)
    }
}

/// Whether one of these versions, the newest first, cannot be read although a later one can. The later one contains
/// what it learned, which must not be learned again. If no later version can be read, what it learned is lost.
fn has_hidden_lessons(versions: &[StoredVersion]) -> bool {
    let mut readable = versions.iter().map(|stored| stored.version.is_some());
    readable.any(|is_readable| is_readable) && readable.any(|is_readable| !is_readable)
}

/// The indexes of the events that these versions learned from, or from an equal event. Their crossings are added to
/// `crossings`.
fn learned_from(
    versions: &[StoredVersion],
    open: &Open,
    crossings: &mut BTreeMap<Uuid, Crossing>,
) -> BTreeSet<usize> {
    let mut learned = BTreeSet::new();
    for (at, event) in open.events.iter().enumerate() {
        let mut equals = open.equals(event.feedback_id);
        let found = equals.find_map(|event| {
            let mut versions = versions.iter().filter_map(|stored| stored.version.as_ref());
            versions.find_map(|version| version.learned_from(event))
        });
        if let Some(crossing) = found {
            learned.insert(at);
            crossings.extend(crossing.map(|crossing| (event.feedback_id, crossing.clone())));
        }
    }
    learned
}

#[cfg(test)]
mod tests {
    use hearback_domain::learning::preferences::Profile;

    use super::*;

    #[test]
    fn an_unreadable_version_hides_lessons_only_if_a_later_one_is_readable() {
        let now = Clock::system().now();
        let readable = NewestVersion::default().next(Profile::default(), Cause::Reset, now);
        let stored = |is_readable: &bool| StoredVersion {
            number: readable.number,
            version: is_readable.then(|| readable.clone()),
        };
        for (newest_first, expected) in [
            (&[][..], false),
            (&[true, true], false),
            (&[false], false),
            (&[false, true], false),
            (&[true, false], true),
            (&[false, true, false], true),
        ] {
            let versions: Vec<_> = newest_first.iter().map(stored).collect();
            assert_eq!(has_hidden_lessons(&versions), expected, "{newest_first:?}");
        }
    }
}

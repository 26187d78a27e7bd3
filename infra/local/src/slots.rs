//! Slots limit the requests in progress: one for a request, and more for a large body while it arrives.
//!
//! A request holds a single slot until bytes of its body arrive, whatever length it declares, so a stalled client holds
//! no more than what it sent. A user can hold at most three quarters of the slots, and a tenant seven eighths, so there
//! are always slots for others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of a body for each slot: about ten events of a batch, or a turn.
const SLOT_BYTES: u64 = 8 * 1024;
/// Maximum slots of a request: a batch has at most 1,000 events, however large they are.
const MAX_SLOTS: u32 = 64;

/// Why a request gets no slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overloaded {
    /// All slots are in use.
    All,
    /// The share of its user or tenant is in use.
    Share,
}

/// All slots.
#[derive(Debug, Clone)]
pub(crate) struct Slots(Arc<Pool>);

#[derive(Debug)]
struct Pool {
    total: u32,
    tenant_share: u32,
    user_share: u32,
    used: Mutex<Used>,
}

#[derive(Debug, Default)]
struct Used {
    total: u32,
    users: HashMap<SlotUser, u32>,
}

/// Who uses slots.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum SlotUser {
    Tenant(String),
    User { tenant: String, sub: String },
}

/// The slots of one request. They are released when the last clone is dropped.
#[derive(Debug, Clone)]
pub struct RequestSlots(Arc<Held>);

#[derive(Debug)]
struct Held {
    pool: Arc<Pool>,
    state: Mutex<HeldState>,
}

#[derive(Debug)]
struct HeldState {
    slots: u32,
    /// Empty until the token is verified.
    users: Vec<SlotUser>,
}

impl Slots {
    pub(crate) fn new(total: u32) -> Self {
        Self(Arc::new(Pool {
            total,
            tenant_share: total - total / 8,
            user_share: total - total / 4,
            used: Mutex::default(),
        }))
    }

    /// Acquires one slot, for a request whose caller is not known yet.
    pub(crate) fn acquire(&self) -> Option<RequestSlots> {
        self.0.acquire(1, &[]).ok()?;
        Some(RequestSlots(Arc::new(Held {
            pool: self.0.clone(),
            state: Mutex::new(HeldState {
                slots: 1,
                users: Vec::new(),
            }),
        })))
    }
}

impl RequestSlots {
    /// Assigns the request to its user and tenant. Fails if a body of this many bytes would exceed their shares; no
    /// slots are acquired for the body yet.
    pub fn assign(&self, tenant: &str, sub: &str, body: u64) -> Result<(), Overloaded> {
        let users = [
            SlotUser::Tenant(tenant.to_owned()),
            SlotUser::User {
                tenant: tenant.to_owned(),
                sub: sub.to_owned(),
            },
        ];
        let mut state = self.0.state();
        let more = self.0.pool.needed(body).saturating_sub(state.slots);
        self.0.pool.assign(state.slots, more, &users)?;
        state.users = users.into();
        Ok(())
    }

    /// Acquires the slots for a body of which this many bytes have arrived.
    pub fn received(&self, body: u64) -> Result<(), Overloaded> {
        let mut state = self.0.state();
        let more = self.0.pool.needed(body).saturating_sub(state.slots);
        if more > 0 {
            self.0.pool.acquire(more, &state.users)?;
            state.slots += more;
        }
        Ok(())
    }
}

impl Pool {
    /// The slots for a body of this many bytes. The largest body needs no more than the share of a user, so that it is
    /// accepted when the machine is idle.
    fn needed(&self, body: u64) -> u32 {
        let most = MAX_SLOTS.min(self.user_share);
        let slots = u32::try_from(body.div_ceil(SLOT_BYTES)).unwrap_or(most);
        slots.clamp(1, most)
    }

    fn acquire(&self, slots: u32, users: &[SlotUser]) -> Result<(), Overloaded> {
        let mut used = self.used();
        self.check_shares(&used, slots, users)?;
        self.check(&used, slots)?;
        used.total += slots;
        used.add(slots, users);
        Ok(())
    }

    /// Counts acquired slots for these users, if their shares and the pool suffice for them and `more`.
    fn assign(&self, slots: u32, more: u32, users: &[SlotUser]) -> Result<(), Overloaded> {
        let mut used = self.used();
        self.check_shares(&used, slots + more, users)?;
        self.check(&used, more)?;
        used.add(slots, users);
        Ok(())
    }

    fn check(&self, used: &Used, slots: u32) -> Result<(), Overloaded> {
        if used.total + slots > self.total {
            return Err(Overloaded::All);
        }
        Ok(())
    }

    fn check_shares(&self, used: &Used, slots: u32, users: &[SlotUser]) -> Result<(), Overloaded> {
        let exceeds = |user: &SlotUser| {
            let share = match user {
                SlotUser::Tenant(_) => self.tenant_share,
                SlotUser::User { .. } => self.user_share,
            };
            used.users.get(user).map_or(0, |slots| *slots) + slots > share
        };
        if users.iter().any(exceeds) {
            return Err(Overloaded::Share);
        }
        Ok(())
    }

    fn release(&self, slots: u32, users: &[SlotUser]) {
        let mut used = self.used();
        used.total = used.total.saturating_sub(slots);
        for user in users {
            if let Some(count) = used.users.get_mut(user) {
                *count = count.saturating_sub(slots);
                if *count == 0 {
                    used.users.remove(user);
                }
            }
        }
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Used {
    fn add(&mut self, slots: u32, users: &[SlotUser]) {
        for user in users {
            *self.users.entry(user.clone()).or_default() += slots;
        }
    }
}

impl Held {
    fn state(&self) -> MutexGuard<'_, HeldState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let state = self.state();
        self.pool.release(state.slots, &state.users);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Acquires slots for requests of a user until one is rejected.
    fn fill(slots: &Slots, (tenant, sub): (&str, &str), body: u64) -> Vec<RequestSlots> {
        let one = || {
            let request = slots.acquire()?;
            request.assign(tenant, sub, body).ok()?;
            request.received(body).ok()?;
            Some(request)
        };
        std::iter::from_fn(one).collect()
    }

    #[test]
    fn a_user_can_hold_three_quarters_of_the_slots_and_a_tenant_seven_eighths() {
        let slots = Slots::new(128);
        let ada = fill(&slots, ("acme", "ada"), 0);
        assert_eq!(ada.len(), 96);
        let eve = fill(&slots, ("acme", "eve"), 0);
        assert_eq!(eve.len(), 16, "the rest of the tenant's share");
        let other = fill(&slots, ("other", "ada"), 0);
        assert_eq!(other.len(), 16, "the rest of all slots");
        assert!(slots.acquire().is_none());
        drop(eve);
        assert_eq!(fill(&slots, ("acme", "ada"), 0).len(), 0);
        drop(ada);
        assert_eq!(fill(&slots, ("acme", "ada"), 0).len(), 96);
    }

    #[test]
    fn a_body_acquires_slots_as_it_arrives() {
        let slots = Slots::new(128);
        let stalled = fill(&slots, ("acme", "ada"), 0);
        let growing = stalled.last().unwrap().clone();
        assert_eq!(growing.received(SLOT_BYTES), Ok(()));
        assert_eq!(growing.received(SLOT_BYTES + 1), Err(Overloaded::Share));
        drop(stalled);
        assert_eq!(
            growing.received(u64::MAX),
            Ok(()),
            "it needs 64 slots at most"
        );
        let declared = slots.acquire().unwrap();
        let rejected = declared.assign("acme", "ada", 33 * SLOT_BYTES);
        assert_eq!(rejected, Err(Overloaded::Share));
        assert_eq!(declared.assign("acme", "ada", 32 * SLOT_BYTES), Ok(()));
        assert_eq!(declared.received(32 * SLOT_BYTES), Ok(()));
        assert_eq!(
            declared.received(32 * SLOT_BYTES + 1),
            Err(Overloaded::Share)
        );
    }

    #[test]
    fn a_declared_length_that_exceeds_the_free_slots_is_rejected_before_the_body_arrives() {
        let slots = Slots::new(128);
        let _ada = fill(&slots, ("acme", "ada"), 0);
        let request = slots.acquire().unwrap();
        let rejected = request.assign("other", "ada", 33 * SLOT_BYTES);
        assert_eq!(rejected, Err(Overloaded::All));
        assert_eq!(request.assign("other", "ada", 32 * SLOT_BYTES), Ok(()));
    }

    #[test]
    fn users_without_requests_are_forgotten() {
        let slots = Slots::new(8);
        drop(fill(&slots, ("acme", "ada"), SLOT_BYTES * 2));
        let used = slots.0.used();
        assert_eq!(used.total, 0);
        assert!(used.users.is_empty());
    }
}

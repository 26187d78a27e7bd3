//! The event that a request names, if the caller may read it.

use hearback_domain::events::event::EventCore;
use hearback_domain::identity::caller::Caller;
use hearback_storage::events::StoredEvent;
use uuid::Uuid;

use crate::app::App;
use crate::problem::Problem;

/// An event that the caller may read.
#[derive(Debug)]
pub struct VisibleEvent {
    /// The event.
    pub stored: StoredEvent,
    /// Whether it is the caller's own, under the user id or the pseudonym.
    pub own: bool,
}

impl App {
    /// The event with this id. The response is the same for one that does not exist, has expired, or is another user's:
    /// only a back end reads the events of its users, except private ones. One call, one read for each 4 KB.
    pub async fn visible_event(
        &self,
        caller: &Caller,
        feedback_id: &str,
    ) -> Result<VisibleEvent, Problem> {
        let not_found = || Problem::no_such("event");
        let id = Uuid::try_parse(feedback_id).map_err(|_| not_found())?;
        let stored = self.store.event(&caller.tenant, id, self.clock.now());
        let stored = stored.await?.ok_or_else(not_found)?;
        let own = self.is_own(caller, &stored.core);
        if !own && !stored.core.may_be_read_by(caller) {
            return Err(not_found());
        }
        Ok(VisibleEvent { stored, own })
    }

    fn is_own(&self, caller: &Caller, event: &EventCore) -> bool {
        let pseudonym = self.pseudonyms.user(&caller.tenant, &caller.user);
        event.user_id == caller.user || pseudonym.is_ok_and(|name| event.user_id == name)
    }
}

//! Finds the conversations of a page of the report.
//!
//! The report goes through the activity markers backwards, minute by minute, and reads the reactions of each
//! conversation. A conversation is listed at the minute of its position ([`hearback_domain::views::period::position`]) and
//! skipped at all others. So conversations outside of the window are not read, and there are no counters that could
//! become wrong.
//!
//! | to change | look in |
//! |---|---|
//! | what a cursor contains | `position.rs` |
//! | what is on a page, and when it is full | `page.rs` |
//! | which conversations of a minute are listed | `list.rs` |
//! | the search with `feedback:report` | `project.rs` |
//! | the search without | `own.rs` |

mod list;
mod own;
mod page;
mod position;
mod project;

use hearback_domain::identity::caller::Scope;
use hearback_domain::views::period::ConversationFeedback;
use hearback_storage::Error;

use page::Room;
pub(super) use page::Walk;
pub(super) use position::PeriodPosition;

/// A completed page.
pub(super) struct CompletedPage {
    /// The conversations.
    pub(super) items: Vec<ConversationFeedback>,
    /// Where the next page begins, if there is one.
    pub(super) next: Option<PeriodPosition>,
}

impl Walk<'_> {
    /// Fills the page.
    pub(super) async fn page(mut self) -> Result<CompletedPage, Error> {
        let all_users = self.within.caller.has(Scope::Report);
        let more = self.add_rest().await? == Room::Full
            || if all_users {
                self.walk_all().await?
            } else {
                self.walk_own().await?
            };
        Ok(CompletedPage {
            items: self.items,
            next: more.then_some(self.position),
        })
    }
}

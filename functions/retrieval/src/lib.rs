//! What became of feedback: every read but preferences.

mod event;
mod feedback;
mod feedback_context;
mod message_signals;
mod part;
mod period;
mod strategies;
mod timeline;
mod turn_list;
mod turns;

use hearback_domain::caller::Caller;
use hearback_domain::reaction::StoredReaction;
use hearback_lambda::WithBlobs;
use hearback_lambda::routes::Routes;
use hearback_storage::reactions::Row;

/// Largest body of a request for a report, in bytes.
pub const MAX_BODY: usize = 1024 * 1024;

/// The reactions that the caller may see, and what counts as such, without the words that are not for the
/// caller.
fn visible(rows: Vec<Row>, caller: &Caller) -> Vec<StoredReaction> {
    let seen = rows.into_iter().filter_map(|row| match row {
        Row::Reaction(reaction) => Some(*reaction),
        Row::Counted(mut counted) => {
            if !counted.shown_to(caller) {
                counted.text.clear();
            }
            Some(*counted)
        }
        // Of an older system, whose acts are not in the ledger.
        Row::Legacy(..) | Row::Unreadable => None,
    });
    seen.filter(|reaction| caller.sees(&reaction.core.user_id))
        .collect()
}

/// Every route of this function.
pub fn routes() -> Routes<WithBlobs> {
    feedback::routes()
        .and(turns::routes())
        .and(period::routes())
        .and(timeline::routes())
        .and(message_signals::routes())
        .and(feedback_context::routes())
        .and(strategies::routes())
        .and(turn_list::routes())
}

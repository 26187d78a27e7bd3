//! Reads of turns, feedback and outcomes. Preferences are read in `functions/preferences`.
//!
//! A handler checks what the caller may see, reads the table, and for texts the bucket, and responds. It writes
//! nothing. Joins over all users of a tenant are in `functions/export`.
//!
//! | start with | for |
//! |---|---|
//! | `feedback.rs` | an event and its outcome |
//! | `feed.rs` | the feed: what was published |
//! | `turn.rs`, `conversation.rs`, `turn_list.rs` | one turn with its feedback; the turns of a conversation; turns by status |
//! | `corrections.rs` | what people corrected, as labelled examples |
//! | `turn_report.rs`, `period.rs` | the reports of a conversation and of a period |
//! | `timeline.rs`, `feedback_context.rs` | what an agent or a planner reads before its next answer |
//! | `insights.rs` | counts by time, and by what feedback is about |
//! | `strategies.rs` | past turns that are similar to a query |
//! | `message_signals.rs` | the caller's own message signals |

mod conversation;
mod corrections;
mod counted;
mod event;
mod feed;
mod feedback;
mod feedback_context;
mod insights;
mod message_signals;
mod part;
mod period;
mod strategies;
mod timeline;
mod turn;
mod turn_list;
mod turn_report;

use hearback_domain::feedback::reaction::StoredReaction;
use hearback_domain::identity::caller::Caller;
use hearback_domain::identity::identifier::UserId;
use hearback_lambda::WithBlobs;
use hearback_lambda::routes::Routes;
use hearback_storage::reactions::ReactionRow;
use hearback_wire::request;

/// Largest body of a request for a report, in bytes.
pub const MAX_BODY: usize = 1024 * 1024;

request! {
    /// The user in whose view something is read.
    struct ViewQuery, query {
        /// The user in whose view the response is made, with `feedback:on-behalf`; the caller if left out.
        "user_id" => user_id: optional UserId,
    }
}

/// The reactions, and signals and events that count as such, that the caller may see, without texts that it may not
/// see.
fn visible(rows: Vec<ReactionRow>, caller: &Caller) -> Vec<StoredReaction> {
    let reactions = rows.into_iter().filter_map(|row| match row {
        ReactionRow::Reaction(reaction) => Some(*reaction),
        ReactionRow::Counted(mut counted) => {
            if !counted.is_visible_to(caller) {
                counted.text.clear();
            }
            Some(*counted)
        }
        // Reactions of an older system are not in the ledger.
        ReactionRow::Legacy(..) | ReactionRow::Unreadable => None,
    });
    reactions
        .filter(|reaction| caller.sees(&reaction.core.user_id))
        .collect()
}

/// Every route of this function.
pub fn routes() -> Routes<WithBlobs> {
    feedback::routes()
        .and(feed::routes())
        .and(turn::routes())
        .and(turn_report::routes())
        .and(period::routes())
        .and(timeline::routes())
        .and(message_signals::routes())
        .and(feedback_context::routes())
        .and(strategies::routes())
        .and(turn_list::routes())
        .and(conversation::routes())
        .and(corrections::routes())
        .and(insights::routes())
}

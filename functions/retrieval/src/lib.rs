//! What became of feedback: every read but preferences.

mod event;
mod feedback;
mod feedback_context;
mod message_signals;
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

/// Bytes of a page after which it ends early. Lambda hands on 6 MB at most.
const MAX_PAGE: usize = 5 * 1000 * 1000;

/// How much of an answer this takes. Lambda carries an answer as a text within JSON, in which
/// each quote and each backslash takes a byte more.
fn size_in_answer(part: &impl serde::Serialize) -> usize {
    let json = serde_json::to_vec(part).unwrap_or_default();
    let escaped = json.iter().filter(|byte| matches!(byte, b'"' | b'\\'));
    json.len() + escaped.count()
}

/// The reactions that the caller may see.
fn visible(rows: Vec<Row>, caller: &Caller) -> Vec<StoredReaction> {
    let seen = rows.into_iter().filter_map(|row| match row {
        Row::Reaction(reaction) => Some(*reaction),
        // Of an older system, which knew no users.
        Row::Legacy(_) | Row::Unreadable => None,
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

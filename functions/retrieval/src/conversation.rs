//! The turns of a conversation: the caller's own, or with `feedback:report` all of them.

use axum::Json;
use axum::extract::State;
use hearback_domain::identity::identifier::UserId;
use hearback_domain::text::digest::digest;
use hearback_domain::text::page::{DEFAULT_LIMIT, PageLimit};
use hearback_domain::text::payload::{MAX_PAGE, escaped_json_size};
use hearback_lambda::params::{InConversation, Parameters};
use hearback_lambda::rejections::{ForbiddenRejection, Rejections};
use hearback_lambda::routes::Routes;
use hearback_lambda::{App, Problem, WithBlobs, routes};
use hearback_wire::request;

use crate::turn_list::{ListedTurn, ListedTurnPage};

/// Calls to the table for a page, at most. If few of the turns are the caller's, the page ends early.
const MAX_CALLS: usize = 10;

request! {
    /// A page of a conversation.
    struct ConversationQuery, query {
        /// The maximum number of turns on the page.
        "limit" => limit: optional PageLimit = DEFAULT_LIMIT,
        /// `next_cursor` of the previous page.
        "cursor" => cursor: optional String,
        /// The user in whose view the turns are listed, with `feedback:on-behalf`; the caller if left out.
        "user_id" => user_id: optional UserId,
    }
}

pub(crate) fn routes() -> Routes<WithBlobs> {
    routes!(WithBlobs => list_turns)
}

/// Turns of a conversation
///
/// The caller's own, or with `feedback:report` those of all users, in the order of their ids. A conversation without
/// any is an empty list. A page may end before `limit`; the list ends where `next_cursor` is `null`.
#[utoipa::path(
    get,
    path = "/conversations/{tenant}/{project}/{conversation_id}/turns",
    tag = "turns",
    params(
        InConversation,
        ConversationQuery,
    ),
    responses(
        (status = 200, description = "A page of turns", body = ListedTurnPage),
        Rejections,
        ForbiddenRejection,
    ),
    security(("bearer" = []))
)]
async fn list_turns(
    State(app): State<App>,
    InConversation { at, caller }: InConversation,
    Parameters(list): Parameters<ConversationQuery>,
) -> Result<Json<ListedTurnPage>, Problem> {
    let limit: usize = list.limit.to();
    let caller = caller.on_behalf_of(list.user_id)?;
    let now = app.clock.now();
    let names = [
        at.tenant.as_str(),
        at.project.as_str(),
        at.conversation.as_str(),
        caller.view(),
    ];
    let query = digest(["turns of a conversation"].into_iter().chain(names));
    let mut after: Option<String> = (list.cursor)
        .map(|cursor| app.cursors.open(&query, &cursor).map_err(Problem::cursor))
        .transpose()?;
    let (mut turns, mut bytes) = (Vec::new(), 0);
    let more = 'page: {
        for _ in 0..MAX_CALLS {
            let rest = (after.as_deref(), limit - turns.len());
            let page = app.store.conversation_turns(&at, rest, now).await?;
            for (position, row) in page.rows {
                if caller.sees(&row.core.user_id) {
                    let turn = ListedTurn::from(row.seen_by(&caller.user, now));
                    let size = escaped_json_size(&turn) + 1;
                    if !turns.is_empty() && bytes + size > MAX_PAGE {
                        break 'page true;
                    }
                    bytes += size;
                    turns.push(turn);
                }
                after = Some(position);
            }
            let Some(next) = page.next else {
                break 'page false;
            };
            after = Some(next);
            if turns.len() == limit {
                break;
            }
        }
        true
    };
    let next = after.filter(|_| more);
    Ok(Json(ListedTurnPage {
        turns,
        next_cursor: next.map(|next| app.cursors.seal(&query, &next)),
    }))
}

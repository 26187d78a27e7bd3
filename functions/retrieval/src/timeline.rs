//! What an agent is told of the feedback on its turns.

use axum::Json;
use axum::extract::State;
use futures::future::try_join_all;
use hearback_domain::caller::Scope;
use hearback_domain::identifier::{TurnId, UserId};
use hearback_domain::legacy::LegacyReaction;
use hearback_domain::payload;
use hearback_domain::timeline::{By, Refresh, Request, TurnReaction, refresh};
use hearback_domain::turn::TurnRef;
use hearback_lambda::body::JsonBody;
use hearback_lambda::params::InConversation;
use hearback_lambda::problem::ProblemDocument;
use hearback_lambda::routes::Routes;
use hearback_lambda::{App, Problem, WithBlobs, routes};
use hearback_storage::Error;
use hearback_storage::reactions::Row;

/// Largest body of a request, in bytes: the blocks of an answer come back in the next one.
const MAX_BODY: usize = payload::MAX_BODY;
/// Turns up to which each is asked for alone; of more, all reactions of the conversation are read.
const FEW_TURNS: usize = 8;

pub(crate) fn routes() -> Routes<WithBlobs> {
    routes!(WithBlobs => refresh_timeline)
}

/// Refresh a timeline
///
/// What feedback is new on the agent's turns. While its cache is hot only an announce comes;
/// once it is cold the blocks to insert or update, and the watermark moves. Nothing is stored.
#[utoipa::path(
    post,
    path = "/conversations/{tenant}/{project}/{conversation_id}/timeline/refresh",
    tag = "timeline",
    params(
        ("tenant" = String, Path, description = "The token's tenant"),
        ("project" = String, Path, description = "A project that the token holds"),
        ("conversation_id" = String, Path, description = "The conversation"),
    ),
    request_body = Request,
    responses(
        (status = 200, description = "What is new", body = Refresh),
        (status = 400, description = "The body is not JSON or breaks the schema", body = ProblemDocument),
        (status = 401, description = "No valid token", body = ProblemDocument),
        (status = 403, description = "Not the token's tenant or project, or for another user without `feedback:on-behalf`", body = ProblemDocument),
        (status = 413, description = "The body has more than 4 MiB", body = ProblemDocument),
        (status = 503, description = "The store could not be reached; try again", body = ProblemDocument),
    ),
    security(("bearer" = []))
)]
async fn refresh_timeline(
    State(app): State<App>,
    mut within: InConversation,
    JsonBody(body): JsonBody<MAX_BODY>,
) -> Result<Json<Refresh>, Problem> {
    let mut request = Request::parse(&body).map_err(Problem::invalid)?;
    within.caller = within.caller.on_behalf_of(request.user_id.take())?;
    let rows = rows(&app, &within, &request.turn_ids).await?;
    let all = within.caller.has(Scope::Report);
    let mut unreadable = 0_usize;
    let mut reactions = Vec::new();
    for row in rows {
        match row {
            Row::Reaction(reaction) if within.caller.sees(&reaction.core.user_id) => {
                reactions.push(TurnReaction {
                    turn_id: reaction.core.at.turn,
                    turn_ts: reaction.core.turn_ts,
                    origin: reaction.core.origin,
                    by: if reaction.core.own {
                        By::Owner
                    } else {
                        By::Other
                    },
                    user_id: Some(reaction.core.user_id),
                    reaction: reaction.core.reaction,
                    confidence: reaction.core.confidence,
                    ts: reaction.core.ts,
                    text: reaction.text,
                });
            }
            Row::Legacy(legacy, user) => {
                // Of an older system's it may not be known whose it is.
                if all || user.as_ref() == Some(&within.caller.user) {
                    reactions.extend(from_legacy(legacy, user));
                }
            }
            Row::Unreadable => unreadable += 1,
            // What a signal or an event says is no reaction.
            Row::Reaction(_) | Row::Counted(_) => {}
        }
    }
    if unreadable > 0 {
        tracing::warn!(unreadable, "reactions skipped");
    }
    Ok(Json(refresh(&request, &reactions, app.clock.now())))
}

/// An old row does not say when its turn was; when the reaction was is the nearest to it. In the older
/// system a conversation was its user's, and nobody else reacted there.
fn from_legacy(legacy: LegacyReaction, user_id: Option<UserId>) -> Option<TurnReaction> {
    Some(TurnReaction {
        turn_id: legacy.turn_id.try_into().ok()?,
        turn_ts: legacy.ts,
        origin: legacy.origin,
        by: By::Owner,
        user_id,
        reaction: legacy.reaction,
        confidence: legacy.confidence,
        ts: legacy.ts,
        text: legacy.text,
    })
}

async fn rows(app: &App, within: &InConversation, turns: &[TurnId]) -> Result<Vec<Row>, Error> {
    if turns.len() > FEW_TURNS {
        return app.store.reactions(&within.at, app.clock.now()).await;
    }
    let of_each = turns.iter().map(|turn| async {
        let at = TurnRef {
            within: within.at.clone(),
            turn: turn.clone(),
        };
        app.store.reactions_of(&at, app.clock.now()).await
    });
    Ok(try_join_all(of_each).await?.into_iter().flatten().collect())
}

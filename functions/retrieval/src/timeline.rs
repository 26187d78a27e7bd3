//! Timelines: the feedback that an agent receives on its turns.

use std::collections::{BTreeSet, HashSet};

use axum::Json;
use axum::extract::State;
use futures::future::try_join_all;
use hearback_domain::feedback::legacy::LegacyReaction;
use hearback_domain::feedback::reaction::{
    FeedbackKind, Origin, Reaction, ReactionCore, StoredReaction,
};
use hearback_domain::identity::caller::Scope;
use hearback_domain::identity::identifier::{TurnId, UserId};
use hearback_domain::text::payload;
use hearback_domain::turns::turn::TurnRef;
use hearback_domain::views::timeline::{
    FeedbackBy, Refresh, Timeline, TimelineRequest, TurnReaction, refresh,
};
use hearback_lambda::body::JsonBody;
use hearback_lambda::params::InConversation;
use hearback_lambda::rejections::{BodyRejections, ForbiddenRejection};
use hearback_lambda::routes::Routes;
use hearback_lambda::{App, Problem, WithBlobs, routes};
use hearback_storage::Error;
use hearback_storage::reactions::ReactionRow;
use uuid::Uuid;

/// Largest body of a request, in bytes: it has the blocks of the previous response.
const MAX_BODY: usize = payload::MAX_BODY;
/// Up to this many turns are read one by one; for more, all reactions of the conversation are read.
const FEW_TURNS: usize = 8;

pub(crate) fn routes() -> Routes<WithBlobs> {
    routes!(WithBlobs => refresh_timeline)
}

/// Refresh a timeline
///
/// Returns the new feedback on the agent's turns. While the agent's cache is hot, it is only announced; once the cache
/// is cold, the response has the blocks to insert or update, and the watermark moves. Nothing is stored.
#[utoipa::path(
    post,
    path = "/conversations/{tenant}/{project}/{conversation_id}/timeline/refresh",
    tag = "timeline",
    params(
        InConversation,
    ),
    request_body = TimelineRequest,
    responses(
        (status = 200, description = "The new feedback", body = Refresh),
        BodyRejections,
        ForbiddenRejection,
    ),
    security(("bearer" = []))
)]
async fn refresh_timeline(
    State(app): State<App>,
    mut within: InConversation,
    JsonBody(body): JsonBody<MAX_BODY>,
) -> Result<Json<Refresh>, Problem> {
    let mut request = Timeline::parse(&body).map_err(Problem::invalid)?;
    within.caller = within.caller.on_behalf_of(request.user_id.take())?;
    let rows = rows(&app, &within, &request.turns()).await?;
    let all = within.caller.has(Scope::Report);
    let verdicts: HashSet<_> = rows.iter().filter_map(owners_verdict).collect();
    let mut reactions = Vec::new();
    for row in rows {
        match row {
            ReactionRow::Reaction(reaction) if within.caller.sees(&reaction.core.user_id) => {
                reactions.push(of_reaction(*reaction));
            }
            // Signals and events that count for the status. Signals are private to their user; of an event, whose verdict
            // is in the status that others see, the name and the text are.
            ReactionRow::Counted(counted) if counted.is_visible_to(&within.caller) => {
                reactions.extend(of_counted(*counted));
            }
            ReactionRow::Counted(counted) if all && !counted.core.kind.is_private() => {
                // The owner's reaction with the same verdict says more, because it has a text.
                if !verdict(&counted.core).is_some_and(|verdict| verdicts.contains(&verdict)) {
                    reactions.extend(of_counted(*counted).map(without_name));
                }
            }
            ReactionRow::Legacy(legacy, user) => {
                // The author of an older system's reaction may be unknown.
                if all || user.as_ref() == Some(&within.caller.user) {
                    reactions.extend(from_legacy(legacy, user));
                }
            }
            ReactionRow::Reaction(_) | ReactionRow::Counted(_) | ReactionRow::Unreadable => {}
        }
    }
    Ok(Json(refresh(&request, &reactions, app.clock.now())))
}

fn of_reaction(StoredReaction { core, text }: StoredReaction) -> TurnReaction {
    TurnReaction {
        turn_ts: core.turn_ts,
        received_at: core.recency().received_at(),
        id: core.id,
        origin: core.origin,
        by: if core.own {
            FeedbackBy::Owner
        } else {
            FeedbackBy::Other
        },
        reaction: core.reaction,
        confidence: core.confidence,
        follow_up: core.follow_up,
        ts: core.ts,
        turn_id: core.at.turn,
        user_id: Some(core.user_id),
        text,
    }
}

/// A message signal or an event; `None` for an event that is only a correction. The text of a signal begins with its
/// name, because an agent must handle an unsafe answer differently from an inaccurate one.
fn of_counted(counted: StoredReaction) -> Option<TurnReaction> {
    let core = &counted.core;
    if core.reaction.is_none() && core.kind == FeedbackKind::Event && !core.is_event_tombstone() {
        return None;
    }
    let name = core.kind.signal_name().filter(|_| core.reaction.is_some());
    let mut reaction = of_reaction(counted);
    if let Some(name) = name {
        reaction.text = if reaction.text.is_empty() {
            name.to_owned()
        } else {
            format!("{name}: {}", reaction.text)
        };
    }
    Some(reaction)
}

/// The verdict of a turn's owner on the turn.
fn verdict(core: &ReactionCore) -> Option<(TurnId, Reaction)> {
    let given = core.own && core.origin == Origin::User;
    core.reaction
        .filter(|_| given)
        .map(|reaction| (core.at.turn.clone(), reaction))
}

/// The verdict of a turn's owner in a reaction.
fn owners_verdict(row: &ReactionRow) -> Option<(TurnId, Reaction)> {
    match row {
        ReactionRow::Reaction(reaction) => verdict(&reaction.core),
        ReactionRow::Counted(_) | ReactionRow::Legacy(..) | ReactionRow::Unreadable => None,
    }
}

/// What others see of an event.
fn without_name(reaction: TurnReaction) -> TurnReaction {
    TurnReaction {
        user_id: None,
        text: String::new(),
        ..reaction
    }
}

/// A row of an older system does not have the time of its turn; that of the reaction is the best estimate. In the older
/// system only the user of a conversation reacted there.
fn from_legacy(legacy: LegacyReaction, user_id: Option<UserId>) -> Option<TurnReaction> {
    Some(TurnReaction {
        turn_id: legacy.turn_id.try_into().ok()?,
        turn_ts: legacy.ts,
        received_at: legacy.ts,
        id: Uuid::nil(),
        origin: legacy.origin,
        by: FeedbackBy::Owner,
        user_id,
        reaction: legacy.reaction,
        confidence: legacy.confidence,
        follow_up: false,
        ts: legacy.ts,
        text: legacy.text,
    })
}

async fn rows(
    app: &App,
    within: &InConversation,
    turns: &BTreeSet<&TurnId>,
) -> Result<Vec<ReactionRow>, Error> {
    if turns.len() > FEW_TURNS {
        return app.store.reactions(&within.at, app.clock.now()).await;
    }
    let reads = turns.iter().map(|turn| async {
        let at = TurnRef {
            within: within.at.clone(),
            turn: TurnId::clone(turn),
        };
        app.store.reactions_of(&at, app.clock.now()).await
    });
    Ok(try_join_all(reads).await?.into_iter().flatten().collect())
}

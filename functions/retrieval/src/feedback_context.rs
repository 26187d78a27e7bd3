//! The feedback on a turn for a planner, as JSON or as Markdown.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use hearback_detection::FeedbackStatus;
use hearback_domain::caller::Caller;
use hearback_domain::feedback_context::{
    ExplicitRejection, FeedbackContext, Rejection, RejectionFacts, SessionPreferences,
};
use hearback_domain::message_signal::StoredSignal;
use hearback_domain::reaction::{FeedbackKind, Reaction};
use hearback_domain::recency::Recency;
use hearback_domain::sequence::Sequence;
use hearback_lambda::accept::{not_acceptable, preferred, varying};
use hearback_lambda::params::{InTurn, Parameters};
use hearback_lambda::problem::ProblemDocument;
use hearback_lambda::rejections::{ForbiddenRejection, Rejections};
use hearback_lambda::routes::Routes;
use hearback_lambda::{App, Problem, WithBlobs, routes};
use hearback_storage::message_signals::SignalFilter;
use hearback_storage::preferences::Freshness;
use hearback_storage::turn_rows::IndexRow;

/// The media types of the response, the default first.
const MEDIA_TYPES: [&str; 2] = [JSON, MARKDOWN];
const MARKDOWN: &str = "text/markdown";
const JSON: &str = "application/json";
/// More signals than a user can give on one message.
const MAX_SIGNALS: i32 = 10;

use crate::ViewQuery;

pub(crate) fn routes() -> Routes<WithBlobs> {
    routes!(WithBlobs => get_feedback_context)
}

/// The feedback on a turn, for a planner
///
/// A rejected turn has the user's words, what is known to be wrong, and what to do; any other turn has its status. With
/// `Accept: text/markdown`, the same facts are section 2 of the planner's context.
#[utoipa::path(
    get,
    path = "/conversations/{tenant}/{project}/{conversation_id}/turns/{turn_id}/feedback-context",
    tag = "turns",
    params(
        InTurn,
        ViewQuery,
    ),
    responses(
        (status = 200, description = "The feedback on the turn", content(
            (FeedbackContext = "application/json"),
            (String = "text/markdown")
        )),
        (status = 404, description = "No such turn, or not the caller's", body = ProblemDocument),
        (status = 406, description = "`Accept` names neither media type", body = ProblemDocument),
        Rejections,
        ForbiddenRejection,
    ),
    security(("bearer" = []))
)]
async fn get_feedback_context(
    State(app): State<App>,
    InTurn { at, caller }: InTurn,
    headers: HeaderMap,
    Parameters(view): Parameters<ViewQuery>,
) -> Result<Response, Problem> {
    let caller = caller.on_behalf_of(view.user_id)?;
    let Some(media_type) = preferred(&headers, &MEDIA_TYPES) else {
        return Ok(not_acceptable(&MEDIA_TYPES));
    };
    let row = app.store.turn(&at, app.clock.now()).await?;
    let row = row
        .filter(|row| caller.sees(&row.core.user_id))
        .ok_or_else(|| Problem::no_such("turn"))?;
    let status = row.status.status();
    let rejection = if status == FeedbackStatus::Rejected {
        Some(Box::pin(rejection(&app, &caller, &row)).await?)
    } else {
        None
    };
    let context = FeedbackContext {
        turn_id: at.turn.into(),
        status,
        confidence: row.status.confidence(),
        rejection,
    };
    Ok(varying(if media_type == JSON {
        Json(context).into_response()
    } else {
        let media_type = [(CONTENT_TYPE, "text/markdown; charset=utf-8")];
        (media_type, context.to_markdown()).into_response()
    }))
}

/// Everything known about the rejection of a turn.
async fn rejection(app: &App, caller: &Caller, row: &IndexRow) -> Result<Rejection, Problem> {
    let explicit = row.given.latest(app.clock.now());
    let explicit = explicit.filter(|(_, verdict, _)| *verdict == Reaction::NotOk);
    let (text, signals, before, preferences) = futures::join!(
        text_of(app, caller, row, explicit),
        own_signals(app, caller, row),
        app.store.rejections_before(row, app.clock.now()),
        own_preferences(app, caller, row),
    );
    let (text, signals) = (text?, signals?);
    let signals: Vec<_> = (signals.iter())
        .map(|signal| (signal.core.signal, signal.reason.as_deref()))
        .collect();
    let inferred = row.status.inferred.as_ref();
    let known = RejectionFacts {
        explicit: explicit.map(|_| ExplicitRejection {
            text: text.as_deref(),
        }),
        inferred: inferred.filter(|inferred| inferred.status == FeedbackStatus::Rejected),
        signals: &signals,
        sequence: Sequence::of(std::iter::repeat_n(FeedbackStatus::Rejected, 1 + before?)),
    };
    Ok(Rejection::of(
        (&row.core, &row.summary),
        known,
        preferences?,
    ))
}

/// The text of the user's explicit rejection. The reason of a message signal is among [`own_signals`].
async fn text_of(
    app: &App,
    caller: &Caller,
    row: &IndexRow,
    explicit: Option<(FeedbackKind, Reaction, Recency)>,
) -> Result<Option<String>, Problem> {
    let (at, now) = (&row.core.at, app.clock.now());
    let rejection = match explicit {
        Some((FeedbackKind::Reaction, ..)) => {
            let user = Some(&row.core.user_id);
            let found = app.store.turn_and_reaction(at, user, now).await?;
            let current = found.and_then(|(_, current)| current);
            current.map(|current| current.value)
        }
        Some((FeedbackKind::Event, _, recency)) => {
            app.store.counted_event((at, recency.id()), now).await?
        }
        Some(_) | None => None,
    };
    let rejection = rejection.filter(|found| found.core.reaction == Some(Reaction::NotOk));
    let rejection = rejection.filter(|found| found.is_visible_to(caller));
    Ok(rejection.map(|rejection| rejection.text))
}

/// The signals of the turn's user on its answer that still hold. Only that user receives them.
async fn own_signals(
    app: &App,
    caller: &Caller,
    row: &IndexRow,
) -> Result<Vec<StoredSignal>, Problem> {
    let message = row.core.message_id.clone();
    let Some(message) = message.filter(|_| row.core.user_id == caller.user) else {
        return Ok(Vec::new());
    };
    let filter = SignalFilter {
        message: Some(message),
        signal: None,
    };
    let owner = (&caller.tenant, &caller.user);
    let filter = (&filter, app.clock.now());
    let (mut signals, _) = app
        .store
        .signals_of(owner, filter, None, MAX_SIGNALS)
        .await?;
    // What the user said later settles a complaint, even if that was not withdrawn.
    let settled = row.given.settled_at(app.clock.now());
    signals.retain(|StoredSignal { core, .. }| {
        // Messages of two projects may have the same id.
        core.at == row.core.at && settled.is_none_or(|settled| core.updated_at > settled)
    });
    Ok(signals)
}

/// The preferences of the turn's user. Only that user receives them.
async fn own_preferences(
    app: &App,
    caller: &Caller,
    row: &IndexRow,
) -> Result<SessionPreferences, Problem> {
    let newest = if row.core.user_id == caller.user {
        let (tenant, user) = (&caller.tenant, &caller.user);
        app.store
            .newest_version(tenant, user, Freshness::Eventual)
            .await?
    } else {
        None
    };
    let preferences = newest.map(|version| version.preferences);
    let global = preferences.unwrap_or_default().global_preferences;
    Ok(SessionPreferences {
        communication_style: global.communication_style,
        detail_level: global.detail_level,
    })
}

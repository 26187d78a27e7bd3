//! What a planner is told of how a turn was taken, as Markdown or as JSON.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use hearback_domain::caller::Caller;
use hearback_domain::detection::FeedbackType;
use hearback_domain::feedback_context::{FeedbackContext, Known, Rejection, SessionPreferences};
use hearback_domain::message_signal::StoredSignal;
use hearback_domain::reaction::Reaction;
use hearback_domain::sequence::Sequence;
use hearback_lambda::accept::{not_acceptable, preferred, varying};
use hearback_lambda::params::{InTurn, Params};
use hearback_lambda::problem::ProblemDocument;
use hearback_lambda::routes::Routes;
use hearback_lambda::{App, Problem, WithBlobs, routes};
use hearback_storage::keys;
use hearback_storage::message_signals::Wanted;
use hearback_storage::preferences::Freshness;
use hearback_storage::turns::IndexRow;

/// As what it can be had, the default first.
const OFFERED: [&str; 2] = [MARKDOWN, JSON];
const MARKDOWN: &str = "text/markdown";
const JSON: &str = "application/json";
/// More signals than one user can give on one message.
const SIGNALS: i32 = 10;

pub(crate) fn routes() -> Routes<WithBlobs> {
    routes!(WithBlobs => feedback_context)
}

/// The feedback on a turn, for a planner
///
/// Section 2 of its context, in Markdown, or with `Accept: application/json` the same facts as members. Of a
/// turn that was rejected what the user said, what went wrong as far as it is known, and what to do; of any
/// other its status.
#[utoipa::path(
    get,
    path = "/conversations/{tenant}/{project}/{conversation_id}/turns/{turn_id}/feedback-context",
    tag = "turns",
    params(
        ("tenant" = String, Path, description = "The token's tenant"),
        ("project" = String, Path, description = "A project that the token holds"),
        ("conversation_id" = String, Path, description = "The conversation"),
        ("turn_id" = String, Path, description = "The turn"),
        ("user_id" = Option<String>, Query, min_length = 1, max_length = 256, description = "The user in whose view, with `feedback:on-behalf`; the caller without"),
    ),
    responses(
        (status = 200, description = "The section", content(
            (String = "text/markdown"),
            (FeedbackContext = "application/json")
        )),
        (status = 400, description = "The path names no turn", body = ProblemDocument),
        (status = 401, description = "No valid token", body = ProblemDocument),
        (status = 403, description = "Not the token's tenant or project, or for another user without `feedback:on-behalf`", body = ProblemDocument),
        (status = 404, description = "No such turn, or not the caller's", body = ProblemDocument),
        (status = 406, description = "`Accept` names neither media type", body = ProblemDocument),
        (status = 503, description = "The store could not be reached; try again", body = ProblemDocument),
    ),
    security(("bearer" = []))
)]
async fn feedback_context(
    State(app): State<App>,
    InTurn { at, caller }: InTurn,
    headers: HeaderMap,
    mut params: Params,
) -> Result<Response, Problem> {
    let caller = params.on_behalf(caller)?;
    let Some(wanted) = preferred(&headers, &OFFERED) else {
        return Ok(not_acceptable(&OFFERED));
    };
    let row = app.store.turn(&at, app.clock.now()).await?;
    let row = row
        .filter(|row| caller.sees(&row.core.user_id))
        .ok_or_else(|| Problem::no_such("turn"))?;
    let status = row.status.status();
    let rejection = if status == FeedbackType::Rejected {
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
    Ok(varying(if wanted == JSON {
        Json(context).into_response()
    } else {
        let media_type = [(CONTENT_TYPE, "text/markdown; charset=utf-8")];
        (media_type, context.to_markdown()).into_response()
    }))
}

/// What is known of the rejection of a turn.
async fn rejection(app: &App, caller: &Caller, row: &IndexRow) -> Result<Rejection, Problem> {
    let (reaction, signals, before, preferences) = futures::join!(
        comment(app, row),
        own_signals(app, caller, row),
        app.store.rejections_before(row, app.clock.now()),
        own_preferences(app, caller, row),
    );
    let (reaction, signals) = (reaction?, signals?);
    let signals: Vec<_> = (signals.iter())
        .map(|said| (said.core.signal, said.reason.as_deref()))
        .collect();
    let inferred = row.status.inferred.as_ref();
    let known = Known {
        reaction: reaction.as_deref(),
        inferred: inferred.filter(|inferred| inferred.status == FeedbackType::Rejected),
        signals: &signals,
        sequence: Sequence::of(std::iter::repeat_n(FeedbackType::Rejected, 1 + before?)),
    };
    Ok(Rejection::of(
        (&row.core, &row.summary),
        known,
        preferences?,
    ))
}

/// What its user wrote when they rejected the turn on purpose, maybe nothing; `None` if they did not.
async fn comment(app: &App, row: &IndexRow) -> Result<Option<String>, Problem> {
    if row.status.said.is_none() {
        return Ok(None);
    }
    let at = &row.core.at;
    let place = keys::user_reaction(&at.turn, &row.core.user_id);
    let now = app.clock.now();
    let found = app.store.turn_and_reaction(at, Some(&place), now).await?;
    let standing = found.and_then(|(_, standing)| standing);
    let rejects = standing.filter(|standing| standing.held.core.reaction == Some(Reaction::NotOk));
    Ok(Some(
        rejects.map_or_else(String::new, |standing| standing.held.text),
    ))
}

/// What the turn's user said of its answer by signals, who alone is told of them.
async fn own_signals(
    app: &App,
    caller: &Caller,
    row: &IndexRow,
) -> Result<Vec<StoredSignal>, Problem> {
    let message = row.core.message_id.clone();
    let Some(message) = message.filter(|_| row.core.user_id == caller.user) else {
        return Ok(Vec::new());
    };
    let wanted = Wanted {
        message: Some(message),
        signal: None,
    };
    let owner = (&caller.tenant, &caller.user);
    let wanted = (&wanted, app.clock.now());
    let (mut said, _) = app.store.signals_of(owner, wanted, None, SIGNALS).await?;
    // Two projects may have messages of one name.
    said.retain(|said| said.core.at == row.core.at);
    Ok(said)
}

/// The preferences of the turn's user, who alone is told of them.
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

//! What a planner is told of how a turn was taken, as Markdown.

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use hearback_domain::caller::Caller;
use hearback_domain::detection::FeedbackType;
use hearback_domain::feedback_context::{FeedbackContext, Strategy, unrejected};
use hearback_domain::identifier::TurnId;
use hearback_domain::preferences::Preferences;
use hearback_domain::sequence::Sequence;
use hearback_lambda::params::{InTurn, Params};
use hearback_lambda::problem::ProblemDocument;
use hearback_lambda::routes::Routes;
use hearback_lambda::{App, Problem, WithBlobs, routes};
use hearback_storage::keys;
use hearback_storage::preferences::Freshness;
use hearback_storage::turns::IndexRow;

pub(crate) fn routes() -> Routes<WithBlobs> {
    routes!(WithBlobs => feedback_context)
}

/// The feedback on a turn, for a planner
///
/// Section 2 of its context, in Markdown. Of a turn that was rejected what the user said and what not
/// to do again; of any other its status.
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
        (status = 200, description = "The section", body = String, content_type = "text/markdown"),
        (status = 400, description = "The path names no turn", body = ProblemDocument),
        (status = 401, description = "No valid token", body = ProblemDocument),
        (status = 403, description = "Not the token's tenant or project, or for another user without `feedback:on-behalf`", body = ProblemDocument),
        (status = 404, description = "No such turn, or not the caller's", body = ProblemDocument),
        (status = 503, description = "The store could not be reached; try again", body = ProblemDocument),
    ),
    security(("bearer" = []))
)]
async fn feedback_context(
    State(app): State<App>,
    InTurn { at, caller }: InTurn,
    mut params: Params,
) -> Result<Response, Problem> {
    let caller = params.on_behalf(caller)?;
    let row = app.store.turn(&at, app.clock.now()).await?;
    let row = row
        .filter(|row| caller.sees(&row.core.user_id))
        .ok_or_else(|| Problem::no_such("turn"))?;
    let markdown = if row.status.status() == FeedbackType::Rejected {
        let global = own_preferences(&app, &caller, &row)
            .await?
            .global_preferences;
        let session = format!(
            "- communication style: {}\n- detail level: {}",
            global.communication_style.as_str(),
            global.detail_level.as_str()
        );
        section(&app, &row, &session).await?
    } else {
        unrejected(row.status.status())
    };
    let media_type = [(CONTENT_TYPE, "text/markdown; charset=utf-8")];
    Ok((media_type, markdown).into_response())
}

/// The preferences of the turn's user, who alone is told of them.
async fn own_preferences(
    app: &App,
    caller: &Caller,
    row: &IndexRow,
) -> Result<Preferences, Problem> {
    if row.core.user_id != caller.user {
        return Ok(Preferences::default());
    }
    let newest = app
        .store
        .newest_version(&caller.tenant, &caller.user, Freshness::Eventual)
        .await?;
    Ok(newest
        .map(|version| version.preferences)
        .unwrap_or_default())
}

async fn section(app: &App, row: &IndexRow, preferences: &str) -> Result<String, Problem> {
    let said = said(app, row).await?;
    let detected_in = row.status.rejection_detected_in();
    // How many there were in a row, the turn that rejected this one knows.
    let mut sequence = Sequence::of([FeedbackType::Rejected]);
    if let Some(detected_in) = detected_in {
        let mut at = row.core.at.clone();
        at.turn = detected_in.clone();
        let follow_up = app
            .store
            .turn(&at, app.clock.now())
            .await?
            .and_then(|row| row.follow_up);
        sequence = follow_up.map_or(sequence, |follow_up| follow_up.sequence);
    }
    let turn = row.core.at.turn.as_str();
    let strategy = row.core.strategy.as_ref();
    let instruction = format!("User said what they want instead: \"{said}\"");
    let instructions = [instruction.as_str()];
    let instructions = if said.is_empty() {
        &[]
    } else {
        instructions.as_slice()
    };
    let context = FeedbackContext {
        detected_in: detected_in.map(TurnId::as_str),
        rejected: turn,
        user_said: &said,
        strategy: strategy.map(|strategy| Strategy {
            name: strategy.as_str(),
            query: Some(&row.summary.user),
        }),
        what_went_wrong: None,
        instructions,
        sequence,
        conversation: &conversation(row),
        preferences,
    };
    Ok(context.to_markdown())
}

/// What the user said: with their reaction if they rejected the turn on purpose, or in their next
/// message.
async fn said(app: &App, row: &IndexRow) -> Result<String, Problem> {
    if row.status.said.is_none() {
        let inferred = row.status.inferred.as_ref();
        let said = inferred.and_then(|inferred| inferred.user_said.clone());
        return Ok(said.unwrap_or_default());
    }
    let at = &row.core.at;
    let place = keys::user_reaction(&at.turn, &row.core.user_id);
    let found = app
        .store
        .turn_and_reaction(at, Some(&place), app.clock.now())
        .await?;
    let standing = found.and_then(|(_, standing)| standing);
    Ok(standing.map_or_else(String::new, |standing| standing.held.text))
}

/// What was said in the turn, a side a line.
fn conversation(row: &IndexRow) -> String {
    let line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (user, assistant) = (line(&row.summary.user), line(&row.summary.assistant));
    format!("- User: {user}\n- Assistant: {assistant}")
}

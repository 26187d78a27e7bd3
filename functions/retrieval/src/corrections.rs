//! What people corrected: messages with what they were heard to say, and what they really say.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use hearback_detection::{Detection, FeedbackStatus};
use hearback_domain::identity::caller::Scope;
use hearback_domain::text::digest::digest;
use hearback_domain::text::page::{DEFAULT_LIMIT, PageLimit};
use hearback_domain::text::payload::{MAX_PAGE, escaped_json_size};
use hearback_domain::turns::turn::TurnRef;
use hearback_lambda::params::{InProject, Parameters};
use hearback_lambda::rejections::{ForbiddenRejection, Rejections};
use hearback_lambda::routes::Routes;
use hearback_lambda::{App, Problem, WithBlobs, routes};
use hearback_storage::corrections::{Correction, CorrectionFilter};
use hearback_storage::turn_rows::IndexRow;
use hearback_storage::turns_by_status::TurnPosition;
use hearback_wire::request;
use serde::Serialize;
use utoipa::ToSchema;

request! {
    /// Which corrections are listed.
    struct CorrectionListQuery, query {
        /// Those of turns from this time on (RFC 3339).
        "from" => from: optional DateTime<Utc>,
        /// Those of turns up to this time, included.
        "to" => to: optional DateTime<Utc>,
        /// The maximum number of corrections on the page.
        "limit" => limit: optional PageLimit = DEFAULT_LIMIT,
        /// `next_cursor` of the previous page.
        "cursor" => cursor: optional String,
    }
}

pub(crate) fn routes() -> Routes<WithBlobs> {
    routes!(WithBlobs => list_corrections)
}

/// A labelled example: a message, what was said before it, and what it says about that.
#[derive(Debug, Serialize, ToSchema)]
struct CorrectedMessage {
    conversation_id: String,
    /// The turn that the message is about.
    turn_id: String,
    /// The time of that turn.
    ts: DateTime<Utc>,
    /// The turn whose message it is; `null` for a message that was no turn.
    #[schema(required = true)]
    detected_in_turn: Option<String>,
    /// What the user asked: the first 1,000 characters.
    prev_query: String,
    /// What was answered: the first 300 characters, and of a longer answer the last 200.
    prev_response: String,
    /// The message, of which at most 1,000 characters are kept; `null` if they are not.
    #[schema(required = true)]
    message: Option<String>,
    /// The language of the message, if it is known.
    #[schema(required = true)]
    language: Option<String>,
    /// What the message says, according to a person.
    feedback_type: FeedbackStatus,
    /// What it was heard to say.
    was: FeedbackStatus,
    /// How sure the machine was of that, 0 to 1.
    confidence: f64,
    /// The detection when the message arrived; `null` for a message that was no turn.
    #[schema(required = true)]
    detection: Option<Detection>,
    /// When it was corrected last.
    corrected_at: DateTime<Utc>,
}

impl CorrectedMessage {
    /// The correction, from a message that may be a turn.
    fn of(Correction { turn, feedback }: Correction, message: Option<IndexRow>) -> Option<Self> {
        let corrected = feedback.corrected?;
        let (said, language, follow_up) = match message {
            Some(message) => (
                Some(message.summary.user),
                message.core.language,
                message.follow_up,
            ),
            None => (corrected.user_said, None, None),
        };
        let heard = follow_up.filter(|heard| heard.previous_turn_id == turn.core.at.turn);
        Some(Self {
            conversation_id: turn.core.at.within.conversation.into(),
            turn_id: turn.core.at.turn.into(),
            ts: turn.core.ts,
            detected_in_turn: feedback.detected_in_turn.map(Into::into),
            prev_response: turn.summary.answer(),
            prev_query: turn.summary.user,
            message: said,
            language: language.map(Into::into),
            feedback_type: feedback.status,
            was: corrected.was,
            confidence: corrected.confidence,
            detection: heard.map(|heard| heard.detection),
            corrected_at: corrected.at,
        })
    }
}

/// A page of corrections.
#[derive(Debug, Serialize, ToSchema)]
struct CorrectionPage {
    /// The corrections, that of the latest turn first.
    corrections: Vec<CorrectedMessage>,
    /// Where the next page begins; `null` at the end.
    #[schema(required = true)]
    next_cursor: Option<String>,
}

/// Corrected inferences
///
/// What people said that messages mean, beside what was heard: labelled examples with which to measure the detection,
/// or to extend its phrases. Requires `feedback:report`. A page may end before `limit`; the list ends where
/// `next_cursor` is `null`.
#[utoipa::path(
    get,
    path = "/conversations/{tenant}/{project}/corrections",
    tag = "reactions",
    params(
        InProject,
        CorrectionListQuery,
    ),
    responses(
        (status = 200, description = "A page of corrections", body = CorrectionPage),
        Rejections,
        ForbiddenRejection,
    ),
    security(("bearer" = []))
)]
async fn list_corrections(
    State(app): State<App>,
    within: InProject,
    Parameters(list): Parameters<CorrectionListQuery>,
) -> Result<Json<CorrectionPage>, Problem> {
    within.caller.require(Scope::Report)?;
    let limit: usize = list.limit.to();
    let listed = CorrectionFilter {
        tenant: &within.tenant,
        project: &within.project,
        span: (
            list.from.unwrap_or(DateTime::UNIX_EPOCH),
            list.to.unwrap_or(DateTime::<Utc>::MAX_UTC),
        ),
        now: app.clock.now(),
    };
    let query = fingerprint(&listed);
    let after: Option<TurnPosition> = (list.cursor)
        .map(|cursor| app.cursors.open(&query, &cursor).map_err(Problem::cursor))
        .transpose()?;
    let page = app
        .store
        .corrections(&listed, after.as_ref(), limit)
        .await?;
    let messages = messages(&app, &page.rows, listed.now).await?;
    let (mut corrections, mut bytes) = (Vec::new(), 0);
    let (mut next, mut shown) = (page.next, None);
    for ((position, row), message) in page.rows.into_iter().zip(messages) {
        let Some(correction) = CorrectedMessage::of(row, message) else {
            continue;
        };
        let size = escaped_json_size(&correction) + 1;
        if !corrections.is_empty() && bytes + size > MAX_PAGE {
            next = shown;
            break;
        }
        bytes += size;
        corrections.push(correction);
        shown = Some(position);
    }
    Ok(Json(CorrectionPage {
        corrections,
        next_cursor: next.map(|next| app.cursors.seal(&query, &next)),
    }))
}

/// The turn whose message led to each inference, if there is one that can be read.
async fn messages(
    app: &App,
    rows: &[(TurnPosition, Correction)],
    now: DateTime<Utc>,
) -> Result<Vec<Option<IndexRow>>, Problem> {
    let of = |row: &Correction| {
        let turn = row.feedback.detected_in_turn.clone()?;
        let within = row.turn.core.at.within.clone();
        Some(TurnRef { within, turn })
    };
    let at: Vec<Option<TurnRef>> = rows.iter().map(|(_, row)| of(row)).collect();
    let mut wanted: Vec<TurnRef> = at.iter().flatten().cloned().collect();
    wanted.sort();
    wanted.dedup();
    let found = app.store.live_turns(&wanted, now).await?;
    let message = |at: TurnRef| {
        let place = wanted.binary_search(&at).ok()?;
        found.get(place).cloned().flatten()
    };
    Ok(at.into_iter().map(|at| at.and_then(message)).collect())
}

fn fingerprint(listed: &CorrectionFilter<'_>) -> [u8; 32] {
    let (from, to) = listed.span;
    let [from, to] = [from, to].map(|instant| instant.timestamp_micros().to_string());
    let (tenant, project) = (listed.tenant.as_str(), listed.project.as_str());
    digest(["corrections", tenant, project, &from, &to])
}

//! The feedback on a turn for a planner, as JSON or as Markdown.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use futures::future::try_join_all;
use hearback_detection::FeedbackStatus;
use hearback_domain::events::recency::Recency;
use hearback_domain::feedback::message_signal::{MessageSignal, StoredSignal};
use hearback_domain::feedback::reaction::{FeedbackKind, Reaction};
use hearback_domain::feedback::sequence::Sequence;
use hearback_domain::identity::caller::Caller;
use hearback_domain::learning::preferences::NewestVersion;
use hearback_domain::views::feedback_context::{
    ExplicitRejection, FeedbackContext, Rejection, RejectionFacts, SessionPreferences,
};
use hearback_lambda::accept::{not_acceptable, preferred, varying};
use hearback_lambda::params::{InTurn, Parameters};
use hearback_lambda::problem::ProblemDocument;
use hearback_lambda::rejections::{ForbiddenRejection, Rejections};
use hearback_lambda::routes::Routes;
use hearback_lambda::{App, Problem, WithBlobs, routes};
use hearback_storage::message_signals::SignalFilter;
use hearback_storage::preferences::Freshness;
use hearback_storage::turn_rows::IndexRow;
use hearback_storage::unless_unreadable;

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
    let now = app.clock.now();
    let row = app.store.turn(&at, now).await?;
    let row = row
        .filter(|row| caller.sees(&row.core.user_id))
        .ok_or_else(|| Problem::no_such("turn"))?
        .seen_by(&caller.user, now);
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
    let (texts, signals, before, preferences) = futures::join!(
        texts(app, caller, row),
        own_signals(app, caller, row),
        app.store
            .rejections_before(row, &caller.user, app.clock.now()),
        own_preferences(app, caller, row),
    );
    let (texts, stored) = (texts?, signals?);
    let signals: Vec<_> = (stored.iter())
        .map(|signal| (signal.core.signal, signal.reason.as_deref()))
        .collect();
    let words: Vec<_> = texts.iter().map(|(_, text)| text.as_str()).collect();
    let inferred = row.status.inferred.as_ref();
    let known = RejectionFacts {
        explicit: explicit.map(|_| ExplicitRejection {
            words: &words,
            user_said: user_said(&texts, &stored),
        }),
        inferred: inferred.filter(|inferred| inferred.status == FeedbackStatus::Rejected),
        signals: &signals,
        sequence: Sequence::of(std::iter::repeat_n(FeedbackStatus::Rejected, 1 + before?)),
    };
    Ok(Rejection::of(&row.core, &row.summary, known, preferences?))
}

/// The latest words of a complaint.
fn user_said<'a>(texts: &'a [(Recency, String)], signals: &'a [StoredSignal]) -> Option<&'a str> {
    let reasons = signals.iter().filter_map(|StoredSignal { core, reason }| {
        let complains = match core.signal {
            MessageSignal::NotHelpful | MessageSignal::Inaccurate | MessageSignal::Unsafe => true,
            MessageSignal::Helpful | MessageSignal::Edit | MessageSignal::Regenerate => false,
        };
        let reason = reason.as_deref().filter(|_| complains)?;
        Some((core.recency(), reason))
    });
    let texts = texts
        .iter()
        .map(|(recency, text)| (*recency, text.as_str()));
    let latest = texts.chain(reasons).max_by_key(|(recency, _)| *recency);
    latest.map(|(_, words)| words)
}

/// The texts of the user's explicit rejections that later feedback does not settle, the latest first. The reasons of
/// message signals are among [`own_signals`]. Costs a call and a read unit for each reaction and event.
async fn texts(
    app: &App,
    caller: &Caller,
    row: &IndexRow,
) -> Result<Vec<(Recency, String)>, Problem> {
    let complaints = row.given.complaints(app.clock.now());
    let found = complaints.into_iter().map(async |(kind, recency)| {
        let text = text_of(app, caller, row, kind, recency).await?;
        Ok::<_, Problem>(text.map(|text| (recency, text)))
    });
    let found = try_join_all(found).await?.into_iter().flatten();
    Ok(found.filter(|(_, text)| !text.trim().is_empty()).collect())
}

/// The text of an explicit rejection, if the caller may see it.
async fn text_of(
    app: &App,
    caller: &Caller,
    row: &IndexRow,
    kind: FeedbackKind,
    recency: Recency,
) -> Result<Option<String>, Problem> {
    let (at, now) = (&row.core.at, app.clock.now());
    let rejection = match kind {
        FeedbackKind::Reaction => {
            let user = Some(&row.core.user_id);
            let found = app.store.turn_and_reaction(at, user, now).await;
            let current = unless_unreadable(found, &at.within.tenant)?;
            let current = current.and_then(|(_, current)| current);
            current.map(|current| current.value)
        }
        FeedbackKind::Event => app.store.counted_event(at, recency.id(), now).await?,
        FeedbackKind::Helpful
        | FeedbackKind::NotHelpful
        | FeedbackKind::Inaccurate
        | FeedbackKind::Unsafe => None,
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
    let owner = caller.user_ref();
    let (mut signals, _) = app
        .store
        .signals_of(owner, &filter, app.clock.now(), None, MAX_SIGNALS)
        .await?;
    // Later feedback of the user settles a complaint, even if the complaint was not withdrawn.
    let settled = row.given.settled_by(app.clock.now());
    signals.retain(|StoredSignal { core, .. }| {
        // Messages of two projects may have the same id.
        core.at == row.core.at && Some(core.recency()) > settled
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
        app.store
            .newest_version(caller.user_ref(), Freshness::Eventual)
            .await?
    } else {
        NewestVersion::default()
    };
    let global = newest.profile().preferences.global_preferences;
    Ok(SessionPreferences {
        communication_style: global.communication_style,
        detail_level: global.detail_level,
    })
}

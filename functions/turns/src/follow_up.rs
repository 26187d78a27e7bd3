//! The feedback of a turn on the previous one: detected at its registration, and stored with the previous turn.

use hearback_detection::{Detection, Earlier, Exchange, FeedbackStatus};
use hearback_domain::feedback::follow_up::{FollowUp, Precedence, SESSION_TIMEOUT, UserFeedback};
use hearback_domain::feedback::reaction::MIN_CONFIDENCE;
use hearback_domain::identity::caller::Caller;
use hearback_domain::text::language::Language;
use hearback_domain::turns::embedded::Embedded;
use hearback_domain::turns::turn::{Turn, TurnCore};
use hearback_lambda::App;
use hearback_storage::turn_rows::IndexRow;
use hearback_storage::vectors::{TimeRange, TurnMark, TurnVector};
use hearback_storage::{Error, if_readable, unless_unreadable};

use crate::{Registry, machine};

/// The feedback of a turn on the previous one, with the previous turn; `None` if there is none within a session.
pub(crate) async fn detect(
    registry: &Registry,
    turn: &Turn,
) -> Result<Option<(FollowUp, TurnCore)>, Error> {
    let app = &registry.app.app;
    let Some(before) = before(app, &turn.core).await? else {
        return Ok(None);
    };
    let previous = before.turn;
    let answer = previous.summary.answer();
    let exchange = Exchange {
        prev_query: Some(&previous.summary.user),
        prev_response: Some(&answer),
        message: turn.query(),
        language: turn.core.language.as_ref().map(Language::as_str),
        embedding_similarity: similarity(turn, &before.vector),
        // Of a question that the row has whole, the detector compares the words, too.
        repeats_query: (previous.summary.user_digest.as_ref())
            .map(|_| previous.summary.is_question(turn.query())),
        earlier: &[],
    };
    let mut detection = registry.detector.detect(&exchange);
    if is_uncertain(&detection) && !before.earlier.is_empty() {
        let earlier = earlier(app, &turn.core, &before.earlier).await?;
        let whole = previous.summary.whole_answer().is_some();
        let answers: Vec<_> = (earlier.iter())
            .map(|row| row.summary.whole_answer().filter(|_| whole))
            .collect();
        let earlier: Vec<_> = (earlier.iter().zip(&answers))
            .map(|(row, answer)| Earlier {
                query: &row.summary.user,
                answer: answer.as_deref(),
            })
            .collect();
        detection = registry.detector.detect(&Exchange {
            earlier: &earlier,
            ..exchange
        });
    }
    // Explicit feedback ends a sequence of rejections.
    let continues_sequence = detection.feedback_type == FeedbackStatus::Rejected
        && !previous.status.is_explicitly_not_rejected();
    let before = if continues_sequence {
        app.store
            .rejections_before(&previous, &previous.core.user_id, app.clock.now())
            .await?
    } else {
        0
    };
    let turn = previous.core.at.turn.clone();
    let follow_up = FollowUp::of(turn, detection, before);
    Ok(Some((follow_up, previous.core)))
}

/// The cosine of the embeddings that the caller submitted for both turns.
fn similarity(turn: &Turn, previous: &TurnVector) -> Option<f64> {
    let own = Embedded::from_caller(turn.embedding.as_deref()?);
    own.cosine(&previous.mark.embedder, &previous.embedding)
}

/// Turns of a session among which the previous one is searched at first, and then. A back end may register the turns of
/// many conversations in the name of one user.
const SEARCHED: [i32; 2] = [25, 250];

/// What a turn follows.
struct Before {
    /// The previous turn.
    turn: IndexRow,
    /// Its vector.
    vector: TurnVector,
    /// The turns before it, the latest first.
    earlier: Vec<TurnMark>,
}

/// Whether earlier turns may change a detection. Otherwise they are not read.
fn is_uncertain(detection: &Detection) -> bool {
    detection.feedback_type == FeedbackStatus::Neutral || detection.confidence < MIN_CONFIDENCE
}

/// The user's own turns of these marks that have an answer.
async fn earlier(app: &App, turn: &TurnCore, marks: &[TurnMark]) -> Result<Vec<IndexRow>, Error> {
    let at: Vec<_> = marks.iter().map(|mark| mark.at.clone()).collect();
    let rows = app.store.live_turns(&at, app.clock.now()).await?;
    let own = rows.into_iter().zip(marks).filter_map(|(row, mark)| {
        row.filter(|row| row.is_marked(&turn.user_id, mark.ts) && !row.core.open)
    });
    Ok(own.collect())
}

/// The previous turn of the same user in the same conversation, if it is within a session and has an answer, and what
/// was before it.
async fn before(app: &App, turn: &TurnCore) -> Result<Option<Before>, Error> {
    let owner = turn.owner();
    let span = TimeRange {
        from: turn.ts - SESSION_TIMEOUT,
        to: turn.ts,
    };
    for limit in SEARCHED {
        let (latest, more) = app.store.latest_turns(owner, span, limit).await?;
        let mut latest = latest.into_iter().filter(|earlier| {
            let at = &earlier.mark.at;
            at.within == turn.at.within && *at != turn.at
        });
        while let Some(vector) = latest.next() {
            let mark = &vector.mark;
            let row = app.store.turn(&mark.at, app.clock.now()).await;
            // The message is about the answer that cannot be read, and not about one before it.
            let row = if_readable(row, &mark.at.within.tenant)?;
            let Some(row) = row else {
                return Ok(None);
            };
            let row = row.filter(|row| row.is_marked(&turn.user_id, mark.ts));
            if let Some(row) = row {
                let mut earlier: Vec<TurnMark> = Vec::new();
                for TurnVector { mark, .. } in latest {
                    let is_new =
                        mark.at != row.core.at && earlier.iter().all(|one| one.at != mark.at);
                    if is_new && earlier.len() < Earlier::MOST {
                        earlier.push(mark);
                    }
                }
                return Ok((!row.core.open).then_some(Before {
                    turn: row,
                    vector,
                    earlier,
                }));
            }
        }
        if !more {
            break;
        }
    }
    Ok(None)
}

/// Stores the feedback with the previous turn, and the machine reaction if the confidence is high enough. Each step may
/// be repeated.
pub(crate) async fn note(
    app: &App,
    caller: &Caller,
    turn: &TurnCore,
    follow_up: &FollowUp,
    previous: &TurnCore,
) -> Result<(), Error> {
    let feedback = UserFeedback::of(follow_up, turn.at.turn.clone(), app.clock.now());
    let precedence = Precedence::of_follow_up(turn.ts, &turn.at.turn);
    if !app
        .store
        .note_inferred(&previous.at, previous.ts, &feedback, precedence)
        .await?
    {
        // The feedback of a turn that follows more closely counts.
        return Ok(());
    }
    let detection = &follow_up.detection;
    if let Some(mut reaction) = machine::reaction(app, caller, previous, detection, turn.ts) {
        reaction.core.follow_up = true;
        machine::put(app, &reaction).await?;
    }
    Ok(())
}

/// Stores the feedback of a registered turn again, in case its registration crashed before.
pub(crate) async fn note_again(app: &App, caller: &Caller, known: &IndexRow) -> Result<(), Error> {
    let Some(follow_up) = &known.follow_up else {
        return Ok(());
    };
    let mut at = known.core.at.clone();
    at.turn = follow_up.previous_turn_id.clone();
    let previous = app.store.turn(&at, app.clock.now()).await;
    match unless_unreadable(previous, &at.within.tenant)? {
        Some(previous) => note(app, caller, &known.core, follow_up, &previous.core).await,
        None => Ok(()),
    }
}
